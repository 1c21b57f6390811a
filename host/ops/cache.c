/* Copies: into a cache of keys and values, with rotary embedding, and from one type of elements to another.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "attention.h"

int_list clattn__int_list(const clattn__operand *o, int dim) {
    return (int_list){.stride = o->view.size[dim] > 1 ? o->view.stride[dim] : 0,
                      .present = o->place.where != CLATTN__NOWHERE,
                      .wide = o->view.dtype == CLATTN_I64};
}

clattn_status clattn__copy_emit(clattn_plan *plan, const clattn__copy_operands *o) {
    const clattn_tensor *x = &o->x.view, *y = &o->y.view;
    const clattn__params params = {.copy = {
                                       .x = clattn__strides(x),
                                       .y = clattn__strides(y),
                                       .cosines = clattn__strides(&o->cosines.view),
                                       .sines = clattn__strides(&o->sines.view),
                                       .batch = x->size[0],
                                       .heads = x->size[1],
                                       .len = x->size[2],
                                       .dim = x->size[3],
                                       .capacity = y->size[2],
                                       .positions = o->cosines.view.size[2],
                                       .at = o->at,
                                       .position = o->position,
                                       .starts = clattn__int_list(&o->starts, 0),
                                       .x_dtype = (i32)x->dtype,
                                       .y_dtype = (i32)y->dtype,
                                       .moves = o->moves,
                                       .rotary = (i32)o->rotary,
                                       .rotary_dim = o->rotary ? (i32)(2 * o->cosines.view.size[3]) : 0,
                                   }};
    const clattn__place buffers[] = {o->x.place, o->y.place, o->cosines.place, o->sines.place, o->starts.place};
    return clattn__plan_step(plan, CLATTN__ROLE_COPY, buffers, &params, 1);
}

static clattn_tensor packed(clattn_dtype dtype, const clattn_tensor *like) {
    return clattn_tensor_bhld(dtype, like->size[0], like->size[1], like->size[2], like->size[3]);
}

/* The row that would serve, measurements aside. */
static const clattn__row *row_of(clattn_plan *plan, clattn__role role, const clattn__params *params) {
    const clattn__row *only = plan->only_row;
    if (only && only->role == role) return clattn__row_refusal(plan->context, only, params) ? NULL : only;
    return clattn__choose_row(plan->context, role, params, NULL);
}

bool clattn__takes(clattn_plan *plan, clattn__role role, const clattn__params *as_stored, const clattn__params *converted) {
    const clattn__device *device = &plan->context->device;
    const clattn__row *row = row_of(plan, role, as_stored), *other = row_of(plan, role, converted);
    if (!row || !other) return row != NULL;
    if (clattn__row_is_meant(other, device) && !clattn__row_is_meant(row, device)) return false;
    return row->family == other->family || row->family == CLATTN__FAMILY_NATIVE;
}

clattn_status clattn__convert_emit(clattn_plan *plan, clattn_dtype dtype, clattn__operand *x) {
    if (x->place.where == CLATTN__NOWHERE || x->view.dtype == dtype) return CLATTN_OK;
    clattn__copy_operands copy = {.x = *x};
    clattn_status status = clattn__plan_scratch(plan, packed(dtype, &x->view), &copy.y);
    *x = copy.y;
    return status == CLATTN_OK ? clattn__copy_emit(plan, &copy) : status;
}

clattn_status clattn__plan_working(clattn_plan *plan, clattn_dtype dtype, const clattn__operand *output, clattn__operand *work) {
    *work = *output;
    if (output->view.dtype == dtype) return CLATTN_OK;
    return clattn__plan_scratch(plan, packed(dtype, &output->view), work);
}

clattn_status clattn__hand_over_emit(clattn_plan *plan, const clattn__operand *work, const clattn__operand *output) {
    if (output->place.where == CLATTN__NOWHERE || clattn__same_place(work, output)) return CLATTN_OK;
    return clattn__copy_emit(plan, &(clattn__copy_operands){.x = *work, .y = *output});
}

/* Where the new keys, and the queries, stand. */
typedef struct stand {
    int64_t position;
    clattn__operand starts;
} stand;

static clattn__copy_operands rotated(const clattn_plan *plan, const clattn_attention_desc *d, const stand *at, clattn__operand x) {
    return (clattn__copy_operands){
        .x = x,
        .position = at->position,
        .starts = at->starts,
        .rotary = d->rotary,
        .cosines = clattn__plan_operand(plan, CLATTN_TENSOR_ROTARY_COS),
        .sines = clattn__plan_operand(plan, CLATTN_TENSOR_ROTARY_SIN),
    };
}

/* q rotated, in workspace. */
static clattn_status place_queries(clattn_plan *plan, const clattn_attention_desc *d, const stand *at, clattn__operand *q) {
    *q = clattn__plan_operand(plan, CLATTN_TENSOR_Q);
    if (d->rotary == CLATTN_ROTARY_NONE) return CLATTN_OK;
    clattn__copy_operands copy = rotated(plan, d, at, *q);
    clattn_status status = clattn__plan_scratch(plan, packed(d->q.dtype, &d->q), &copy.y);
    if (status == CLATTN_OK) status = clattn__copy_emit(plan, &copy);
    *q = copy.y;
    return status;
}

/* The keys, or the values, of which all that attention reads is at *whole. */
static clattn_status place_keys(clattn_plan *plan, const clattn_attention_desc *d, const clattn__attention_sizes *s, const stand *at,
                                bool values, clattn__operand *whole) {
    const clattn__operand fresh = clattn__plan_operand(plan, values ? CLATTN_TENSOR_V : CLATTN_TENSOR_K);
    const bool rotates = d->rotary != CLATTN_ROTARY_NONE && !values;
    *whole = fresh;
    if (s->cache == CLATTN__CACHE_NONE && !rotates) return CLATTN_OK;
    clattn_status status = CLATTN_OK;
    *whole = clattn__plan_operand(plan, values ? CLATTN_TENSOR_PRESENT_V : CLATTN_TENSOR_PRESENT_K);
    if (whole->place.where == CLATTN__NOWHERE)
        status = clattn__plan_scratch(
            plan, clattn_tensor_bhld(fresh.view.dtype, s->batch, s->heads_kv, s->len_kv, fresh.view.size[3]), whole);
    if (status == CLATTN_OK && s->cache == CLATTN__CACHE_PAST)
        status = clattn__copy_emit(
            plan, &(clattn__copy_operands){.x = clattn__plan_operand(plan, values ? CLATTN_TENSOR_PAST_V : CLATTN_TENSOR_PAST_K),
                                           .y = *whole});
    clattn__copy_operands copy = rotated(plan, d, at, fresh);
    copy.y = *whole;
    copy.at = s->past;
    copy.moves = true;
    if (values) copy.rotary = CLATTN_ROTARY_NONE;
    return status == CLATTN_OK ? clattn__copy_emit(plan, &copy) : status;
}

clattn_status clattn__cache_emit(clattn_plan *plan, const clattn_attention_desc *d, const clattn__attention_sizes *s,
                                 clattn__attention_operands *o) {
    stand at = {.position = d->options.align == CLATTN_ALIGN_PAST ? d->options.past_len : 0};
    if (s->cache == CLATTN__CACHE_PAST) at.position = s->past;
    if (s->cache == CLATTN__CACHE_IN_PLACE) at.starts = clattn__plan_operand(plan, CLATTN_TENSOR_PAST_LENGTHS);
    clattn_status status = place_queries(plan, d, &at, &o->q);
    if (status == CLATTN_OK) status = place_keys(plan, d, s, &at, false, &o->k);
    if (status == CLATTN_OK) status = place_keys(plan, d, s, &at, true, &o->v);
    if (s->cache == CLATTN__CACHE_IN_PLACE) {
        o->kv_lengths = at.starts;
        o->appended = s->fresh;
    }
    return status;
}
