/* The self-check: every row passes, a wrong kernel is dropped before it serves, and what was found right is kept and found
 * again.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../host/native/native.h"
#include "../host/self_check.h"
#include "support.h"

#ifdef CLATTN_TESTS_OPENCL
#include "patched_kernel.h"
#endif

/* ---- contexts that tell what is checked ----------------------------------------------------------------------------- */

static int checks; /* lines of the log */

static void count_checks(void *user, clattn_log_level level, const char *message) {
    (void)user;
    if (level == CLATTN_LOG_INFO && strstr(message, "self-check: ")) {
        printf("%s\n", message);
        checks++;
    }
}

static clattn_context *open_device(const char *name) {
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    clattn_context *context;
    options.device = name;
    options.log = count_checks;
    checks = 0;
    return clattn_context_create(&options, &context) == CLATTN_OK ? context : NULL;
}

static void attend(clattn_context *context, const clattn_plan_options *options, char *explanation, size_t size, float out[6]) {
    clattn_plan *plan;
    assert_ok(context, small_attention(context, options, &plan, out));
    clattn_plan_explain(plan, explanation, size);
    clattn_plan_destroy(plan);
}

/* ---- right rows ------------------------------------------------------------------------------------------------------ */

/* One variant after another, like an odometer; false past the last. */
static bool next_variant(clattn__role role, clattn__variant *variant) {
    int n = 0;
    for (size_t line = 0; line < clattn__variant_count; line++) {
        const clattn__variant_info *info = &clattn__variants[line];
        if (info->role != role) continue;
        int at = 0;
        while (info->values[at] != variant->macros[n].value) at++;
        if (at + 1 < info->count) {
            variant->macros[n].value = info->values[at + 1];
            return true;
        }
        variant->macros[n++].value = info->values[0];
    }
    return false;
}

static clattn__variant first_variant(clattn__role role) {
    clattn__variant variant = {0};
    int n = 0;
    for (size_t line = 0; line < clattn__variant_count; line++)
        if (clattn__variants[line].role == role)
            variant.macros[n++] = (clattn__macro){clattn__variants[line].macro, clattn__variants[line].values[0]};
    return variant;
}

static int macro_of(const clattn__variant *variant, const char *name) {
    for (const clattn__macro *m = variant->macros; m->name; m++)
        if (strcmp(m->name, name) == 0) return m->value;
    return 0;
}

static bool can_be(const clattn_context *context, const clattn__row *row, const clattn__variant *variant) {
    const int limit = clattn__row_macro(row, "HEAD_DIM_LIMIT", 1 << 20);
    const int dtype = macro_of(variant, "DTYPE");
    if (dtype == DTYPE_F64 && !context->device.has_f64) return false;
    if (clattn__row_macro(row, "MMA", 0) && dtype != DTYPE_F16 && dtype != DTYPE_BF16) return false;
    if (clattn__row_macro(row, "ONLY_WIDE", 0) && (dtype == DTYPE_F16 || dtype == DTYPE_BF16)) return false;
    const int only = clattn__row_macro(row, "ONLY_DTYPE", dtype);
    if (dtype != only) return false;
    if (clattn__row_macro(row, "UNMODIFIED", 0) && macro_of(variant, "MODIFIED")) return false;
    const int above = clattn__row_macro(row, "HEAD_DIM_ABOVE", 0), head = macro_of(variant, "HEAD_DIM_MAX"),
              value = macro_of(variant, "VALUE_DIM_MAX");
    return head <= limit && value <= limit && (!above || head > above || value > above);
}

static void check_row(clattn_context *context, const clattn__row *row, const clattn__variant *variant) {
    clattn_plan plan = {.context = context};
    clattn__step step = {.row = row, .variant = *variant, .repeat = 1};
    step.params.recurrence.lanes = 8;
    step.params.recurrence.gates = 4;
    if (row->role != CLATTN__ROLE_PACK_RECURRENT) step.params = (clattn__params){0};
    assert_ok(context, context->backend->prepare(&plan, &step));
    assert_ok(context, clattn__self_check(context, &step));
    context->backend->release(context, &step);
}

/* Natively in every variant; elsewhere, where each costs a compilation, in the first that the row is made for. Those of fragments that
 * serve stages, each of which takes seconds, are checked where test_options plans with them, and here with CLATTN_TEST_LAYOUTS=1. */
START_TEST(every_row_passes) {
    const clattn__row *row = &clattn__rows[_i];
    const bool is_stage = row->role == CLATTN__ROLE_SCORES || row->role == CLATTN__ROLE_WEIGHTED_VALUES;
    if (is_stage && clattn__row_macro(row, "MMA", 0) && !getenv("CLATTN_TEST_LAYOUTS")) {
        printf("%s: left to test_options\n", row->name);
        return;
    }
    for (size_t d = 0; d < test_device_count(); d++) {
        clattn_context *context = test_context(d);
        if (!context || !context->self_checks || !row_may_serve(context, row)) continue;
        const bool native = context->device.info.kind == CLATTN_DEVICE_NATIVE;
        const int mma = context->device.mma;
        clattn__variant variant = first_variant(row->role);
        context->device.mma = -clattn__row_macro(row, "MMA", MMA_NVIDIA);
        do {
            if (!can_be(context, row, &variant)) continue;
            check_row(context, row, &variant);
            if (!native) break;
        } while (next_variant(row->role, &variant));
        context->device.mma = mma;
    }
}
END_TEST

/* Where the library has code for tiles and the system does not give them, the plan says so and the next row serves. */
START_TEST(without_permission_the_next_row_serves) {
    char text[8192];
    float out[6];
    const unsigned short ones[6] = {0x3f80, 0x3f80, 0x3f80, 0x3f80, 0x3f80, 0x3f80};
    unsigned short result[6];
    clattn_context *context = open_device("native");
    if (clattn__has_amx_bf16() || context->device.vector_width != 16) { /* where there is AMX, every_row_passes runs it */
        clattn_context_destroy(context);
        return;
    }
    context->device.features |= 1u << CLATTN__FEATURE_amx_bf16;
    clattn_attention_desc desc = CLATTN_ATTENTION_DESC_INIT;
    desc.q = desc.k = desc.v = desc.out = clattn_tensor_bhld(CLATTN_BF16, 1, 1, 3, 2);
    const clattn_arg args[] = {{CLATTN_TENSOR_Q, (void *)ones, 0},
                               {CLATTN_TENSOR_K, (void *)ones, 0},
                               {CLATTN_TENSOR_V, (void *)ones, 0},
                               {CLATTN_TENSOR_OUT, result, 0}};
    clattn_plan *plan;
    assert_ok(context, clattn_plan_create_attention(context, &desc, NULL, &plan));
    clattn_plan_explain(plan, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "attention_tiles_amx"));
    ck_assert_ptr_nonnull(strstr(text, "attention_w16"));
    assert_ok(context, clattn_plan_run(plan, args, COUNT(args)));
    for (int n = 0; n < 6; n++) ck_assert_uint_eq(result[n], 0x3f80);
    clattn_plan_destroy(plan);
    attend(context, NULL, text, sizeof text, out); /* and what needs no tiles is as before */
    ck_assert(small_attention_is_right(out));
    clattn_context_destroy(context);
}
END_TEST

/* The first test of all: what is found counts in the whole process, but for each instruction set on its own. */
START_TEST(a_row_is_checked_once) {
    char text[8192];
    float out[6];
    clattn_context *context = open_device("native");
    attend(context, NULL, text, sizeof text, out);
    ck_assert_int_gt(checks, 0);
    const int first = checks;
    attend(context, NULL, text, sizeof text, out);
    ck_assert_int_eq(checks, first);
    const bool best_is_generic = strstr(context->device.info.features, "uses generic") != NULL;
    clattn_context_destroy(context);

    context = open_device("native");
    attend(context, NULL, text, sizeof text, out);
    ck_assert_int_eq(checks, 0);
    clattn_context_destroy(context);

    context = open_device("native:generic");
    attend(context, NULL, text, sizeof text, out);
    ck_assert_int_eq(checks > 0, !best_is_generic);
    clattn_context_destroy(context);

    context = open_device("reference");
    attend(context, NULL, text, sizeof text, out);
    ck_assert_int_eq(checks, 0);
    clattn_context_destroy(context);
}
END_TEST

/* ---- wrong rows ------------------------------------------------------------------------------------------------------ */

static clattn__backend native_backend; /* as it is, but for the fused kernel */
static clattn_status (*native_prepare)(clattn_plan *, clattn__step *);

static void does_nothing(void *const *buffers, const void *params, i64 first, i64 stride) {
    (void)buffers, (void)params, (void)first, (void)stride;
}

static clattn_status prepare_wrong(clattn_plan *plan, clattn__step *step) {
    static const clattn__native_entry wrong = {.kernel = does_nothing};
    if (step->row->role != CLATTN__ROLE_ATTENTION) return native_prepare(plan, step);
    step->prepared = (void *)&wrong;
    return CLATTN_OK;
}

static clattn_context *open_wrong_native(void) {
    clattn_context *context = open_device("native");
    native_backend = *context->backend;
    native_prepare = native_backend.prepare;
    native_backend.prepare = prepare_wrong;
    context->backend = &native_backend;
    return context;
}

START_TEST(a_wrong_native_kernel_is_dropped) {
    char text[8192];
    float out[6] = {0};
    clattn_context *context = open_wrong_native();
    attend(context, NULL, text, sizeof text, out);
    ck_assert_msg(small_attention_is_right(out), "%s", text);
    ck_assert_msg(strstr(text, "staged") && strstr(text, "dropped attention_w") && strstr(text, "self-check"), "%s", text);
    clattn_context_destroy(context);

    /* Without another way it is the plan that fails. */
    context = open_wrong_native();
    clattn_attention_desc desc = CLATTN_ATTENTION_DESC_INIT;
    clattn_plan *plan;
    desc.q = desc.k = desc.v = desc.out = clattn_tensor_bhld(CLATTN_F32, 1, 1, 3, 2);
    const clattn_plan_options *fused = OPTIONS(.algorithm = CLATTN_ALGORITHM_FUSED);
    assert_status(context, clattn_plan_create_attention(context, &desc, fused, &plan), CLATTN_ERROR_BUILD);
    ck_assert_msg(strstr(error_text(context), "self-check: element") != NULL, "%s", error_text(context));
    clattn_context_destroy(context);
}
END_TEST

START_TEST(turned_off_nothing_is_checked) {
    char text[8192];
    float out[6] = {0};
    setenv("CLATTN_SELF_CHECK", "0", 1);
    clattn_context *context = open_wrong_native();
    unsetenv("CLATTN_SELF_CHECK");
    attend(context, NULL, text, sizeof text, out);
    ck_assert_msg(!small_attention_is_right(out) && checks == 0 && !strstr(text, "dropped"), "%s", text);
    clattn_context_destroy(context);

    char why[256] = "";
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    options.error = why;
    options.error_size = sizeof why;
    setenv("CLATTN_SELF_CHECK", "maybe", 1);
    ck_assert_int_eq(clattn_context_create(&options, &context), CLATTN_ERROR_ARGUMENT);
    unsetenv("CLATTN_SELF_CHECK");
    ck_assert_msg(strstr(why, "CLATTN_SELF_CHECK") != NULL, "%s", why);
}
END_TEST

#ifdef CLATTN_TESTS_OPENCL
/* The first OpenCL device, its work-group kernels; NULL where there is none, which is printed. */
static clattn_context *open_gpu_family(void) {
    clattn_context *context = open_device("opencl:0:0:gpu");
    if (!context) printf("not run: no OpenCL device\n");
    return context;
}

/* Weights that add up to two. The next row of the role serves. */
START_TEST(a_wrong_opencl_kernel_is_dropped) {
    char text[4096];
    float out[6] = {0};
    const clattn_plan_options *staged = OPTIONS(.algorithm = CLATTN_ALGORITHM_STAGED);
    clattn_context *context = open_gpu_family();
    if (!context) return;
    const clattn__row *row =
        clattn__choose_row(context, CLATTN__ROLE_SOFTMAX, &(clattn__params){.attention.dtype = DTYPE_F32}, NULL);
    ck_assert_ptr_nonnull(row);
    clattn__self_checks_close(context); /* what is known of the kernel as it is */
    assert_ok(context, clattn__self_checks_open(context, NULL));
    patch_kernel(context, row, "1.0f / total.sum", "2.0f / total.sum");
    attend(context, staged, text, sizeof text, out);
    ck_assert_msg(small_attention_is_right(out), "%s", text);
    char dropped[128];
    snprintf(dropped, sizeof dropped, "dropped %s, which failed here: self-check", row->name);
    ck_assert_msg(strstr(text, dropped) != NULL, "%s", text);
    clattn_context_destroy(context);
}
END_TEST
#endif

/* ---- what is kept ---------------------------------------------------------------------------------------------------- */

static char folder[] = "/tmp/clattn-self-check-XXXXXX";

/* For verdicts alone: compiled kernels are test_cache's. */
static bool make_folder(void) {
    return mkdtemp(folder) && setenv("CLATTN_CACHE_DIR", folder, 1) == 0 && setenv("CLATTN_KERNEL_CACHE", "0", 1) == 0;
}

/* With what contexts of other tests left there; nothing else may be in it. */
static bool remove_folder(void) {
    clattn__file_cache cache;
    const bool empty = clattn__cache_open(&cache, folder) && clattn__cache_clear(&cache) == 0 && rmdir(folder) == 0;
    clattn__cache_close(&cache);
    return empty;
}

/* How many checks a new context makes. */
static int checks_of_new_context(void) {
    char text[8192];
    float out[6] = {0};
    clattn_context *context = open_device("opencl:0:0:gpu");
    if (!context) return -1;
    attend(context, NULL, text, sizeof text, out);
    clattn_context_destroy(context);
    ck_assert(small_attention_is_right(out));
    return checks;
}

/* The only file of the folder. */
static void find_file(char *path, size_t size) {
    DIR *directory = opendir(folder);
    ck_assert_ptr_nonnull(directory);
    int found = 0;
    for (const struct dirent *entry; (entry = readdir(directory));) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, size, "%s/%s", folder, entry->d_name);
        found++;
    }
    closedir(directory);
    ck_assert_int_eq(found, 1);
}

static char *read_file(const char *path) {
    char *text = test_alloc(1 << 16, 1);
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "there is no %s", path);
    text[fread(text, 1, (1 << 16) - 1, file)] = 0;
    fclose(file);
    return text;
}

static void write_file(const char *path, const char *text, size_t length) {
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, length, file), length);
    ck_assert_int_eq(fclose(file), 0);
}

/* Verdicts outlive the process that found them; a file that is not whole is as good as none. */
START_TEST(verdicts_are_kept) {
    const int first = checks_of_new_context();
    if (first < 0) {
        printf("not run: no OpenCL device\n");
        return;
    }
    ck_assert_int_gt(first, 0);
    ck_assert_int_eq(checks_of_new_context(), 0);
    char path[512];
    find_file(path, sizeof path);
    char *whole = read_file(path);
    const size_t length = strlen(whole);
    const struct {
        const char *text;
        size_t length;
    } spoiled[] = {{"", 0},
                   {whole, length - 1},
                   {whole, length / 2},
                   {"\x7f"
                    "ELF\n\n\n",
                    7},
                   {whole + 1, length - 1}};
    for (size_t n = 0; n < COUNT(spoiled); n++) {
        write_file(path, spoiled[n].text, spoiled[n].length);
        ck_assert_msg(checks_of_new_context() == first, "spoiled file %zu was believed", n);
        char *again = read_file(path);
        ck_assert_str_eq(again, whole);
        free(again);
    }
    free(whole);
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

START_TEST(no_place_to_keep_them) {
    setenv("CLATTN_CACHE_DIR", "/dev/null/nowhere", 1);
    const int first = checks_of_new_context();
    if (first >= 0) {
        ck_assert_int_gt(first, 0);
        ck_assert_int_eq(checks_of_new_context(), first);
    }
    setenv("CLATTN_CACHE_DIR", folder, 1);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("self-check");
    TCase *tests = tcase_create("self-check");
    unsetenv("CLATTN_SELF_CHECK");
    if (!make_folder()) {
        perror(folder);
        return EXIT_FAILURE;
    }
    tcase_add_test(tests, a_row_is_checked_once);
    tcase_add_test(tests, without_permission_the_next_row_serves);
    tcase_add_test(tests, a_wrong_native_kernel_is_dropped);
    tcase_add_test(tests, turned_off_nothing_is_checked);
    tcase_add_test(tests, verdicts_are_kept);
    tcase_add_test(tests, no_place_to_keep_them);
#ifdef CLATTN_TESTS_OPENCL
    tcase_add_test(tests, a_wrong_opencl_kernel_is_dropped);
#endif
    tcase_add_loop_test(tests, every_row_passes, 0, (int)clattn__row_count);
    suite_add_tcase(suite, tests);
    const int status = run_device_suite(suite);
    if (remove_folder()) return status;
    perror(folder);
    return EXIT_FAILURE;
}
