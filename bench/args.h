/* The command line of `clattn bench`.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_BENCH_ARGS_H
#define CLATTN_BENCH_ARGS_H

#include "cli/options.h"
#include "isa.h"

typedef enum bench_job {
    BENCH_JOB_MAIN,
    BENCH_JOB_ATTENTION,
    BENCH_JOB_PROJECT,
    BENCH_JOB_RECURRENCE,
    BENCH_JOB_LIMITS,
    BENCH_JOB_ALL,
} bench_job;

typedef struct bench_args {
    bench_job job;
    cli_integer batch, heads, kv_heads, kv_len, head_dim, value_dim, seed, limit;
    cli_integers len, threads, window;
    cli_align causal;
    cli_integer dtype, algorithm; /* choices; algorithm in the order of clattn_algorithm, dtype in bench_args_dtype's */
    const char *device, *isa, *json, *csv, *report;
    bool peers, torch, one_type, growth, quick, markdown;
} bench_args;

/* argv[0] is "bench". False when the command is over (help, or a mistake named): *exit_code says how. */
bool bench_args_read(bench_args *, int argc, char **argv, int *exit_code);
/* Whether stdout carries a file, and nothing else then. */
bool bench_args_owns_stdout(const bench_args *);

clattn_dtype bench_args_dtype(const bench_args *);
/* The level of instructions asked for; NULL: all. */
const bench_isa *bench_args_isa(const bench_args *);

static inline int64_t bench_args_or(cli_integer option, int64_t value) {
    return option.given ? option.value : value;
}

#endif
