/* `clattn bench limits`: multiply-adds and bandwidth, on one unit and on all, or on as many as are asked for.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "../host/internal.h"
#include "group.h"
#include "jobs.h"

static void add_opencl_limits(bench_group *group, bench_device *device) {
    bench_group_add_limit(group, device, BENCH_LIMIT_MULTIPLY_ADD, device->isa);
    if (device->context->device.has_mma) bench_group_add_limit(group, device, BENCH_LIMIT_FRAGMENTS, device->isa);
    bench_group_add_limit(group, device, BENCH_LIMIT_READ_LOCAL, device->isa);
    bench_group_add_limit(group, device, BENCH_LIMIT_READ_CACHE, device->isa);
    bench_group_add_limit(group, device, BENCH_LIMIT_READ_MEMORY, device->isa);
}

/* Multiply-adds at the level asked for, by default at every level that the processor has; bandwidths at that level or the
 * device's. */
static void add_host_limits(bench_group *group, bench_device *device) {
    static const bench_limit_kind reads[] = {BENCH_LIMIT_READ_L1, BENCH_LIMIT_READ_CACHE, BENCH_LIMIT_READ_L3,
                                             BENCH_LIMIT_READ_MEMORY};
    const bench_isa *asked = bench_args_isa(&group->session->args), *isa;
    for (size_t level = 0; (isa = bench_isa_level(level)) != NULL; level++)
        if (!asked || isa == asked) bench_group_add_limit(group, device, BENCH_LIMIT_MULTIPLY_ADD, isa);
    for (bench_limit_kind kind = BENCH_LIMIT_AVX512_BF16; !asked && kind < BENCH_LIMIT_PEAKS; kind++)
        bench_group_add_limit(group, device, kind, device->isa);
    for (size_t n = 0; n < sizeof reads / sizeof *reads; n++)
        bench_group_add_limit(group, device, reads[n], asked ? asked : device->isa);
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
        if (device->cl)
            add_opencl_limits(&group, device);
        else
            add_host_limits(&group, device);
        bool right = bench_group_measure(&group, false, &first, error);
        bench_group_free(&group);
        if (!right) return false;
    }
    return true;
}
