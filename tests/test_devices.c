/* Machines as they come: without drivers, with broken ones, with several devices. CMakeLists.txt makes each of them from
 * environment variables and names it as the argument.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

static const char *machine; /* the argument */

/* ---- questions ---------------------------------------------------------------------------------------------------- */

static clattn_device_info list[64] = {CLATTN_DEVICE_INFO_INIT};
static size_t count;

static void read_list(void) {
    list[0].struct_size = sizeof list[0];
    ck_assert_int_eq(clattn_device_list(list, COUNT(list), &count), CLATTN_OK);
    ck_assert_uint_le(count, COUNT(list));
}

static const clattn_device_info *listed(const char *id) {
    for (size_t n = 0; n < count; n++) {
        if (strcmp(list[n].id, id) == 0) return &list[n];
    }
    return NULL;
}

/* The first entry whose problem holds `words`. */
static const clattn_device_info *listed_problem(const char *words) {
    for (size_t n = 0; n < count; n++) {
        if (list[n].problem[0] && strstr(list[n].problem, words)) return &list[n];
    }
    return NULL;
}

typedef struct opened {
    clattn_context *context;
    clattn_status status;
    char error[16384], why[16384], id[32];
} opened;

static opened open_device(const char *text) {
    opened o = {0};
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    options.device = text;
    options.error = o.error;
    options.error_size = sizeof o.error;
    o.status = clattn_context_create(&options, &o.context);
    if (o.status == CLATTN_OK) {
        clattn_device_info info = CLATTN_DEVICE_INFO_INIT;
        ck_assert_int_eq(clattn_context_device(o.context, &info), CLATTN_OK);
        snprintf(o.id, sizeof o.id, "%s", info.id);
        ck_assert_uint_gt(clattn_context_explain(o.context, o.why, sizeof o.why), 0);
        ck_assert_str_eq(o.error, "");
    } else {
        ck_assert_ptr_null(o.context);
        ck_assert_uint_gt(strlen(o.error), 0);
    }
    return o;
}

/* It computes: two keys of equal weight. */
static void assert_computes(clattn_context *context) {
    const float q[] = {0, 0}, k[] = {1, 2, 3, 4}, v[] = {1, 10, 3, 30};
    float out[] = {NAN, NAN};
    assert_ok(context, clattn_attention_f32(context, 1, 1, 1, 1, 2, 2, 0, q, k, v, out));
    ck_assert_float_eq_tol(out[0], 2, 1e-5f);
    ck_assert_float_eq_tol(out[1], 20, 1e-4f);
}

static void assert_opens(const char *text, const char *id) {
    opened o = open_device(text);
    ck_assert_msg(o.status == CLATTN_OK, "%s: %s", text ? text : "NULL", o.error);
    if (id) ck_assert_str_eq(o.id, id);
    assert_computes(o.context);
    clattn_context_destroy(o.context);
}

/* A device that is not there: the text says what is. */
static void assert_not_here(const char *text, const char *words) {
    opened o = open_device(text);
    ck_assert_msg(o.status == CLATTN_ERROR_DEVICE, "%s: %s: %s", text, clattn_status_name(o.status), o.error);
    ck_assert_msg(strstr(o.error, text) && strstr(o.error, "native") && strstr(o.error, "reference"), "%s: %s", text, o.error);
    if (words) ck_assert_msg(strstr(o.error, words) != NULL, "%s: no \"%s\" in: %s", text, words, o.error);
    clattn_context_destroy(o.context);
}

/* ---- on every machine --------------------------------------------------------------------------------------------- */

START_TEST(native_and_reference_are_always_there) {
    read_list();
    ck_assert_str_eq(list[0].id, "native");
    ck_assert_str_eq(list[1].id, "reference");
    ck_assert_str_eq(list[0].problem, "");
    ck_assert_str_eq(list[1].problem, "");
    assert_opens("native", "native");
    assert_opens("reference", "reference");
}
END_TEST

START_TEST(auto_and_cpu_never_fail) {
    unsetenv("CLATTN_DEVICE");
    assert_opens(NULL, NULL);
    assert_opens("", NULL);
    assert_opens("auto", NULL);
    assert_opens("cpu", NULL);
}
END_TEST

/* Every entry of the list either opens and computes, or says why it does not. */
START_TEST(list_is_true) {
    read_list();
    for (size_t n = 0; n < count; n++) {
        ck_assert_uint_gt(strlen(list[n].id), 0);
        if (strcmp(machine, "broken") == 0 && list[n].kind == CLATTN_DEVICE_OPENCL_GPU) continue; /* knows it only when it builds */
        if (list[n].problem[0]) {
            opened o = open_device(list[n].id);
            ck_assert_msg(o.status != CLATTN_OK, "%s has a problem (%s) and opens", list[n].id, list[n].problem);
        } else {
            assert_opens(list[n].id, list[n].id);
        }
    }
}
END_TEST

/* $CLATTN_DEVICE is what is asked for when the options ask for nothing. */
START_TEST(environment_chooses) {
    setenv("CLATTN_DEVICE", "reference", 1);
    assert_opens(NULL, "reference");
    assert_opens("native", "native");
    setenv("CLATTN_DEVICE", "native", 1);
    assert_opens(NULL, "native");
    setenv("CLATTN_DEVICE", "", 1);
    assert_opens(NULL, NULL);
    setenv("CLATTN_DEVICE", "auto", 1);
    assert_opens(NULL, NULL);
    setenv("CLATTN_DEVICE", "abacus", 1);
    opened o = open_device(NULL);
    ck_assert_int_eq(o.status, CLATTN_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(o.error, "abacus"));
    setenv("CLATTN_DEVICE", "opencl:66:6", 1);
    o = open_device(NULL);
    ck_assert_int_eq(o.status, CLATTN_ERROR_DEVICE);
    ck_assert_ptr_nonnull(strstr(o.error, "opencl:66:6"));
    unsetenv("CLATTN_DEVICE");
}
END_TEST

/* ---- machines ----------------------------------------------------------------------------------------------------- */

START_TEST(without_drivers) {
    read_list();
    ck_assert_uint_eq(count, 3);
    ck_assert_msg(list[2].problem[0], "%s has no problem", list[2].id);
    assert_opens("auto", "native");
    assert_not_here("opencl", NULL);
    assert_not_here("gpu", NULL);
    assert_not_here("opencl:0:0", NULL);
    opened o = open_device("auto");
    ck_assert_msg(strstr(o.why, list[2].problem) != NULL, "no \"%s\" in: %s", list[2].problem, o.why);
    clattn_context_destroy(o.context);
}
END_TEST

START_TEST(platform_without_devices) {
    read_list();
    const clattn_device_info *entry = listed_problem("no device");
    ck_assert_ptr_nonnull(entry);
    ck_assert_str_eq(entry->platform, "fake platform");
    assert_opens("auto", "native");
    assert_not_here("opencl", "no device");
    assert_not_here("opencl:0:0", NULL);
}
END_TEST

START_TEST(platform_that_fails) {
    read_list();
    const clattn_device_info *entry = listed_problem("CL_OUT_OF_RESOURCES");
    ck_assert_ptr_nonnull(entry);
    ck_assert_str_eq(entry->platform, "fake platform");
    assert_opens("auto", "native");
    assert_not_here("opencl:0:0", "CL_OUT_OF_RESOURCES");
}
END_TEST

/* The best GPU by all figures, but for its compiler. */
START_TEST(gpu_that_compiles_nothing) {
    read_list();
    const clattn_device_info *entry = listed("opencl:0:0");
    ck_assert_ptr_nonnull(entry);
    ck_assert_str_eq(entry->name, "fake GPU");
    opened o = open_device("auto");
    ck_assert_str_eq(o.id, "native");
    ck_assert_msg(strstr(o.why, "fake GPU") && strstr(o.why, "fake compiler"), "%s", o.why);
    assert_computes(o.context);
    clattn_context_destroy(o.context);
    assert_not_here("gpu", "fake compiler");

    /* Asked for by name it opens, and says what is wrong when it is to compute. */
    o = open_device("opencl:0:0");
    ck_assert_int_eq(o.status, CLATTN_OK);
    clattn_attention_desc desc = CLATTN_ATTENTION_DESC_INIT;
    desc.q = desc.k = desc.v = desc.out = clattn_tensor_bhld(CLATTN_F32, 1, 1, 8, 8);
    clattn_plan *plan;
    ck_assert_int_eq(clattn_plan_create_attention(o.context, &desc, NULL, &plan), CLATTN_ERROR_BUILD);
    ck_assert_ptr_nonnull(strstr(error_text(o.context), "fake compiler"));
    ck_assert_ptr_nonnull(strstr(error_text(o.context), "CL_BUILD_PROGRAM_FAILURE"));
    clattn_context_destroy(o.context);
}
END_TEST

/* A broken driver beside a sound one: the sound one is found. */
START_TEST(broken_beside_sound) {
    read_list();
    ck_assert_ptr_nonnull(listed_problem("CL_OUT_OF_RESOURCES"));
    opened o = open_device("opencl");
    ck_assert_msg(o.status == CLATTN_OK, "%s", o.error);
    assert_computes(o.context);
    clattn_context_destroy(o.context);
    assert_opens("auto", NULL);
}
END_TEST

START_TEST(two_devices_on_a_platform) {
    read_list();
    ck_assert_ptr_nonnull(listed("opencl:0:0"));
    ck_assert_ptr_nonnull(listed("opencl:0:1"));
    assert_opens("opencl:0:0", "opencl:0:0");
    assert_opens("opencl:0:1", "opencl:0:1");
    assert_not_here("opencl:0:2", NULL);
}
END_TEST

START_TEST(as_it_is) {
    read_list();
    assert_opens("auto", NULL);
    assert_not_here("opencl:90:0", NULL);
}
END_TEST

/* ---- choice of the machine ---------------------------------------------------------------------------------------- */

int main(int argc, char **argv) {
    const struct {
        const char *name;
        const TTest *test;
    } machines[] = {
        {"as-it-is", as_it_is},           {"none", without_drivers},         {"corrupt", without_drivers},
        {"empty", platform_without_devices}, {"failing", platform_that_fails}, {"broken", gpu_that_compiles_nothing},
        {"mixed", broken_beside_sound},   {"two", two_devices_on_a_platform},
    };
    machine = argc > 1 ? argv[1] : "as-it-is";
    const TTest *test = NULL;
    for (size_t n = 0; n < COUNT(machines); n++) {
        if (strcmp(machines[n].name, machine) == 0) test = machines[n].test;
    }
    if (!test) {
        fprintf(stderr, "%s: no such machine\n", machine);
        return EXIT_FAILURE;
    }
    Suite *suite = suite_create(machine);
    TCase *tests = tcase_create("devices");
    tcase_add_test(tests, native_and_reference_are_always_there);
    tcase_add_test(tests, auto_and_cpu_never_fail);
    tcase_add_test(tests, list_is_true);
    tcase_add_test(tests, environment_chooses);
    tcase_add_test(tests, test);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
