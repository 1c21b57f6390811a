/* Tuning: which kernel row was measured to be the fastest for a kind of problem, on this device or on one like it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * `clattn tune` measures and writes a file of JSON for each device; all files of the user's directory and those compiled in
 * (host/tuned/) are read once in a context, when the first plan asks. A choice is looked up by the problem's kind, its key:
 * role, type, classes of sizes. Neither batch nor heads are in it, so that a sample alone is computed as it is in a batch; nor
 * are ragged batches tuned, whose lengths are those of the batch. The nearest device's choice counts:
 *
 *   this device -> its architecture -> its vendor -> its type -> none: the table's order (rows.def)
 *
 * at each of them the user's files, by name, before those compiled in. A choice only ever moves a row to the front: one that
 * may not serve is passed over like any other row, and the plan says so. A file that cannot be read is left out with a warning.
 * What was measured on other kernels than this library's is left out, too, unless it is compiled in.
 *
 * The directory is $CLATTN_CONFIG_DIR/tune, else $XDG_CONFIG_HOME/clattn/tune, else $HOME/.config/clattn/tune. $CLATTN_TUNING=0
 * leaves all measurements aside, as clattn_plan_options.untuned does for one plan.
 */
#ifndef CLATTN_TUNING_H
#define CLATTN_TUNING_H

#include "internal.h"

#define CLATTN__TUNING_SCHEMA "clattn-tune-1"

enum { CLATTN__TUNING_KEY = 128, CLATTN__TUNING_MOST = 1 << 20 /* bytes of a file */ };

typedef enum clattn__tuning_level {
    CLATTN__TUNING_DEVICE,
    CLATTN__TUNING_ARCHITECTURE,
    CLATTN__TUNING_VENDOR,
    CLATTN__TUNING_TYPE,
    CLATTN__TUNING_NO_LEVEL /* another kind of device altogether */
} clattn__tuning_level;

/* What a file says of the device that it was measured on. */
typedef struct clattn__tuning_device {
    char name[256], platform[128], driver[128], vendor[64], architecture[32];
    char type[32];    /* "native", "opencl-cpu", "opencl-gpu", "opencl-other" */
    char kernels[32]; /* the families of rows that could serve: "cpu", "cpu+gpu", ... */
} clattn__tuning_device;

clattn__tuning_device clattn__tuning_device_of(const clattn__device *);

/* A line of a file. */
typedef struct clattn__tuned {
    clattn__tuning_level level;
    const char *file; /* its path, or "built in: NAME" */
    bool built_in, other_driver;
    char key[CLATTN__TUNING_KEY], row[64], other[64]; /* the choice, and the row that it was measured against: the table's */
    double ratio;                                     /* the other's time by the row's; 1 where it is the same */
    double noise;
} clattn__tuned;

/* The kind of problem, as text; false where rows of the role are not tuned, or not for such a problem. */
bool clattn__tuning_key(clattn__role, const clattn__params *, char key[CLATTN__TUNING_KEY]);
/* Where a line comes from: "measured on its architecture, /home/...". */
void clattn__tuned_origin(clattn__text *, const clattn__tuned *);
/* What was measured for that kind, nearest first; NULL: nothing. Valid as long as the context. */
const clattn__tuned *clattn__tuning_find(clattn_context *, const char *key);
/* All that counts here, nearest first, and what is wrong with files, a line each ("": nothing). */
const clattn__tuned *clattn__tuning_list(clattn_context *, size_t *count, const char **problems);
void clattn__tuning_close(clattn_context *);

/* For measuring: from now on files are not asked, and `row`, unless NULL, goes first for its role. */
bool clattn__tuning_try(clattn_context *, const clattn__row *row);
/* Whether that is so; then *row is that row, if it is of the role, or NULL. */
bool clattn__tuning_trial(clattn_context *, clattn__role, const clattn__row **row);

/* The user's directory; empty where there is none. The caller frees. */
clattn__text clattn__tuning_directory(void);
/* The name of a device's file in it. */
void clattn__tuning_file(const clattn__tuning_device *, char *name, size_t size);

#endif
