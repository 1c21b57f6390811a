/* Unfused attention and projections by OpenBLAS.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Found at run time like everything foreign, so that its threads start when it is asked for and not with the program.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../host/internal.h"
#include "../host/library.h"
#include "candidate.h"
#include "clock.h"
#include "isa.h"
#include "pin.h"
#include "threads.h"

#if !defined(CLATTN_BENCH_OPENBLAS)

bool bench_candidate_openblas(bench_candidate *candidate, bench_device *device, bench_problem *problem,
                              bench_openblas_kind kind, bench_error *error) {
    (void)candidate, (void)device, (void)problem, (void)kind;
    return bench_fail(error, "this build has no OpenBLAS");
}

void bench_openblas_recognize(void) {}

#else

/* The values of cblas.h. */
enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112 };

typedef void sgemm_function(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda,
                            const float *b, int ldb, float beta, float *c, int ldc);

/* Rows of a block: its scores against 4096 keys fill a quarter of a megabyte. */
enum { BLOCK_ROWS = 64 };

typedef struct openblas {
    void *library;
    sgemm_function *sgemm;
    void (*set_num_threads)(int);
    char *(*core_name)(void);
    attention_params params; /* for live_range */
    member member;
    i64 block_rows;        /* of scores: len_q or BLOCK_ROWS */
    float *scores;         /* a block for each thread */
    int threads;
} openblas;

/* ---- attention ----------------------------------------------------------------------------------------------------- */

/* Rows [first, first + rows) of one head, by way of `scores`. */
static void attend_rows(const bench_candidate *candidate, i64 head, i64 first, i64 rows, float *scores) {
    const openblas *state = candidate->state;
    const bench_problem *p = candidate->problem;
    const bench_shape *s = &p->shape;
    const i64 b = head / s->heads_q, kv = b * s->heads_kv + head % s->heads_q / (s->heads_q / s->heads_kv);
    const float *q = (const float *)p->args[0].data + (head * s->len_q + first) * s->head_dim;
    const float *k = (const float *)p->args[1].data + kv * s->len_kv * s->head_dim;
    const float *v = (const float *)p->args[2].data + kv * s->len_kv * s->value_dim;
    float *out = (float *)p->args[3].data + (head * s->len_q + first) * s->value_dim;
    const int m = (int)rows, len_kv = (int)s->len_kv, dim = (int)s->head_dim, value_dim = (int)s->value_dim;
    const float scale = (float)(1 / sqrt((double)s->head_dim));
    state->sgemm(ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE, m, len_kv, dim, 1, q, dim, k, dim, 0, scores, len_kv);
    for (i64 i = 0; i < rows; i++)
        candidate->device->isa->softmax(scores + i * s->len_kv, live_range(&state->params, &state->member, first + i).end, s->len_kv, scale);
    state->sgemm(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, m, value_dim, len_kv, 1, scores, len_kv, v, value_dim, 0, out,
                 value_dim);
}

/* One thread's blocks. */
static void attend_share(void *arg, int thread, int threads) {
    const bench_candidate *candidate = arg;
    const openblas *state = candidate->state;
    const bench_shape *s = &candidate->problem->shape;
    const i64 rows = state->block_rows, blocks = (s->len_q + rows - 1) / rows, all = s->batch * s->heads_q * blocks;
    float *scores = state->scores + thread * rows * s->len_kv;
    for (i64 n = thread; n < all; n += threads) {
        const i64 first = n % blocks * rows, rest = s->len_q - first;
        attend_rows(candidate, n / blocks, first, rest < rows ? rest : rows, scores);
    }
}

/* ---- projections --------------------------------------------------------------------------------------------------- */

static void project(const bench_candidate *candidate) {
    const openblas *state = candidate->state;
    const bench_problem *p = candidate->problem;
    const int rows = (int)(p->shape.batch * p->shape.len_q), depth = (int)p->shape.d_in, columns = (int)p->shape.hidden;
    state->sgemm(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, rows, columns, depth, 1, p->args[0].data, depth, p->args[1].data,
                 columns, 0, p->args[2].data, columns);
}

/* ---- candidate ----------------------------------------------------------------------------------------------------- */

/* Attention: heads and blocks over OpenMP's threads, each with a serial product. A projection: OpenBLAS's own threads, once
 * those of OpenMP, which spin for some milliseconds after their last work, have left the cores to them. */
static bool run(bench_candidate *candidate, bench_time *time, bench_error *error) {
    const openblas *state = candidate->state;
    const bool attends = candidate->problem->shape.op == BENCH_OP_ATTENTION;
    (void)error;
    state->set_num_threads(attends ? 1 : state->threads);
    if (!attends && state->threads > 1) nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
    double start = bench_now_ms();
    if (attends)
        bench_on_threads(state->threads, attend_share, candidate);
    else
        project(candidate);
    time->wall_ms = bench_now_ms() - start;
    return true;
}

static void release(bench_candidate *candidate) {
    openblas *state = candidate->state;
    if (state->library) dlclose(state->library);
    free(state->scores);
    free(state);
}

static const bench_candidate_class class = {.run = run, .release = release};

static bool find(openblas *state, const char *symbol, void *function, bench_error *error) {
    void *address = dlsym(state->library, symbol);
    memcpy(function, &address, sizeof address); /* ISO C has no cast between the two kinds of pointers */
    return address || bench_fail(error, "OpenBLAS has no function %s", symbol);
}

static bool load(openblas *state, bench_error *error) {
    bench_affinity saved;
    bench_pin_widen(&saved); /* its threads inherit what this one may use */
    /* NODELETE: its threads and exit handlers outlive the last candidate. */
    state->library = dlopen(CLATTN_BENCH_OPENBLAS, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    bench_pin_restore(&saved);
    if (!state->library) return bench_fail(error, "%s does not load", CLATTN_BENCH_OPENBLAS);
    return find(state, "cblas_sgemm", &state->sgemm, error) &&
           find(state, "openblas_set_num_threads", &state->set_num_threads, error) &&
           find(state, "openblas_get_corename", &state->core_name, error);
}

/* OpenBLAS knows processors by their model. One that is younger than it gets the kernels of the oldest, which fill a quarter of
 * an AVX-512 processor: no peer. */
void bench_openblas_recognize(void) {
    static const struct {
        const char *level, *core;
    } cores[] = {{"avx512", "SkylakeX"}, {"avx2", "Haswell"}};
    openblas state = {0};
    bench_error error;
    const bench_isa *isa = bench_isa_level(0);
    if (getenv("OPENBLAS_CORETYPE") || !load(&state, &error) || strcmp(state.core_name(), "Prescott") != 0) return;
    for (size_t n = 0; n < sizeof cores / sizeof *cores; n++) {
        if (isa && strcmp(isa->name, cores[n].level) == 0) setenv("OPENBLAS_CORETYPE", cores[n].core, 1);
    }
}

static bool allocate(openblas *state, const bench_shape *s, bench_error *error) {
    if (s->op == BENCH_OP_PROJECT) return true;
    size_t bytes = (size_t)(state->threads * state->block_rows * s->len_kv) * sizeof(float);
    state->scores = aligned_alloc(64, (bytes + 64) / 64 * 64);
    return state->scores || bench_fail(error, "out of memory: %zu bytes of scores", bytes);
}

static attention_params params_of(const bench_shape *s) {
    i64 offset = s->align == CLATTN_ALIGN_TOP_LEFT       ? 0
                 : s->align == CLATTN_ALIGN_BOTTOM_RIGHT ? s->len_kv - s->len_q
                                                         : s->offset;
    return (attention_params){
        .batch = 1, .len_q = s->len_q, .len_kv = s->len_kv, .keys = {offset, -1, s->causal ? 0 : -1, 0}};
}

bool bench_candidate_openblas(bench_candidate *candidate, bench_device *device, bench_problem *problem,
                              bench_openblas_kind kind, bench_error *error) {
    *candidate = (bench_candidate){.device = device, .problem = problem, .launches = -1, .dependent_steps = -1};
    openblas *state = calloc(1, sizeof *state);
    if (!state) return bench_fail(error, "out of memory");
    const bool whole = kind == BENCH_OPENBLAS_WHOLE;
    *state = (openblas){.params = params_of(&problem->shape), .threads = device->units};
    state->member = member_of(&state->params, NULL, NULL, NULL, 0);
    state->block_rows = whole || problem->shape.len_q < BLOCK_ROWS ? problem->shape.len_q : BLOCK_ROWS;
    candidate->state = state;
    candidate->class = &class;
    snprintf(candidate->path, sizeof candidate->path, "openblas %s",
             problem->shape.op == BENCH_OP_PROJECT ? "sgemm"
             : whole                               ? "unfused whole"
                                                   : "unfused row-blocked");
    snprintf(candidate->algorithm, sizeof candidate->algorithm, "unfused");
    if (!load(state, error) || !allocate(state, &problem->shape, error)) {
        bench_candidate_release(candidate);
        return false;
    }
    snprintf(candidate->note, sizeof candidate->note, "OpenBLAS computes with its kernels for %s", state->core_name());
    return true;
}

#endif
