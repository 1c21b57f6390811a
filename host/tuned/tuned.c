/* SPDX-License-Identifier: Apache-2.0 */
#include "tuned.h"

#include <stddef.h>

const clattn__tuned_file clattn__tuned_files[] = {
    {NULL, NULL},
};
