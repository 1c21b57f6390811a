/* One plan over several devices: the cut, a plan for each piece, and what brings their outputs together.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "split.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/ops.h"

/* ---- the cut ------------------------------------------------------------------------------------------------------- */

void clattn__split_cut(i64 total, const double *weights, size_t count, i64 *units) {
    double sum = 0, before = 0;
    for (size_t n = 0; n < count; n++) sum += weights[n];
    for (size_t n = 0; n < count; n++) {
        units[n] = (i64)floor((double)total * before / sum + 0.5);
        before += weights[n];
    }
    units[count] = total;
}

int clattn__split_blocks(const clattn__grid *grid, i64 first, i64 end, clattn__block blocks[3]) {
    const i64 groups = grid->groups;
    int count = 0;
    while (first < end) {
        const i64 member = first / groups, group = first % groups;
        const bool whole = group == 0 && end - first >= groups;
        const i64 members = whole ? (end - first) / groups : 1;
        const i64 left = groups - group, rest = whole ? groups : end - first < left ? end - first : left;
        blocks[count++] = (clattn__block){member, members, group, rest};
        first += members * rest;
    }
    return count;
}

static clattn_context *context_of(const clattn_plan *plan, size_t device) {
    return device ? plan->context->peers[device - 1] : plan->context;
}

/* By compute units and clock, as devices state them. */
static void weigh(const clattn_plan *plan, double *weights, size_t count) {
    bool clocks = true;
    for (size_t n = 0; n < count; n++) clocks &= context_of(plan, n)->device.info.clock_mhz > 0;
    for (size_t n = 0; n < count; n++) {
        const clattn_device_info *info = &context_of(plan, n)->device.info;
        weights[n] = (double)(info->compute_units ? info->compute_units : 1) * (clocks ? (double)info->clock_mhz : 1);
    }
}

/* ---- parts of tensors ---------------------------------------------------------------------------------------------- */

/* The part of a view that belongs to a block, and in *offset the bytes to where it begins. A dimension that is not the grid's,
 * of size 1, belongs to all blocks. */
static clattn_tensor part_of(const clattn_tensor *whole, const clattn__grid *grid, const clattn__block *block, size_t *offset) {
    clattn_tensor part = *whole;
    i64 at = 0;
    if (grid->batch > 1 && whole->size[0] == grid->batch) {
        part.size[0] = block->members;
        at += block->member * whole->stride[0];
    }
    if (grid->groups > 1 && whole->size[1] > 1) {
        const i64 heads = whole->size[1] / grid->groups;
        part.size[1] = block->groups * heads;
        at += block->group * heads * whole->stride[1];
    }
    *offset = (size_t)at * clattn__dtype_size(whole->dtype);
    return part;
}

static clattn_tensor packed(const clattn_tensor *like) {
    return clattn_tensor_bhld(like->dtype, like->size[0], like->size[1], like->size[2], like->size[3]);
}

static bool is_here(const clattn_plan *plan, int id) {
    return plan->tensors[id].dtype != CLATTN_ABSENT;
}

/* ---- pieces -------------------------------------------------------------------------------------------------------- */

/* The whole's descriptor, of which each tensor is the piece's part. */
static clattn__desc piece_desc(const clattn_plan *plan, const clattn__desc *given, clattn__piece *piece) {
    clattn__desc desc = *given;
    for (int id = 0; id < CLATTN_TENSOR_COUNT; id++) {
        if (!is_here(plan, id)) continue;
        clattn_tensor part = part_of(&plan->tensors[id], &plan->split->grid, &piece->block, &piece->offset[id]);
        if (plan->access[id] != CLATTN__READ) part = packed(&part);
        memcpy((char *)&desc + plan->fields[id], &part, sizeof part);
    }
    return desc;
}

static clattn_status make_piece(clattn_plan *plan, const clattn__desc *given, clattn__piece *piece) {
    clattn_context *context = context_of(plan, piece->device);
    const clattn__desc desc = piece_desc(plan, given, piece);
    clattn_plan_options options = plan->options;
    options.split_devices = 0;
    if (plan->probing) clattn__errors_unlogged(context, true);
    clattn_status status = clattn__plan_create(context, plan->op, &desc, &options, plan->probing, &piece->plan);
    if (plan->probing && piece->device) clattn__errors_unlogged(context, false);
    if (status == CLATTN_OK || !piece->device) return status;
    return clattn__fail(plan->context, status, "device %zu of the context (%s): %s", piece->device, context->device.info.id,
                        clattn__last_error(context));
}

static clattn_status make_pieces(clattn_plan *plan, const clattn__desc *given, const i64 *units, size_t devices) {
    clattn__split *split = plan->split;
    clattn_status status = CLATTN_OK;
    for (size_t n = 0; n < devices && status == CLATTN_OK; n++) {
        clattn__block blocks[3];
        const int count = clattn__split_blocks(&split->grid, units[n], units[n + 1], blocks);
        for (int b = 0; b < count && status == CLATTN_OK; b++) {
            clattn__piece *piece = &split->pieces[split->count++];
            *piece = (clattn__piece){.device = n, .block = blocks[b]};
            status = make_piece(plan, given, piece);
        }
    }
    return status;
}

/* Whether one device has it all. */
static bool is_whole(const i64 *units, size_t devices) {
    for (size_t n = 0; n < devices; n++)
        if (units[n + 1] - units[n] == units[devices]) return true;
    return false;
}

static clattn_status refuse_update(const clattn_plan *plan) {
    for (int id = 0; id < CLATTN_TENSOR_COUNT; id++)
        if (is_here(plan, id) && plan->access[id] == CLATTN__UPDATE)
            return clattn__fail(plan->context, CLATTN_ERROR_UNSUPPORTED,
                                "split_devices is 1, and %s is changed in place: it stays on one device",
                                clattn_tensor_name(id));
    return CLATTN_OK;
}

clattn_status clattn__split_make(clattn_plan *plan, const clattn__desc *given, const char **why_not) {
    const size_t devices = 1 + plan->context->peer_count;
    *why_not = NULL;
    clattn_status status = refuse_update(plan);
    if (status != CLATTN_OK) return status;
    if (devices == 1) {
        *why_not = "the context has one device";
        return CLATTN_OK;
    }
    const clattn__grid grid = plan->op->grid(plan);
    double *weights = calloc(devices, sizeof *weights);
    i64 *units = calloc(devices + 1, sizeof *units);
    if (!weights || !units) {
        status = clattn__fail(plan->context, CLATTN_ERROR_MEMORY, "no memory for a plan");
    } else {
        weigh(plan, weights, devices);
        clattn__split_cut(grid.batch * grid.groups, weights, devices, units);
        if (is_whole(units, devices)) *why_not = "one device gets all units of the cut";
    }
    if (status == CLATTN_OK && !*why_not) {
        plan->split = calloc(1, sizeof *plan->split);
        if (plan->split) plan->split->pieces = calloc(3 * devices, sizeof *plan->split->pieces);
        if (plan->split && plan->split->pieces) {
            plan->split->grid = grid;
            status = make_pieces(plan, given, units, devices);
        } else {
            status = clattn__fail(plan->context, CLATTN_ERROR_MEMORY, "no memory for a plan");
        }
    }
    free(units);
    free(weights);
    return status;
}

void clattn__split_destroy(clattn__split *split) {
    if (!split) return;
    for (size_t n = 0; n < split->count; n++) clattn_plan_destroy(split->pieces[n].plan);
    free(split->pieces);
    free(split);
}

/* ---- around the pieces --------------------------------------------------------------------------------------------- */

typedef enum direction { TO_PIECE, FROM_PIECE } direction;

static clattn_status copy_part(clattn_plan *plan, int n, clattn_tensor_id id, direction direction) {
    const clattn__piece *piece = &plan->split->pieces[n];
    clattn__operand outer = clattn__plan_operand(plan, id), inner;
    size_t offset;
    outer.view = part_of(&outer.view, &plan->split->grid, &piece->block, &offset);
    outer.place.offset = offset;
    inner = (clattn__operand){packed(&outer.view), {CLATTN__IN_PIECE, id, 0, outer.place.element, n}};
    return clattn__copy_emit(plan, direction == TO_PIECE ? &(clattn__copy_operands){.x = outer, .y = inner}
                                                         : &(clattn__copy_operands){.x = inner, .y = outer});
}

static clattn_status copy_parts(clattn_plan *plan, direction direction) {
    clattn_status status = CLATTN_OK;
    for (size_t n = 0; n < plan->split->count; n++)
        for (int id = 0; id < CLATTN_TENSOR_COUNT && status == CLATTN_OK; id++)
            if (is_here(plan, id) && plan->access[id] == CLATTN__WRITE)
                status = copy_part(plan, (int)n, (clattn_tensor_id)id, direction);
    return status;
}

/* Launches of all pieces, and the longest chain that a device has. */
static void count_launches(clattn_plan *plan) {
    i64 chain = 0, longest = 0;
    for (size_t n = 0; n < plan->split->count; n++) {
        const clattn__piece *piece = &plan->split->pieces[n];
        if (n == 0 || piece->device != piece[-1].device) chain = 0;
        chain += piece->plan->dependent_steps;
        if (chain > longest) longest = chain;
        plan->launches += piece->plan->launches;
    }
    plan->dependent_steps += longest;
}

static size_t piece_bytes(const clattn_plan *piece) {
    size_t bytes = piece->workspace_bytes;
    for (int id = 0; id < CLATTN_TENSOR_COUNT; id++)
        if (piece->access[id] == CLATTN__WRITE) bytes += clattn__tensor_span(&piece->tensors[id]);
    return bytes;
}

static void explain_piece(clattn_plan *plan, const clattn__piece *piece) {
    const clattn__grid *grid = &plan->split->grid;
    const clattn__block *b = &piece->block;
    const clattn_device_info *info = &context_of(plan, piece->device)->device.info;
    clattn__text_add(&plan->why, "  device %zu, %s, %llu compute units: ", piece->device, info->id,
                     (unsigned long long)info->compute_units);
    clattn__text_add(&plan->why, "batch %lld to %lld of %lld", (long long)b->member, (long long)(b->member + b->members - 1),
                     (long long)grid->batch);
    if (grid->groups > 1)
        clattn__text_add(&plan->why, ", key heads %lld to %lld of %lld", (long long)b->group,
                         (long long)(b->group + b->groups - 1), (long long)grid->groups);
    clattn__text_add(&plan->why, ": %s, %zu bytes\n%s", piece->plan->rows, piece_bytes(piece->plan),
                     piece->plan->dropped.data ? piece->plan->dropped.data : "");
}

static void explain(clattn_plan *plan) {
    const clattn__split *split = plan->split;
    const clattn_plan *first = split->pieces[0].plan;
    bool alike = true;
    clattn__text_add(&plan->why, "split over devices by their compute units and clocks:\n");
    for (size_t n = 0; n < split->count; n++) {
        explain_piece(plan, &split->pieces[n]);
        alike &= strcmp(split->pieces[n].plan->rows, first->rows) == 0;
    }
    if (!alike)
        clattn__text_add(&plan->why, "devices run different kernels: results may differ in rounding from those of one\n");
    clattn__text_add(&plan->why, "device 0 copies the results together\n%s", first->why.data ? first->why.data : "");
}

clattn_status clattn__split_emit(clattn_plan *plan) {
    clattn__split *split = plan->split;
    clattn_status status = CLATTN_OK;
    plan->algorithm = split->pieces[0].plan->algorithm;
    /* Rows of no member of a ragged batch keep what they hold: it goes to the pieces and back. */
    if (is_here(plan, CLATTN_TENSOR_Q_OFFSETS)) status = copy_parts(plan, TO_PIECE);
    split->before = plan->step_count;
    if (status == CLATTN_OK) status = copy_parts(plan, FROM_PIECE);
    if (status != CLATTN_OK) return status;
    count_launches(plan);
    explain(plan);
    return CLATTN_OK;
}
