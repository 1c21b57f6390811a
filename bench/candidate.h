/* What can be timed: one interface for clattn's plans on host memory and on OpenCL, for peers, and for the device's limits.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_BENCH_CANDIDATE_H
#define CLATTN_BENCH_CANDIDATE_H

#include "device.h"
#include "problem.h"

typedef struct bench_candidate bench_candidate;

/* One run's time. */
typedef struct bench_time {
    double wall_ms;
    double event_ms; /* the device's own clock; NaN where there is none */
} bench_time;

/* The device's limits. */
typedef enum bench_limit_kind {
    BENCH_LIMIT_MULTIPLY_ADD,
    BENCH_LIMIT_FRAGMENTS,  /* OpenCL: f16 products on tensor cores, by the instruction of kernels/gpu/mma.h */
    BENCH_LIMIT_AVX512_BF16, /* host memory: bf16 products in registers, by the instructions of host/native/tiles.h */
    BENCH_LIMIT_AMX_BF16,
    BENCH_LIMIT_READ_LOCAL, /* OpenCL: from a work-group's local memory */
    BENCH_LIMIT_READ_L1,    /* host memory, as is the next but one */
    BENCH_LIMIT_READ_CACHE, /* what is near: on host memory a core's second-level cache */
    BENCH_LIMIT_READ_L3,
    BENCH_LIMIT_READ_MEMORY,
    BENCH_LIMIT_PEAKS = BENCH_LIMIT_READ_LOCAL, /* those before it are of arithmetic */
    BENCH_LIMIT_NONE = BENCH_LIMIT_READ_MEMORY + 1, /* as a candidate's peak: not known */
} bench_limit_kind;

typedef struct bench_candidate_class {
    /* Run once, wait for the end, and say how long it took. No copy between host and device. */
    bool (*run)(bench_candidate *, bench_time *, bench_error *);
    /* Bring the output into the problem's memory; NULL where it already lies there. */
    bool (*fetch)(bench_candidate *, bench_error *);
    void (*release)(bench_candidate *);
} bench_candidate_class;

struct bench_candidate {
    const bench_candidate_class *class;
    bench_device *device;
    bench_problem *problem; /* NULL: a limit */
    const char *contrast;   /* see fields.def */
    char path[64], algorithm[32], row[160], verified[128], note[256];
    double flops, bytes;                                /* 0: does not apply */
    int64_t launches, dependent_steps, workspace_bytes; /* -1: unknown */
    int64_t tile;                                       /* queries a tile, 0: unknown */
    bench_limit_kind peak;                              /* the limit that its FLOPs are held against */
    void *state;
};

/* A plan of clattn for the problem on a device. */
bool bench_candidate_plan(bench_candidate *, bench_device *, bench_problem *, bench_variant, bench_error *);
/* Attention by two cblas_sgemm and a softmax between them, on host memory: a head's whole score matrix at once, or blocks of
 * rows that stay in cache; heads and blocks over the threads. Projections: one cblas_sgemm with OpenBLAS's threads. */
typedef enum bench_openblas_kind { BENCH_OPENBLAS_WHOLE, BENCH_OPENBLAS_ROW_BLOCKED } bench_openblas_kind;
bool bench_candidate_openblas(bench_candidate *, bench_device *, bench_problem *, bench_openblas_kind, bench_error *);
/* Before the program starts itself anew: an OpenBLAS that takes this processor for its oldest has OPENBLAS_CORETYPE set. */
void bench_openblas_recognize(void);
/* Attention by CLBlast's GEMM and clattn's mask and softmax kernels, on the same OpenCL device. */
bool bench_candidate_clblast(bench_candidate *, bench_device *, bench_problem *, bench_error *);

/* K and V of attention, or W_h of a recurrence once a step, read where they lie and summed, by as many threads as the device has: the
 * least that a plan on host memory can take. */
bool bench_candidate_read(bench_candidate *, bench_device *, bench_problem *, bench_error *);

/* The problem's inputs to the OpenCL device, or its output back. */
bool bench_candidate_copy(bench_candidate *, bench_device *, bench_problem *, bool to_device, bench_error *);

/* The number in host/native/features.def of what a limit's instructions need; 0: nothing. */
int bench_limit_feature(bench_limit_kind);
/* A limit of the device; fails, with the reason, where it has no such thing. */
bool bench_candidate_limit(bench_candidate *, bench_device *, bench_limit_kind, const bench_isa *, bench_error *);

/* A zeroed candidate is accepted. */
void bench_candidate_release(bench_candidate *);
/* Run on a poisoned output and compare with the oracle. */
bool bench_candidate_verify(bench_candidate *, clattn_context *reference, bench_error *);

#endif
