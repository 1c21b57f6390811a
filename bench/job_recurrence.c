/* `clattn bench recurrence`: rnn and lstm, the loop alone and the layer, every way the device has.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "group.h"
#include "jobs.h"

typedef struct loop_or_layer {
    bench_op op;
    bool layer;
} loop_or_layer;

static const loop_or_layer kinds[] = {
    {BENCH_OP_RNN, false}, {BENCH_OP_RNN, true}, {BENCH_OP_LSTM, false}, {BENCH_OP_LSTM, true}};

enum { KINDS = sizeof kinds / sizeof *kinds };

static bool measure_length(bench_session *session, int64_t length, bench_error *error) {
    bench_problem problems[KINDS] = {{{0}}};
    bench_group group = {.session = session};
    bench_device *device = &session->devices[0];
    /* OpenCL has two ways; on host memory there is one. */
    const clattn_recurrence_form from = device->cl ? CLATTN_RECURRENCE_PERSISTENT : CLATTN_RECURRENCE_AUTO;
    const clattn_recurrence_form to = device->cl ? CLATTN_RECURRENCE_STEPS : CLATTN_RECURRENCE_AUTO;
    bool right = true;
    size_t first;
    for (int i = 0; right && i < KINDS; i++) {
        bench_shape shape = bench_session_shape(session, kinds[i].op, length);
        if (!kinds[i].layer) shape.d_in = 0;
        right = bench_problem_create(&problems[i], &shape, session->seed, error);
        for (clattn_recurrence_form form = from; right && form <= to; form++)
            bench_group_add_plan(&group, "recurrence", device, &problems[i], (bench_variant){.recurrence = form});
        /* Of one member each step is little more than a read of W_h. */
        if (right && !device->cl && !kinds[i].layer && shape.batch == 1) bench_group_add_read(&group, device, &problems[i]);
    }
    bench_session_progress(session, "recurrences at length %lld: sampling", (long long)length);
    right = right && bench_group_measure(&group, false, &first, error);
    bench_group_free(&group);
    for (int i = 0; i < KINDS; i++) bench_problem_free(&problems[i]);
    return right;
}

bool bench_job_recurrence(bench_session *session, bench_error *error) {
    static const int64_t defaults[] = {64, 512, 2048};
    int64_t lengths[BENCH_MAX_LENGTHS];
    size_t count = bench_session_lengths(session, defaults, session->args.quick ? 2 : 3, lengths);
    for (size_t i = 0; i < count; i++)
        if (!measure_length(session, lengths[i], error)) return false;
    return true;
}
