/* One run of the lab: a student's kernel from its source to a verdict.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_CLI_LAB_RUN_H
#define CLATTN_CLI_LAB_RUN_H

#include "client.h"
#include "source.h"
#include "trial.h"
#include "words.h"

/* enumerator, words */
#define LAB_VERDICTS(X)                                                                                                        \
    X(CORRECT, "correct")                                                                                                      \
    X(BUILD_ERROR, "build error")                                                                                              \
    X(WRONG_CONTRACT, "wrong contract")                                                                                        \
    X(OUT_OF_BOUNDS, "out of bounds")                                                                                          \
    X(RACE, "race")                                                                                                            \
    X(HANG, "hang")                                                                                                            \
    X(CRASH, "crash")                                                                                                          \
    X(WRONG, "wrong")                                                                                                          \
    X(UNSTABLE, "unstable")                                                                                                    \
    X(UNDECIDED, "undecided") /* the lab itself could not go on */

typedef enum lab_verdict {
#define LAB_X(name, words) LAB_##name,
    LAB_VERDICTS(LAB_X)
#undef LAB_X
} lab_verdict;

const char *lab_verdict_text(lab_verdict);

typedef struct lab_timing {
    bool is_measured, is_believed;
    double yours_ms, ours_ms; /* medians; ours: NaN where it could not be timed */
    double shortest_ms;       /* of your launches */
    double floor_ms;          /* the least that can be, with all data in cache */
    double yours_percent, ours_percent; /* of the peak: what the device's arithmetic, or its memory, allows */
    int launches;
    char shape[96];
} lab_timing;

typedef struct lab_result {
    lab_verdict verdict;
    char device[512], id[64];
    bool is_isolated;
    char isolation[256]; /* what is missing where it is partial */
    char stage[32], shape[96];
    char detail[4096]; /* what happened; the compiler's lines */
    char cause[256];   /* the likely reason; "": none fits */
    int line;          /* of the student's; 0: unknown */
    bool has_errors;
    lab_errors errors;
    char warnings[1024]; /* a line each */
    char printed[2048];  /* by the kernel; cut off */
    char simulator[256]; /* what it did or why it did not */
    int shapes_passed, shapes;
    lab_timing timing;
} lab_result;

typedef struct lab_options {
    const char *kernel, *device, *json;
    bool watch, no_oclgrind, no_timing;
    double limit_s; /* of a build or a launch */
    uint64_t seed;
} lab_options;

typedef struct lab_run {
    const lab_step *step;
    const lab_options *options;
    lab_source source;
    lab_result result;
    lab_client worker;
    clattn_context *reference;
    bench_random random;
    lab_buffers layout;
    void (*say)(const char *stage, const char *words); /* progress */
} lab_run;

/* Everything; the result says what came of it. The source has been read. */
void lab_run_all(lab_run *);

/* ---- what its parts share ------------------------------------------------------------------------------------------ */

/* Set the verdict where there is none yet; returns false: `return lab_judge(run, ...)`. */
bool lab_judge(lab_run *, lab_verdict, const char *stage, const char *format, ...) __attribute__((format(printf, 4, 5)));
void lab_warn(lab_run *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A request about a trial, with its buffers and grid. */
lab_request lab_request_of(const lab_run *, lab_op, const lab_trial *);
/* Ask; whatever is not an answer becomes a verdict of the stage. */
bool lab_ask(lab_run *, const char *stage, const lab_request *, lab_reply *);
/* Place, prepare, launch and collect; *ms (may be NULL) is the launch by the parent's clock. */
bool lab_launch(lab_run *, const char *stage, lab_trial *, uint32_t slot, double *ms);
/* Look at the memory around the output, then at the output's rows that are expected. */
bool lab_check(lab_run *, const char *stage, const lab_trial *);

/* The worker is gone: by which signal, and near which buffer. */
bool lab_judge_death(lab_run *, const char *stage, const lab_request *, const lab_reply *);

/* Compile the source; its name, arguments and work-group against the step's. */
bool lab_build(lab_run *);
bool lab_check_contract(lab_run *);

/* The likely reason for these errors, or "". */
void lab_find_cause(const lab_run *, const lab_trial *, const lab_errors *, char *text, size_t size);

/* Three tiny shapes on oclgrind, where it is installed. */
bool lab_simulate(lab_run *);
/* Time it beside the library's. */
bool lab_time(lab_run *);

/* What a device can do at most in a second; 0: unknown. */
typedef struct lab_limits {
    double gflops, gbytes, cached_gbytes;
} lab_limits;

/* From the times: parts of the peak, the floor, and whether they can be believed: one launch that cannot be is enough. */
void lab_judge_timing(lab_timing *, const lab_step *, const lab_shape *, const lab_limits *);
/* Correct, and in a time that can be believed. */
bool lab_passed(const lab_result *);

#endif
