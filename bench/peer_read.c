/* The least that attention of few queries can take: its keys and values read once, in the order in which they lie, and summed. And
 * the least that a recurrence of one member can: its W_h read once a step, each thread the same part of it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "candidate.h"
#include "clock.h"
#include "threads.h"

/* What a thread reads is a multiple of so many bytes: 16 of the widest vectors. The last bytes, fewer than that, are left out.
 */
enum { CHUNK = 16 * 64 };

typedef struct reading {
    const bench_isa *isa;
    int threads;
    int64_t walks;
    const clattn_arg *tensors[2]; /* the second may be NULL */
} reading;

static void read_share(void *arg, int thread, int threads) {
    const reading *state = arg;
    float total = 0, sink;
    for (int n = 0; n < 2 && state->tensors[n]; n++) {
        const size_t chunks = state->tensors[n]->bytes / CHUNK, all = (size_t)threads;
        const size_t first = chunks * (size_t)thread / all, end = chunks * ((size_t)thread + 1) / all;
        state->isa->read((const float *)state->tensors[n]->data + first * (CHUNK / sizeof(float)),
                         (int64_t)((end - first) * (CHUNK / sizeof(float))), state->walks, &sink);
        total += sink;
    }
    volatile float kept = total;
    (void)kept;
}

static bool run(bench_candidate *candidate, bench_time *time, bench_error *error) {
    reading *state = candidate->state;
    (void)error;
    const double start = bench_now_ms();
    bench_on_threads(state->threads, read_share, state);
    time->wall_ms = bench_now_ms() - start;
    return true;
}

static void release(bench_candidate *candidate) {
    free(candidate->state);
}

static const bench_candidate_class class = {.run = run, .release = release};

/* What is read, and how often. */
static reading reading_of(const bench_device *device, const bench_problem *problem) {
    reading state = {.isa = device->isa, .threads = device->units, .walks = 1};
    if (!bench_op_recurs(problem->shape.op)) {
        state.tensors[0] = &problem->args[1];
        state.tensors[1] = &problem->args[2];
        return state;
    }
    state.walks = problem->shape.len_q;
    for (size_t n = 0; n < problem->arg_count; n++)
        if (problem->args[n].id == CLATTN_TENSOR_W_H) state.tensors[0] = &problem->args[n];
    return state;
}

bool bench_candidate_read(bench_candidate *candidate, bench_device *device, bench_problem *problem, bench_error *error) {
    *candidate = (bench_candidate){.device = device,
                                   .problem = problem,
                                   .contrast = bench_op_recurs(problem->shape.op) ? "recurrence" : "peers",
                                   .launches = -1,
                                   .dependent_steps = -1,
                                   .workspace_bytes = -1,
                                   .peak = BENCH_LIMIT_NONE};
    snprintf(candidate->path, sizeof candidate->path, bench_op_recurs(problem->shape.op) ? "read W_h a step" : "read K and V");
    if (device->cl) return bench_fail(error, "the tensors lie on an OpenCL device");
    reading *state = malloc(sizeof *state);
    if (!state) return bench_fail(error, "out of memory");
    *state = reading_of(device, problem);
    candidate->state = state;
    candidate->class = &class;
    for (int n = 0; n < 2 && state->tensors[n]; n++) candidate->bytes += (double)state->walks * (double)state->tensors[n]->bytes;
    return true;
}
