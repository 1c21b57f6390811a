/* `clattn bench limits`: multiply-adds and bandwidth, on one unit and on all, or on as many as are asked for.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "../host/internal.h"
#include "group.h"
#include "jobs.h"

/* Each limit on host memory at every level of instructions that the processor has; bandwidth at the best. */
static void add_limits(bench_group *group, bench_device *device) {
    const bench_isa *isa;
    for (size_t level = 1; !device->cl && (isa = bench_isa_level(level)) != NULL; level++)
        bench_group_add_limit(group, device, BENCH_LIMIT_MULTIPLY_ADD, isa);
    bench_group_add_limit(group, device, BENCH_LIMIT_MULTIPLY_ADD, device->isa);
    if (device->context->device.mma == MMA_NVIDIA) bench_group_add_limit(group, device, BENCH_LIMIT_FRAGMENTS, device->isa);
    if (device->cl) bench_group_add_limit(group, device, BENCH_LIMIT_READ_LOCAL, device->isa);
    bench_group_add_limit(group, device, BENCH_LIMIT_READ_CACHE, device->isa);
    bench_group_add_limit(group, device, BENCH_LIMIT_READ_MEMORY, device->isa);
}

bool bench_job_limits(bench_session *session, bench_error *error) {
    int units[BENCH_MAX_UNITS];
    const size_t unit_count = bench_session_asked_units(session, units);
    for (size_t i = 0; i < unit_count; i++) {
        bench_device *device = bench_session_device(session, units[i], error);
        if (!device) return false;
        bench_session_progress(session, "limits on %d", device->units);
        bench_group group = {.session = session};
        size_t first;
        add_limits(&group, device);
        bool right = bench_group_measure(&group, false, &first, error);
        bench_group_free(&group);
        if (!right) return false;
    }
    return true;
}
