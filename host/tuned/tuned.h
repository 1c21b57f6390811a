/* Measurements that are compiled in: the files beside this one, in the form of tuning_file.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_TUNED_TUNED_H
#define CLATTN_TUNED_TUNED_H

typedef struct clattn__tuned_file {
    const char *name, *text;
} clattn__tuned_file;

extern const char clattn__tuned_file_pocl_avx512_json[];

/* Ends at a NULL name. */
extern const clattn__tuned_file clattn__tuned_files[];

#endif
