/* Plans: read the descriptor, validate, build steps, explain, bind memory, run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* ---- versioned structs --------------------------------------------------------------------------------------------- */

clattn_status clattn__read_struct(clattn_context *context, const char *name, void *to, size_t known, const void *from) {
    if (!from) return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "%s is NULL", name);
    size_t size;
    memcpy(&size, from, sizeof size);
    if (size < sizeof size)
        return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "%s: struct_size is %zu; set it to sizeof of the struct (%zu here)",
                            name, size, known);
    for (size_t n = known; n < size; n++)
        if (((const unsigned char *)from)[n])
            return clattn__fail(context, CLATTN_ERROR_UNSUPPORTED,
                                "%s: struct_size is %zu, this library (%s) knows %zu bytes, and a field past them is set", name,
                                size, clattn_version(), known);
    memset(to, 0, known);
    memcpy(to, from, size < known ? size : known);
    memcpy(to, &known, sizeof known);
    return CLATTN_OK;
}

/* ---- what operators call ------------------------------------------------------------------------------------------- */

static clattn_status plan_declare(clattn_plan *plan, clattn_tensor_id id, const clattn_tensor *tensor, bool output) {
    const char *name = clattn_tensor_name(id);
    clattn_status status = clattn__tensor_check(plan->context, name, tensor);
    if (status == CLATTN_OK && output) status = clattn__tensor_check_injective(plan->context, name, tensor);
    if (status != CLATTN_OK) return status;
    plan->tensors[id] = *tensor;
    plan->is_output[id] = output;
    plan->bytes += (double)clattn__tensor_elements(tensor) * (double)clattn__dtype_size(tensor->dtype);
    return CLATTN_OK;
}

clattn_status clattn__plan_input(clattn_plan *plan, clattn_tensor_id id, const clattn_tensor *tensor) {
    return plan_declare(plan, id, tensor, false);
}

clattn_status clattn__plan_output(clattn_plan *plan, clattn_tensor_id id, const clattn_tensor *tensor) {
    return plan_declare(plan, id, tensor, true);
}

clattn__operand clattn__plan_operand(const clattn_plan *plan, clattn_tensor_id id) {
    clattn__operand operand = {.view = plan->tensors[id]};
    if (operand.view.dtype != CLATTN_ABSENT) operand.place = (clattn__place){CLATTN__IN_TENSOR, id, 0};
    return operand;
}

clattn_status clattn__plan_scratch(clattn_plan *plan, clattn_tensor packed, clattn__operand *operand) {
    clattn_status status = clattn__tensor_check(plan->context, "workspace", &packed);
    if (status != CLATTN_OK) return status;
    const size_t offset = plan->workspace_bytes, bytes = (clattn__tensor_span(&packed) + 63) / 64 * 64;
    if (bytes > ((size_t)1 << 62) - offset)
        return clattn__fail(plan->context, CLATTN_ERROR_OVERFLOW, "workspace: %zu + %zu bytes are more than an index holds",
                            offset, bytes);
    *operand = (clattn__operand){packed, {CLATTN__IN_WORKSPACE, CLATTN_TENSOR_WORKSPACE, offset}};
    plan->workspace_bytes = offset + bytes;
    return CLATTN_OK;
}

static clattn_status plan_out_of_memory(clattn_plan *plan) {
    return clattn__fail(plan->context, CLATTN_ERROR_MEMORY, "no memory for a plan");
}

static clattn_status plan_reserve_step(clattn_plan *plan) {
    if (plan->step_count < plan->step_capacity) return CLATTN_OK;
    const size_t capacity = plan->step_capacity ? 2 * plan->step_capacity : 8;
    clattn__step *steps = realloc(plan->steps, capacity * sizeof *steps);
    if (!steps) return plan_out_of_memory(plan);
    plan->steps = steps;
    plan->step_capacity = capacity;
    return CLATTN_OK;
}

clattn_status clattn__plan_step(clattn_plan *plan, clattn__role role, const clattn__place *buffers, const clattn__params *params,
                                i64 repeat) {
    clattn_context *context = plan->context;
    clattn__text why = {0};
    const clattn__row *row = clattn__choose_row(context, role, params, &why);
    if (!row) {
        clattn_status status = clattn__fail(context, CLATTN_ERROR_UNSUPPORTED, "no kernel for %s on %s%s%.*s",
                                            clattn__roles[role].entry, context->device.info.id, why.length ? "\n" : "",
                                            why.length ? (int)why.length - 1 : 0, why.data ? why.data : "");
        clattn__text_free(&why);
        return status;
    }
    clattn__text_free(&why);
    clattn__step step = {.row = row, .params = *params, .repeat = repeat};
    step.params.groups = clattn__row_groups(row, params);
    for (int n = 0; n < clattn__roles[role].buffers; n++)
        step.buffers[n] = buffers[n].where == CLATTN__NOWHERE ? buffers[0] : buffers[n];
    if (step.params.groups == 0 || repeat == 0) return CLATTN_OK;

    clattn_status status = plan_reserve_step(plan);
    if (status != CLATTN_OK) return status;
    if (!plan->probing) status = context->backend->prepare(plan, &step);
    if (status == CLATTN_ERROR_BUILD) plan->failed_row = row;
    if (status != CLATTN_OK) return status;
    plan->steps[plan->step_count++] = step;
    plan->launches += repeat;
    plan->dependent_steps += role == CLATTN__ROLE_RNN_LOOP || role == CLATTN__ROLE_LSTM_LOOP ? params->recurrence.steps : repeat;
    return CLATTN_OK;
}

/* ---- life ---------------------------------------------------------------------------------------------------------- */

static void plan_drop_steps(clattn_plan *plan) {
    for (size_t n = plan->step_count; n-- > 0;)
        if (!plan->probing) plan->context->backend->release(plan->context, &plan->steps[n]);
    plan->step_count = 0;
    plan->workspace_bytes = 0;
    plan->launches = plan->dependent_steps = 0;
    plan->why.length = 0;
    if (plan->why.data) plan->why.data[0] = 0;
    plan->algorithm = NULL;
}

void clattn_plan_destroy(clattn_plan *plan) {
    if (!plan) return;
    if (plan->context->backend->plan_destroy) plan->context->backend->plan_destroy(plan);
    plan_drop_steps(plan);
    free(plan->steps);
    free(plan->workspace);
    free(plan->rows);
    clattn__text_free(&plan->why);
    clattn__text_free(&plan->dropped);
    free(plan);
}

/* A row that does not build is banned and the plan built again without it, until one set of rows builds. */
static clattn_status plan_build(clattn_plan *plan) {
    clattn_context *context = plan->context;
    if (context->backend->runs_operators) {
        plan->algorithm = "reference";
        plan->launches = plan->dependent_steps = 1;
        clattn__text_add(&plan->why, "the operator itself, plain loops in double precision\n");
        return CLATTN_OK;
    }
    for (;;) {
        plan->failed_row = NULL;
        clattn_status status = plan->op->build(plan);
        if (status == CLATTN_ERROR_UNSUPPORTED && plan->dropped.length)
            return clattn__fail(context, CLATTN_ERROR_BUILD, "no kernel is left:\n%s", plan->dropped.data);
        if (status == CLATTN_OK || !plan->failed_row) return status;
        pthread_mutex_lock(&context->lock);
        context->banned[plan->failed_row - clattn__rows] = 1;
        clattn__text_add(&plan->dropped, "dropped %s, which failed here: %s\n", plan->failed_row->name, context->error);
        pthread_mutex_unlock(&context->lock);
        clattn__log(context, CLATTN_LOG_WARNING, "kernel row %s failed on %s and is dropped", plan->failed_row->name,
                    context->device.info.id);
        plan_drop_steps(plan);
    }
}

static clattn_status plan_name_rows(clattn_plan *plan) {
    clattn__text rows = {0};
    if (plan->context->backend->runs_operators) clattn__text_add(&rows, "reference");
    for (size_t n = 0; n < plan->step_count; n++)
        clattn__text_add(&rows, "%s%s", n ? "+" : "", plan->steps[n].row->name);
    if (plan->step_count == 0 && !rows.length) clattn__text_add(&rows, "none");
    plan->rows = rows.data;
    return rows.failed || plan->why.failed || plan->dropped.failed ? plan_out_of_memory(plan) : CLATTN_OK;
}

static clattn_status plan_create(clattn_context *context, const clattn__operator *op, const void *desc, bool probing,
                                 clattn_plan **out) {
    if (!out) return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "plan is NULL");
    *out = NULL;
    if (!context) return CLATTN_ERROR_ARGUMENT;
    clattn_plan *plan = calloc(1, sizeof *plan);
    if (!plan) return clattn__fail(context, CLATTN_ERROR_MEMORY, "no memory for a plan");
    plan->context = context;
    plan->op = op;
    plan->name = op->name;
    plan->probing = probing;
    clattn_status status = clattn__read_struct(context, "desc", &plan->desc, op->desc_size, desc);
    if (status == CLATTN_OK) status = op->validate(plan);
    if (status == CLATTN_OK) status = plan_build(plan);
    if (status == CLATTN_OK) status = plan_name_rows(plan);
    if (status != CLATTN_OK) {
        clattn_plan_destroy(plan);
        return status;
    }
    *out = plan;
    return CLATTN_OK;
}

#define OPERATORS(X) X(attention) X(project_qkv) X(mha) X(recurrence)

#define X(op)                                                                                                            \
    clattn_status clattn_plan_create_##op(clattn_context *context, const clattn_##op##_desc *desc, clattn_plan **plan) { \
        return plan_create(context, &clattn__operator_##op, desc, false, plan);                                         \
    }                                                                                                                    \
    clattn_status clattn_supports_##op(clattn_context *context, const clattn_##op##_desc *desc) {                       \
        clattn_plan *plan;                                                                                               \
        clattn_status status = plan_create(context, &clattn__operator_##op, desc, true, &plan);                          \
        if (status == CLATTN_OK) clattn_plan_destroy(plan);                                                              \
        return status;                                                                                                   \
    }                                                                                                                    \
    clattn_status clattn_##op(clattn_context *context, const clattn_##op##_desc *desc, const clattn_arg *args,           \
                              size_t count) {                                                                            \
        clattn_plan *plan;                                                                                               \
        clattn_status status = clattn_plan_create_##op(context, desc, &plan);                                           \
        if (status == CLATTN_OK) status = clattn_plan_run(plan, args, count);                                            \
        if (status == CLATTN_OK || plan) clattn_plan_destroy(plan);                                                      \
        return status;                                                                                                   \
    }
OPERATORS(X)
#undef X

/* ---- questions ----------------------------------------------------------------------------------------------------- */

clattn_status clattn_plan_get_info(const clattn_plan *plan, clattn_plan_info *info) {
    if (!plan || !info) return CLATTN_ERROR_ARGUMENT;
    const size_t size = info->struct_size;
    if (size < sizeof size) return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "info: struct_size is %zu", size);
    const clattn_plan_info full = {
        .struct_size = size,
        .op = plan->name,
        .algorithm = plan->algorithm,
        .row = plan->rows,
        .device = plan->context->device.info.id,
        .workspace_bytes = plan->workspace_bytes,
        .launches = plan->launches,
        .dependent_steps = plan->dependent_steps,
        .flops = plan->flops,
        .bytes = plan->bytes,
    };
    if (size > sizeof full) memset((char *)info + sizeof full, 0, size - sizeof full);
    memcpy(info, &full, size < sizeof full ? size : sizeof full);
    return CLATTN_OK;
}

size_t clattn_plan_explain(const clattn_plan *plan, char *out, size_t size) {
    if (!plan) return clattn__text_copy(NULL, out, size);
    clattn__text text = {0};
    clattn__text_add(&text, "%s on %s: %s\n", plan->name, plan->context->device.info.id, plan->algorithm);
    for (size_t n = 0; n < plan->step_count; n++) {
        const clattn__step *step = &plan->steps[n];
        clattn__text_add(&text, "  %zu. %s (%s", n + 1, step->row->name, step->row->source);
        for (const clattn__macro *m = step->row->macros; m < step->row->macros + CLATTN__MAX_MACROS && m->name; m++)
            clattn__text_add(&text, " %s=%d", m->name, m->value);
        clattn__text_add(&text, ") in %lld groups", (long long)step->params.groups);
        if (step->repeat > 1) clattn__text_add(&text, ", %lld launches one after another", (long long)step->repeat);
        clattn__text_add(&text, "\n");
    }
    clattn__text_add(&text, "workspace %zu bytes, %lld launches, chain of %lld dependent steps\n", plan->workspace_bytes,
                     (long long)plan->launches, (long long)plan->dependent_steps);
    clattn__text_add(&text, "%s%s", plan->why.data ? plan->why.data : "", plan->dropped.data ? plan->dropped.data : "");
    size_t length = clattn__text_copy(text.data, out, size);
    clattn__text_free(&text);
    return length;
}

clattn_tensor clattn_plan_tensor(const clattn_plan *plan, clattn_tensor_id id) {
    return plan && (unsigned)id < CLATTN_TENSOR_COUNT ? plan->tensors[id] : (clattn_tensor){0};
}
