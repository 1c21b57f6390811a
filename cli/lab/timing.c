/* A student's kernel beside the library's: turn by turn, on fresh data, by the parent's clock.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Both sides are workers that are asked in the same way, so that what the asking takes is the same for both.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/clock.h"
#include "bench/stats.h"
#include "run.h"

enum { FIRST_SLOT = 3, MAX_TURNS = 11 /* the first is not timed */, SHORT_TURNS = 4, BLOCKS = 3, BLOCK_ROWS = 2 };
static const char stage[] = "time";
/* A launch that takes longer gets fewer turns. */
static const double LONG_MS = 700;
/* The limits were measured, too, and the machine has other work. */
static const double DOUBT = 0.8;
/* The library needs time for its own programs and for the limits. */
static const double OURS_LIMIT_S = 120;

_Static_assert(FIRST_SLOT + MAX_TURNS <= LAB_SLOTS, "each turn has a slot of its own");

/* ---- the library's side -------------------------------------------------------------------------------------------- */

typedef struct rival {
    lab_client client;
    lab_request request;
    bool is_there;
    lab_limits limits;
} rival;

static bool ask_rival(rival *ours, lab_op op, lab_reply *reply) {
    ours->request.op = op;
    return lab_client_ask(&ours->client, &ours->request, reply, OURS_LIMIT_S) == LAB_ANSWERED && !reply->failed;
}

/* The best that was measured so far. */
static bool ask_limits(rival *ours, lab_reply *reply) {
    lab_limits *limits = &ours->limits;
    if (!ask_rival(ours, LAB_OP_LIMITS, reply)) return false;
    limits->gflops = fmax(limits->gflops, reply->values[0]);
    limits->gbytes = fmax(limits->gbytes, reply->values[1]);
    limits->cached_gbytes = fmax(limits->cached_gbytes, reply->values[2]);
    return true;
}

static void open_rival(lab_run *run, rival *ours) {
    lab_reply reply = {0};
    char why[256];
    ours->request = lab_request_of(run, LAB_OP_OPEN, NULL);
    ours->request.shape = run->step->timed;
    if (!lab_client_start(&ours->client, LAB_OURS_WORKER, why, sizeof why)) {
        lab_warn(run, "the library's kernel is not timed: %s\n", why);
        return;
    }
    ours->is_there = ask_rival(ours, LAB_OP_OPEN, &reply) && ask_limits(ours, &reply) && ask_rival(ours, LAB_OP_OURS, &reply);
    if (!ours->is_there)
        lab_warn(run, "the library's kernel is not timed: %s\n", reply.text[0] != 0 ? reply.text : "no answer");
}

static double time_rival(rival *ours) {
    lab_reply reply;
    const double start = bench_now_ms();
    if (ours->is_there) ours->is_there = ask_rival(ours, LAB_OP_OURS_LAUNCH, &reply);
    return ours->is_there ? bench_now_ms() - start : NAN;
}

/* ---- turns --------------------------------------------------------------------------------------------------------- */

typedef struct turns {
    lab_trial trials[MAX_TURNS];
    int count, wanted;
    double yours[MAX_TURNS], ours[MAX_TURNS];
} turns;

/* Rows that nobody can foresee, of an output all of which has to be written. */
static bool check_some(lab_run *run, lab_trial *trial) {
    const float *output = lab_trial_output(trial, run->worker.memory);
    if (lab_trial_is_unwritten(trial, output))
        return lab_judge(run, LAB_WRONG, stage, "a timed launch left elements unwritten");
    for (int i = 0; i < BLOCKS; i++) {
        const int first = (int)bench_random_below(&run->random, (uint64_t)(trial->shape.m - BLOCK_ROWS + 1));
        if (!lab_trial_expect(trial, run->reference, first, BLOCK_ROWS))
            return lab_judge(run, LAB_UNDECIDED, stage, "out of memory");
        if (!lab_check(run, stage, trial)) return false;
    }
    return true;
}

static bool take_turn(lab_run *run, turns *all, rival *ours) {
    lab_trial *trial = &all->trials[all->count];
    double *ms = &all->yours[all->count];
    if (!lab_trial_make(trial, run->step, &run->step->timed, &run->random))
        return lab_judge(run, LAB_UNDECIDED, stage, "out of memory");
    if (!lab_launch(run, stage, trial, FIRST_SLOT + (uint32_t)all->count, ms)) return false;
    all->ours[all->count] = time_rival(ours);
    all->count++;
    if (all->count == 2 && *ms > LONG_MS) all->wanted = SHORT_TURNS;
    if (all->count > 1) return check_some(run, trial);
    return (lab_trial_expect(trial, run->reference, 0, trial->shape.m) ||
            lab_judge(run, LAB_UNDECIDED, stage, "out of memory")) &&
           lab_check(run, stage, trial);
}

/* Once more when nothing runs any longer: an output that came late, or changed since, is none. */
static bool check_all_again(lab_run *run, turns *all) {
    for (int i = 0; i < all->count; i++)
        if (!check_some(run, &all->trials[i])) return false;
    return true;
}

/* ---- the sum ------------------------------------------------------------------------------------------------------- */

/* What arithmetic and bytes take at these rates; NaN where they are not known. */
static double least_ms(const lab_step *step, const lab_shape *shape, double gflops, double gbytes) {
    if (!(gflops > 0 && gbytes > 0)) return NAN;
    return fmax(lab_flops(step, shape) / gflops, lab_bytes(step, shape) / gbytes) * 1e-6;
}

void lab_judge_timing(lab_timing *timing, const lab_step *step, const lab_shape *shape, const lab_limits *limits) {
    const double peak_ms = least_ms(step, shape, limits->gflops, limits->gbytes);
    timing->floor_ms = least_ms(step, shape, limits->gflops, limits->cached_gbytes);
    timing->yours_percent = 100 * peak_ms / timing->yours_ms;
    timing->ours_percent = 100 * peak_ms / timing->ours_ms;
    timing->is_measured = true;
    timing->is_believed = !(timing->shortest_ms < DOUBT * timing->floor_ms);
    lab_shape_text(step, shape, timing->shape, sizeof timing->shape);
}

/* Before a time is called impossible, what is possible is measured once more: the machine may have had other work. */
static void sum_up(lab_run *run, turns *all, rival *ours) {
    lab_timing *timing = &run->result.timing;
    const size_t count = (size_t)all->count - 1;
    timing->launches = (int)count;
    const bench_stats yours = bench_stats_of(all->yours + 1, count);
    timing->yours_ms = yours.median;
    timing->shortest_ms = yours.min;
    timing->ours_ms = ours->is_there ? bench_stats_of(all->ours + 1, count).median : NAN;
    lab_judge_timing(timing, run->step, &run->step->timed, &ours->limits);
    lab_reply reply;
    if (!timing->is_believed && ours->is_there && ask_limits(ours, &reply)) lab_judge_timing(timing, run->step, &run->step->timed, &ours->limits);
}

bool lab_time(lab_run *run) {
    turns all = {.wanted = MAX_TURNS};
    rival ours = {0};
    bool right = true;
    if (run->options->no_timing) return true;
    open_rival(run, &ours);
    while (all.count < all.wanted && right) right = take_turn(run, &all, &ours);
    right = right && check_all_again(run, &all);
    if (right) sum_up(run, &all, &ours);
    for (int i = 0; i < MAX_TURNS; i++) lab_trial_free(&all.trials[i]);
    lab_client_stop(&ours.client);
    return right;
}
