/* The table of kernels, and which row of it serves a role on a device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "project_gemm.h"

/* What clattn__params says of each struct, and what every OpenCL device takes. */
#define ROLE(id, entry, params, buffers)                                                                                 \
    _Static_assert(offsetof(params, groups) == offsetof(clattn__params, groups) &&                                       \
                       offsetof(params, step) == offsetof(clattn__params, step) &&                                       \
                       offsetof(params, base) == offsetof(clattn__params, base) &&                                       \
                       sizeof(params) + PARAMS_BUFFERS * 8 <= 1024,                                                      \
                   #params);
#include "../kernels/roles.def"
#undef ROLE

const clattn__role_info clattn__roles[CLATTN__ROLE_COUNT] = {
#define B(name) #name,
#define ROLE(id, entry, params, buffers)                                                                                 \
    [CLATTN__ROLE_##id] = {#entry, sizeof(params), (int)(sizeof((const char *[]){buffers}) / sizeof(char *)), {buffers}},
#include "../kernels/roles.def"
#undef ROLE
#undef B
};

const clattn__row clattn__rows[] = {
#define M(name, value) {#name, value},
#define ROW(name, role, family, source, devices, macros)                                                                 \
    {#name, CLATTN__ROLE_##role, CLATTN__FAMILY_##family, source, CLATTN__##devices, {macros{NULL, 0}}},
#include "../kernels/rows.def"
#undef ROW
#undef M
};
const size_t clattn__row_count = sizeof clattn__rows / sizeof *clattn__rows;

const clattn__variant_info clattn__variants[] = {
#define V(value) value,
#define AT_LEAST false
#define EXACTLY true
#define VARIANT(role, macro, parameter, kind, values)                                                                    \
    {CLATTN__ROLE_##role, #macro, kind, (int)(sizeof((const int[]){values}) / sizeof(int)), {values}},
#include "../kernels/variants.def"
#undef VARIANT
#undef V
};
const size_t clattn__variant_count = sizeof clattn__variants / sizeof *clattn__variants;

static int macro_value(const clattn__macro *macros, const char *name, int missing) {
    for (const clattn__macro *macro = macros; macro < macros + CLATTN__MAX_MACROS && macro->name; macro++)
        if (strcmp(macro->name, name) == 0) return macro->value;
    return missing;
}

int clattn__row_macro(const clattn__row *row, const char *name, int missing) { return macro_value(row->macros, name, missing); }

int clattn__row_lanes(const clattn__row *row) {
    return clattn__row_macro(row, "VECTORS", 1) * clattn__row_macro(row, "VECTOR_WIDTH", 1);
}

/* ---- build options ------------------------------------------------------------------------------------------------- */

static void add_macros(clattn__text *options, const clattn__macro *macros) {
    for (const clattn__macro *m = macros; m < macros + CLATTN__MAX_MACROS && m->name; m++)
        clattn__text_add(options, " -D %s=%d", m->name, m->value);
}

void clattn__row_options(const clattn__row *row, const clattn__variant *variant, int mma, clattn__text *options) {
    clattn__text_add(options, "-cl-std=CL1.2 -cl-mad-enable");
    add_macros(options, row->macros);
    add_macros(options, variant->macros);
    if (mma && clattn__row_macro(row, "MMA", 0) == mma) clattn__text_add(options, " -D MMA_NATIVE=1");
}

/* ---- variants ------------------------------------------------------------------------------------------------------ */

/* The value that serves a parameter, or -1. */
static int variant_value(const clattn__variant_info *info, i64 parameter) {
    for (int n = 0; n < info->count; n++)
        if (info->exact ? info->values[n] == parameter : info->values[n] >= parameter) return info->values[n];
    return -1;
}

bool clattn__role_variant(clattn__role role, const clattn__params *params, clattn__variant *variant) {
    size_t line = 0, count = 0;
    bool fits = true;
    *variant = (clattn__variant){0};
#define VARIANT(of_role, macro, parameter, kind, values)                                                                 \
    if (role == CLATTN__ROLE_##of_role) {                                                                                \
        variant->macros[count] = (clattn__macro){#macro, variant_value(&clattn__variants[line], params->parameter)};     \
        fits &= variant->macros[count++].value >= 0;                                                                     \
    }                                                                                                                    \
    line++;
#include "../kernels/variants.def"
#undef VARIANT
    return fits;
}

/* ---- grids -------------------------------------------------------------------------------------------------------- */

static i64 tiles(i64 size, const clattn__row *row, const char *macro) {
    const i64 tile = clattn__row_macro(row, macro, 1);
    return size / tile + (size % tile != 0);
}

static i64 heads_of(const attention_params *a) { return a->batch * a->heads_q; }

i64 clattn__row_groups(const clattn__row *row, const clattn__params *params) {
    const attention_params *a = &params->attention;
    const project_params *p = &params->project;
    const recurrence_params *r = &params->recurrence;
    if (row->family == CLATTN__FAMILY_CLBLAST) return p->batch && p->len && p->columns; /* its own affair */
    switch (row->role) {
    case CLATTN__ROLE_PROJECT: return tiles(p->batch * p->len, row, "TILE_M") * tiles(p->columns, row, "TILE_N");
    case CLATTN__ROLE_SCORES: return heads_of(a) * tiles(a->len_q, row, "TILE_M") * tiles(a->len_kv, row, "TILE_N");
    case CLATTN__ROLE_MASK:
    case CLATTN__ROLE_SOFTMAX: return heads_of(a) * tiles(a->len_q, row, "TILE_M");
    case CLATTN__ROLE_WEIGHTED_VALUES: return heads_of(a) * tiles(a->len_q, row, "TILE_M") * tiles(a->value_dim, row, "TILE_N");
    case CLATTN__ROLE_ATTENTION: return query_tiles(a, clattn__row_macro(row, "TILE_Q", 1));
    case CLATTN__ROLE_ATTENTION_SPLIT:
        if (a->heads_kv == 0 || a->split == 0) return 0;
        return (a->len_kv + a->split - 1) / a->split * a->batch * a->heads_kv *
               tiles(a->heads_q / a->heads_kv * a->len_q, row, "TILE_Q");
    case CLATTN__ROLE_MERGE: return params->merge.batch * params->merge.heads * tiles(params->merge.len, row, "TILE_M");
    case CLATTN__ROLE_COPY: return params->copy.batch * params->copy.heads * tiles(params->copy.len, row, "TILE_M");
    case CLATTN__ROLE_PACK_RECURRENT: return r->batch && r->steps ? (r->hidden + r->lanes - 1) / r->lanes : 0;
    case CLATTN__ROLE_RNN_STEP:
    case CLATTN__ROLE_LSTM_STEP: return tiles(r->hidden, row, "TILE_H") * tiles(r->batch, row, "TILE_B");
    case CLATTN__ROLE_RNN_LOOP:
    case CLATTN__ROLE_LSTM_LOOP: return r->hidden ? r->batch : 0;
    case CLATTN__ROLE_COUNT: break;
    }
    return 0;
}

const char *const clattn__features_missing[] = {
#define FEATURE(name, number, flags, processors, test, missing) [number] = missing,
#include "native/features.def"
#undef FEATURE
};

/* ---- choice ------------------------------------------------------------------------------------------------------- */

static const char *const mma_needs[] = {
    [MMA_NVIDIA] = "needs NVIDIA's tensor cores, of compute capability 8.0 or newer, and NVIDIA's driver",
    [MMA_CDNA] = "needs AMD's matrix cores, of CDNA 2 or 3, and AMD's driver",
    [MMA_RDNA3] = "needs AMD's matrix instructions, of RDNA 3, and AMD's driver",
    [MMA_XE8] = "needs Intel's matrix engines, in sub-groups of 8, and Intel's driver",
    [MMA_XE16] = "needs Intel's matrix engines, in sub-groups of 16, and Intel's driver",
};

const char *clattn__row_obstacle(const clattn__row *row, const clattn__device *device, const clattn__variant *variant,
                                 const clattn__params *params) {
    const int dtype = macro_value(variant->macros, "DTYPE", 0);
    switch (row->family) {
    case CLATTN__FAMILY_CPU:
        if (!device->has_cpu_family) return "this device does not run CPU kernels";
        if (clattn__row_macro(row, "VECTOR_WIDTH", 0) != device->vector_width) return "made for another vector width";
        break;
    case CLATTN__FAMILY_NATIVE: {
        const int feature = clattn__row_macro(row, "TILES", 0);
        if (device->info.kind >= CLATTN_DEVICE_OPENCL_CPU) return "made for the native backend";
        if (clattn__row_macro(row, "VECTOR_WIDTH", 0) != device->vector_width) return "made for another vector width";
        if (!(device->features >> feature & 1)) return clattn__features_missing[feature];
        break;
    }
    case CLATTN__FAMILY_GPU:
        if (!device->has_gpu_family) return "this device does not run work-group kernels";
        break;
    case CLATTN__FAMILY_CLBLAST:
        if (!device->has_clblast) return "CLBlast was not asked for";
        if (!clattn__project_gemm(&params->project, &(clattn__gemm){0})) return "CLBlast adds no bias and takes matrices only";
        break;
    }
    if ((size_t)clattn__row_macro(row, "WORK_GROUP", 1) > device->max_work_group) return "needs a larger work-group";
    if ((size_t)clattn__row_macro(row, "LOCAL_BYTES", 0) > device->local_bytes) return "needs more local memory";
    if (row->role == CLATTN__ROLE_COPY && !device->has_f64 && (params->copy.x_dtype == DTYPE_F64 || params->copy.y_dtype == DTYPE_F64))
        return "this device does not compute in f64";
    if (dtype == DTYPE_F64 && !device->has_f64) return "this device does not compute in f64";
    const int only = clattn__row_macro(row, "ONLY_DTYPE", 0);
    if (only && dtype != only) return "made for another type of elements";
    const bool is_short = dtype == DTYPE_F16 || dtype == DTYPE_BF16;
    if (is_short && clattn__row_macro(row, "ONLY_WIDE", 0)) return "takes f32 and f64";
    const int mma = clattn__row_macro(row, "MMA", 0);
    if (mma && mma != abs(device->mma)) return mma_needs[mma];
    if (mma && !is_short) return "takes f16 and bf16";
    if (row->role == CLATTN__ROLE_ATTENTION || row->role == CLATTN__ROLE_ATTENTION_SPLIT) {
        const attention_params *a = &params->attention;
        const int limit = clattn__row_macro(row, "HEAD_DIM_LIMIT", INT_MAX);
        const int above = clattn__row_macro(row, "HEAD_DIM_ABOVE", -1);
        if (a->head_dim > limit || a->value_dim > limit) return "head_dim or value_dim is past its limit";
        if (a->head_dim <= above && a->value_dim <= above) return "made for larger heads";
        if (a->modified && clattn__row_macro(row, "UNMODIFIED", 0)) return "made for scores that no option modifies";
    }
    if (row->role == CLATTN__ROLE_ATTENTION_SPLIT && params->attention.heads_kv) {
        const attention_params *a = &params->attention;
        const int limit = clattn__row_macro(row, "GROUP_ROWS_LIMIT", INT_MAX);
        const i64 rows = a->heads_q / a->heads_kv * a->len_q, lanes = clattn__row_lanes(row);
        if (rows > limit) return "made for fewer queries that share a key";
        if (rows * 100 < (rows + lanes - 1) / lanes * lanes * clattn__row_macro(row, "LANES_FILLED", 0))
            return "queries that share a key would leave too many of its lanes empty";
    }
    return NULL;
}

/* A row that failed here, in one variant or in all. */
typedef struct clattn__ban {
    struct clattn__ban *next;
    const clattn__row *row;
    bool all;
    clattn__variant variant;
} ban;

static bool same_variant(const clattn__variant *a, const clattn__variant *b) {
    for (int n = 0; n < CLATTN__MAX_MACROS && a->macros[n].name; n++) /* of one role: the names are the same */
        if (a->macros[n].value != b->macros[n].value) return false;
    return true;
}

static bool is_banned(const clattn_context *context, const clattn__row *row, const clattn__variant *variant) {
    for (const ban *b = context->bans; b; b = b->next)
        if (b->row == row && (b->all || same_variant(&b->variant, variant))) return true;
    return false;
}

bool clattn__row_ban(clattn_context *context, const clattn__row *row, const clattn__variant *variant) {
    ban *added = calloc(1, sizeof *added);
    if (!added) return false;
    added->row = row;
    added->all = !variant;
    if (variant) added->variant = *variant;
    pthread_mutex_lock(&context->lock);
    added->next = context->bans;
    context->bans = added;
    pthread_mutex_unlock(&context->lock);
    return true;
}

void clattn__row_bans_lift(clattn_context *context) {
    pthread_mutex_lock(&context->lock);
    while (context->bans) {
        ban *first = context->bans;
        context->bans = first->next;
        free(first);
    }
    pthread_mutex_unlock(&context->lock);
}

/* Why a row cannot serve here, or NULL. */
static const char *obstacle_here(const clattn_context *context, const clattn__row *row, const clattn__params *params) {
    clattn__variant variant;
    if (!clattn__role_variant(row->role, params, &variant)) return "it is built for no such size, or type of elements";
    const char *obstacle = clattn__row_obstacle(row, &context->device, &variant, params);
    return !obstacle && is_banned(context, row, &variant) ? "failed on this device" : obstacle;
}

const char *clattn__row_refusal(clattn_context *context, const clattn__row *row, const clattn__params *params) {
    pthread_mutex_lock(&context->lock);
    const char *obstacle = obstacle_here(context, row, params);
    pthread_mutex_unlock(&context->lock);
    return obstacle;
}

bool clattn__row_is_meant(const clattn__row *row, const clattn__device *device) {
    return !device->gpu || row->devices & device->gpu;
}

const clattn__row *clattn__row_named(const char *name) {
    for (const clattn__row *row = clattn__rows; row < clattn__rows + clattn__row_count; row++)
        if (strcmp(row->name, name) == 0) return row;
    return NULL;
}

const clattn__row *clattn__choose_row(clattn_context *context, clattn__role role, const clattn__params *params,
                                      clattn__text *why) {
    const clattn__row *chosen = NULL, *spare = NULL;
    pthread_mutex_lock(&context->lock);
    for (const clattn__row *row = clattn__rows; row < clattn__rows + clattn__row_count && !chosen; row++) {
        if (row->role != role) continue;
        const char *obstacle = obstacle_here(context, row, params);
        if (!obstacle && !clattn__row_is_meant(row, &context->device)) {
            if (!spare) spare = row;
            obstacle = "meant for other devices";
        }
        if (!obstacle)
            chosen = row;
        else if (why)
            clattn__text_add(why, "  not %s: %s\n", row->name, obstacle);
    }
    pthread_mutex_unlock(&context->lock);
    if (!chosen && spare && why) clattn__text_add(why, "  but %s after all: no other is left\n", spare->name);
    return chosen ? chosen : spare;
}
