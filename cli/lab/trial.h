/* One launch as the parent sees it: what went in, what has to come out, what did.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The inputs are made here and copied into the shared memory; the expected values never go there.
 */
#ifndef CLATTN_CLI_LAB_TRIAL_H
#define CLATTN_CLI_LAB_TRIAL_H

#include "bench/random.h"
#include "clattn/clattn.h"
#include "protocol.h"

enum { LAB_MAP_ROWS = 12, LAB_MAP_COLUMNS = 48 };

typedef struct lab_trial {
    const lab_step *step;
    lab_shape shape;
    float *inputs[LAB_MAX_BUFFERS]; /* NULL: the output */
    double *expected;               /* rows first_row to first_row + row_count - 1 */
    int first_row, row_count;
    lab_buffer buffers[LAB_MAX_BUFFERS];
    uint32_t slot, output; /* which of the buffers is the output */
    uint32_t canary;
} lab_trial;

/* Make inputs; no expected values yet. False: out of memory, or they do not fit a slot. */
bool lab_trial_make(lab_trial *, const lab_step *, const lab_shape *, bench_random *);
void lab_trial_free(lab_trial *);
/* Compute the expected values of some rows in double precision, by the reference device. */
bool lab_trial_expect(lab_trial *, clattn_context *reference, int first_row, int row_count);

/* Write inputs, poison and canaries into a slot of the shared memory. False: they do not fit. */
bool lab_trial_place(lab_trial *, char *memory, uint32_t slot, lab_buffers layout);
/* What the output's buffer holds. */
const float *lab_trial_output(const lab_trial *, const char *memory);

/* What is wrong with memory that is not the output's: "" when nothing. */
void lab_trial_find_stray(const lab_trial *, const char *memory, char *text, size_t size);

typedef struct lab_errors {
    size_t checked, wrong;
    size_t unwritten;    /* of the wrong: still poison */
    size_t not_a_number; /* NaN, or infinite where it should not be, and written */
    size_t zero;         /* of all that was checked */
    int row, column;     /* the first wrong one */
    double expected, got;
    bool is_unwritten;                           /* it is still poison */
    int least_row, least_column;                 /* of all wrong ones */
    char map[LAB_MAP_ROWS][LAB_MAP_COLUMNS + 1]; /* '.' right, '#' wrong, '?' not written, 'n' NaN */
    int map_rows, map_columns;
} lab_errors;

/* Compare the rows whose values are expected; the map is of those rows. */
lab_errors lab_trial_compare(const lab_trial *, const float *output);
/* Whether anything in the whole output is still poison. */
bool lab_trial_is_unwritten(const lab_trial *, const float *output);

#endif
