/* Tuning: keys, files, what plans make of them; and `clattn tune`: gain or keep, what it stores.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <ftw.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../cli/tune/tune.h"
#include "../host/json.h"
#include "../host/tuning_file.h"
#include "support.h"

#ifdef CLATTN_TESTS_OPENCL
#include "patched_kernel.h"
#endif

/* ---- JSON ------------------------------------------------------------------------------------------------------------ */

static const struct {
    const char *text;
    bool right;
} json_cases[] = {
    {"{}", true},
    {" [ ] ", true},
    {"[1, -2.5e+3, 0, 0.25, 1E2, \"a\", true, false, null, {\"b\": [{}]}]", true},
    {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00\"", true},
    {"", false},
    {"{", false},
    {"{\"a\"}", false},
    {"{\"a\": 1,}", false},
    {"{a: 1}", false},
    {"[1 2]", false},
    {"[1,]", false},
    {"[01]", false},
    {"[1.]", false},
    {"[.5]", false},
    {"[+1]", false},
    {"[1e]", false},
    {"[- 1]", false},
    {"[nan]", false},
    {"[tru]", false},
    {"\"a", false},
    {"\"\t\"", false},
    {"\"\\x\"", false},
    {"\"\\u12g4\"", false},
    {"\"\\ud800\"", false},
    {"\"\\u0000\"", false},
    {"[}", false},
    {"{} {}", false},
    {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", false},
};

START_TEST(json_is_read_or_refused) {
    clattn__json json = clattn__json_of(json_cases[_i].text);
    clattn__json_skip(&json);
    ck_assert_msg(clattn__json_end(&json) == json_cases[_i].right, "%s: %s", json_cases[_i].text,
                  json.problem ? json.problem : "taken");
}
END_TEST

START_TEST(json_values) {
    clattn__json json = clattn__json_of("[\"\\u00e9\\ud83d\\ude00\\n\", -12.5e-1, \"long\"]");
    char text[16], small[4];
    double number = 0;
    ck_assert(clattn__json_open(&json, '['));
    clattn__json_text(&json, text, sizeof text);
    ck_assert_str_eq(text, "\xc3\xa9\xf0\x9f\x98\x80\n");
    ck_assert(clattn__json_more(&json, ']'));
    clattn__json_number(&json, &number);
    ck_assert_double_eq_tol(number, -1.25, 1e-15);
    ck_assert(clattn__json_more(&json, ']'));
    clattn__json_text(&json, small, sizeof small);
    ck_assert_str_eq(json.problem, "a text is too long");
    ck_assert(!clattn__json_more(&json, ']'));
}
END_TEST

/* ---- keys ------------------------------------------------------------------------------------------------------------ */

static void key_of(clattn__role role, const clattn__params *params, char key[CLATTN__TUNING_KEY]) {
    ck_assert(clattn__tuning_key(role, params, key));
}

START_TEST(keys_say_classes_and_never_the_batch) {
    clattn__params params = {.attention = {.batch = 1,
                                           .heads_q = 8,
                                           .heads_kv = 8,
                                           .len_q = 300,
                                           .len_kv = 4000,
                                           .head_dim = 64,
                                           .value_dim = 80,
                                           .dtype = DTYPE_F16,
                                           .keys = {.left = -1, .right = -1}}};
    char key[CLATTN__TUNING_KEY], other[CLATTN__TUNING_KEY];
    key_of(CLATTN__ROLE_ATTENTION, &params, key);
    ck_assert_str_eq(key, "attention f16 dim 65-128 len_q 257+ len_kv 257+ full");
    params.attention.batch = 7;
    params.attention.heads_q = 32;
    params.attention.len_kv = 257;
    key_of(CLATTN__ROLE_ATTENTION, &params, other);
    ck_assert_str_eq(other, key);
    params.attention.keys.right = 0;
    params.attention.len_kv = 256;
    params.attention.modified = 1;
    key_of(CLATTN__ROLE_ATTENTION, &params, other);
    ck_assert_str_eq(other, "attention f16 dim 65-128 len_q 257+ len_kv 17-256 causal modified");
    params.attention.keys.left = 5;
    key_of(CLATTN__ROLE_ATTENTION_SPLIT, &params, other);
    ck_assert_str_eq(other, "attention_split f16 dim 65-128 len_q 257+ len_kv 17-256 window modified");
    params.attention.q_offsets.present = 1;
    ck_assert(!clattn__tuning_key(CLATTN__ROLE_ATTENTION, &params, other)); /* its lengths are those of the batch */
    ck_assert(!clattn__tuning_key(CLATTN__ROLE_COPY, &params, other));

    clattn__params product = {.project = {.batch = 3, .len = 16, .depth = 1024, .columns = 1025, .dtype = DTYPE_F32}};
    key_of(CLATTN__ROLE_PROJECT, &product, key);
    ck_assert_str_eq(key, "project len 0-16 depth 257-1024 columns 1025+");
    product.project.dtype = DTYPE_BF16;
    key_of(CLATTN__ROLE_PROJECT, &product, key);
    ck_assert_str_eq(key, "project bf16 len 0-16 depth 257-1024 columns 1025+");
}
END_TEST

/* ---- files ----------------------------------------------------------------------------------------------------------- */

static const clattn__tuning_device some_gpu = {"GPU 1", "P", "1.2", "V", "sm_90", "opencl-gpu", "gpu"};

/* The text of a file, for the caller to free. */
static clattn__text file_text(const char *schema, const char *kernels, const clattn__tuning_device *d, const char *choices) {
    clattn__text text = {0};
    clattn__text_add(
        &text,
        "{\"schema\": \"%s\", \"kernels\": \"%s\", \"of no use\": [1, {}], \"device\": {\"name\": \"%s\", "
        "\"platform\": \"%s\", \"driver\": \"%s\", \"vendor\": \"%s\", \"architecture\": \"%s\", \"type\": \"%s\", "
        "\"kernels\": \"%s\"}, \"choices\": [%s]}",
        schema, kernels, d->name, d->platform, d->driver, d->vendor, d->architecture, d->type, d->kernels, choices);
    return text;
}

static const char two_choices[] = "{\"key\": \"k1\", \"row\": \"r1\", \"default\": \"d\", \"ratio\": 1.5, \"noise\": 0.25},"
                                  "{\"key\": \"k2\", \"row\": \"r2\", \"shape\": \"for people\"},"
                                  "{\"key\": \"k3\", \"row\": \"d\", \"default\": \"d\"}";

START_TEST(a_whole_file_counts_and_no_part_of_it) {
    clattn__text text = file_text(CLATTN__TUNING_SCHEMA, clattn__kernels_hash, &some_gpu, two_choices);
    clattn__tuning_files files = {0};
    ck_assert(clattn__tuning_file_take(&files, "f", false, text.data, &some_gpu));
    ck_assert_uint_eq(files.count, 3);
    ck_assert_str_eq(files.lines[0].row, "r1");
    ck_assert_double_eq_tol(files.lines[0].ratio, 1.5, 1e-15);
    ck_assert_double_eq_tol(files.lines[0].noise, 0.25, 1e-15);
    ck_assert_int_eq(files.lines[1].level, CLATTN__TUNING_DEVICE);
    ck_assert_str_eq(files.lines[1].file, "f");
    clattn__text origin = {0};
    clattn__tuned_origin(&origin, &files.lines[0]);
    ck_assert_str_eq(origin.data, "measured on this device, f");
    clattn__text_free(&origin);
    clattn__tuning_files_free(&files);
    clattn__tuning_device sister = some_gpu;
    strcpy(sister.name, "GPU 2");
    strcpy(sister.driver, "9");
    ck_assert(clattn__tuning_file_take(&files, "f", false, text.data, &sister));
    clattn__tuned_origin(&origin, &files.lines[0]);
    ck_assert_uint_eq(files.count, 2); /* that the other keeps its default is its own affair */
    ck_assert_str_eq(origin.data, "measured on a device of its architecture with another driver, f");
    clattn__text_free(&origin);
    clattn__tuning_files_free(&files);
    for (size_t length = text.length; length-- > 0;) { /* cut off anywhere */
        text.data[length] = 0;
        ck_assert(!clattn__tuning_file_take(&files, "f", false, text.data, &some_gpu));
        ck_assert_uint_eq(files.count, 0);
        ck_assert_msg(strncmp(files.problems.data, "tuning file f is left out: ", 27) == 0, "%s", files.problems.data);
        clattn__tuning_files_free(&files);
    }
    clattn__text_free(&text);
}
END_TEST

/* Whatever a byte turns into, a text is taken as a whole or left out, and nothing is read past its end. */
START_TEST(spoilt_files_do_no_harm) {
    clattn__text text = file_text(CLATTN__TUNING_SCHEMA, clattn__kernels_hash, &some_gpu, two_choices);
    rng r = rng_make(_i);
    for (int n = 0; n < 5000; n++) {
        char *spoilt = test_alloc(text.length + 1, 1); /* on the heap, where a sanitizer watches its end */
        memcpy(spoilt, text.data, text.length + 1);
        for (int64_t changes = 1 + rng_below(&r, 3); changes-- > 0;)
            spoilt[rng_below(&r, (int64_t)text.length)] = "{}[],:\"\\u0e-5 x\n"[rng_below(&r, 17)];
        clattn__tuning_files files = {0};
        const bool taken = clattn__tuning_file_take(&files, "f", false, spoilt, &some_gpu);
        ck_assert_int_eq(taken, files.problems.length == 0);
        ck_assert(taken || files.count == 0);
        clattn__tuning_files_free(&files);
        free(spoilt);
    }
    clattn__text_free(&text);
}
END_TEST

static const struct {
    const char *schema, *kernels /* NULL: this version's */, *choices, *says;
    bool built_in, taken;
} file_cases[] = {
    {CLATTN__TUNING_SCHEMA, NULL, "", NULL, false, true},
    {"clattn-tune-2", NULL, two_choices, "its schema is \"clattn-tune-2\"", false, false},
    {"clattn-bench-1", NULL, two_choices, "its schema is \"clattn-bench-1\"", false, false},
    {CLATTN__TUNING_SCHEMA, "others", two_choices, "other kernels", false, false},
    {CLATTN__TUNING_SCHEMA, "others", two_choices, NULL, true, true},
    {CLATTN__TUNING_SCHEMA, NULL, "{\"key\": \"k\"}", "no key or no row", false, false},
    {CLATTN__TUNING_SCHEMA, NULL, "{\"key\": 1, \"row\": \"r\"}", "a text is expected", false, false},
    {CLATTN__TUNING_SCHEMA, NULL, "{\"key\": \"k\", \"row\": \"r\", \"ratio\": \"fast\"}", "a number is expected", false,
     false},
    {CLATTN__TUNING_SCHEMA, NULL, "{\"key\": \"k\", \"row\": \"r\"}, 5", "an object is expected", false, false},
};

START_TEST(other_files_are_named_and_left_out) {
    const char *kernels = file_cases[_i].kernels ? file_cases[_i].kernels : clattn__kernels_hash;
    clattn__text text = file_text(file_cases[_i].schema, kernels, &some_gpu, file_cases[_i].choices);
    clattn__tuning_files files = {0};
    ck_assert_int_eq(clattn__tuning_file_take(&files, "f", file_cases[_i].built_in, text.data, &some_gpu),
                     file_cases[_i].taken);
    const char *said = files.problems.data ? files.problems.data : "";
    if (!file_cases[_i].taken) {
        ck_assert_msg(strstr(said, file_cases[_i].says) != NULL, "\"%s\" does not say \"%s\"", said, file_cases[_i].says);
        ck_assert_uint_eq(files.count, 0);
    } else {
        ck_assert_str_eq(said, "");
    }
    clattn__tuning_files_free(&files);
    clattn__text_free(&text);
}
END_TEST

START_TEST(foreign_texts_are_left_out) {
    static const char *const texts[] = {"[]",
                                        "{}",
                                        "null",
                                        "no JSON",
                                        "{\"schema\": 7}",
                                        "{\"schema\": \"clattn-tune-1\"}",
                                        "{\"schema\": \"clattn-tune-1\", \"choices\": {}, \"device\": []}"};
    clattn__tuning_files files = {0};
    ck_assert(!clattn__tuning_file_take(&files, "f", false, texts[_i], &some_gpu));
    ck_assert_uint_eq(files.count, 0);
    ck_assert_uint_gt(files.problems.length, 0);
    clattn__tuning_files_free(&files);
}
END_TEST

START_TEST(the_nearest_device_counts) {
    clattn__tuning_device d = some_gpu;
    ck_assert_int_eq(clattn__tuning_level_of(&d, &some_gpu), CLATTN__TUNING_DEVICE);
    strcpy(d.driver, "9.9");
    ck_assert_int_eq(clattn__tuning_level_of(&d, &some_gpu), CLATTN__TUNING_DEVICE);
    strcpy(d.name, "GPU 2");
    ck_assert_int_eq(clattn__tuning_level_of(&d, &some_gpu), CLATTN__TUNING_ARCHITECTURE);
    strcpy(d.architecture, "");
    ck_assert_int_eq(clattn__tuning_level_of(&d, &d), CLATTN__TUNING_DEVICE);
    ck_assert_int_eq(clattn__tuning_level_of(&d, &some_gpu), CLATTN__TUNING_VENDOR);
    strcpy(d.vendor, "W");
    ck_assert_int_eq(clattn__tuning_level_of(&d, &some_gpu), CLATTN__TUNING_TYPE);
    strcpy(d.kernels, "cpu+gpu");
    ck_assert_int_eq(clattn__tuning_level_of(&d, &some_gpu), CLATTN__TUNING_NO_LEVEL);
    strcpy(d.kernels, "gpu");
    strcpy(d.type, "opencl-cpu");
    ck_assert_int_eq(clattn__tuning_level_of(&d, &some_gpu), CLATTN__TUNING_NO_LEVEL);
}
END_TEST

START_TEST(what_is_compiled_in_is_whole) {
    clattn__tuning_files files = {0};
    for (const clattn__tuned_file *file = clattn__tuned_files; file->name; file++) {
        clattn__tuning_device d = {0};
        clattn__json json = clattn__json_of(strstr(file->text, "\"device\"") + strlen("\"device\":"));
        clattn__tuning_file_device(&json, &d);
        ck_assert_ptr_null(json.problem);
        ck_assert(clattn__tuning_file_take(&files, file->name, true, file->text, &d));
        ck_assert_uint_gt(files.count, 0);
    }
    for (size_t n = 0; n < files.count; n++) {
        const clattn__row *row = clattn__row_named(files.lines[n].row);
        const char *role = row ? clattn__roles[row->role].entry : "";
        ck_assert_msg(row && strncmp(files.lines[n].key, role, strlen(role)) == 0 && files.lines[n].key[strlen(role)] == ' ',
                      "%s: %s for %s", files.lines[n].file, files.lines[n].row, files.lines[n].key);
        ck_assert_msg(clattn__row_named(files.lines[n].other) != NULL, "%s", files.lines[n].other);
    }
    clattn__tuning_files_free(&files);
}
END_TEST

/* ---- the user's directory ---------------------------------------------------------------------------------------------- */

static char directory[64]; /* $CLATTN_CONFIG_DIR */

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *at) {
    (void)status, (void)kind, (void)at;
    return remove(path);
}

static void remove_directory(void) {
    ck_assert_int_eq(nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static void make_directory(void) {
    snprintf(directory, sizeof directory, "/tmp/clattn-tuning-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    setenv("CLATTN_CONFIG_DIR", directory, 1);
    setenv("CLATTN_TUNING", "1", 1);
}

static void put_file(const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s/tune", directory);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/tune/%s", directory, name);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

static char warnings[4096];

static void keep_warnings(void *user, clattn_log_level level, const char *message) {
    (void)user;
    const size_t length = strlen(warnings);
    if (level == CLATTN_LOG_WARNING) snprintf(warnings + length, sizeof warnings - length, "%s\n", message);
}

static clattn_context *open_device(const char *name) {
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    clattn_context *context = NULL;
    options.device = name;
    options.log = keep_warnings;
    warnings[0] = 0;
    if (clattn_context_create(&options, &context) != CLATTN_OK) printf("not run: there is no %s\n", name);
    return context;
}

static const char key_small[] = "project len 0-16 depth 0-256 columns 0-256";

/* A file of the first OpenCL device's work-group kernels, with one choice for small products. */
static void put_choice(const clattn_context *context, const char *name, const char *row) {
    const clattn__tuning_device d = clattn__tuning_device_of(&context->device);
    clattn__text choice = {0};
    clattn__text_add(&choice, "{\"key\": \"%s\", \"row\": \"%s\", \"default\": \"project_64x64\", \"ratio\": 1.75}", key_small,
                     row);
    clattn__text text = file_text(CLATTN__TUNING_SCHEMA, clattn__kernels_hash, &d, choice.data);
    put_file(name, text.data);
    clattn__text_free(&text);
    clattn__text_free(&choice);
}

/* What a small product runs, and the plan in words. */
static void plan_product(clattn_context *context, int64_t batch, const clattn_plan_options *options, char row[64], char *text,
                         size_t size) {
    clattn_project_qkv_desc desc = CLATTN_PROJECT_QKV_DESC_INIT;
    clattn_plan_info info = CLATTN_PLAN_INFO_INIT;
    clattn_plan *plan;
    desc.x = clattn_tensor_bhld(CLATTN_F32, batch, 1, 5, 7);
    desc.w_q = clattn_tensor_matrix(CLATTN_F32, 7, 9);
    desc.q = clattn_tensor_bhld(CLATTN_F32, batch, 1, 5, 9);
    assert_ok(context, clattn_plan_create_project_qkv(context, &desc, options, &plan));
    assert_ok(context, clattn_plan_get_info(plan, &info));
    snprintf(row, 64, "%s", info.row);
    clattn_plan_explain(plan, text, size);
    clattn_plan_destroy(plan);
}

#define ASSERT_SAYS(text, words) ck_assert_msg(strstr(text, words) != NULL, "\"%s\" does not say \"%s\"", text, words)

static const struct {
    const char *row, *runs, *says[3];
} plan_cases[] = {
    {"project_32x32", "project_32x32", {"tuned: project_32x32", "1.75 times as fast as project_64x64", "this device"}},
    {"project_64x64", "project_64x64", {"tuned: project_64x64", "this device", "a.json"}},
    {"project_of_tomorrow", "project_64x64", {"not as tuned: project_of_tomorrow", "this version has no such row", "a.json"}},
    {"scores_32x32", "project_64x64", {"not as tuned: scores_32x32", "it is of another role", "a.json"}},
    {"project_w16", "project_64x64", {"not as tuned: project_w16", "this device does not run CPU kernels", "a.json"}},
    {"project_clblast", "project_64x64", {"not as tuned: project_clblast", "CLBlast was not asked for", "a.json"}},
};

START_TEST(a_plan_follows_the_file_where_it_may) {
    char row[64], text[4096];
    make_directory();
    clattn_context *context = open_device("opencl:0:0:gpu");
    if (context) {
        put_choice(context, "a.json", plan_cases[_i].row);
        plan_product(context, 1, NULL, row, text, sizeof text);
        ck_assert_str_eq(row, plan_cases[_i].runs);
        for (int n = 0; n < 3; n++) ASSERT_SAYS(text, plan_cases[_i].says[n]);
        plan_product(context, 3, NULL, row, text, sizeof text); /* the batch changes nothing */
        ck_assert_str_eq(row, plan_cases[_i].runs);
        plan_product(context, 1, OPTIONS(.untuned = 1), row, text, sizeof text);
        ck_assert_str_eq(row, "project_64x64");
        ASSERT_SAYS(text, "left aside: asked for");
    }
    clattn_context_destroy(context);
    remove_directory();
}
END_TEST

START_TEST(the_environment_turns_it_off) {
    char row[64], text[4096];
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    make_directory();
    clattn_context *context = open_device("opencl:0:0:gpu");
    if (context) {
        put_choice(context, "a.json", "project_32x32");
        setenv("CLATTN_TUNING", "0", 1);
        plan_product(context, 1, NULL, row, text, sizeof text);
        ck_assert_str_eq(row, "project_64x64");
        ASSERT_SAYS(text, "$CLATTN_TUNING is 0");
    }
    clattn_context_destroy(context);
    setenv("CLATTN_TUNING", "yes", 1);
    options.device = "native";
    options.error = text;
    options.error_size = sizeof text;
    ck_assert_int_eq(clattn_context_create(&options, &context), CLATTN_ERROR_ARGUMENT);
    ck_assert_str_eq(text, "$CLATTN_TUNING is neither 0 nor 1");
    setenv("CLATTN_TUNING", "1", 1);
    remove_directory();
}
END_TEST

START_TEST(bad_files_are_warned_of_once_and_the_good_one_counts) {
    char row[64], text[4096];
    make_directory();
    clattn_context *context = open_device("opencl:0:0:gpu");
    if (context) {
        put_file("a.json", "{\"schema\": \"clattn-tune-9\"}");
        put_file("b.json", "garbage");
        put_file("c.txt", "garbage that is not looked at");
        put_choice(context, "d.json", "project_32x32");
        put_choice(context, "e.json", "project_8x8"); /* as near; the first by name counts */
        plan_product(context, 1, NULL, row, text, sizeof text);
        ck_assert_str_eq(row, "project_32x32");
        ASSERT_SAYS(text, "d.json");
        ASSERT_SAYS(text, "a.json is left out");
        ASSERT_SAYS(warnings, "a.json is left out: its schema is \"clattn-tune-9\"");
        ASSERT_SAYS(warnings, "b.json is left out: an object is expected, at byte 0");
        ck_assert_ptr_null(strstr(warnings, "c.txt"));
        warnings[0] = 0;
        plan_product(context, 1, NULL, row, text, sizeof text);
        ck_assert_str_eq(warnings, "");
    }
    clattn_context_destroy(context);
    remove_directory();
}
END_TEST

/* Of a GPU it is known which rows spill registers there: measured elsewhere, such a row is not taken over. */
START_TEST(rows_for_other_devices_need_this_device) {
    char row[64], text[4096];
    make_directory();
    for (int elsewhere = 0; elsewhere < 2; elsewhere++) {
        clattn_context *context = open_device("opencl:0:0:gpu");
        if (!context) break;
        context->device.gpu = CLATTN__NVIDIA;
        if (elsewhere) context->device.info.name[0] = '?';
        put_choice(context, "a.json", "project_8x8");
        context->device.info.name[0] = 'x';
        if (!elsewhere) put_choice(context, "a.json", "project_8x8");
        plan_product(context, 1, NULL, row, text, sizeof text);
        ck_assert_str_eq(row, elsewhere ? "project_64x64" : "project_8x8");
        if (elsewhere) ASSERT_SAYS(text, "which cannot be: meant for other devices; measured on a device of its architecture");
        clattn_context_destroy(context);
    }
    remove_directory();
}
END_TEST

START_TEST(no_directory_is_no_fault) {
    char row[64], text[4096];
    make_directory();
    remove_directory();
    setenv("CLATTN_CONFIG_DIR", "/dev/null/nowhere", 1);
    clattn_context *context = open_device("native");
    plan_product(context, 1, NULL, row, text, sizeof text);
    ASSERT_SAYS(text, "not tuned: nothing was measured for project");
    ck_assert_str_eq(warnings, "");
    clattn_context_destroy(context);
}
END_TEST

/* ---- gain or keep ------------------------------------------------------------------------------------------------------ */

/* A candidate whose runs take what a script says: `ms` up to run `until`, then `later`; every third differs by `jitter`. */
typedef struct script {
    double ms, later, jitter;
    int until, fails_at, raises_at, runs;
} script;

static bool run_script(bench_candidate *candidate, bench_time *time, bench_error *error) {
    script *s = candidate->state;
    if (++s->runs == s->fails_at) return bench_fail(error, "run %d fails", s->runs);
    if (s->runs == s->raises_at) raise(SIGTERM);
    const double ms = s->until && s->runs > s->until ? s->later : s->ms;
    *time = (bench_time){ms * (s->runs % 3 ? 1 : 1 + s->jitter), NAN};
    return true;
}

static const bench_candidate_class scripted = {.run = run_script};

/* A glance is 4 runs; warming up takes two batches of 3; a first round then takes BENCH_MIN_SAMPLES. */
enum { AFTER_FIRST_ROUND = 4 + 6 + BENCH_MIN_SAMPLES };

static const struct {
    const char *what;
    script scripts[3];
    size_t count, chosen;
    double ratio;
    const char *reason;
} choose_cases[] = {
    {"a faster row is chosen", {{.ms = 20}, {.ms = 15}, {.ms = 18}}, 3, 1, 20.0 / 15, "faster, twice"},
    {"the default is the fastest", {{.ms = 15}, {.ms = 20}}, 2, 0, 1, "the fastest"},
    {"2 % are within the resolution", {{.ms = 20}, {.ms = 19.6}}, 2, 0, 1, "not faster beyond noise"},
    {"10 % are within the noise", {{.ms = 20, .jitter = 0.3}, {.ms = 18, .jitter = 0.3}}, 2, 0, 1, "not faster beyond noise"},
    {"fast at first, and slow when measured again",
     {{.ms = 20}, {.ms = 15, .until = AFTER_FIRST_ROUND, .later = 25}},
     2,
     0,
     1,
     "not faster again"},
    {"fast at first, and as fast when measured again",
     {{.ms = 20}, {.ms = 15, .until = AFTER_FIRST_ROUND, .later = 20}},
     2,
     0,
     1,
     "not faster again"},
    {"the only row", {{.ms = 20}}, 1, 0, 1, "the only row"},
};

static const bench_sampling short_sampling = {.warm_up_s = 0.01, .seconds = 0.01};

START_TEST(gain_or_keep) {
    script scripts[3];
    bench_candidate candidates[3];
    bench_error error;
    tune_choice choice;
    memcpy(scripts, choose_cases[_i].scripts, sizeof scripts);
    for (int n = 0; n < 3; n++) candidates[n] = (bench_candidate){.class = &scripted, .state = &scripts[n]};
    ck_assert(tune_choose(candidates, choose_cases[_i].count, &short_sampling, &choice, &error));
    ck_assert_msg(choice.chosen == choose_cases[_i].chosen, "%s: %zu is chosen: %s", choose_cases[_i].what, choice.chosen,
                  choice.reason);
    ck_assert_double_eq_tol(choice.ratio, choose_cases[_i].ratio, 1e-9);
    ck_assert_str_eq(choice.reason, choose_cases[_i].reason);
}
END_TEST

START_TEST(what_is_far_behind_is_not_sampled) {
    script scripts[] = {{.ms = 20}, {.ms = 15}, {.ms = 100}};
    bench_candidate candidates[3];
    bench_error error;
    tune_choice choice;
    for (int n = 0; n < 3; n++) candidates[n] = (bench_candidate){.class = &scripted, .state = &scripts[n]};
    ck_assert(tune_choose(candidates, 3, &short_sampling, &choice, &error));
    ck_assert(choice.behind[2] && !choice.behind[1]);
    ck_assert_int_eq(scripts[2].runs, 4);
    ck_assert_double_eq(choice.ms[2], 100);
}
END_TEST

START_TEST(a_run_that_fails_ends_it) {
    script scripts[] = {{.ms = 20}, {.ms = 15, .fails_at = 2 + 10 * _i}};
    bench_candidate candidates[2];
    bench_error error;
    tune_choice choice;
    for (int n = 0; n < 2; n++) candidates[n] = (bench_candidate){.class = &scripted, .state = &scripts[n]};
    ck_assert(!tune_choose(candidates, 2, &short_sampling, &choice, &error));
    ASSERT_SAYS(error.text, "fails");
}
END_TEST

/* In the first glance, in a first and in a second round: there is no choice, whatever was seen until then. */
START_TEST(a_signal_ends_it) {
    static const int runs[] = {3, 12, AFTER_FIRST_ROUND + 5};
    script scripts[] = {{.ms = 20}, {.ms = 15, .raises_at = runs[_i]}};
    bench_candidate candidates[2];
    bench_error error;
    tune_choice choice;
    for (int n = 0; n < 2; n++) candidates[n] = (bench_candidate){.class = &scripted, .state = &scripts[n]};
    bench_end_on(SIGTERM);
    ck_assert(!tune_choose(candidates, 2, &short_sampling, &choice, &error));
    ck_assert_str_eq(error.text, "asked to end");
    ck_assert_int_eq(bench_ended_by(), SIGTERM);
    ck_assert_int_eq(scripts[1].runs, runs[_i]);
    bench_end_on(SIGTERM); /* forgets it */
    ck_assert_int_eq(bench_ended_by(), 0);
    signal(SIGTERM, SIG_DFL);
}
END_TEST

/* ---- the whole way ----------------------------------------------------------------------------------------------------- */

enum { OP_ATTENTION = 1, OP_PROJECT = 3 };

static tune_session session;

static bool open_session(bool quick) {
    bench_error error;
    const bool open = tune_session_open(&session, "opencl:0:0:gpu", quick, &error);
    if (!open) printf("not run: %s\n", error.text);
    session.scale = TUNE_SCALE_TINY;
    session.most_seconds = 0;
    return open;
}

static void measure(int op) {
    tune_shape shapes[TUNE_MOST_SHAPES];
    bench_error error;
    const size_t count = tune_shapes(op, session.quick, session.scale, shapes);
    ck_assert_uint_gt(count, 0);
    for (size_t n = 0; n < count; n++) ck_assert_msg(tune_measure(&session, &shapes[n], &error), "%s", error.text);
}

#ifdef CLATTN_HAVE_CJSON
static void store(void) {
    bench_error error;
    clattn__text path = tune_path(&session.device.context->device);
    ck_assert_msg(tune_store(&session, path.data, NULL, &error), "%s", error.text);
    clattn__text_free(&path);
}

/* Every shape's kind of problem is one line of what a new context knows. */
static void assert_known(size_t expected) {
    size_t count;
    const char *problems;
    clattn_context *context = open_device("opencl:0:0:gpu");
    const clattn__tuned *lines = clattn__tuning_list(context, &count, &problems);
    ck_assert_str_eq(problems, "");
    size_t found = 0;
    for (size_t n = 0; n < count; n++) found += lines[n].level == CLATTN__TUNING_DEVICE && !lines[n].built_in;
    ck_assert_uint_eq(found, expected);
    for (size_t n = 0; n < session.count; n++) {
        const clattn__tuned *line = clattn__tuning_find(context, session.results[n].key);
        ck_assert_ptr_nonnull(line);
        ck_assert_str_eq(line->row, session.results[n].rows[session.results[n].choice.chosen]->name);
        ck_assert_str_eq(line->other, session.results[n].rows[0]->name);
    }
    clattn_context_destroy(context);
}

START_TEST(measured_stored_found) {
    make_directory();
    if (open_session(true)) {
        measure(OP_PROJECT);
        ck_assert_uint_eq(session.count, 1);
        ck_assert_uint_gt(session.results[0].count, 1);
        ck_assert_msg(!session.remarks.length && !session.wrong, "%s", session.remarks.data);
        ck_assert_uint_le(session.device.context->builds, TUNE_QUICK_BUILDS);
        store();
        assert_known(1);
        tune_session_close(&session);

        ck_assert(open_session(false)); /* more of them, beside the one that is there */
        tune_shape shapes[TUNE_MOST_SHAPES];
        bench_error error;
        ck_assert_uint_eq(tune_shapes(OP_PROJECT, false, TUNE_SCALE_TINY, shapes), 3);
        ck_assert_msg(tune_measure(&session, &shapes[2], &error), "%s", error.text);
        store();
        assert_known(2);

        bool there;
        clattn__text path = tune_path(&session.device.context->device);
        ck_assert(tune_clear(path.data, &there, &error) && there);
        ck_assert(tune_clear(path.data, &there, &error) && !there);
        clattn__text_free(&path);
    }
    tune_session_close(&session);
    remove_directory();
}
END_TEST
#endif

/* A program: a row in a variant. */
typedef struct program {
    const clattn__row *row;
    clattn__variant variant;
} program;

static size_t add_program(program *programs, size_t count, const clattn__row *row, const clattn__variant *variant) {
    for (size_t n = 0; n < count; n++)
        if (programs[n].row == row && memcmp(&programs[n].variant, variant, sizeof *variant) == 0) return count;
    programs[count] = (program){row, *variant};
    return count + 1;
}

/* What a choice of rows may depend on. */
static clattn__params params_of(const tune_shape *s) {
    clattn__params params = {0};
    if (s->role == CLATTN__ROLE_PROJECT) {
        params.project.dtype = DTYPE_F32;
        return params;
    }
    params.attention.dtype = (int32_t)bench_shape_dtype(&s->shape);
    params.attention.head_dim = params.attention.value_dim = (int32_t)s->shape.head_dim;
    params.attention.heads_q = params.attention.heads_kv = s->shape.heads_q;
    params.attention.len_q = s->shape.len_q;
    params.attention.modified = s->shape.softcap != 0;
    return params;
}

/* What the library chooses of itself, as clattn__choose_row does. */
static const clattn__row *own_choice(clattn__role role, const clattn__device *device, const clattn__variant *variant,
                                     const clattn__params *params) {
    const clattn__row *spare = NULL;
    for (const clattn__row *row = clattn__rows; row < clattn__rows + clattn__row_count; row++) {
        if (row->role != role || clattn__row_obstacle(row, device, variant, params)) continue;
        if (clattn__row_is_meant(row, device)) return row;
        if (!spare) spare = row;
    }
    return spare;
}

static size_t quick_programs(clattn__devices gpu) {
    static program programs[1024];
    static const clattn__variant none;
    tune_shape shapes[TUNE_MOST_SHAPES];
    const clattn__device device = {
        .gpu = gpu, .has_gpu_family = true, .has_mma = gpu == CLATTN__NVIDIA, .max_work_group = 1024, .local_bytes = 48 << 10};
    size_t count = add_program(programs, 0, clattn__row_named("merge_8"), &none); /* of split attention */
    const size_t shape_count = tune_shapes(0, true, TUNE_SCALE_GPU, shapes);
    for (size_t n = 0; n < shape_count; n++) {
        const clattn__role role = shapes[n].role;
        const clattn__params params = params_of(&shapes[n]);
        clattn__variant variant;
        ck_assert(clattn__role_variant(role, &params, &variant));
        const clattn__row *own = own_choice(role, &device, &variant, &params);
        ck_assert_ptr_nonnull(own);
        for (const clattn__row *row = clattn__rows; row < clattn__rows + clattn__row_count; row++)
            if (row->role == role && tune_is_promising(row, own, &device) &&
                !clattn__row_obstacle(row, &device, &variant, &params))
                count = add_program(programs, count, row, &variant);
    }
    return count;
}

/* On no GPU does quick leave rows out for it: what it may build beside the rows is a handful. */
START_TEST(quick_needs_no_more_programs) {
    static const clattn__devices gpus[] = {CLATTN__NVIDIA, CLATTN__AMD, CLATTN__INTEL, 0};
    for (size_t n = 0; n < COUNT(gpus); n++) {
        const size_t count = quick_programs(gpus[n]);
        printf("quick builds %zu programs on a GPU of kind %d\n", count, (int)gpus[n]);
        ck_assert_uint_gt(count, 0);
        ck_assert_uint_le(count + 12, TUNE_QUICK_BUILDS);
    }
}
END_TEST

START_TEST(quick_keeps_to_its_number_of_programs) {
    make_directory();
    setenv("CLATTN_KERNEL_CACHE", "0", 1); /* what is loaded is not built */
    if (open_session(true)) {
        ck_assert_uint_eq(session.most_builds, 60);
        session.most_builds = 8;
        measure(OP_ATTENTION);
        ck_assert_uint_gt(session.device.context->builds, 1);
        ck_assert_uint_le(session.device.context->builds, 8);
        ASSERT_SAYS(session.remarks.data, "left out");
    }
    tune_session_close(&session);
    unsetenv("CLATTN_KERNEL_CACHE");
    remove_directory();
}
END_TEST

START_TEST(quick_keeps_to_its_time) {
    make_directory();
    if (open_session(true)) {
        session.most_seconds = 1e-6;
        measure(OP_PROJECT);
        ck_assert_uint_eq(session.count, 0);
        ck_assert_uint_eq(session.device.context->builds, 0);
        ASSERT_SAYS(session.remarks.data, "left out, project of 257 rows, 257 by 257: 0 s are over");
    }
    tune_session_close(&session);
    remove_directory();
}
END_TEST

#ifdef CLATTN_TESTS_OPENCL
/* In place of the C library's: while `counts_runs`, time passes by runs of plans alone, so that other programs on the machine are
 * no noise. */
static bool counts_runs;
static struct timespec counted;

int clock_gettime(clockid_t clock, struct timespec *time) {
    if (!counts_runs || clock != CLOCK_MONOTONIC) return (int)syscall(SYS_clock_gettime, clock, time);
    *time = counted;
    return 0;
}

static clattn__backend slow_backend; /* as it is, but each run takes 10 ms, and 20 with the row */
static clattn_status (*real_run)(clattn_plan *, void *const[CLATTN_TENSOR_COUNT]);
static const char *slow_row;

static clattn_status run_and_count(clattn_plan *plan, void *const tensors[CLATTN_TENSOR_COUNT]) {
    enum { MS = 1000000 };
    counted.tv_nsec += 10 * MS;
    for (size_t n = 0; n < plan->step_count; n++)
        if (strcmp(plan->steps[n].row->name, slow_row) == 0) counted.tv_nsec += 10 * MS;
    counted.tv_sec += counted.tv_nsec / (1000 * MS);
    counted.tv_nsec %= 1000 * MS;
    return real_run(plan, tensors);
}

static void slow_down(clattn_context *context, const char *row) {
    slow_row = row;
    slow_backend = *context->backend;
    real_run = slow_backend.run;
    slow_backend.run = run_and_count;
    context->backend = &slow_backend;
}

/* On host memory alone: the backend's own run. */
static void measure_on_host(void) {
    struct bench_opencl *cl = session.device.cl;
    session.device.cl = NULL;
    measure(OP_PROJECT);
    session.device.cl = cl;
}

/* A default that takes twice the time of all others is left for one of them. */
START_TEST(a_slow_default_is_replaced) {
    make_directory();
    if (open_session(true)) {
        slow_down(session.device.context, "project_64x64");
        counts_runs = true;
        measure_on_host();
        counts_runs = false;
        const tune_result *result = &session.results[0];
        ck_assert_str_eq(result->rows[0]->name, "project_64x64");
        ck_assert_msg(result->choice.chosen > 0, "%s", result->choice.reason);
        ck_assert_double_eq_tol(result->choice.ratio, 2, 1e-6);
    }
    tune_session_close(&session);
    remove_directory();
}
END_TEST

/* However fast it is, what computes wrong is not timed. */
START_TEST(a_wrong_row_is_left_out) {
    make_directory();
    setenv("CLATTN_SELF_CHECK", "0", 1);
    if (open_session(true)) {
        patch_kernel(session.device.context, clattn__row_named("project_32x32"), "y += p.base[4];", "y += p.base[4]; return;");
        measure_on_host();
        ck_assert(session.wrong);
        ASSERT_SAYS(session.remarks.data, "NOT TIMED, project_32x32: wrong");
        for (size_t n = 0; n < session.results[0].count; n++)
            ck_assert_str_ne(session.results[0].rows[n]->name, "project_32x32");
    }
    tune_session_close(&session);
    unsetenv("CLATTN_SELF_CHECK");
    remove_directory();
}
END_TEST

/* What was measured on another day, and computes wrong on this one, is dropped like any other row. */
START_TEST(a_measured_row_that_fails_is_dropped) {
    char row[64], text[4096];
    make_directory();
    setenv("CLATTN_CACHE_DIR", directory, 1); /* no verdict of before */
    clattn_context *context = open_device("opencl:0:0:gpu");
    if (context) {
        put_choice(context, "a.json", "project_32x32");
        patch_kernel(context, clattn__row_named("project_32x32"), "y += p.base[4];", "y += p.base[4]; return;");
        plan_product(context, 1, NULL, row, text, sizeof text);
        ck_assert_str_eq(row, "project_64x64");
        ASSERT_SAYS(text, "dropped project_32x32");
        ASSERT_SAYS(text, "not as tuned: project_32x32");
        ASSERT_SAYS(text, "failed on this device");
    }
    clattn_context_destroy(context);
    unsetenv("CLATTN_CACHE_DIR");
    remove_directory();
}
END_TEST
#endif

static Suite *tuning_suite(void) {
    Suite *suite = suite_create("tuning");
    TCase *tests = tcase_create("tuning");
    tcase_add_loop_test(tests, json_is_read_or_refused, 0, COUNT(json_cases));
    tcase_add_test(tests, json_values);
    tcase_add_test(tests, keys_say_classes_and_never_the_batch);
    tcase_add_test(tests, a_whole_file_counts_and_no_part_of_it);
    tcase_add_loop_test(tests, spoilt_files_do_no_harm, 0, 4);
    tcase_add_loop_test(tests, other_files_are_named_and_left_out, 0, COUNT(file_cases));
    tcase_add_loop_test(tests, foreign_texts_are_left_out, 0, 7);
    tcase_add_test(tests, the_nearest_device_counts);
    tcase_add_test(tests, what_is_compiled_in_is_whole);
    tcase_add_loop_test(tests, a_plan_follows_the_file_where_it_may, 0, COUNT(plan_cases));
    tcase_add_test(tests, the_environment_turns_it_off);
    tcase_add_test(tests, bad_files_are_warned_of_once_and_the_good_one_counts);
    tcase_add_test(tests, rows_for_other_devices_need_this_device);
    tcase_add_test(tests, no_directory_is_no_fault);
    tcase_add_loop_test(tests, gain_or_keep, 0, COUNT(choose_cases));
    tcase_add_test(tests, what_is_far_behind_is_not_sampled);
    tcase_add_loop_test(tests, a_signal_ends_it, 0, 3);
    tcase_add_loop_test(tests, a_run_that_fails_ends_it, 0, 3);
#ifdef CLATTN_HAVE_CJSON
    tcase_add_test(tests, measured_stored_found);
#endif
    tcase_add_test(tests, quick_needs_no_more_programs);
    tcase_add_test(tests, quick_keeps_to_its_number_of_programs);
    tcase_add_test(tests, quick_keeps_to_its_time);
#ifdef CLATTN_TESTS_OPENCL
    tcase_add_test(tests, a_slow_default_is_replaced);
    tcase_add_test(tests, a_wrong_row_is_left_out);
    tcase_add_test(tests, a_measured_row_that_fails_is_dropped);
#endif
    suite_add_tcase(suite, tests);
    return suite;
}

int main(void) {
    return run_suite(tuning_suite());
}
