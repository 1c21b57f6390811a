/* The files of tuning.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   {"schema": "clattn-tune-1", "clattn": "0.1.0", "commit": "...", "kernels": "digest of the kernel files",
 *    "device": {"name": ..., "platform": ..., "driver": ..., "vendor": ..., "architecture": ..., "type": ..., "kernels": ...},
 *    "choices": [{"key": "attention f32 dim 0-64 ...", "row": ..., "default": ..., "ratio": 1.25, "noise": 0.01, ...}, ...]}
 *
 * Members that are not named here are for people, and are passed over.
 */
#ifndef CLATTN_TUNING_FILE_H
#define CLATTN_TUNING_FILE_H

#include "json.h"
#include "tuned/tuned.h"
#include "tuning.h"

typedef struct clattn__tuning_files {
    clattn__tuned *lines;
    size_t count, capacity;
    char **names; /* of the files that have lines: what clattn__tuned.file points to */
    size_t name_count;
    clattn__text problems; /* a line each */
} clattn__tuning_files;

/* How near the device of a measurement is to this one. */
clattn__tuning_level clattn__tuning_level_of(const clattn__tuning_device *measured, const clattn__tuning_device *here);

/* Read a file's "device". */
void clattn__tuning_file_device(clattn__json *, clattn__tuning_device *);
/* Take over what a file's text says of devices like `here`; false, with a line in `problems`, where it is no such file. */
bool clattn__tuning_file_take(clattn__tuning_files *, const char *name, bool built_in, const char *text,
                              const clattn__tuning_device *here);
/* All files of the user and those compiled in. */
void clattn__tuning_files_read(clattn__tuning_files *, const clattn__tuning_device *here);
void clattn__tuning_files_free(clattn__tuning_files *);

#endif
