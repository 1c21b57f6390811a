/* The table of kernels, and which row of it serves a role on a device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "internal.h"
#include "project_gemm.h"

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
#define ROW(name, role, family, source, macros) {#name, CLATTN__ROLE_##role, CLATTN__FAMILY_##family, source, {macros{NULL, 0}}},
#include "../kernels/rows.def"
#undef ROW
#undef M
};
const size_t clattn__row_count = sizeof clattn__rows / sizeof *clattn__rows;

int clattn__row_macro(const clattn__row *row, const char *name, int missing) {
    for (const clattn__macro *macro = row->macros; macro < row->macros + CLATTN__MAX_MACROS && macro->name; macro++)
        if (strcmp(macro->name, name) == 0) return macro->value;
    return missing;
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
    case CLATTN__ROLE_ATTENTION: return heads_of(a) * tiles(a->len_q, row, "TILE_Q");
    case CLATTN__ROLE_PACK_RECURRENT: return r->batch && r->steps ? (r->hidden + r->lanes - 1) / r->lanes : 0;
    case CLATTN__ROLE_RNN_STEP:
    case CLATTN__ROLE_LSTM_STEP: return tiles(r->hidden, row, "TILE_H") * tiles(r->batch, row, "TILE_B");
    case CLATTN__ROLE_RNN_LOOP:
    case CLATTN__ROLE_LSTM_LOOP: return r->hidden ? r->batch : 0;
    case CLATTN__ROLE_COUNT: break;
    }
    return 0;
}

/* ---- choice ------------------------------------------------------------------------------------------------------- */

/* NULL when the row can serve, else why not. */
static const char *row_obstacle(const clattn__row *row, const clattn__device *device, const clattn__params *params) {
    switch (row->family) {
    case CLATTN__FAMILY_CPU:
        if (!device->has_cpu_family) return "this device does not run CPU kernels";
        if (clattn__row_macro(row, "VECTOR_WIDTH", 0) != device->vector_width) return "made for another vector width";
        break;
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
    if (row->role == CLATTN__ROLE_ATTENTION) {
        const attention_params *a = &params->attention;
        const int limit = clattn__row_macro(row, "HEAD_DIM_LIMIT", CLATTN__HEAD_DIM_MAX);
        if (a->head_dim > limit || a->value_dim > limit) return "head_dim or value_dim is past its limit";
    }
    return NULL;
}

const clattn__row *clattn__choose_row(clattn_context *context, clattn__role role, const clattn__params *params,
                                      clattn__text *why) {
    const clattn__row *chosen = NULL;
    pthread_mutex_lock(&context->lock);
    for (const clattn__row *row = clattn__rows; row < clattn__rows + clattn__row_count && !chosen; row++) {
        if (row->role != role) continue;
        const char *obstacle = context->banned[row - clattn__rows] ? "failed on this device" : NULL;
        if (!obstacle) obstacle = row_obstacle(row, &context->device, params);
        if (!obstacle)
            chosen = row;
        else if (why)
            clattn__text_add(why, "  not %s: %s\n", row->name, obstacle);
    }
    pthread_mutex_unlock(&context->lock);
    return chosen;
}
