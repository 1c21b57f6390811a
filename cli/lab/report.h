/* What a run of the lab has found, in words and as JSON.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_CLI_LAB_REPORT_H
#define CLATTN_CLI_LAB_REPORT_H

#include "run.h"

/* The verdict and all that explains it, behind the stages' lines. */
void lab_report_print(const lab_run *);
/* Into options->json; returns the exit code. */
int lab_report_json(const lab_run *);

#endif
