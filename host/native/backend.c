/* The native backend: the CPU kernels compiled into the library, OpenMP threads over their groups.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(_OPENMP)
#include <omp.h>
#endif

#include "../self_check.h"
#include "native.h"

/* ---- instruction-set levels ---------------------------------------------------------------------------------------- */

typedef struct isa_level {
    const char *name;
    int vector_width;
    bool here; /* the processor has it and the library was compiled for it */
} isa_level;

enum {
#define ISA(name, width, flags, processors, test) ISA_##name,
#include "isa.def"
#undef ISA
    ISA_COUNT
};

static bool level_is_compiled(const char *isa) {
    for (const clattn__native_entry *entry = clattn__native_entries; entry->row; entry++)
        if (strcmp(entry->isa, isa) == 0) return true;
    return false;
}

static void list_levels(isa_level levels[ISA_COUNT]) {
#define ISA(name, width, flags, processors, test) levels[ISA_##name] = (isa_level){#name, width, (test) && level_is_compiled(#name)};
#include "isa.def"
#undef ISA
}

/* Whether some row that needs a feature was compiled for a level. */
static bool feature_is_compiled(int number, const char *isa) {
    for (const clattn__row *row = clattn__rows; row < clattn__rows + clattn__row_count; row++) {
        if (row->family != CLATTN__FAMILY_NATIVE || clattn__row_macro(row, "TILES", 0) != number) continue;
        for (const clattn__native_entry *entry = clattn__native_entries; entry->row; entry++)
            if (strcmp(entry->row, row->name) == 0 && strcmp(entry->isa, isa) == 0) return true;
    }
    return false;
}

/* The features of this processor at a level, as clattn__device has them; their names are added to `text`, which lists levels. */
static unsigned list_features(const char *isa, char *text, size_t size) {
    const unsigned here = clattn__features_here();
    unsigned features = 0;
    size_t length = strlen(text);
#define FEATURE(name, number, flags, processors, test, missing)                                                          \
    if (here >> number & 1 && feature_is_compiled(number, isa)) {                                                        \
        if (length < size) length += (size_t)snprintf(text + length, size - length, "%s%s", features ? " " : "; bf16 by ", #name); \
        features |= 1u << number;                                                                                        \
    }
#include "features.def"
#undef FEATURE
    return features;
}

/* ---- steps --------------------------------------------------------------------------------------------------------- */

static bool is_variant(const clattn__native_entry *entry, const clattn__variant *variant) {
    for (const clattn__macro *exact = entry->exact; exact->name; exact++)
        for (const clattn__macro *macro = variant->macros; macro->name; macro++)
            if (strcmp(macro->name, exact->name) == 0 && macro->value != exact->value) return false;
    return true;
}

static const clattn__native_entry *find_entry(const clattn__step *step, const char *isa) {
    for (const clattn__native_entry *entry = clattn__native_entries; entry->row; entry++)
        if (strcmp(entry->row, step->row->name) == 0 && strcmp(entry->isa, isa) == 0 && is_variant(entry, &step->variant))
            return entry;
    return NULL;
}

static clattn_status prepare(clattn_plan *plan, clattn__step *step) {
    const char *isa = plan->context->state;
    const char *refusal = clattn__feature_permit(clattn__row_macro(step->row, "TILES", 0));
    if (refusal) return clattn__fail(plan->context, CLATTN_ERROR_BUILD, "%s: %s", step->row->name, refusal);
    step->prepared = (void *)find_entry(step, isa);
    if (step->prepared) return CLATTN_OK;
    return clattn__fail(plan->context, CLATTN_ERROR_BUILD, "%s was not compiled for %s", step->row->name, isa);
}

static void release(clattn_context *context, clattn__step *step) {
    (void)context;
    step->prepared = NULL;
}

/* In a process forked off since, OpenMP's threads are gone and a team of many waits for them for ever: one thread. */
static int team_size(const clattn_context *context, i64 groups) {
    if (context->process != getpid()) return 1;
    return groups < context->threads ? (int)groups : context->threads;
}

static void run_groups(clattn__native_kernel *kernel, void *const *buffers, const clattn__params *params, int threads) {
#if defined(_OPENMP)
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (i64 group = 0; group < params->groups; group++) kernel(buffers, params, group, params->groups);
#else
    (void)threads;
    kernel(buffers, params, 0, 1);
#endif
}

/* Each thread does the same groups at every repetition, so that what they read stays in its own cache. */
static void run_repeated(clattn__native_kernel *kernel, void *const *buffers, const clattn__step *step, int threads) {
#if defined(_OPENMP)
#pragma omp parallel num_threads(threads) if (threads > 1)
#endif
    {
        clattn__params params = step->params;
        int thread = 0, team = 1;
#if defined(_OPENMP)
        thread = omp_get_thread_num();
        team = omp_get_num_threads();
#endif
        for (i64 n = 0; n < step->repeat; n++) {
            params.step = n;
            kernel(buffers, &params, thread, team);
#if defined(_OPENMP)
            if (team > 1) {
#pragma omp barrier
            }
#endif
        }
    }
    (void)threads;
}

static clattn_status run(clattn_plan *plan, void *const tensors[CLATTN_TENSOR_COUNT]) {
    void *workspace = tensors[CLATTN_TENSOR_WORKSPACE];
    double nowhere = 0; /* aligned for any element */
    clattn_status status = clattn__plan_own_workspace(plan, &workspace);
    if (status != CLATTN_OK) return status;
    for (size_t n = 0; n < plan->step_count; n++) {
        const clattn__step *step = &plan->steps[n];
        const clattn__native_entry *entry = step->prepared;
        void *buffers[CLATTN__MAX_BUFFERS] = {0};
        for (int i = 0; i < clattn__roles[step->row->role].buffers; i++) {
            const clattn__place *place = &step->buffers[i];
            char *memory = place->where == CLATTN__IN_WORKSPACE ? workspace : tensors[place->tensor];
            /* What is empty may lie nowhere, and kernels add an offset to where that is: C has no NULL + 0. */
            buffers[i] = memory ? memory + place->offset : (char *)&nowhere;
        }
        const int threads = team_size(plan->context, step->params.groups);
        if (step->repeat == 1)
            run_groups(entry->kernel, buffers, &step->params, threads);
        else
            run_repeated(entry->kernel, buffers, step, threads);
    }
    return CLATTN_OK;
}

const clattn__backend clattn__backend_native = {
    .name = "native",
    .prepare = prepare,
    .release = release,
    .run = run,
};

/* ---- the device ---------------------------------------------------------------------------------------------------- */

static void describe(clattn_context *context, const isa_level levels[ISA_COUNT], const isa_level *used, bool best) {
    clattn_device_info info = {.struct_size = sizeof info,
                               .id = "native",
                               .kind = CLATTN_DEVICE_NATIVE,
                               .platform = "clattn",
                               .compute_units = (uint64_t)context->threads,
                               .vector_width = (uint64_t)used->vector_width};
    if (!best) snprintf(info.id, sizeof info.id, "native:%s", used->name);
    snprintf(info.driver, sizeof info.driver, "clattn %s", clattn_version());
    clattn__native_processor(info.name, sizeof info.name);
    size_t length = (size_t)snprintf(info.features, sizeof info.features, "uses %s; has", used->name);
    for (const isa_level *level = levels; level < levels + ISA_COUNT; level++)
        if (level->here && length < sizeof info.features)
            length += (size_t)snprintf(info.features + length, sizeof info.features - length, " %s", level->name);
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0) info.global_bytes = info.max_alloc_bytes = (uint64_t)pages * (uint64_t)page;
    const unsigned features = list_features(used->name, info.features, sizeof info.features);
    context->device = (clattn__device){.info = info,
                                       .features = features,
                                       .has_cpu_family = true,
                                       .has_f64 = true,
                                       .vector_width = used->vector_width,
                                       .max_work_group = 1,
                                       .max_params_bytes = sizeof(clattn__params)};
}

#if defined(_OPENMP)
/* OpenMP counts processors once, before `main`; the calling thread may have been bound to fewer since. What OMP_NUM_THREADS asks for,
 * it gets. */
static int default_threads(void) {
    const int threads = omp_get_max_threads(), processors = omp_get_num_procs();
    return getenv("OMP_NUM_THREADS") || threads < processors ? threads : processors;
}
#endif

clattn_status clattn__native_open(clattn_context *context, const char *isa) {
    isa_level levels[ISA_COUNT];
    const isa_level *best = NULL, *used = NULL;
    list_levels(levels);
    for (const isa_level *level = levels + ISA_COUNT; level-- > levels;) {
        if (!level->here) continue;
        best = level;
        if (isa && strcmp(level->name, isa) == 0) used = level;
    }
    if (!isa) used = best;
    if (!used)
        return clattn__fail(context, CLATTN_ERROR_DEVICE, "native:%s: this processor, or this build of clattn, has no such level",
                            isa ? isa : "");
#if defined(_OPENMP)
    if (context->threads == 0) context->threads = default_threads();
#else
    context->threads = 1;
#endif
    context->process = getpid();
    describe(context, levels, used, used == best);
    context->backend = &clattn__backend_native;
    context->state = (void *)used->name;
    return clattn__self_checks_open(context, NULL);
}
