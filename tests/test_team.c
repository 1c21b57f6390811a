/* How many threads a native plan runs on: as many as asked for, and none beyond those that its callers have.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * OpenMP reads the environment before `main`, and its threads stay: each case is a process of its own, this program started again
 * with the case as its arguments.
 */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(_OPENMP)
#include <omp.h>
#endif

#include "support.h"

enum { HEADS = 16, LEN = 64, DIM = 16, ELEMENTS = HEADS * LEN * DIM, CALLERS = 3 };

/* ---- the case ------------------------------------------------------------------------------------------------------ */

static int threads_here(void) {
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;
    for (const struct dirent *entry; tasks && (entry = readdir(tasks)) != NULL;) count += entry->d_name[0] != '.';
    if (tasks) closedir(tasks);
    return count;
}

static void attend(clattn_context *context) {
    float *data = test_alloc(4 * ELEMENTS, sizeof *data);
    for (int n = 0; n < 4 * ELEMENTS; n++) data[n] = 1;
    clattn_attention_desc desc = CLATTN_ATTENTION_DESC_INIT;
    desc.q = desc.k = desc.v = desc.out = clattn_tensor_bhld(CLATTN_F32, 1, HEADS, LEN, DIM);
    const clattn_arg args[] = {{CLATTN_TENSOR_Q, data, 0},
                               {CLATTN_TENSOR_K, data + ELEMENTS, 0},
                               {CLATTN_TENSOR_V, data + 2 * ELEMENTS, 0},
                               {CLATTN_TENSOR_OUT, data + 3 * ELEMENTS, 0}};
    clattn_plan *plan;
    if (clattn_plan_create_attention(context, &desc, OPTIONS(.untuned = 1), &plan) != CLATTN_OK) abort();
    if (clattn_plan_run(plan, args, COUNT(args)) != CLATTN_OK) abort();
    clattn_plan_destroy(plan);
    free(data);
}

static pthread_barrier_t attended, counted;

static void *attend_and_wait(void *context) {
    attend(context);
    pthread_barrier_wait(&attended);
    pthread_barrier_wait(&counted);
    return NULL;
}

static int with_callers(clattn_context *context) {
    pthread_t callers[CALLERS];
    pthread_barrier_init(&attended, NULL, CALLERS + 1);
    pthread_barrier_init(&counted, NULL, CALLERS + 1);
    for (int n = 0; n < CALLERS; n++)
        if (pthread_create(&callers[n], NULL, attend_and_wait, context) != 0) abort();
    pthread_barrier_wait(&attended);
    const int count = threads_here();
    pthread_barrier_wait(&counted);
    for (int n = 0; n < CALLERS; n++) pthread_join(callers[n], NULL);
    return count;
}

static int in_parallel(clattn_context *context) {
#if defined(_OPENMP)
#pragma omp parallel num_threads(CALLERS)
#endif
    attend(context);
    return threads_here();
}

static int alone(clattn_context *context) {
    attend(context);
    return threads_here();
}

static void bind_to_one(void) {
    cpu_set_t all, one;
    int cpu = 0;
    if (sched_getaffinity(0, sizeof all, &all) != 0) abort();
    while (!CPU_ISSET(cpu, &all)) cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) abort();
}

/* Prints how many threads the context says it has, and how many the process has once it has run. */
static int run_case(const char *callers, int threads) {
    const int before = threads_here(); /* a sanitizer may have one */
    if (strcmp(callers, "bound") == 0) bind_to_one();
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    options.device = "native";
    options.threads = threads;
    clattn_context *context;
    clattn_device_info info = {.struct_size = sizeof info};
    if (clattn_context_create(&options, &context) != CLATTN_OK || clattn_context_device(context, &info) != CLATTN_OK) abort();
    int (*const run)(clattn_context *) = strcmp(callers, "threads") == 0    ? with_callers
                                         : strcmp(callers, "parallel") == 0 ? in_parallel
                                                                            : alone;
    const int count = run(context) - before + 1;
    printf("%d %d\n", (int)info.compute_units, count);
    clattn_context_destroy(context);
    return 0;
}

/* ---- the cases ----------------------------------------------------------------------------------------------------- */

static const struct {
    const char *environment, *callers;
    int threads, units, team; /* asked for; of the context; in the process */
} cases[] = {
    {"OMP_NUM_THREADS=1", "alone", 0, 1, 1},
    {"OMP_NUM_THREADS=3", "alone", 0, 3, 3},
    {"OMP_NUM_THREADS=3", "bound", 0, 3, 3},
    {"OMP_NUM_THREADS=5", "alone", 2, 2, 2},
    {"-u OMP_NUM_THREADS", "bound", 0, 1, 1},
    {"OMP_NUM_THREADS=4", "threads", 1, 1, 1 + CALLERS},
    {"OMP_NUM_THREADS=2", "parallel", 0, 2, CALLERS},
};

START_TEST(no_more_threads_than_asked_for) {
    char self[4096] = "", command[8192];
    ck_assert_int_gt((int)readlink("/proc/self/exe", self, sizeof self - 1), 0);
    snprintf(command, sizeof command, "env -u OMP_PROC_BIND -u OMP_PLACES %s '%s' %s %d", cases[_i].environment, self, cases[_i].callers,
             cases[_i].threads);
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    int units = 0, team = 0;
    ck_assert_msg(fscanf(pipe, "%d %d", &units, &team) == 2, "no answer from: %s", command);
    ck_assert_int_eq(pclose(pipe), 0);
    ck_assert_msg(units == cases[_i].units && team == cases[_i].team, "%s: %d of %d threads, the process %d of %d", command, units,
                  cases[_i].units, team, cases[_i].team);
}
END_TEST

int main(int argc, char **argv) {
    if (argc == 3) return run_case(argv[1], atoi(argv[2]));
    Suite *suite = suite_create("team");
    TCase *tests = tcase_create("team");
#if defined(_OPENMP)
    tcase_add_loop_test(tests, no_more_threads_than_asked_for, 0, (int)COUNT(cases));
#else
    puts("skipped: built without OpenMP, so there is one thread");
#endif
    suite_add_tcase(suite, tests);
    return run_device_suite(suite);
}
