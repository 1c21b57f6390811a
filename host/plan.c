/* Plans: make one from a descriptor, take it apart, answer questions about it. (run.c binds memory and runs.)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "list.h"
#include "self_check.h"
#include "split.h"
#include "tuning.h"

/* ---- what operators call ------------------------------------------------------------------------------------------- */

clattn_status clattn__plan_declare(clattn_plan *plan, clattn_tensor_id id, const clattn_tensor *tensor, clattn__access access) {
    const char *name = clattn_tensor_name(id);
    clattn_status status = clattn__tensor_check(plan->context, name, tensor);
    if (status == CLATTN_OK && access != CLATTN__READ) status = clattn__tensor_check_injective(plan->context, name, tensor);
    if (status != CLATTN_OK) return status;
    plan->tensors[id] = *tensor;
    plan->access[id] = access;
    const double bytes = (double)clattn__tensor_elements(tensor) * (double)clattn__dtype_size(tensor->dtype);
    plan->bytes += access == CLATTN__UPDATE ? 2 * bytes : bytes;
    return CLATTN_OK;
}

clattn__operand clattn__plan_operand(const clattn_plan *plan, clattn_tensor_id id) {
    clattn__operand operand = {.view = plan->tensors[id]};
    size_t unit = clattn__dtype_size(operand.view.dtype);
    if (operand.view.dtype == CLATTN_I64) unit = sizeof(i32); /* kernels take lists of integers as i32: see int_list */
    if (operand.view.dtype != CLATTN_ABSENT) operand.place = (clattn__place){CLATTN__IN_TENSOR, id, 0, unit};
    return operand;
}

clattn_status clattn__plan_scratch(clattn_plan *plan, clattn_tensor packed, clattn__operand *operand) {
    clattn_status status = clattn__tensor_check(plan->context, "workspace", &packed);
    if (status != CLATTN_OK) return status;
    const size_t offset = plan->workspace_bytes, bytes = (clattn__tensor_span(&packed) + 63) / 64 * 64;
    if (bytes > ((size_t)1 << 62) - offset)
        return clattn__fail(plan->context, CLATTN_ERROR_OVERFLOW, "workspace: %zu + %zu bytes are more than an index holds",
                            offset, bytes);
    *operand = (clattn__operand){packed, {CLATTN__IN_WORKSPACE, CLATTN_TENSOR_WORKSPACE, offset, clattn__dtype_size(packed.dtype)}};
    plan->workspace_bytes = offset + bytes;
    return CLATTN_OK;
}

static clattn_status plan_out_of_memory(clattn_plan *plan) {
    return clattn__fail(plan->context, CLATTN_ERROR_MEMORY, "no memory for a plan");
}

static clattn_status plan_reserve_step(clattn_plan *plan) {
    clattn__step *steps = clattn__list_room(plan->steps, plan->step_count, &plan->step_capacity, sizeof *steps);
    if (!steps) return plan_out_of_memory(plan);
    plan->steps = steps;
    return CLATTN_OK;
}

/* Why a measured choice is not followed, or NULL. */
static const char *refusal_of(clattn_context *context, const clattn__tuned *tuned, const clattn__row *row, clattn__role role,
                              const clattn__params *params) {
    if (!row) return "this version has no such row";
    if (row->role != role) return "it is of another role";
    if (tuned->level != CLATTN__TUNING_DEVICE && !clattn__row_is_meant(row, &context->device)) return "meant for other devices";
    return clattn__row_refusal(context, row, params);
}

/* The row that was measured for this kind of problem, or NULL; the plan says which, where and by how much, or why not. */
static const clattn__row *measured_row(clattn_plan *plan, clattn__role role, const clattn__params *params, clattn__text *why) {
    char key[CLATTN__TUNING_KEY];
    clattn_context *context = plan->context;
    if (plan->options.untuned || !clattn__tuning_key(role, params, key)) return NULL;
    const clattn__tuned *tuned = clattn__tuning_find(context, key);
    if (!tuned) {
        clattn__text_add(why, "not tuned: nothing was measured for %s\n", key);
        return NULL;
    }
    const clattn__row *row = clattn__row_named(tuned->row);
    const char *refusal = refusal_of(context, tuned, row, role, params);
    clattn__text_add(why, "%s: %s for %s, ", refusal ? "not as tuned" : "tuned", tuned->row, key);
    if (refusal)
        clattn__text_add(why, "which cannot be: %s; ", refusal);
    else if (strcmp(tuned->row, tuned->other) != 0)
        clattn__text_add(why, "%.2f times as fast as %s, noise %.1f %%; ", tuned->ratio, tuned->other, 1e2 * tuned->noise);
    clattn__tuned_origin(why, tuned);
    clattn__text_add(why, "\n");
    return refusal ? NULL : row;
}

const clattn__row *clattn__plan_find(clattn_plan *plan, clattn__role role, const clattn__params *params, clattn__text *why) {
    clattn_context *context = plan->context;
    const clattn__row *row = NULL;
    clattn__text measured = {0};
    if (plan->only_row && plan->only_row->role == role) return plan->only_row;
    if (!clattn__tuning_trial(context, role, &row))
        row = measured_row(plan, role, params, &measured);
    else if (row && clattn__row_refusal(context, row, params))
        row = NULL;
    if (!row) row = clattn__choose_row(context, role, params, why);
    if (row && measured.data) clattn__text_add(&plan->why, "%s", measured.data);
    clattn__text_free(&measured);
    return row;
}

clattn_status clattn__plan_choose(clattn_plan *plan, clattn__role role, const clattn__params *params, const clattn__row **row) {
    clattn_context *context = plan->context;
    clattn__text why = {0};
    clattn_status status = CLATTN_OK;
    *row = clattn__plan_find(plan, role, params, &why);
    if (!*row)
        status = clattn__fail(context, CLATTN_ERROR_UNSUPPORTED, "no kernel for %s on %s%s%.*s", clattn__roles[role].entry,
                              context->device.info.id, why.length ? "\n" : "", why.length ? (int)why.length - 1 : 0,
                              why.data ? why.data : "");
    clattn__text_free(&why);
    return status;
}

/* Build the step's kernel, and see that it computes. */
static clattn_status plan_prepare(clattn_plan *plan, clattn__step *step) {
    clattn_context *context = plan->context;
    clattn_status status = context->backend->prepare(plan, step);
    if (status != CLATTN_OK) return status;
    status = clattn__self_check(context, step);
    if (status != CLATTN_OK) context->backend->release(context, step);
    return status;
}

clattn_status clattn__plan_step_of(clattn_plan *plan, const clattn__row *row, const clattn__place *buffers,
                                   const clattn__params *params, i64 repeat) {
    clattn__step step = {.row = row, .params = *params, .repeat = repeat};
    clattn__role_variant(row->role, params, &step.variant);
    step.params.groups = clattn__row_groups(row, params);
    for (int n = 0; n < clattn__roles[row->role].buffers; n++)
        step.buffers[n] = buffers[n].where == CLATTN__NOWHERE ? buffers[0] : buffers[n];
    if (step.params.groups == 0 || repeat == 0) return CLATTN_OK;

    clattn_status status = plan_reserve_step(plan);
    if (status != CLATTN_OK) return status;
    if (!plan->probing) status = plan_prepare(plan, &step);
    if (status == CLATTN_ERROR_BUILD) {
        plan->failed_row = row;
        plan->failed_variant = step.variant;
    }
    if (status != CLATTN_OK) return status;
    plan->steps[plan->step_count++] = step;
    plan->launches += repeat;
    plan->dependent_steps += repeat;
    return CLATTN_OK;
}

clattn_status clattn__plan_step(clattn_plan *plan, clattn__role role, const clattn__place *buffers, const clattn__params *params,
                                i64 repeat) {
    const clattn__row *row;
    clattn_status status = clattn__plan_choose(plan, role, params, &row);
    return status == CLATTN_OK ? clattn__plan_step_of(plan, row, buffers, params, repeat) : status;
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
    clattn__split_destroy(plan->split);
    free(plan->steps);
    free(plan->workspace);
    free(plan->rows);
    clattn__text_free(&plan->why);
    clattn__text_free(&plan->dropped);
    free(plan);
}

/* The workspace is one buffer, the plan's own or the caller's. */
static clattn_status plan_check_workspace(const clattn_plan *plan) {
    const size_t most = plan->context->device.max_alloc_bytes;
    if (!most || plan->workspace_bytes <= most) return CLATTN_OK;
    return clattn__fail(plan->context, CLATTN_ERROR_MEMORY, "%s, %s: a workspace of %zu bytes is needed; %s allocates at most %zu at once",
                        plan->name, plan->algorithm, plan->workspace_bytes, plan->context->device.info.id, most);
}

/* A row that does not build, or computes wrong, is banned, in that variant, and the plan built again without it, until one set of rows builds. */
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
        clattn_status status = plan->split ? clattn__split_emit(plan) : plan->op->build(plan);
        if (status == CLATTN_ERROR_UNSUPPORTED && plan->dropped.length)
            return clattn__fail(context, CLATTN_ERROR_BUILD, "no kernel is left:\n%s", plan->dropped.data);
        if (status == CLATTN_OK) return plan_check_workspace(plan);
        if (!plan->failed_row) return status;
        clattn__text_add(&plan->dropped, "dropped %s, which failed here: %s\n", plan->failed_row->name,
                         clattn__last_error(context));
        if (!clattn__row_ban(context, plan->failed_row, &plan->failed_variant)) return plan_out_of_memory(plan);
        clattn__log(context, CLATTN_LOG_WARNING, "kernel row %s failed on %s and is dropped", plan->failed_row->name,
                    context->device.info.id);
        plan_drop_steps(plan);
    }
}

static clattn_status plan_name_rows(clattn_plan *plan) {
    clattn__text rows = {0};
    if (plan->context->backend->runs_operators) clattn__text_add(&rows, "reference");
    if (plan->split) clattn__text_add(&rows, "%s%s", plan->split->pieces[0].plan->rows, plan->step_count ? "+" : "");
    for (size_t n = 0; n < plan->step_count; n++)
        clattn__text_add(&rows, "%s%s", n ? "+" : "", plan->steps[n].row->name);
    if (plan->step_count == 0 && !rows.length) clattn__text_add(&rows, "none");
    plan->rows = rows.data;
    return rows.failed || plan->why.failed || plan->dropped.failed ? plan_out_of_memory(plan) : CLATTN_OK;
}

/* A choice among the values 0 (the default) to `last`, refused where the operator has none to make. */
static clattn_status check_choice(const clattn_plan *plan, const char *name, int value, int last, bool has_use) {
    if (value < 0 || value > last)
        return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "options: %s is %d; it is 0 to %d", name, value, last);
    if (value && !has_use)
        return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "options: %s is %d, and %s has no use for it", name, value,
                            plan->op->name);
    return CLATTN_OK;
}

static clattn_status plan_read_options(clattn_plan *plan, const clattn_plan_options *given) {
    clattn_plan_options *options = &plan->options;
    *options = (clattn_plan_options)CLATTN_PLAN_OPTIONS_INIT;
    clattn_status status = CLATTN_OK;
    if (given) status = clattn__read_struct(plan->context, "options", options, sizeof *options, given);
    if (status == CLATTN_OK)
        status = check_choice(plan, "algorithm", (int)options->algorithm, CLATTN_ALGORITHM_SPLIT, plan->op->has_algorithm);
    if (status == CLATTN_OK)
        status = check_choice(plan, "require_fused", options->require_fused, 1, plan->op->has_algorithm);
    if (status == CLATTN_OK) status = check_choice(plan, "untuned", options->untuned, 1, true);
    if (status == CLATTN_OK)
        status = check_choice(plan, "recurrence", (int)options->recurrence, CLATTN_RECURRENCE_STEPS, plan->op->has_recurrence);
    if (status == CLATTN_OK) status = check_choice(plan, "split_devices", options->split_devices, 1, plan->op->grid);
    if (status != CLATTN_OK) return status;
    if (options->split_devices && !plan->context->backend->splits)
        return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "options: split_devices is 1, and %s has no use for it",
                            plan->context->device.info.id);
    if (options->reserved)
        return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "options: reserved is %#x; it must be 0", (unsigned)options->reserved);
    return CLATTN_OK;
}

/* The plan of a validated descriptor that was `given`, over all devices of its context. */
static clattn_status plan_build_split(clattn_plan *plan, const clattn__desc *given) {
    const char *why_not;
    clattn_status status = clattn__split_make(plan, given, &why_not);
    if (status == CLATTN_OK) status = plan_build(plan);
    if (status == CLATTN_OK && why_not) clattn__text_add(&plan->why, "not split over devices: %s\n", why_not);
    return status;
}

clattn_status clattn__plan_create(clattn_context *context, const clattn__operator *op, const void *desc,
                                  const clattn_plan_options *options, bool probing, clattn_plan **out) {
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
    if (status == CLATTN_OK) status = plan_read_options(plan, options);
    const clattn__desc given = plan->desc;
    if (status == CLATTN_OK) status = op->validate(plan);
    if (status == CLATTN_OK) status = plan->options.split_devices ? plan_build_split(plan, &given) : plan_build(plan);
    if (status == CLATTN_OK) status = plan_name_rows(plan);
    if (status != CLATTN_OK) {
        clattn_plan_destroy(plan);
        return status;
    }
    clattn__self_checks_save(context);
    if (context->backend->keep) context->backend->keep(context);
    *out = plan;
    return CLATTN_OK;
}

static clattn_status plan_probe(clattn_context *context, const clattn__operator *op, const void *desc,
                                const clattn_plan_options *options) {
    clattn_plan *plan = NULL;
    if (context) clattn__errors_unlogged(context, true);
    clattn_status status = clattn__plan_create(context, op, desc, options, true, &plan);
    if (context) clattn__errors_unlogged(context, false);
    clattn_plan_destroy(plan);
    return status;
}

#define X(op)                                                                                                            \
    clattn_status clattn_plan_create_##op(clattn_context *context, const clattn_##op##_desc *desc,                       \
                                          const clattn_plan_options *options, clattn_plan **plan) {                      \
        return clattn__plan_create(context, &clattn__operator_##op, desc, options, false, plan);                         \
    }                                                                                                                    \
    clattn_status clattn_supports_##op(clattn_context *context, const clattn_##op##_desc *desc,                          \
                                       const clattn_plan_options *options) {                                             \
        return plan_probe(context, &clattn__operator_##op, desc, options);                                              \
    }                                                                                                                    \
    clattn_status clattn_##op(clattn_context *context, const clattn_##op##_desc *desc,                                   \
                              const clattn_plan_options *options, const clattn_arg *args, size_t count) {                \
        clattn_plan *plan;                                                                                               \
        clattn_status status = clattn_plan_create_##op(context, desc, options, &plan);                                  \
        if (status == CLATTN_OK) status = clattn_plan_run(plan, args, count);                                            \
        if (status == CLATTN_OK || plan) clattn_plan_destroy(plan);                                                      \
        return status;                                                                                                   \
    }
CLATTN__OPERATORS(X)
#undef X

/* ---- questions ----------------------------------------------------------------------------------------------------- */

clattn_status clattn_plan_get_info(const clattn_plan *plan, clattn_plan_info *info) {
    if (!plan) return CLATTN_ERROR_ARGUMENT;
    const clattn_plan_info full = {
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
    return clattn__write_struct(plan->context, "info", info, &full, sizeof full);
}

static void explain_macros(clattn__text *text, const clattn__macro *macros) {
    for (const clattn__macro *m = macros; m < macros + CLATTN__MAX_MACROS && m->name; m++)
        clattn__text_add(text, " %s=%d", m->name, m->value);
}

/* Measurements that were left aside. */
static void explain_tuning(clattn__text *text, const clattn_plan *plan) {
    size_t count;
    const char *problems;
    if (plan->context->backend->runs_operators) return;
    if (plan->options.untuned || !clattn__is_on(CLATTN__TUNING)) {
        clattn__text_add(text, "measurements are left aside: %s\n", plan->options.untuned ? "asked for" : "$CLATTN_TUNING is 0");
        return;
    }
    clattn__tuning_list(plan->context, &count, &problems);
    clattn__text_add(text, "%s", problems);
}

size_t clattn_plan_explain(const clattn_plan *plan, char *out, size_t size) {
    if (!plan) return clattn__text_copy(NULL, out, size);
    clattn__text text = {0};
    clattn__text_add(&text, "%s on %s: %s\n", plan->name, plan->context->device.info.id, plan->algorithm);
    for (size_t n = 0; n < plan->step_count; n++) {
        const clattn__step *step = &plan->steps[n];
        clattn__text_add(&text, "  %zu. %s (%s", n + 1, step->row->name, step->row->source);
        explain_macros(&text, step->row->macros);
        explain_macros(&text, step->variant.macros);
        clattn__text_add(&text, ") in %lld groups", (long long)step->params.groups);
        if (step->repeat > 1) clattn__text_add(&text, ", %lld launches one after another", (long long)step->repeat);
        if (clattn__row_macro(step->row, "MMA", 0)) clattn__text_add(&text, "; its matrix instructions have not yet run on hardware");
        clattn__text_add(&text, "\n");
    }
    clattn__text_add(&text, "workspace %zu bytes, %lld launch%s, chain of %lld dependent step%s\n", plan->workspace_bytes,
                     (long long)plan->launches, plan->launches == 1 ? "" : "es", (long long)plan->dependent_steps,
                     plan->dependent_steps == 1 ? "" : "s");
    clattn__text_add(&text, "%s%s", plan->why.data ? plan->why.data : "", plan->dropped.data ? plan->dropped.data : "");
    explain_tuning(&text, plan);
    size_t length = clattn__text_copy(text.data, out, size);
    clattn__text_free(&text);
    return length;
}

clattn_tensor clattn_plan_tensor(const clattn_plan *plan, clattn_tensor_id id) {
    return plan && (unsigned)id < CLATTN_TENSOR_COUNT ? plan->tensors[id] : (clattn_tensor){0};
}
