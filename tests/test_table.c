/* The kernel table: every row is well-formed, can be chosen by some device, builds where it can, and takes the local memory it
 * says; every role is served on every kind of device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

#ifdef CLATTN_TESTS_OPENCL
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#endif

#define ISA(name, width, ...) width,
static const int widths[] = {
#include "../host/native/isa.def"
};
#undef ISA

/* ---- form --------------------------------------------------------------------------------------------------------- */

static bool is_width(int width) {
    bool found = false;
    for (size_t n = 0; n < COUNT(widths); n++) found |= widths[n] == width;
    return found;
}

START_TEST(names_are_unique) {
    for (size_t n = 0; n < clattn__row_count; n++) {
        for (size_t m = 0; m < n; m++) ck_assert_str_ne(clattn__rows[n].name, clattn__rows[m].name);
    }
}
END_TEST

START_TEST(row_is_well_formed) {
    const clattn__row *row = &clattn__rows[_i];
    ck_assert_uint_lt(row->role, CLATTN__ROLE_COUNT);
    ck_assert_msg(row->source && row->source[0], "%s has no source", row->name);
    int macros = 0;
    for (; macros < CLATTN__MAX_MACROS && row->macros[macros].name; macros++) {
        const clattn__macro *macro = &row->macros[macros];
        ck_assert_msg(macro->value > 0, "%s: %s is %d", row->name, macro->name, macro->value);
        ck_assert_int_eq(clattn__row_macro(row, macro->name, -1), macro->value);
    }
    ck_assert_int_eq(clattn__row_macro(row, "NO_SUCH_MACRO", -7), -7);
    const int width = clattn__row_macro(row, "VECTOR_WIDTH", 0), work_group = clattn__row_macro(row, "WORK_GROUP", 0);
    switch (row->family) {
    case CLATTN__FAMILY_NATIVE:
        ck_assert_msg(clattn__row_macro(row, "TILES", 0), "%s: a row of the family CPU", row->name);
        /* fall through */
    case CLATTN__FAMILY_CPU:
        ck_assert_msg(is_width(width), "%s: no instruction-set level has vectors of %d floats", row->name, width);
        ck_assert_msg(!work_group, "%s: a CPU row with a work-group", row->name);
        break;
    case CLATTN__FAMILY_GPU: ck_assert_msg(work_group && !width, "%s: a GPU row has a WORK_GROUP, no VECTOR_WIDTH", row->name); break;
    case CLATTN__FAMILY_CLBLAST: ck_assert_msg(macros == 0, "%s: CLBlast takes no macros", row->name); break;
    }
}
END_TEST

START_TEST(role_is_well_formed) {
    const clattn__role_info *role = &clattn__roles[_i];
    ck_assert(role->entry && role->entry[0]);
    ck_assert_uint_gt(role->params_size, 0);
    ck_assert(role->buffers > 0 && role->buffers <= CLATTN__MAX_BUFFERS);
    for (int n = 0; n < role->buffers; n++) ck_assert(role->buffer_names[n] && role->buffer_names[n][0]);
}
END_TEST

static clattn_context *fake_context(clattn__device device);
static clattn__params params_of_dim(clattn__role role, int dim);

/* ---- variants ----------------------------------------------------------------------------------------------------- */

/* The sizes of heads that kernels are built for. */
static const clattn__variant_info *head_dims(void) {
    const clattn__variant_info *info = clattn__variants;
    while (strcmp(info->macro, "HEAD_DIM_MAX") != 0) info++;
    return info;
}

static int largest_head_dim(void) { return head_dims()->values[head_dims()->count - 1]; }

START_TEST(variant_is_well_formed) {
    const clattn__variant_info *info = &clattn__variants[_i];
    ck_assert_uint_lt(info->role, CLATTN__ROLE_COUNT);
    ck_assert_int_gt(info->count, 0);
    for (int n = 1; n < info->count; n++) ck_assert_int_lt(info->values[n - 1], info->values[n]);
}
END_TEST

/* Each size gets the least that holds it, and none past the last. */
START_TEST(variants_hold_their_sizes) {
    clattn__variant variant;
    const clattn__variant_info *dims = head_dims();
    for (int dim = 1; dim <= largest_head_dim(); dim++) {
        const clattn__params params = params_of_dim(CLATTN__ROLE_ATTENTION, dim);
        int least = 0;
        while (dims->values[least] < dim) least++;
        ck_assert(clattn__role_variant(CLATTN__ROLE_ATTENTION, &params, &variant));
        for (const clattn__macro *m = variant.macros; m->name; m++)
            if (strstr(m->name, "DIM_MAX")) ck_assert_int_eq(m->value, dims->values[least]);
    }
    const clattn__params past = params_of_dim(CLATTN__ROLE_ATTENTION, largest_head_dim() + 1);
    ck_assert(!clattn__role_variant(CLATTN__ROLE_ATTENTION, &past, &variant));
}
END_TEST

/* A variant that failed says nothing of the row's others. */
START_TEST(a_ban_is_of_one_variant) {
    clattn_context *context = fake_context((clattn__device){.has_cpu_family = true, .vector_width = widths[0], .max_work_group = 1});
    const clattn__params small = params_of_dim(CLATTN__ROLE_ATTENTION, 64), large = params_of_dim(CLATTN__ROLE_ATTENTION, 128);
    const clattn__row *row = clattn__choose_row(context, CLATTN__ROLE_ATTENTION, &small, NULL);
    clattn__variant variant;
    ck_assert_ptr_nonnull(row);
    ck_assert(clattn__role_variant(CLATTN__ROLE_ATTENTION, &large, &variant));
    ck_assert(clattn__row_ban(context, row, &variant));
    ck_assert(clattn__choose_row(context, CLATTN__ROLE_ATTENTION, &large, NULL) != row);
    ck_assert_ptr_eq(clattn__choose_row(context, CLATTN__ROLE_ATTENTION, &small, NULL), row);
    ck_assert(clattn__row_ban(context, row, NULL));
    ck_assert(clattn__choose_row(context, CLATTN__ROLE_ATTENTION, &small, NULL) != row);
    clattn__row_bans_lift(context);
    ck_assert_ptr_eq(clattn__choose_row(context, CLATTN__ROLE_ATTENTION, &large, NULL), row);
    clattn_context_destroy(context);
}
END_TEST

/* ---- choice ------------------------------------------------------------------------------------------------------- */

/* A context on a device that is not there. */
static clattn_context *fake_context(clattn__device device) {
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    options.device = "reference";
    clattn_context *context;
    ck_assert_int_eq(clattn_context_create(&options, &context), CLATTN_OK);
    context->device = device;
    return context;
}

static clattn__params params_of_dim(clattn__role role, int dim) {
    clattn__params params = {0};
    if (role != CLATTN__ROLE_PROJECT && role < CLATTN__ROLE_MERGE) {
        params.attention.head_dim = params.attention.value_dim = dim;
        params.attention.dtype = DTYPE_F32;
    }
    if (role == CLATTN__ROLE_PROJECT) { /* a packed product without bias */
        params.project = (project_params){.batch = 1, .len = 8, .depth = 8, .columns = 8, .dim = 8, .dtype = DTYPE_F32};
        params.project.x = params.project.w = params.project.y = (strides){0, 0, 8, 1};
    }
    return params;
}

/* Of the first type that a row takes. */
static clattn__params params_of_row(const clattn__row *row, int dim) {
    clattn__params params = params_of_dim(row->role, dim);
    int32_t *dtype = row->role == CLATTN__ROLE_PROJECT ? &params.project.dtype : &params.attention.dtype;
    if (clattn__row_macro(row, "MMA", 0)) *dtype = DTYPE_F16;
    const int only = clattn__row_macro(row, "ONLY_DTYPE", 0);
    if (only) *dtype = only;
    return params;
}

/* The device for which a row is made: as wide, as large, and no more; of the first vendor that it is meant for. */
static clattn__device device_of(const clattn__row *row) {
    const int gpus = row->devices & CLATTN__GPUS;
    return (clattn__device){
        .gpu = (clattn__devices)(gpus & -gpus),
        .has_cpu_family = row->family == CLATTN__FAMILY_CPU,
        .has_gpu_family = row->family == CLATTN__FAMILY_GPU,
        .has_clblast = row->family == CLATTN__FAMILY_CLBLAST,
        .mma = clattn__row_macro(row, "MMA", 0),
        .features = 1u << clattn__row_macro(row, "TILES", 0),
        .vector_width = clattn__row_macro(row, "VECTOR_WIDTH", 1),
        .max_work_group = (size_t)clattn__row_macro(row, "WORK_GROUP", 1),
        .local_bytes = (size_t)clattn__row_macro(row, "LOCAL_BYTES", 0),
    };
}

static bool attends(const clattn__row *row) {
    return row->role == CLATTN__ROLE_ATTENTION || row->role == CLATTN__ROLE_ATTENTION_SPLIT;
}

START_TEST(row_can_be_chosen) {
    const clattn__row *row = &clattn__rows[_i];
    clattn_context *context = fake_context(device_of(row));
    const int dim = clattn__row_macro(row, "HEAD_DIM_LIMIT", 64);
    clattn__params params = params_of_row(row, dim);
    if (row->role == CLATTN__ROLE_ATTENTION_SPLIT) {
        params.attention.heads_q = params.attention.heads_kv = 1;
        const int few = clattn__row_macro(row, "GROUP_ROWS_LIMIT", 8);
        params.attention.len_q = clattn__row_macro(row, "LANES_FILLED", 0) ? clattn__row_lanes(row) : few;
    }
    const clattn__row *chosen = clattn__choose_row(context, row->role, &params, NULL);
    if (chosen != row) { /* one that is faster where no option modifies scores may come first */
        params.attention.modified = attends(row);
        chosen = clattn__choose_row(context, row->role, &params, NULL);
    }
    ck_assert_msg(chosen == row, "%s is never chosen: %s comes first", row->name, chosen ? chosen->name : "nothing");
    clattn_context_destroy(context);
}
END_TEST

static const clattn__row *choose_on(clattn__devices gpu, int dim, int modified, clattn__text *why) {
    clattn_context *context =
        fake_context((clattn__device){.gpu = gpu, .has_gpu_family = true, .max_work_group = 1024, .local_bytes = 65536});
    clattn__params params = params_of_dim(CLATTN__ROLE_ATTENTION, dim);
    params.attention.modified = modified;
    const clattn__row *row = clattn__choose_row(context, CLATTN__ROLE_ATTENTION, &params, why);
    clattn_context_destroy(context);
    ck_assert_ptr_nonnull(row);
    return row;
}

/* A row that is meant for a GPU comes before those that are not; where none is, another serves and the explanation says so. */
START_TEST(rows_meant_for_a_gpu_come_first) {
    clattn__text why = {0};
    ck_assert(choose_on(CLATTN__NVIDIA, 128, 0, NULL)->devices & CLATTN__NVIDIA);
    ck_assert(choose_on(CLATTN__AMD, 128, 0, NULL)->devices & CLATTN__AMD);
    const clattn__row *spare = choose_on(CLATTN__INTEL, largest_head_dim(), 0, &why);
    ck_assert_int_eq(spare->devices & CLATTN__INTEL, 0);
    ck_assert_ptr_nonnull(strstr(why.data, spare->name));
    ck_assert_ptr_nonnull(strstr(why.data, "after all"));
    clattn__text_free(&why);
}
END_TEST

/* A row made for unmodified scores leaves others to the next. */
START_TEST(modified_scores_have_their_rows) {
    const clattn__row *plain = choose_on(CLATTN__NVIDIA, 128, 0, NULL), *modified = choose_on(CLATTN__NVIDIA, 128, 1, NULL);
    ck_assert_int_eq(clattn__row_macro(plain, "UNMODIFIED", 0), 1);
    ck_assert_int_eq(clattn__row_macro(modified, "UNMODIFIED", 0), 0);
}
END_TEST

/* The largest heads, on the smallest devices that there are. */
START_TEST(every_role_is_served_everywhere) {
    const clattn__role role = (clattn__role)_i;
    clattn__device devices[COUNT(widths) + 2] = {
        {.has_gpu_family = true, .max_work_group = 256, .local_bytes = 32768}, /* what OpenCL 1.2 asks of a GPU, about */
        {.has_gpu_family = true, .max_work_group = 1, .local_bytes = 32768},   /* and no more than it must */
    };
    for (size_t n = 0; n < COUNT(widths); n++) {
        devices[n + 2] = (clattn__device){.has_cpu_family = true, .vector_width = widths[n], .max_work_group = 1};
    }
    for (size_t n = 0; n < COUNT(devices); n++) {
        clattn_context *context = fake_context(devices[n]);
        const clattn__params params = params_of_dim(role, largest_head_dim());
        clattn__text why = {0};
        const clattn__row *row = clattn__choose_row(context, role, &params, &why);
        ck_assert_msg(row != NULL, "no row for %s on fake device %zu:\n%s", clattn__roles[role].entry, n, why.data);
        clattn__text_free(&why);
        clattn_context_destroy(context);
    }
}
END_TEST

/* What a row of the family NATIVE lacks is said in its own words; with it, the row may serve. */
START_TEST(a_missing_feature_is_named) {
    for (const clattn__row *row = clattn__rows; row < clattn__rows + clattn__row_count; row++) {
        if (row->family != CLATTN__FAMILY_NATIVE) continue;
        clattn__device device = device_of(row);
        const clattn__params params = params_of_row(row, 64);
        clattn__variant variant;
        ck_assert(clattn__role_variant(row->role, &params, &variant));
        ck_assert_ptr_null(clattn__row_obstacle(row, &device, &variant, &params));
        device.features = 0;
        const char *obstacle = clattn__row_obstacle(row, &device, &variant, &params);
        ck_assert_msg(obstacle && (strstr(obstacle, "needs ") || strstr(obstacle, "for tests")), "%s: %s", row->name, obstacle);
        device.features = ~0u;
        device.info.kind = CLATTN_DEVICE_OPENCL_CPU;
        ck_assert_ptr_nonnull(clattn__row_obstacle(row, &device, &variant, &params));
    }
}
END_TEST

/* Without a row there is a sentence for each one, why it was not taken. */
START_TEST(refusals_are_explained) {
    clattn_context *context = fake_context((clattn__device){.vector_width = 3});
    const clattn__params params = params_of_dim(CLATTN__ROLE_ATTENTION, 64);
    clattn__text why = {0};
    ck_assert_ptr_null(clattn__choose_row(context, CLATTN__ROLE_ATTENTION, &params, &why));
    for (size_t n = 0; n < clattn__row_count; n++) {
        if (clattn__rows[n].role == CLATTN__ROLE_ATTENTION) ck_assert_ptr_nonnull(strstr(why.data, clattn__rows[n].name));
    }
    clattn__text_free(&why);
    clattn_context_destroy(context);
}
END_TEST

/* ---- grids -------------------------------------------------------------------------------------------------------- */

static i64 *batch_of(clattn__role role, clattn__params *params) {
    if (role == CLATTN__ROLE_PROJECT) return &params->project.batch;
    if (role == CLATTN__ROLE_MERGE) return &params->merge.batch;
    if (role == CLATTN__ROLE_COPY) return &params->copy.batch;
    return role < CLATTN__ROLE_MERGE ? &params->attention.batch : &params->recurrence.batch;
}

/* Groups cover the work: none without work, one for a little, one more past a tile. */
START_TEST(grid_covers_the_work) {
    const clattn__row *row = &clattn__rows[_i];
    clattn__params one = {0};
    one.recurrence.lanes = clattn__row_macro(row, "LANES", 1);
    const bool project = row->role == CLATTN__ROLE_PROJECT, attention = row->role < CLATTN__ROLE_MERGE && !project;
    const bool merge = row->role == CLATTN__ROLE_MERGE, copy = row->role == CLATTN__ROLE_COPY;
    if (merge) {
        one.merge.batch = one.merge.heads = one.merge.len = 1;
    } else if (copy) {
        one.copy.batch = one.copy.heads = one.copy.len = 1;
    } else if (project) {
        one.project.batch = one.project.len = one.project.columns = one.project.dim = 1;
    } else if (attention) {
        one.attention.batch = one.attention.heads_q = one.attention.heads_kv = 1;
        one.attention.len_q = one.attention.len_kv = one.attention.value_dim = one.attention.head_dim = 1;
        one.attention.split = 512;
    } else {
        one.recurrence.batch = one.recurrence.steps = one.recurrence.hidden = one.recurrence.gates = 1;
    }
    ck_assert_int_eq(clattn__row_groups(row, &one), 1);
    clattn__params none = one, batch = one;
    *batch_of(row->role, &none) = 0;
    *batch_of(row->role, &batch) = 100000;
    ck_assert_int_eq(clattn__row_groups(row, &none), 0);
    const i64 many = clattn__row_groups(row, &batch);
    ck_assert_msg(many >= 1 && many <= 100000, "%s: %lld groups for a batch of 100000", row->name, (long long)many);
}
END_TEST

/* ---- builds ------------------------------------------------------------------------------------------------------- */

/* Make one row ready on a device; *step is the caller's to release. */
static void prepare_row(clattn_context *context, const clattn__row *row, int dim, clattn__step *step) {
    clattn_plan plan = {.context = context};
    *step = (clattn__step){.row = row, .params = params_of_row(row, dim), .repeat = 1};
    ck_assert(clattn__role_variant(row->role, &step->params, &step->variant));
    clattn_status status = context->backend->prepare(&plan, step);
    ck_assert_msg(status == CLATTN_OK, "%s with dim %d: %s: %s", row->name, dim, clattn_status_name(status), error_text(context));
}

#ifdef CLATTN_TESTS_OPENCL
static void check_local_memory(const clattn__row *row, int dim, cl_kernel kernel) {
    cl_device_id device = NULL;
    cl_context cl = NULL;
    cl_ulong bytes = 0;
    size_t work_group = 0;
    ck_assert_int_eq(clGetKernelInfo(kernel, CL_KERNEL_CONTEXT, sizeof cl, &cl, NULL), CL_SUCCESS);
    ck_assert_int_eq(clGetContextInfo(cl, CL_CONTEXT_DEVICES, sizeof device, &device, NULL), CL_SUCCESS);
    ck_assert_int_eq(clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof bytes, &bytes, NULL), CL_SUCCESS);
    ck_assert_int_eq(clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_WORK_GROUP_SIZE, sizeof work_group, &work_group, NULL),
                     CL_SUCCESS);
    const int declared = clattn__row_macro(row, "LOCAL_BYTES", 0);
    ck_assert_msg(bytes <= (cl_ulong)declared, "%s with dim %d: %llu bytes of local memory, %d declared", row->name, dim,
                  (unsigned long long)bytes, declared);
    ck_assert_uint_ge(work_group, (size_t)clattn__row_macro(row, "WORK_GROUP", 1));
}
#endif

/* Every row on every device that may serve it, with heads of each size that a kernel is built for. */
START_TEST(row_builds) {
    const clattn__variant_info *dims = head_dims();
    const clattn__row *row = &clattn__rows[_i];
    size_t served = 0;
    for (size_t d = 0; d < test_device_count(); d++) {
        clattn_context *context = test_context(d);
        if (!context || context->backend->runs_operators || !row_may_serve(context, row)) continue;
        served++;
        const bool has_dims = row->role == CLATTN__ROLE_ATTENTION || row->role == CLATTN__ROLE_ATTENTION_SPLIT;
        const size_t builds = has_dims ? (size_t)dims->count : 1;
        for (size_t n = 0; n < builds; n++) {
            if (dims->values[n] > clattn__row_macro(row, "HEAD_DIM_LIMIT", INT_MAX)) continue;
            if (dims->values[n] <= clattn__row_macro(row, "HEAD_DIM_ABOVE", 0)) continue;
            clattn__step step;
            prepare_row(context, row, dims->values[n], &step);
#ifdef CLATTN_TESTS_OPENCL
            if (context->device.info.kind >= CLATTN_DEVICE_OPENCL_CPU && row->family != CLATTN__FAMILY_CLBLAST) {
                check_local_memory(row, dims->values[n], step.prepared);
            }
#endif
            context->backend->release(context, &step);
        }
    }
    if (!served) printf("row %s: no device here can run it\n", row->name);
}
END_TEST

START_TEST(source_is_embedded) {
#ifdef CLATTN_TESTS_OPENCL
    const clattn__row *row = &clattn__rows[_i];
    if (row->family == CLATTN__FAMILY_CLBLAST || row->family == CLATTN__FAMILY_NATIVE) return;
    const char *text = clattn__kernel_source(row->source);
    ck_assert_msg(text && text[0], "%s: %s is not embedded", row->name, row->source);
    ck_assert_ptr_nonnull(strstr(text, clattn__roles[row->role].entry));
    ck_assert_ptr_null(clattn__kernel_source("no/such.cl"));
#endif
}
END_TEST

int main(void) {
    const int rows = (int)clattn__row_count;
    Suite *suite = suite_create("table");
    TCase *tests = tcase_create("table");
    tcase_add_test(tests, names_are_unique);
    tcase_add_loop_test(tests, row_is_well_formed, 0, rows);
    tcase_add_loop_test(tests, role_is_well_formed, 0, CLATTN__ROLE_COUNT);
    tcase_add_loop_test(tests, variant_is_well_formed, 0, (int)clattn__variant_count);
    tcase_add_test(tests, variants_hold_their_sizes);
    tcase_add_test(tests, a_ban_is_of_one_variant);
    tcase_add_loop_test(tests, row_can_be_chosen, 0, rows);
    tcase_add_test(tests, rows_meant_for_a_gpu_come_first);
    tcase_add_test(tests, modified_scores_have_their_rows);
    tcase_add_loop_test(tests, every_role_is_served_everywhere, 0, CLATTN__ROLE_COUNT);
    tcase_add_test(tests, a_missing_feature_is_named);
    tcase_add_test(tests, refusals_are_explained);
    tcase_add_loop_test(tests, grid_covers_the_work, 0, rows);
    tcase_add_loop_test(tests, source_is_embedded, 0, rows);
    tcase_add_loop_test(tests, row_builds, 0, rows);
    suite_add_tcase(suite, tests);
    return run_device_suite(suite);
}
