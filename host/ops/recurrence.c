/* recurrence: rnn and lstm, the sequential opponent.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * What does not depend on the step before is taken out of the chain: W_in x + bias for all steps is one product. W_h is packed
 * once so that each step reads it as one stream.
 */
#include <math.h>

#include "../reference/reference.h"
#include "ops.h"

static int64_t gates(const clattn_recurrence_desc *d) { return d->cell == CLATTN_CELL_LSTM ? 4 : 1; }

static clattn_status check_options(clattn_plan *plan, const clattn_recurrence_desc *d) {
    if ((unsigned)d->cell > CLATTN_CELL_LSTM)
        return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "cell is %d; it is 0 (rnn) or 1 (lstm)", (int)d->cell);
    if (!isfinite((float)d->forget_bias))
        return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "forget_bias is %g; it must be finite in fp32", d->forget_bias);
    if (d->cell == CLATTN_CELL_RNN && d->forget_bias != 0)
        return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "forget_bias is %g and the cell is rnn, which has no gate",
                            d->forget_bias);
    if (d->cell == CLATTN_CELL_RNN && (d->c_0.dtype != CLATTN_ABSENT || d->c_n.dtype != CLATTN_ABSENT))
        return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "%s is given and the cell is rnn, which has no cell state",
                            d->c_0.dtype != CLATTN_ABSENT ? "c_0" : "c_n");
    return CLATTN_OK;
}

static clattn_status recurrence_validate(clattn_plan *plan) {
    const clattn_recurrence_desc *d = &plan->desc.recurrence;
    clattn_status status = check_options(plan, d);
    if (status == CLATTN_OK) status = clattn__check_sizes(plan, "x", &d->x);
    if (status == CLATTN_OK) status = clattn__check_sizes(plan, "w_h", &d->w_h);
    if (status != CLATTN_OK) return status;
    const int64_t batch = d->x.size[0], steps = d->x.size[2], d_in = d->x.size[3], hidden = d->w_h.size[3];
    const int64_t rows = gates(d) * hidden;
    const clattn__shape shapes[] = {
        {CLATTN_TENSOR_X, &d->x, {batch, 1, steps, d_in}, CLATTN__ONLY_F32, false, CLATTN__READ, "one head"},
        {CLATTN_TENSOR_W_IN, &d->w_in, {1, 1, rows, d_in}, CLATTN__ONLY_F32, false, CLATTN__READ,
         "hidden rows a gate, x's dim columns"},
        {CLATTN_TENSOR_W_H, &d->w_h, {1, 1, rows, hidden}, CLATTN__ONLY_F32, false, CLATTN__READ, "hidden rows a gate"},
        {CLATTN_TENSOR_BIAS, &d->bias, {1, 1, 1, rows}, CLATTN__ONLY_F32, true, CLATTN__READ, "one for each row of w_in"},
        {CLATTN_TENSOR_H_0, &d->h_0, {batch, 1, 1, hidden}, CLATTN__ONLY_F32, true, CLATTN__READ, "x's batch, w_h's columns"},
        {CLATTN_TENSOR_C_0, &d->c_0, {batch, 1, 1, hidden}, CLATTN__ONLY_F32, true, CLATTN__READ, "x's batch, w_h's columns"},
        {CLATTN_TENSOR_OUT, &d->out, {batch, 1, steps, hidden}, CLATTN__ONLY_F32, false, CLATTN__WRITE,
         "x's batch and len, w_h's columns"},
        {CLATTN_TENSOR_H_N, &d->h_n, {batch, 1, 1, hidden}, CLATTN__ONLY_F32, true, CLATTN__WRITE, "x's batch, w_h's columns"},
        {CLATTN_TENSOR_C_N, &d->c_n, {batch, 1, 1, hidden}, CLATTN__ONLY_F32, true, CLATTN__WRITE, "x's batch, w_h's columns"},
    };
    plan->name = d->cell == CLATTN_CELL_LSTM ? "lstm" : "rnn";
    plan->flops = 2.0 * (double)batch * (double)steps * (double)rows * ((double)d_in + (double)hidden);
    return clattn__declare(plan, shapes, sizeof shapes / sizeof *shapes);
}

/* ---- steps -------------------------------------------------------------------------------------------------------- */

typedef struct recurrence_operands {
    clattn__operand x, w_in, w_h, bias, h_0, c_0, out, h_n, c; /* c: c_n, or scratch for an lstm that has none */
    clattn__operand xw, packed;
} recurrence_operands;

static recurrence_params make_params(const clattn_recurrence_desc *d, const recurrence_operands *o) {
    return (recurrence_params){
        .w_h = clattn__strides(&o->w_h.view),
        .xw = clattn__strides(&o->xw.view),
        .h_0 = clattn__strides(&o->h_0.view),
        .c_0 = clattn__strides(&o->c_0.view),
        .out = clattn__strides(&o->out.view),
        .h_n = clattn__strides(&o->h_n.view),
        .c_n = clattn__strides(&o->c.view),
        .batch = d->x.size[0],
        .steps = d->x.size[2],
        .hidden = d->w_h.size[3],
        .gates = gates(d),
        .has_h_0 = o->h_0.view.dtype != CLATTN_ABSENT,
        .has_c_0 = o->c_0.view.dtype != CLATTN_ABSENT,
        .has_h_n = o->h_n.view.dtype != CLATTN_ABSENT,
        .has_c_n = o->c.view.dtype != CLATTN_ABSENT,
        .forget_bias = (float)d->forget_bias,
    };
}

/* One launch a step spreads each step over the device and pays a launch for it; one kernel that loops inside keeps to one
 * work-group a batch member. Natively a "launch" is a barrier between threads. The batch has no say: the two sum in different
 * orders, and a sample alone must give what it gives in a batch. */
static bool choose_persistent(clattn_plan *plan) {
    if (plan->options.recurrence != CLATTN_RECURRENCE_AUTO) {
        const bool asked = plan->options.recurrence == CLATTN_RECURRENCE_PERSISTENT;
        clattn__text_add(&plan->why, "%s: asked for\n", asked ? "persistent" : "loop");
        return asked;
    }
    const clattn_device_kind kind = plan->context->device.info.kind;
    const bool persistent = kind == CLATTN_DEVICE_OPENCL_CPU;
    clattn__text_add(&plan->why, "%s: %s\n", persistent ? "persistent" : "loop",
                     persistent                     ? "a launch costs an OpenCL CPU device more than a step's work"
                     : kind == CLATTN_DEVICE_NATIVE ? "a step ends with a barrier of threads, not with a launch"
                                                    : "each step is spread over the device");
    return persistent;
}

static clattn_status emit_inputs(clattn_plan *plan, const clattn_recurrence_desc *d, recurrence_operands *o) {
    const int64_t rows = gates(d) * d->w_h.size[3];
    clattn_status status =
        clattn__plan_scratch(plan, clattn_tensor_bhld(CLATTN_F32, d->x.size[0], 1, d->x.size[2], rows), &o->xw);
    if (status != CLATTN_OK) return status;
    clattn__project_operands project = {.x = o->x, .w = o->w_in, .bias = o->bias, .y = o->xw};
    project.w.view = clattn_tensor_transposed(o->w_in.view);
    return clattn__project_emit(plan, &project);
}

/* W_h as the chain's row reads it. */
static clattn_status emit_pack(clattn_plan *plan, const clattn_recurrence_desc *d, const clattn__row *chain,
                               recurrence_operands *o, clattn__params *params) {
    const int64_t hidden = d->w_h.size[3], lanes = clattn__row_macro(chain, "LANES", 1), blocks = (hidden + lanes - 1) / lanes;
    params->recurrence.lanes = lanes;
    clattn_status status =
        clattn__plan_scratch(plan, clattn_tensor_bhld(CLATTN_F32, blocks, hidden, gates(d), lanes), &o->packed);
    if (status != CLATTN_OK) return status;
    return clattn__plan_step(plan, CLATTN__ROLE_PACK_RECURRENT, (clattn__place[]){o->w_h.place, o->packed.place}, params, 1);
}

static clattn_status emit_chain(clattn_plan *plan, const clattn_recurrence_desc *d, const clattn__row *chain,
                                const recurrence_operands *o, const clattn__params *params, bool persistent) {
    const int64_t steps = d->x.size[2];
    const clattn__place rnn[] = {o->packed.place, o->xw.place, o->h_0.place, o->out.place, o->h_n.place};
    const clattn__place lstm[] = {o->packed.place, o->xw.place, o->h_0.place, o->c_0.place,
                                  o->out.place,    o->h_n.place, o->c.place};
    const size_t before = plan->step_count;
    clattn_status status = clattn__plan_step_of(plan, chain, d->cell == CLATTN_CELL_LSTM ? lstm : rnn, params, persistent ? 1 : steps);
    /* A launch that loops inside is a chain of its own. */
    if (persistent && plan->step_count > before) plan->dependent_steps += steps - 1;
    return status;
}

static clattn_status recurrence_build(clattn_plan *plan) {
    const clattn_recurrence_desc *d = &plan->desc.recurrence;
    const bool lstm = d->cell == CLATTN_CELL_LSTM;
    recurrence_operands o = {
        .x = clattn__plan_operand(plan, CLATTN_TENSOR_X),
        .w_in = clattn__plan_operand(plan, CLATTN_TENSOR_W_IN),
        .w_h = clattn__plan_operand(plan, CLATTN_TENSOR_W_H),
        .bias = clattn__plan_operand(plan, CLATTN_TENSOR_BIAS),
        .h_0 = clattn__plan_operand(plan, CLATTN_TENSOR_H_0),
        .c_0 = clattn__plan_operand(plan, CLATTN_TENSOR_C_0),
        .out = clattn__plan_operand(plan, CLATTN_TENSOR_OUT),
        .h_n = clattn__plan_operand(plan, CLATTN_TENSOR_H_N),
        .c = clattn__plan_operand(plan, CLATTN_TENSOR_C_N),
    };
    /* Without a step only the looping kernels have something to do: h_n = h_0, c_n = c_0. */
    const bool steps = d->x.size[2] > 0;
    const bool persistent = choose_persistent(plan) || !steps;
    const clattn__role role = lstm ? (persistent ? CLATTN__ROLE_LSTM_LOOP : CLATTN__ROLE_LSTM_STEP)
                                   : (persistent ? CLATTN__ROLE_RNN_LOOP : CLATTN__ROLE_RNN_STEP);
    plan->algorithm = persistent ? "persistent" : "loop";
    clattn_status status = CLATTN_OK;
    const clattn__row *chain = NULL;
    if (lstm && o.c.place.where == CLATTN__NOWHERE)
        status = clattn__plan_scratch(plan, clattn_tensor_bhld(CLATTN_F32, d->x.size[0], 1, 1, d->w_h.size[3]), &o.c);
    if (status == CLATTN_OK && steps) status = emit_inputs(plan, d, &o);
    clattn__params params = {.recurrence = make_params(d, &o)};
    if (status == CLATTN_OK) status = clattn__plan_choose(plan, role, &params, &chain);
    if (status == CLATTN_OK && steps) status = emit_pack(plan, d, chain, &o, &params);
    if (!steps) o.packed.place = o.w_h.place;
    if (status == CLATTN_OK) status = emit_chain(plan, d, chain, &o, &params, persistent);
    return status;
}

static clattn__grid recurrence_grid(const clattn_plan *plan) { return (clattn__grid){plan->desc.recurrence.x.size[0], 1}; }

const clattn__operator clattn__operator_recurrence = {
    .name = "recurrence",
    .desc_size = sizeof(clattn_recurrence_desc),
    .has_recurrence = true,
    .validate = recurrence_validate,
    .reference = clattn__reference_recurrence,
    .build = recurrence_build,
    .grid = recurrence_grid,
};
