/* Many threads: one context, used from all of them at once from its first call on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

enum { THREADS = 8, ROUNDS = 4, BATCH = 2, HEADS = 2, LEN = 40, DIM = 24, COUNT_OF = BATCH * HEADS * LEN * DIM };

/* What one thread does; assertions wait until it has ended. */
typedef struct worker {
    pthread_t thread;
    pthread_barrier_t *start;
    clattn_context *context;
    const char *device; /* where it makes a context of its own */
    const float *q, *k, *v;
    float out[COUNT_OF];
    clattn_algorithm algorithm;
    clattn_status status, wrong;
    int64_t wrong_dim; /* each thread's own */
    char error[256];
} worker;

static clattn_attention_desc make_desc(void) {
    clattn_attention_desc desc = CLATTN_ATTENTION_DESC_INIT;
    desc.q = desc.k = desc.v = desc.out = clattn_tensor_bhld(CLATTN_F32, BATCH, HEADS, LEN, DIM);
    desc.options.causal = 1;
    return desc;
}

static clattn_status attend(clattn_context *context, worker *w) {
    const clattn_attention_desc desc = make_desc();
    const clattn_arg args[] = {{CLATTN_TENSOR_Q, (void *)w->q, 0},
                               {CLATTN_TENSOR_K, (void *)w->k, 0},
                               {CLATTN_TENSOR_V, (void *)w->v, 0},
                               {CLATTN_TENSOR_OUT, w->out, 0}};
    clattn_plan *plan;
    clattn_status status = clattn_plan_create_attention(context, &desc, OPTIONS(.algorithm = w->algorithm), &plan);
    for (int n = 0; n < ROUNDS && status == CLATTN_OK; n++) status = clattn_plan_run(plan, args, COUNT(args));
    clattn_plan_destroy(plan);
    return status;
}

/* Attend, fail, read the error, explain: all that a context allows from many threads. */
static void *work(void *data) {
    worker *w = data;
    clattn_attention_desc wrong = make_desc();
    wrong.k.size[3] = w->wrong_dim;
    pthread_barrier_wait(w->start);
    w->status = attend(w->context, w);
    w->wrong = clattn_supports_attention(w->context, &wrong, OPTIONS(.algorithm = w->algorithm));
    clattn_context_error(w->context, w->error, sizeof w->error);
    char text[64];
    clattn_context_explain(w->context, text, sizeof text);
    return NULL;
}

static void *work_alone(void *data) {
    worker *w = data;
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    options.device = w->device;
    clattn_context *context;
    pthread_barrier_wait(w->start);
    w->status = clattn_context_create(&options, &context);
    if (w->status == CLATTN_OK) w->status = attend(context, w);
    clattn_context_destroy(context);
    return NULL;
}

static void run_all(worker *workers, void *(*function)(void *)) {
    pthread_barrier_t start;
    ck_assert_int_eq(pthread_barrier_init(&start, NULL, THREADS), 0);
    for (int n = 0; n < THREADS; n++) {
        workers[n].start = &start;
        ck_assert_int_eq(pthread_create(&workers[n].thread, NULL, function, &workers[n]), 0);
    }
    for (int n = 0; n < THREADS; n++) pthread_join(workers[n].thread, NULL);
    pthread_barrier_destroy(&start);
}

static worker *make_workers(const float *data) {
    worker *workers = test_alloc(THREADS, sizeof *workers);
    for (int n = 0; n < THREADS; n++) {
        workers[n].q = data;
        workers[n].k = data + COUNT_OF;
        workers[n].v = data + 2 * COUNT_OF;
        workers[n].wrong_dim = DIM + 1 + n;
        workers[n].algorithm = n % 2 ? CLATTN_ALGORITHM_STAGED : CLATTN_ALGORITHM_FUSED;
    }
    return workers;
}

/* Threads with the same algorithm must have the same result, bitwise. */
static void assert_agreement(const worker *workers, const char *where) {
    for (int n = 0; n < THREADS; n++) {
        ck_assert_msg(workers[n].status == CLATTN_OK, "%s, thread %d: %s", where, n, clattn_status_name(workers[n].status));
        assert_same(workers[n].out, workers[n % 2].out, COUNT_OF, where, "the result of a thread");
    }
}

/* A device that is here under its own name, not another's with wider rows. */
static bool is_own_device(size_t n) { return test_context(n) && !strchr(test_device_name(n), '/'); }

START_TEST(one_context_many_threads) {
    rng r = rng_make((uint64_t)_i);
    if (!is_own_device((size_t)_i)) return;
    const char *name = test_device_name((size_t)_i);
    float *data = rng_floats(&r, 3 * COUNT_OF, 1);
    /* A context on which nothing has been built yet. */
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    options.device = name;
    clattn_context *context;
    ck_assert_int_eq(clattn_context_create(&options, &context), CLATTN_OK);
    worker *workers = make_workers(data);
    for (int n = 0; n < THREADS; n++) workers[n].context = context;
    run_all(workers, work);
    assert_agreement(workers, name);
    for (int n = 0; n < THREADS; n++) {
        ck_assert_int_eq(workers[n].wrong, CLATTN_ERROR_SHAPE);
        char own[64];
        snprintf(own, sizeof own, "k: dim is %d and must be %d", DIM + 1 + n, DIM);
        ck_assert_msg(strstr(workers[n].error, own) != NULL, "thread %d: %s", n, workers[n].error);
    }
    free(workers);
    clattn_context_destroy(context);
    free(data);
}
END_TEST

START_TEST(contexts_made_at_once) {
    rng r = rng_make(100 + (uint64_t)_i);
    if (!is_own_device((size_t)_i)) return;
    const char *name = test_device_name((size_t)_i);
    float *data = rng_floats(&r, 3 * COUNT_OF, 1);
    worker *workers = make_workers(data);
    for (int n = 0; n < THREADS; n++) workers[n].device = name;
    run_all(workers, work_alone);
    assert_agreement(workers, name);
    free(workers);
    free(data);
}
END_TEST

/* One context, a plan for each of many shapes, interleaved in one thread. */
START_TEST(one_context_many_plans) {
    clattn_context *context = test_context((size_t)_i);
    if (!context) return;
    enum { PLANS = 12 };
    clattn_plan *plans[PLANS];
    float *data = test_alloc(PLANS * PLANS * DIM, sizeof *data), *out = test_alloc(PLANS * PLANS * DIM, sizeof *out);
    for (int n = 0; n < PLANS * PLANS * DIM; n++) data[n] = 1;
    for (int n = 0; n < PLANS; n++) {
        const clattn_algorithm algorithm = n % 2 ? CLATTN_ALGORITHM_STAGED : CLATTN_ALGORITHM_AUTO;
        clattn_attention_desc desc = make_desc();
        desc.q = desc.k = desc.v = desc.out = clattn_tensor_bhld(CLATTN_F32, 1, n + 1, n + 1, DIM);
        assert_ok(context, clattn_plan_create_attention(context, &desc, OPTIONS(.algorithm = algorithm), &plans[n]));
    }
    for (int round = 0; round < 2 * PLANS; round++) {
        const int n = round * 5 % PLANS;
        memset(out, 0xff, PLANS * PLANS * DIM * sizeof *out);
        const clattn_arg args[] = {{CLATTN_TENSOR_Q, data, 0},
                                   {CLATTN_TENSOR_K, data, 0},
                                   {CLATTN_TENSOR_V, data, 0},
                                   {CLATTN_TENSOR_OUT, out, 0}};
        assert_ok(context, clattn_plan_run(plans[n], args, COUNT(args)));
        for (int e = 0; e < (n + 1) * (n + 1) * DIM; e++) ck_assert_float_eq_tol(out[e], 1, 1e-6f);
    }
    for (int n = 0; n < PLANS; n++) clattn_plan_destroy(plans[n]);
    free(out);
    free(data);
}
END_TEST

int main(void) {
    const int devices = (int)test_device_count();
    Suite *suite = suite_create("threads");
    TCase *tests = tcase_create("threads");
    tcase_add_loop_test(tests, one_context_many_threads, 0, devices);
    tcase_add_loop_test(tests, contexts_made_at_once, 0, devices);
    tcase_add_loop_test(tests, one_context_many_plans, 0, devices);
    suite_add_tcase(suite, tests);
    return run_device_suite(suite);
}
