/* The public interface: statuses, texts, versioned structs, and every way to ask wrongly: its status, a sentence that names the
 * argument and both values, outputs untouched.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

static bool seen[CLATTN_ERROR_INTERNAL + 1]; /* which statuses a public function has returned */

static clattn_status see(clattn_status status) {
    ck_assert(status >= CLATTN_OK && status <= CLATTN_ERROR_INTERNAL);
    seen[status] = true;
    return status;
}

/* Every word of `words` (separated by blanks) stands in the text. */
static void assert_words(const char *text, const char *words, const char *where) {
    char copy[256];
    snprintf(copy, sizeof copy, "%s", words);
    for (char *rest = NULL, *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        ck_assert_msg(strstr(text, word) != NULL, "%s: no \"%s\" in: %s", where, word, text);
    }
}

static clattn_context *open_device(const char *device) {
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    options.device = device;
    clattn_context *context = NULL;
    ck_assert_int_eq(clattn_context_create(&options, &context), CLATTN_OK);
    return context;
}

/* ---- texts -------------------------------------------------------------------------------------------------------- */

START_TEST(statuses_have_texts) {
    for (int s = CLATTN_OK; s <= CLATTN_ERROR_INTERNAL; s++) {
        ck_assert_uint_gt(strlen(clattn_status_text((clattn_status)s)), 3);
        ck_assert_ptr_eq(strstr(clattn_status_name((clattn_status)s), "CLATTN_"), clattn_status_name((clattn_status)s));
    }
    ck_assert_str_eq(clattn_status_name(CLATTN_ERROR_MEMORY), "CLATTN_ERROR_MEMORY");
    ck_assert_str_eq(clattn_status_text(CLATTN_ERROR_MEMORY), "out of memory");
    ck_assert_ptr_nonnull(clattn_status_text((clattn_status)999));
    ck_assert_ptr_nonnull(clattn_status_name((clattn_status)-1));
}
END_TEST

START_TEST(version) {
    char expected_version[32];
    snprintf(expected_version, sizeof expected_version, "%d.%d.%d", CLATTN_VERSION_MAJOR, CLATTN_VERSION_MINOR,
             CLATTN_VERSION_PATCH);
    ck_assert_str_eq(clattn_version(), expected_version);
}
END_TEST

START_TEST(tensors_have_names) {
    ck_assert_str_eq(clattn_tensor_name(CLATTN_TENSOR_Q), "q");
    ck_assert_str_eq(clattn_tensor_name(CLATTN_TENSOR_X), "x");
    ck_assert_str_eq(clattn_tensor_name(CLATTN_TENSOR_WORKSPACE), "workspace");
    ck_assert_str_eq(clattn_tensor_name(CLATTN_TENSOR_COUNT), "?");
    ck_assert_str_eq(clattn_tensor_name((clattn_tensor_id)-1), "?");
    ck_assert_int_eq(CLATTN_TENSOR_WORKSPACE, 0); /* enumerators keep their values */
    ck_assert_int_eq(CLATTN_TENSOR_Q, 1);
}
END_TEST

/* ---- tensors ------------------------------------------------------------------------------------------------------ */

static void assert_tensor(clattn_tensor t, const int64_t size[4], const int64_t stride[4]) {
    ck_assert_int_eq(t.dtype, CLATTN_F32);
    for (int d = 0; d < 4; d++) {
        ck_assert_int_eq(t.size[d], size[d]);
        ck_assert_int_eq(t.stride[d], stride[d]);
    }
}

START_TEST(tensors) {
    const int64_t size[4] = {2, 3, 5, 7};
    assert_tensor(clattn_tensor_bhld(CLATTN_F32, 2, 3, 5, 7), size, (int64_t[]){105, 35, 7, 1});
    assert_tensor(clattn_tensor_blhd(CLATTN_F32, 2, 3, 5, 7), size, (int64_t[]){105, 7, 21, 1});
    const clattn_tensor matrix = clattn_tensor_matrix(CLATTN_F32, 5, 7);
    assert_tensor(matrix, (int64_t[]){1, 1, 5, 7}, (int64_t[]){35, 35, 7, 1});
    assert_tensor(clattn_tensor_transposed(matrix), (int64_t[]){1, 1, 7, 5}, (int64_t[]){35, 35, 1, 7});
    const clattn_tensor none = {0};
    ck_assert_int_eq(none.dtype, CLATTN_ABSENT);
}
END_TEST

/* ---- contexts ----------------------------------------------------------------------------------------------------- */

static clattn_status create(const char *device, int threads, int work_groups, char *error, size_t size) {
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    options.device = device;
    options.threads = threads;
    options.work_groups = work_groups;
    options.error = error;
    options.error_size = size;
    clattn_context *context = (clattn_context *)&options;
    clattn_status status = see(clattn_context_create(&options, &context));
    if (status != CLATTN_OK) ck_assert_ptr_null(context);
    if (status == CLATTN_OK) clattn_context_destroy(context);
    return status;
}

START_TEST(contexts_that_cannot_be) {
    static const struct {
        const char *device;
        int threads, work_groups;
        clattn_status status;
        const char *words;
    } wrong[] = {
        {"cuda", 0, 0, CLATTN_ERROR_ARGUMENT, "cuda auto native opencl reference"},
        {"native:", 0, 0, CLATTN_ERROR_ARGUMENT, "native:"},
        {"native2", 0, 0, CLATTN_ERROR_ARGUMENT, "native2"},
        {"reference:0", 0, 0, CLATTN_ERROR_ARGUMENT, "reference:0"},
        {"opencl:", 0, 0, CLATTN_ERROR_ARGUMENT, "opencl:"},
        {"opencl:0", 0, 0, CLATTN_ERROR_ARGUMENT, "opencl:0"},
        {"opencl:-1:0", 0, 0, CLATTN_ERROR_ARGUMENT, "opencl:-1:0"},
        {"opencl:0:99999999999999999999", 0, 0, CLATTN_ERROR_ARGUMENT, "99999999999999999999"},
        {"opencl:97:0", 0, 0, CLATTN_ERROR_DEVICE, "opencl:97:0 native reference"},
        {"native:sparc", 0, 0, CLATTN_ERROR_DEVICE, "native:sparc native reference"},
        {"native", -1, 0, CLATTN_ERROR_ARGUMENT, "threads -1"},
        {"native", 0, -3, CLATTN_ERROR_ARGUMENT, "work_groups -3"},
    };
    for (size_t n = 0; n < COUNT(wrong); n++) {
        char error[512] = "unwritten";
        clattn_status status = create(wrong[n].device, wrong[n].threads, wrong[n].work_groups, error, sizeof error);
        ck_assert_msg(status == wrong[n].status, "\"%s\": %s: %s", wrong[n].device, clattn_status_name(status), error);
        assert_words(error, wrong[n].words, wrong[n].device);
    }
}
END_TEST

START_TEST(context_error_buffer) {
    char error[8] = "unwrit";
    ck_assert_int_eq(create("cuda", 0, 0, error, sizeof error), CLATTN_ERROR_ARGUMENT);
    ck_assert_uint_eq(strlen(error), sizeof error - 1);
    ck_assert_int_eq(create("cuda", 0, 0, NULL, 0), CLATTN_ERROR_ARGUMENT);
    ck_assert_int_eq(create("cuda", 0, 0, error, 0), CLATTN_ERROR_ARGUMENT);
    ck_assert_int_eq(create("native", 0, 0, error, sizeof error), CLATTN_OK);
    ck_assert_str_eq(error, "");
}
END_TEST

START_TEST(context_null_handling) {
    char text[4];
    ck_assert_int_eq(see(clattn_context_create(NULL, NULL)), CLATTN_ERROR_ARGUMENT);
    clattn_context_destroy(NULL);
    clattn_plan_destroy(NULL);
    ck_assert_uint_eq(clattn_context_error(NULL, text, sizeof text), 0);
    ck_assert_uint_eq(clattn_context_explain(NULL, text, sizeof text), 0);
    ck_assert_int_eq(see(clattn_context_device(NULL, NULL)), CLATTN_ERROR_ARGUMENT);
    clattn_context *context;
    ck_assert_int_eq(see(clattn_context_create(NULL, &context)), CLATTN_OK);
    ck_assert_int_eq(see(clattn_context_device(context, NULL)), CLATTN_ERROR_ARGUMENT);
    ck_assert_uint_gt(clattn_context_explain(context, NULL, 0), 0);
    clattn_context_destroy(context);
}
END_TEST

START_TEST(context_says_what_it_is) {
    clattn_context *context = open_device("native");
    clattn_device_info info;
    memset(&info, 0xff, sizeof info);
    ck_assert_int_eq(see(clattn_context_device(context, &info)), CLATTN_ERROR_ARGUMENT);
    info.struct_size = sizeof info;
    ck_assert_int_eq(clattn_context_device(context, &info), CLATTN_OK);
    ck_assert_uint_eq(info.struct_size, sizeof info);
    ck_assert_str_eq(info.id, "native");
    ck_assert_int_eq(info.kind, CLATTN_DEVICE_NATIVE);
    ck_assert_str_eq(info.problem, "");
    ck_assert_uint_gt(info.compute_units, 0);
    ck_assert_uint_gt(info.vector_width, 0);
    char text[256], small[5];
    const size_t length = clattn_context_explain(context, text, sizeof text);
    ck_assert_uint_eq(length, strlen(text));
    ck_assert_ptr_nonnull(strstr(text, "native"));
    ck_assert_uint_eq(clattn_context_explain(context, small, sizeof small), length);
    ck_assert_uint_eq(strlen(small), sizeof small - 1);
    clattn_context_destroy(context);
}
END_TEST

START_TEST(threads_are_taken) {
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    options.device = "native";
    options.threads = 1;
    clattn_context *context;
    clattn_device_info info = CLATTN_DEVICE_INFO_INIT;
    ck_assert_int_eq(clattn_context_create(&options, &context), CLATTN_OK);
    ck_assert_int_eq(clattn_context_device(context, &info), CLATTN_OK);
    ck_assert_uint_eq(info.compute_units, 1);
    clattn_context_destroy(context);
}
END_TEST

/* ---- devices ------------------------------------------------------------------------------------------------------ */

START_TEST(devices_are_listed) {
    clattn_device_info list[32];
    size_t count = 0, again = 0;
    ck_assert_int_eq(see(clattn_device_list(NULL, 0, NULL)), CLATTN_ERROR_ARGUMENT);
    ck_assert_int_eq(see(clattn_device_list(NULL, 3, &count)), CLATTN_ERROR_ARGUMENT);
    ck_assert_int_eq(clattn_device_list(NULL, 0, &count), CLATTN_OK);
    ck_assert_uint_ge(count, 2);
    memset(list, 0x5a, sizeof list);
    ck_assert_int_eq(see(clattn_device_list(list, 1, &again)), CLATTN_ERROR_ARGUMENT);
    list[0].struct_size = sizeof *list;
    ck_assert_int_eq(clattn_device_list(list, 1, &again), CLATTN_OK);
    ck_assert_uint_eq(again, count);
    ck_assert_uint_eq(list[1].struct_size, (size_t)0x5a5a5a5a5a5a5a5aull);
    ck_assert_int_eq(clattn_device_list(list, COUNT(list), &count), CLATTN_OK);
    ck_assert_str_eq(list[0].id, "native");
    ck_assert_str_eq(list[1].id, "reference");
    for (size_t n = 0; n < count && n < COUNT(list); n++) {
        ck_assert_uint_eq(list[n].struct_size, sizeof list[n]);
        ck_assert_uint_gt(strlen(list[n].id), 0);
    }
}
END_TEST

/* A caller of an older library has shorter entries: each is written where it expects it. */
START_TEST(devices_are_listed_to_older_callers) {
    enum { SIZE = offsetof(clattn_device_info, platform) };
    union {
        clattn_device_info first;
        unsigned char bytes[3 * SIZE];
    } list;
    size_t count = 0;
    memset(&list, 0xee, sizeof list);
    list.first.struct_size = SIZE;
    ck_assert_int_eq(clattn_device_list(&list.first, 2, &count), CLATTN_OK);
    ck_assert_str_eq((char *)list.bytes + offsetof(clattn_device_info, id), "native");
    ck_assert_str_eq((char *)list.bytes + SIZE + offsetof(clattn_device_info, id), "reference");
    for (size_t n = 2 * SIZE; n < sizeof list.bytes; n++) ck_assert_int_eq(list.bytes[n], 0xee);
}
END_TEST

/* ---- log ---------------------------------------------------------------------------------------------------------- */

typedef struct log_record {
    int count;
    clattn_log_level level;
    char text[256];
} log_record;

static void record_log(void *user, clattn_log_level level, const char *message) {
    log_record *record = user;
    record->count++;
    record->level = level;
    snprintf(record->text, sizeof record->text, "%s", message);
}

START_TEST(errors_are_logged) {
    log_record record = {0};
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    options.device = "reference";
    options.log = record_log;
    options.log_user = &record;
    clattn_context *context;
    clattn_plan *plan;
    ck_assert_int_eq(clattn_context_create(&options, &context), CLATTN_OK);
    ck_assert_int_eq(clattn_plan_create_attention(context, NULL, NULL, &plan), CLATTN_ERROR_ARGUMENT);
    ck_assert_int_eq(record.count, 1);
    ck_assert_int_eq(record.level, CLATTN_LOG_ERROR);
    ck_assert_str_eq(record.text, error_text(context));
    /* A question whose answer is no is not an error. */
    ck_assert_int_eq(clattn_supports_attention(context, NULL, NULL), CLATTN_ERROR_ARGUMENT);
    ck_assert_int_eq(record.count, 1);
    ck_assert_int_eq(clattn_plan_create_attention(context, NULL, NULL, &plan), CLATTN_ERROR_ARGUMENT);
    ck_assert_int_eq(record.count, 2);
    clattn_context_destroy(context);
}
END_TEST

/* ---- descriptors that cannot be ----------------------------------------------------------------------------------- */

static clattn_tensor view(int64_t b, int64_t h, int64_t l, int64_t d) { return clattn_tensor_bhld(CLATTN_F32, b, h, l, d); }

static clattn_attention_desc good_attention(void) {
    clattn_attention_desc desc = CLATTN_ATTENTION_DESC_INIT;
    desc.q = view(2, 4, 5, 8);
    desc.k = view(2, 2, 7, 8);
    desc.v = view(2, 2, 7, 6);
    desc.out = view(2, 4, 5, 6);
    return desc;
}

static const clattn_tensor absent = {0};
static const int64_t huge = (int64_t)1 << 62;

/* What to spoil, the status, and the words that its sentence must hold. */
#define ATTENTION_ERRORS(X)                                                                                              \
    X(desc.q = absent, ARGUMENT, "q")                                                                                    \
    X(desc.k = absent, ARGUMENT, "k")                                                                                    \
    X(desc.v = absent, ARGUMENT, "v")                                                                                    \
    X(desc.out = absent, ARGUMENT, "out")                                                                                \
    X(desc.q.dtype = (clattn_dtype)77, ARGUMENT, "q dtype 77")                                                           \
    X(desc.lse.dtype = (clattn_dtype)77, ARGUMENT, "lse dtype 77")                                                       \
    X(desc.v.reserved = 16, ARGUMENT, "v reserved 0x10")                                                                 \
    X(desc.options.causal = 2, ARGUMENT, "causal 2")                                                                     \
    X(desc.options.has_scale = -1, ARGUMENT, "has_scale -1")                                                             \
    X(desc.options.scale = 3, ARGUMENT, "scale 3 has_scale 0")                                                           \
    X((desc.options.has_scale = 1, desc.options.scale = NAN), ARGUMENT, "scale nan")                                     \
    X((desc.options.has_scale = 1, desc.options.scale = INFINITY), ARGUMENT, "scale inf")                                \
    X((desc.options.causal = 1, desc.options.align = (clattn_align)9), ARGUMENT, "align 9")                              \
    X(desc.options.align = CLATTN_ALIGN_BOTTOM_RIGHT, ARGUMENT, "align BOTTOM_RIGHT causal window ALiBi")                                      \
    X((desc.options.causal = 1, desc.options.past_len = 4), ARGUMENT, "past_len 4 align TOP_LEFT")                              \
    X((desc.options.causal = 1, desc.options.offset = -4), ARGUMENT, "offset -4 align TOP_LEFT")                                \
    X(options.algorithm = (clattn_algorithm)5, ARGUMENT, "algorithm 5")                                                  \
    X(options.recurrence = CLATTN_RECURRENCE_STEPS, ARGUMENT, "recurrence 2 attention")                                  \
    X(options.struct_size = 3, ARGUMENT, "options struct_size 3")                                                        \
    X(desc.k.size[0] = 3, SHAPE, "k batch 3 2")                                                                          \
    X(desc.k.size[3] = 9, SHAPE, "k dim 9 8")                                                                            \
    X(desc.v.size[0] = 1, SHAPE, "v batch 1 2")                                                                          \
    X(desc.v.size[1] = 4, SHAPE, "v heads 4 2")                                                                          \
    X(desc.v.size[2] = 6, SHAPE, "v len 6 7")                                                                            \
    X(desc.out.size[0] = 3, SHAPE, "out batch 3 2")                                                                      \
    X(desc.out.size[1] = 2, SHAPE, "out heads 2 4")                                                                      \
    X(desc.out.size[2] = 7, SHAPE, "out len 7 5")                                                                        \
    X(desc.out.size[3] = 8, SHAPE, "out dim 8 6")                                                                        \
    X(desc.lse = view(2, 4, 5, 2), SHAPE, "lse dim 2 1")                                                                 \
    X(desc.lse = view(2, 2, 5, 1), SHAPE, "lse heads 2 4")                                                               \
    X(desc.scores = view(2, 4, 5, 8), SHAPE, "scores dim 8 7")                                                           \
    X(desc.weights = view(2, 4, 7, 7), SHAPE, "weights len 7 5")                                                         \
    X((desc.q = view(2, 5, 5, 8), desc.out = view(2, 5, 5, 6)), HEADS, "q k 5 2")                                        \
    X((desc.k.size[1] = desc.v.size[1] = 0), HEADS, "q k 4 0")                                                           \
    X(desc.q.size[2] = -1, OVERFLOW, "q len -1")                                                                         \
    X(desc.k.size[0] = -2, OVERFLOW, "k batch -2")                                                                       \
    X(desc.v.size[3] = INT64_MIN, OVERFLOW, "v dim -9223372036854775808")                                                \
    X(desc.q.stride[1] = -8, OVERFLOW, "q stride heads -8")                                                              \
    X(desc.q.size[2] = INT64_MAX, OVERFLOW, "q len 9223372036854775807")                                                 \
    X(desc.k.size[2] = huge, OVERFLOW, "k len 4611686018427387904")                                                      \
    X(desc.k.stride[2] = huge, OVERFLOW, "k len 4611686018427387904")                                                    \
    X(desc.out.stride[0] = INT64_MAX, OVERFLOW, "out batch 9223372036854775807")                                         \
    X((desc.q.size[3] = desc.k.size[3] = (int64_t)1 << 31, desc.q.stride[3] = desc.k.stride[3] = 0), OVERFLOW,           \
      "head_dim 2147483648")                                                                                             \
    X((desc.options.causal = 1, desc.options.align = CLATTN_ALIGN_PAST, desc.options.past_len = -1), OVERFLOW,           \
      "past_len -1")                                                                                                     \
    X((desc.options.causal = 1, desc.options.align = CLATTN_ALIGN_PAST, desc.options.past_len = INT64_MAX), OVERFLOW,    \
      "past_len")                                                                                                        \
    X((desc.options.causal = 1, desc.options.align = CLATTN_ALIGN_OFFSET, desc.options.offset = INT64_MIN), OVERFLOW,    \
      "offset")                                                                                                          \
    X((desc.options.causal = 1, desc.options.align = CLATTN_ALIGN_OFFSET, desc.options.offset = INT64_MAX), OVERFLOW,    \
      "offset")                                                                                                          \
    X(desc.out.stride[0] = 0, ALIAS, "out 2 0")                                                                          \
    X(desc.out.stride[2] = 5, ALIAS, "out")                                                                              \
    X(desc.out.stride[3] = 6, ALIAS, "out")                                                                              \
    X((desc.lse = view(2, 4, 5, 1), desc.lse.stride[1] = 4), ALIAS, "lse")                                               \
    X((desc.weights = view(2, 4, 5, 7), desc.weights.stride[2] = 0), ALIAS, "weights")                                   \
    X(desc.struct_size = 0, ARGUMENT, "struct_size 0")                                                                   \
    X(desc.struct_size = 7, ARGUMENT, "struct_size 7")

#define TYPED(type, b, h, l, d) clattn_tensor_bhld(CLATTN_##type, b, h, l, d)
#define A_PAST desc.past_k = view(2, 2, 3, 8), desc.past_v = view(2, 2, 3, 6)
#define A_CACHE                                                                                                          \
    desc.present_k = view(2, 2, 20, 8), desc.present_v = view(2, 2, 20, 6), desc.past_lengths = TYPED(I32, 2, 1, 1, 1)
#define A_TABLE(positions)                                                                                               \
    desc.rotary = CLATTN_ROTARY_HALF, desc.rotary_cos = view(1, 1, positions, 4), desc.rotary_sin = view(1, 1, positions, 4)
#define A_RAGGED                                                                                                         \
    desc.q = view(1, 4, 5, 8), desc.k = view(1, 2, 7, 8), desc.v = view(1, 2, 7, 6), desc.out = view(1, 4, 5, 6),        \
    desc.q_offsets = desc.kv_offsets = TYPED(I64, 1, 1, 1, 4)

#define OPTION_ERRORS(X)                                                                                                 \
    X(desc.reserved = 3, ARGUMENT, "reserved 0x3")                                                                       \
    X(options.untuned = 3, ARGUMENT, "options untuned 3")                                                               \
    X(options.require_fused = 2, ARGUMENT, "require_fused 2")                                                            \
    X(desc.options.window_left = 4, ARGUMENT, "window_left 4 has_window 0")                                              \
    X((desc.options.has_window = 1, desc.options.window_left = -2), ARGUMENT, "window_left -2")                          \
    X((desc.options.has_window = 1, desc.options.window_right = huge), OVERFLOW, "window_right 4611686018427387904")     \
    X((desc.options.has_window = 1, desc.options.window_left = desc.options.window_right = -1), ARGUMENT, "unbounded")   \
    X(desc.options.has_window = 2, ARGUMENT, "has_window 2")                                                             \
    X(desc.options.softcap = -1, ARGUMENT, "softcap -1")                                                                 \
    X(desc.options.softcap = NAN, ARGUMENT, "softcap nan")                                                               \
    X(desc.options.softcap = 1e39, ARGUMENT, "softcap fp32")                                                             \
    X(desc.options.alibi = 2, ARGUMENT, "alibi 2")                                                                       \
    X((desc.options.alibi = 1, desc.options.alibi_slopes = view(1, 4, 1, 1)), ARGUMENT, "alibi alibi_slopes")            \
    X(desc.options.scores_form = (clattn_scores_form)7, ARGUMENT, "scores_form 7")                                       \
    X(desc.options.scores_form = CLATTN_SCORES_BIAS, ARGUMENT, "scores_form scores absent")                              \
    X(desc.options.mask = view(1, 1, 5, 7), ARGUMENT, "mask f32")                                                        \
    X(desc.options.mask = TYPED(BOOL, 1, 3, 5, 7), SHAPE, "mask heads 3 4")                                              \
    X(desc.options.mask = TYPED(BOOL, 1, 1, 5, 8), SHAPE, "mask dim 8 7")                                                \
    X(desc.options.bias = TYPED(F16, 1, 1, 5, 7), ARGUMENT, "bias f16")                                                  \
    X(desc.options.bias = view(1, 1, 4, 7), SHAPE, "bias len 4 5")                                                       \
    X(desc.options.sinks = view(1, 3, 1, 1), SHAPE, "sinks heads 3 4")                                                   \
    X(desc.options.alibi_slopes = view(3, 4, 1, 1), SHAPE, "alibi_slopes batch 3 2")                                     \
    X(desc.options.kv_lengths = view(2, 1, 1, 1), ARGUMENT, "kv_lengths f32")                                            \
    X((A_PAST, desc.options.kv_lengths = TYPED(I32, 2, 1, 1, 1)), ARGUMENT, "kv_lengths cache")                          \
    X((A_PAST, desc.past_v = absent), ARGUMENT, "past_k past_v")                                                         \
    X((A_PAST, desc.past_v.size[2] = 4), SHAPE, "past_v len 4 3")                                                        \
    X((A_PAST, A_CACHE), ARGUMENT, "past_lengths past_k")                                                                \
    X((A_PAST, desc.present_k = view(2, 2, 10, 8)), ARGUMENT, "present_k present_v")                                     \
    X((A_PAST, desc.present_k = view(2, 2, 9, 8), desc.present_v = view(2, 2, 9, 6)), SHAPE, "present_k len 9 10")       \
    X((A_CACHE, desc.present_k = desc.present_v = absent), ARGUMENT, "past_lengths present_k")                           \
    X((A_CACHE, desc.past_lengths = absent), ARGUMENT, "present_k past_k past_lengths")                                  \
    X((A_CACHE, desc.present_k.size[2] = desc.present_v.size[2] = 6), SHAPE, "k len 7 cache 6")                          \
    X((A_CACHE, desc.options.causal = 1, desc.options.align = CLATTN_ALIGN_PAST, desc.options.past_len = 2), ARGUMENT,   \
      "past_len 2 cache")                                                                                                \
    X((A_TABLE(7), desc.rotary = CLATTN_ROTARY_NONE), ARGUMENT, "rotary none rotary_cos")                                \
    X(desc.rotary = CLATTN_ROTARY_INTERLEAVED, ARGUMENT, "rotary rotary_cos absent")                                     \
    X((A_TABLE(7), desc.rotary = (clattn_rotary)3), ARGUMENT, "rotary 3")                                                \
    X((A_TABLE(7), desc.rotary_sin = absent), ARGUMENT, "rotary_cos rotary_sin")                                         \
    X(A_TABLE(6), SHAPE, "rotary_cos len 6 7")                                                                           \
    X((A_PAST, A_TABLE(9)), SHAPE, "rotary_cos len 9 10")                                                                \
    X((A_TABLE(8), desc.options.align = CLATTN_ALIGN_PAST, desc.options.past_len = 2), SHAPE, "rotary_cos len 8 9")      \
    X((A_TABLE(7), desc.rotary_cos.size[3] = desc.rotary_sin.size[3] = 5), SHAPE, "rotary_cos dim 5 4")                  \
    X((A_RAGGED, desc.kv_offsets = absent), ARGUMENT, "q_offsets kv_offsets")                                            \
    X((A_RAGGED, desc.kv_offsets.size[3] = 5), SHAPE, "kv_offsets dim 5 4")                                              \
    X((A_RAGGED, desc.q_offsets.size[3] = 0), SHAPE, "q_offsets dim 0")                                                  \
    X((A_RAGGED, desc.q = view(2, 4, 5, 8), desc.k = view(2, 2, 7, 8), desc.v = view(2, 2, 7, 6),                        \
       desc.out = view(2, 4, 5, 6)), SHAPE, "q batch 2 q_offsets")                                                       \
    X((A_RAGGED, desc.weights = view(1, 4, 5, 7)), ARGUMENT, "q_offsets weights")                                        \
    X((A_RAGGED, desc.scores = view(1, 4, 5, 7)), ARGUMENT, "q_offsets scores")                                          \
    X((A_RAGGED, A_TABLE(7)), ARGUMENT, "q_offsets rotary")                                                              \
    X((A_RAGGED, desc.options.mask = TYPED(BOOL, 1, 1, 5, 7)), ARGUMENT, "mask ragged")                                  \
    X((A_RAGGED, desc.options.bias = view(1, 1, 5, 7)), ARGUMENT, "bias ragged")                                         \
    X((A_RAGGED, desc.options.kv_lengths = TYPED(I32, 1, 1, 1, 1)), ARGUMENT, "kv_lengths kv_offsets")                   \
    X((A_RAGGED, options.algorithm = CLATTN_ALGORITHM_STAGED), UNSUPPORTED, "staged ragged")                             \
    X((A_RAGGED, options.algorithm = CLATTN_ALGORITHM_SPLIT), UNSUPPORTED, "split ragged")                               \
    X((desc.scores = view(2, 4, 5, 7), options.algorithm = CLATTN_ALGORITHM_FUSED), UNSUPPORTED, "fused scores")         \
    X((desc.scores = view(2, 4, 5, 7), options.require_fused = 1), UNSUPPORTED, "scores require_fused")

typedef struct refusal {
    const char *name, *words;
    clattn_status status;
} refusal;

/* A plan is refused with this status and sentence, by each function that takes the descriptor; *plan becomes NULL. */
#define CHECK_REFUSED(op, context, desc, options, want)                                                                  \
    do {                                                                                                                 \
        clattn_plan *plan_ = (clattn_plan *)(context);                                                                   \
        clattn_status status_ = see(clattn_plan_create_##op(context, desc, options, &plan_));                            \
        ck_assert_msg(status_ == (want).status, "%s on %s: %s: %s", (want).name, (context)->device.info.id,              \
                      clattn_status_name(status_), error_text(context));                                                 \
        ck_assert_ptr_null(plan_);                                                                                       \
        assert_words(error_text(context), (want).words, (want).name);                                                    \
        ck_assert_int_eq(clattn_supports_##op(context, desc, options), (want).status);                                   \
        ck_assert_int_eq(clattn_##op(context, desc, options, NULL, 0), (want).status);                                   \
    } while (0)

static const char *const api_devices[] = {"native", "reference"};

START_TEST(attention_refuses) {
    clattn_context *context = open_device(api_devices[_i]);
    const clattn_attention_desc good = good_attention();
    ck_assert_int_eq(clattn_supports_attention(context, &good, NULL), CLATTN_OK);
#define X(spoil, code, words)                                                                                            \
    {                                                                                                                    \
        clattn_attention_desc desc = good_attention();                                                                   \
        clattn_plan_options options = CLATTN_PLAN_OPTIONS_INIT;                                                          \
        spoil;                                                                                                           \
        CHECK_REFUSED(attention, context, &desc, &options, ((refusal){#spoil, words, CLATTN_ERROR_##code}));             \
    }
    ATTENTION_ERRORS(X)
    OPTION_ERRORS(X)
#undef X
    clattn_context_destroy(context);
}
END_TEST

static clattn_project_qkv_desc good_project(void) {
    clattn_project_qkv_desc desc = CLATTN_PROJECT_QKV_DESC_INIT;
    desc.x = view(2, 1, 5, 8);
    desc.w_q = clattn_tensor_matrix(CLATTN_F32, 8, 12);
    desc.w_k = desc.w_v = clattn_tensor_matrix(CLATTN_F32, 8, 6);
    desc.b_q = clattn_tensor_matrix(CLATTN_F32, 1, 12);
    desc.q = view(2, 4, 5, 3);
    desc.k = desc.v = view(2, 2, 5, 3);
    return desc;
}

#define PROJECT_ERRORS(X)                                                                                                \
    X(desc.x = absent, ARGUMENT, "x")                                                                                    \
    X(desc.w_q = absent, ARGUMENT, "w_q")                                                                                \
    X(desc.k = absent, ARGUMENT, "k")                                                                                    \
    X((desc.q = desc.k = desc.v = desc.w_q = desc.w_k = desc.w_v = desc.b_q = absent), ARGUMENT, "q k v")                \
    X(options.algorithm = CLATTN_ALGORITHM_FUSED, ARGUMENT, "algorithm 2 project_qkv")                                   \
    X(options.recurrence = CLATTN_RECURRENCE_PERSISTENT, ARGUMENT, "recurrence 1 project_qkv")                           \
    X(desc.x.size[1] = 2, SHAPE, "x heads 2 1")                                                                          \
    X(desc.w_q.size[2] = 9, SHAPE, "w_q len 9 8")                                                                        \
    X(desc.w_v.size[0] = 2, SHAPE, "w_v batch 2 1")                                                                      \
    X(desc.w_k.size[3] = 7, SHAPE, "k w_k 7")                                                                            \
    X(desc.b_q.size[3] = 11, SHAPE, "b_q dim 11 12")                                                                     \
    X(desc.q.size[2] = 6, SHAPE, "q len 6 5")                                                                            \
    X(desc.q.size[0] = 3, SHAPE, "q batch 3 2")                                                                          \
    X((desc.x_kv = view(3, 1, 4, 8)), SHAPE, "x_kv batch 3 2")                                                           \
    X((desc.x_kv = view(2, 1, 4, 8)), SHAPE, "k len 5 4")                                                                \
    X(desc.x.size[2] = -5, OVERFLOW, "x len -5")                                                                         \
    X(desc.w_q.stride[2] = huge, OVERFLOW, "w_q")                                                                        \
    X(desc.v.stride[2] = 0, ALIAS, "v")                                                                                  \
    X(desc.struct_size = 1, ARGUMENT, "struct_size 1")

START_TEST(project_refuses) {
    clattn_context *context = open_device(api_devices[_i]);
    const clattn_project_qkv_desc good = good_project();
    ck_assert_int_eq(clattn_supports_project_qkv(context, &good, NULL), CLATTN_OK);
#define X(spoil, code, words)                                                                                            \
    {                                                                                                                    \
        clattn_project_qkv_desc desc = good_project();                                                                   \
        clattn_plan_options options = CLATTN_PLAN_OPTIONS_INIT;                                                          \
        spoil;                                                                                                           \
        CHECK_REFUSED(project_qkv, context, &desc, &options, ((refusal){#spoil, words, CLATTN_ERROR_##code}));           \
    }
    PROJECT_ERRORS(X)
#undef X
    clattn_context_destroy(context);
}
END_TEST

static clattn_mha_desc good_mha(void) {
    clattn_mha_desc desc = CLATTN_MHA_DESC_INIT;
    desc.x = view(2, 1, 5, 8);
    desc.w_q = clattn_tensor_matrix(CLATTN_F32, 8, 12);
    desc.w_k = desc.w_v = clattn_tensor_matrix(CLATTN_F32, 8, 6);
    desc.w_o = clattn_tensor_matrix(CLATTN_F32, 12, 8);
    desc.b_o = clattn_tensor_matrix(CLATTN_F32, 1, 8);
    desc.out = view(2, 1, 5, 8);
    desc.heads_q = 4;
    desc.heads_kv = 2;
    return desc;
}

#define MHA_ERRORS(X)                                                                                                    \
    X(desc.x = absent, ARGUMENT, "x")                                                                                    \
    X(desc.w_k = absent, ARGUMENT, "w_k")                                                                                \
    X(desc.out = absent, ARGUMENT, "out")                                                                                \
    X(desc.heads_q = 0, ARGUMENT, "heads_q 0")                                                                           \
    X(desc.heads_q = -4, ARGUMENT, "heads_q -4")                                                                         \
    X(desc.heads_kv = -1, ARGUMENT, "heads_kv -1")                                                                       \
    X(desc.residual = 7, ARGUMENT, "residual 7")                                                                         \
    X((desc.w_o = absent), ARGUMENT, "b_o w_o")                                                                          \
    X((desc.w_o = desc.b_o = absent, desc.residual = 1), ARGUMENT, "residual 1 w_o")                                     \
    X(desc.options.causal = 3, ARGUMENT, "causal 3")                                                                     \
    X(desc.options.align = CLATTN_ALIGN_PAST, ARGUMENT, "align PAST causal window ALiBi")                                              \
    X(options.algorithm = (clattn_algorithm)-1, ARGUMENT, "algorithm -1")                                                \
    X(options.recurrence = CLATTN_RECURRENCE_PERSISTENT, ARGUMENT, "recurrence 1 mha")                                   \
    X(desc.heads_q = 5, SHAPE, "w_q 12 5")                                                                               \
    X(desc.heads_kv = 4, SHAPE, "w_k 6 4")                                                                               \
    X((desc.heads_kv = 3, desc.w_k = desc.w_v = clattn_tensor_matrix(CLATTN_F32, 8, 9)), HEADS, "4 3")                   \
    X(desc.w_k.size[3] = 8, SHAPE, "w_k dim 8 6")                                                                        \
    X(desc.w_o.size[2] = 11, SHAPE, "w_o len 11 12")                                                                     \
    X(desc.b_o.size[3] = 9, SHAPE, "b_o dim 9 8")                                                                        \
    X(desc.out.size[3] = 9, SHAPE, "out dim 9 8")                                                                        \
    X(desc.weights = view(2, 2, 5, 5), SHAPE, "weights heads 2 4")                                                       \
    X(desc.x_kv = view(1, 1, 5, 8), SHAPE, "x_kv batch 1 2")                                                             \
    X((desc.w_o = clattn_tensor_matrix(CLATTN_F32, 12, 9), desc.out = view(2, 1, 5, 9), desc.b_o = absent,               \
       desc.residual = 1),                                                                                               \
      SHAPE, "9 8")                                                                                                      \
    X(desc.x.size[0] = -1, OVERFLOW, "x batch -1")                                                                       \
    X(desc.w_q.size[3] = huge, OVERFLOW, "w_q")                                                                          \
    X(desc.out.stride[2] = 1, ALIAS, "out")                                                                              \
    X(desc.struct_size = 4, ARGUMENT, "struct_size 4")

START_TEST(mha_refuses) {
    clattn_context *context = open_device(api_devices[_i]);
    const clattn_mha_desc good = good_mha();
    ck_assert_int_eq(clattn_supports_mha(context, &good, NULL), CLATTN_OK);
#define X(spoil, code, words)                                                                                            \
    {                                                                                                                    \
        clattn_mha_desc desc = good_mha();                                                                               \
        clattn_plan_options options = CLATTN_PLAN_OPTIONS_INIT;                                                          \
        spoil;                                                                                                           \
        CHECK_REFUSED(mha, context, &desc, &options, ((refusal){#spoil, words, CLATTN_ERROR_##code}));                   \
    }
    MHA_ERRORS(X)
#undef X
    clattn_context_destroy(context);
}
END_TEST

static clattn_recurrence_desc good_recurrence(void) {
    clattn_recurrence_desc desc = CLATTN_RECURRENCE_DESC_INIT;
    desc.cell = CLATTN_CELL_LSTM;
    desc.x = view(2, 1, 5, 8);
    desc.w_in = clattn_tensor_matrix(CLATTN_F32, 12, 8);
    desc.w_h = clattn_tensor_matrix(CLATTN_F32, 12, 3);
    desc.bias = clattn_tensor_matrix(CLATTN_F32, 1, 12);
    desc.h_0 = desc.c_0 = desc.h_n = desc.c_n = view(2, 1, 1, 3);
    desc.out = view(2, 1, 5, 3);
    return desc;
}

#define RECURRENCE_ERRORS(X)                                                                                             \
    X(desc.x = absent, ARGUMENT, "x")                                                                                    \
    X(desc.w_h = absent, ARGUMENT, "w_h")                                                                                \
    X(desc.w_in = absent, ARGUMENT, "w_in")                                                                              \
    X(desc.out = absent, ARGUMENT, "out")                                                                                \
    X(desc.cell = (clattn_cell)2, ARGUMENT, "cell 2")                                                                    \
    X(options.recurrence = (clattn_recurrence_form)3, ARGUMENT, "recurrence 3")                                          \
    X(options.algorithm = CLATTN_ALGORITHM_STAGED, ARGUMENT, "algorithm 1 recurrence")                                   \
    X(desc.forget_bias = NAN, ARGUMENT, "forget_bias nan")                                                               \
    X(desc.cell = CLATTN_CELL_RNN, ARGUMENT, "c_0 rnn")                                                                  \
    X((desc.cell = CLATTN_CELL_RNN, desc.c_0 = desc.c_n = absent, desc.forget_bias = 1), ARGUMENT, "forget_bias 1 rnn")  \
    X(desc.x.size[1] = 2, SHAPE, "x heads 2 1")                                                                          \
    X(desc.w_in.size[2] = 11, SHAPE, "w_in len 11 12")                                                                   \
    X(desc.w_in.size[3] = 7, SHAPE, "w_in dim 7 8")                                                                      \
    X(desc.w_h.size[2] = 9, SHAPE, "w_h len 9 12")                                                                       \
    X(desc.bias.size[3] = 3, SHAPE, "bias dim 3 12")                                                                     \
    X(desc.h_0.size[0] = 1, SHAPE, "h_0 batch 1 2")                                                                      \
    X(desc.c_n.size[3] = 4, SHAPE, "c_n dim 4 3")                                                                        \
    X(desc.out.size[2] = 4, SHAPE, "out len 4 5")                                                                        \
    X(desc.x.size[2] = -1, OVERFLOW, "x len -1")                                                                         \
    X(desc.w_h.size[3] = huge, OVERFLOW, "w_h")                                                                          \
    X(desc.h_n.stride[0] = 2, ALIAS, "h_n")                                                                              \
    X(desc.struct_size = 2, ARGUMENT, "struct_size 2")

START_TEST(recurrence_refuses) {
    clattn_context *context = open_device(api_devices[_i]);
    const clattn_recurrence_desc good = good_recurrence();
    ck_assert_int_eq(clattn_supports_recurrence(context, &good, NULL), CLATTN_OK);
#define X(spoil, code, words)                                                                                            \
    {                                                                                                                    \
        clattn_recurrence_desc desc = good_recurrence();                                                                 \
        clattn_plan_options options = CLATTN_PLAN_OPTIONS_INIT;                                                          \
        spoil;                                                                                                           \
        CHECK_REFUSED(recurrence, context, &desc, &options, ((refusal){#spoil, words, CLATTN_ERROR_##code}));            \
    }
    RECURRENCE_ERRORS(X)
#undef X
    clattn_context_destroy(context);
}
END_TEST

START_TEST(plan_null_handling) {
    clattn_context *context = open_device("native");
    const clattn_attention_desc desc = good_attention();
    clattn_plan *plan = (clattn_plan *)context;
    char text[8];
    ck_assert_int_eq(see(clattn_plan_create_attention(NULL, &desc, NULL, &plan)), CLATTN_ERROR_ARGUMENT);
    ck_assert_ptr_null(plan);
    ck_assert_int_eq(see(clattn_plan_create_attention(context, &desc, NULL, NULL)), CLATTN_ERROR_ARGUMENT);
    assert_words(error_text(context), "plan NULL", "plan_create");
    ck_assert_int_eq(see(clattn_plan_create_attention(context, NULL, NULL, &plan)), CLATTN_ERROR_ARGUMENT);
    assert_words(error_text(context), "desc NULL", "plan_create");
    ck_assert_int_eq(see(clattn_supports_attention(NULL, &desc, NULL)), CLATTN_ERROR_ARGUMENT);
    ck_assert_int_eq(see(clattn_supports_attention(context, NULL, NULL)), CLATTN_ERROR_ARGUMENT);
    ck_assert_int_eq(see(clattn_attention(NULL, &desc, NULL, NULL, 0)), CLATTN_ERROR_ARGUMENT);
    ck_assert_int_eq(see(clattn_plan_run(NULL, NULL, 0)), CLATTN_ERROR_ARGUMENT);
    ck_assert_int_eq(see(clattn_plan_get_info(NULL, NULL)), CLATTN_ERROR_ARGUMENT);
    ck_assert_uint_eq(clattn_plan_explain(NULL, text, sizeof text), 0);
    ck_assert_str_eq(text, "");
    ck_assert_int_eq(clattn_plan_tensor(NULL, CLATTN_TENSOR_Q).dtype, CLATTN_ABSENT);
    clattn_context_destroy(context);
}
END_TEST

/* ---- versioned structs -------------------------------------------------------------------------------------------- */

/* A descriptor of a newer library: the same, and room at its end. */
typedef struct newer_desc {
    clattn_attention_desc desc;
    unsigned char tail[24];
} newer_desc;

START_TEST(struct_size_policy) {
    clattn_context *context = open_device("reference");
    newer_desc newer = {.desc = good_attention()};
    newer.desc.struct_size = sizeof newer;
    ck_assert_int_eq(see(clattn_supports_attention(context, &newer.desc, NULL)), CLATTN_OK);
    newer.tail[sizeof newer.tail - 1] = 1;
    ck_assert_int_eq(see(clattn_supports_attention(context, &newer.desc, NULL)), CLATTN_ERROR_UNSUPPORTED);
    assert_words(error_text(context), "desc struct_size 0.1.0", "a newer descriptor");

    /* An older caller's struct ends before `causal`: what follows in memory is not read. */
    clattn_attention_desc older = good_attention();
    older.struct_size = offsetof(clattn_attention_desc, options) + offsetof(clattn_attention_options, causal);
    memset((char *)&older + older.struct_size, 0x77, sizeof older - older.struct_size);
    clattn_plan *plan;
    assert_ok(context, clattn_plan_create_attention(context, &older, NULL, &plan));
    ck_assert_int_eq(plan->desc.attention.options.causal, 0);
    clattn_plan_destroy(plan);
    clattn_context_destroy(context);
}
END_TEST

START_TEST(struct_size_of_options) {
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    clattn_context *context;
    options.device = "reference";
    options.threads = -5;
    options.struct_size = offsetof(clattn_context_options, threads);
    ck_assert_int_eq(see(clattn_context_create(&options, &context)), CLATTN_OK);
    clattn_context_destroy(context);
    options.struct_size = 0;
    ck_assert_int_eq(see(clattn_context_create(&options, &context)), CLATTN_ERROR_ARGUMENT);
    ck_assert_ptr_null(context);
    struct {
        clattn_context_options options;
        long more;
    } newer = {.options = CLATTN_CONTEXT_OPTIONS_INIT, .more = 0};
    newer.options.struct_size = sizeof newer;
    newer.options.device = "reference";
    ck_assert_int_eq(see(clattn_context_create(&newer.options, &context)), CLATTN_OK);
    clattn_context_destroy(context);
    newer.more = 1;
    ck_assert_int_eq(see(clattn_context_create(&newer.options, &context)), CLATTN_ERROR_UNSUPPORTED);
}
END_TEST

/* NULL is all defaults; what an older caller does not know is the default; a plan holds the whole. */
START_TEST(struct_size_of_plan_options) {
    clattn_context *context = open_device("native");
    const clattn_attention_desc desc = good_attention();
    clattn_plan_options options = CLATTN_PLAN_OPTIONS_INIT;
    options.algorithm = CLATTN_ALGORITHM_STAGED;
    options.recurrence = (clattn_recurrence_form)77;
    options.struct_size = offsetof(clattn_plan_options, recurrence);
    const clattn_plan_options *given[] = {NULL, &options};
    for (size_t n = 0; n < COUNT(given); n++) {
        clattn_plan *plan;
        assert_ok(context, clattn_plan_create_attention(context, &desc, given[n], &plan));
        ck_assert_uint_eq(plan->options.struct_size, sizeof options);
        ck_assert_int_eq(plan->options.algorithm, given[n] ? CLATTN_ALGORITHM_STAGED : CLATTN_ALGORITHM_AUTO);
        ck_assert_int_eq(plan->options.recurrence, CLATTN_RECURRENCE_AUTO);
        clattn_plan_destroy(plan);
    }
    struct {
        clattn_plan_options options;
        long more;
    } newer = {.options = CLATTN_PLAN_OPTIONS_INIT, .more = 1};
    newer.options.struct_size = sizeof newer;
    ck_assert_int_eq(see(clattn_supports_attention(context, &desc, &newer.options)), CLATTN_ERROR_UNSUPPORTED);
    assert_words(error_text(context), "options struct_size 0.1.0", "newer options");
    clattn_context_destroy(context);
}
END_TEST

/* A layout that is frozen ends in no padding: an older caller's would lie where a newer field is. */
START_TEST(no_struct_ends_in_padding) {
#define ENDS_AT(type, field) ck_assert_uint_eq(sizeof(type), offsetof(type, field) + sizeof((type *)0)->field)
    ENDS_AT(clattn_context_options, cache_dir);
    ENDS_AT(clattn_device_info, problem);
    ENDS_AT(clattn_attention_options, kv_lengths);
    ENDS_AT(clattn_attention_desc, options);
    ENDS_AT(clattn_project_qkv_desc, v);
    ENDS_AT(clattn_mha_desc, options);
    ENDS_AT(clattn_recurrence_desc, forget_bias);
    ENDS_AT(clattn_plan_options, reserved);
    ENDS_AT(clattn_merge_desc, lse);
    ENDS_AT(clattn_plan_info, bytes);
#undef ENDS_AT
}
END_TEST

START_TEST(struct_size_of_info) {
    clattn_context *context = open_device("reference");
    const clattn_attention_desc desc = good_attention();
    clattn_plan *plan;
    assert_ok(context, clattn_plan_create_attention(context, &desc, NULL, &plan));
    struct {
        clattn_plan_info info;
        unsigned char tail[16];
    } newer;
    memset(&newer, 0xee, sizeof newer);
    newer.info.struct_size = sizeof newer;
    assert_ok(context, clattn_plan_get_info(plan, &newer.info));
    ck_assert_uint_eq(newer.info.struct_size, sizeof newer);
    for (size_t n = 0; n < sizeof newer.tail; n++) ck_assert_int_eq(newer.tail[n], 0);
    ck_assert_str_eq(newer.info.op, "attention");

    clattn_plan_info older;
    memset(&older, 0xee, sizeof older);
    older.struct_size = offsetof(clattn_plan_info, row);
    assert_ok(context, clattn_plan_get_info(plan, &older));
    ck_assert_str_eq(older.algorithm, "reference");
    ck_assert_int_eq(((unsigned char *)&older)[offsetof(clattn_plan_info, row)], 0xee);
    older.struct_size = 0;
    ck_assert_int_eq(see(clattn_plan_get_info(plan, &older)), CLATTN_ERROR_ARGUMENT);
    ck_assert_int_eq(see(clattn_plan_get_info(plan, NULL)), CLATTN_ERROR_ARGUMENT);
    clattn_plan_destroy(plan);
    clattn_context_destroy(context);
}
END_TEST

/* ---- what a plan says --------------------------------------------------------------------------------------------- */

START_TEST(plan_says_what_it_does) {
    clattn_context *context = open_device("native");
    clattn_attention_desc desc = good_attention();
    desc.options.causal = 1;
    clattn_plan *plan;
    clattn_plan_info info = {.struct_size = sizeof info};
    char text[2048], small[9];
    for (clattn_algorithm a = CLATTN_ALGORITHM_AUTO; a <= CLATTN_ALGORITHM_FUSED; a++) {
        assert_ok(context, clattn_plan_create_attention(context, &desc, OPTIONS(.algorithm = a), &plan));
        assert_ok(context, clattn_plan_get_info(plan, &info));
        const bool staged = a == CLATTN_ALGORITHM_STAGED;
        ck_assert_str_eq(info.op, "attention");
        ck_assert_str_eq(info.algorithm, staged ? "staged" : "fused");
        ck_assert_str_eq(info.device, "native");
        ck_assert_int_eq(info.launches, staged ? 4 : 1);
        ck_assert_int_eq(info.dependent_steps, staged ? 4 : 1);
        /* 2 batches of 4 heads; of 5 queries the n-th sees n keys */
        ck_assert(info.flops == 2.0 * (8 + 6) * 2 * 4 * (1 + 2 + 3 + 4 + 5));
        ck_assert(info.bytes == 4.0 * (2 * 4 * 5 * 8 + 2 * 2 * 7 * 8 + 2 * 2 * 7 * 6 + 2 * 4 * 5 * 6));
        if (staged) ck_assert_uint_ge(info.workspace_bytes, 2 * 4 * 5 * 7 * sizeof(float));
        const size_t length = clattn_plan_explain(plan, text, sizeof text);
        ck_assert_uint_eq(length, strlen(text));
        assert_words(text, staged ? "attention native staged workspace asked scores" : "attention native fused workspace", "plan");
        for (size_t n = 0; n < plan->step_count; n++) ck_assert_ptr_nonnull(strstr(text, plan->steps[n].row->name));
        ck_assert_uint_eq(clattn_plan_explain(plan, small, sizeof small), length);
        ck_assert_uint_eq(strlen(small), sizeof small - 1);
        ck_assert_uint_eq(clattn_plan_explain(plan, NULL, 0), length);
        ck_assert_mem_eq(clattn_plan_tensor(plan, CLATTN_TENSOR_K).size, desc.k.size, sizeof desc.k.size);
        ck_assert_int_eq(clattn_plan_tensor(plan, CLATTN_TENSOR_LSE).dtype, CLATTN_ABSENT);
        ck_assert_int_eq(clattn_plan_tensor(plan, (clattn_tensor_id)99).dtype, CLATTN_ABSENT);
        clattn_plan_destroy(plan);
    }
    clattn_context_destroy(context);
}
END_TEST

START_TEST(fused_keeps_no_matrix) {
    clattn_context *context = open_device("reference");
    clattn_attention_desc desc = good_attention();
    CHECK_REFUSED(attention, context, &desc, OPTIONS(.algorithm = CLATTN_ALGORITHM_STAGED, .require_fused = 1),
                  ((refusal){"fused staged", "staged matrix require_fused", CLATTN_ERROR_UNSUPPORTED}));
    desc.weights = view(2, 4, 5, 7);
    CHECK_REFUSED(attention, context, &desc, OPTIONS(.require_fused = 1),
                  ((refusal){"require weights", "require_fused weights staged", CLATTN_ERROR_UNSUPPORTED}));
    clattn_context_destroy(context);
    context = open_device("native");
    CHECK_REFUSED(attention, context, &desc, OPTIONS(.algorithm = CLATTN_ALGORITHM_FUSED),
                  ((refusal){"fused weights", "fused scores weights staged", CLATTN_ERROR_UNSUPPORTED}));
    clattn_plan *plan;
    clattn_plan_info info = {.struct_size = sizeof info};
    assert_ok(context, clattn_plan_create_attention(context, &desc, NULL, &plan));
    assert_ok(context, clattn_plan_get_info(plan, &info));
    ck_assert_str_eq(info.algorithm, "staged");
    clattn_plan_destroy(plan);
    /* long sequences need no memory that grows with their product */
    desc = good_attention();
    desc.q = desc.k = desc.v = desc.out = view(1, 1, 65536, 64);
    assert_ok(context, clattn_plan_create_attention(context, &desc, NULL, &plan));
    assert_ok(context, clattn_plan_get_info(plan, &info));
    ck_assert_str_eq(info.algorithm, "fused");
    ck_assert_uint_le(info.workspace_bytes, (size_t)16 << 20);
    clattn_plan_destroy(plan);
    clattn_context_destroy(context);
}
END_TEST

/* A chain as long as the sentence, or a few kernels. */
START_TEST(recurrence_says_how_long_its_chain_is) {
    clattn_context *context = open_device("native");
    clattn_recurrence_desc desc = good_recurrence();
    desc.x = view(2, 1, 100, 8);
    desc.out = view(2, 1, 100, 3);
    for (clattn_recurrence_form form = CLATTN_RECURRENCE_PERSISTENT; form <= CLATTN_RECURRENCE_STEPS; form++) {
        const bool persistent = form == CLATTN_RECURRENCE_PERSISTENT;
        clattn_plan *plan;
        clattn_plan_info info = {.struct_size = sizeof info};
        assert_ok(context, clattn_plan_create_recurrence(context, &desc, OPTIONS(.recurrence = form), &plan));
        assert_ok(context, clattn_plan_get_info(plan, &info));
        ck_assert_str_eq(info.op, "lstm");
        ck_assert_str_eq(info.algorithm, persistent ? "persistent" : "loop");
        ck_assert_int_ge(info.dependent_steps, 100);
        ck_assert(persistent ? info.launches < 10 : info.launches >= 100);
        clattn_plan_destroy(plan);
    }
    clattn_context_destroy(context);
}
END_TEST

/* ---- sizes at the edge of an index -------------------------------------------------------------------------------- */

START_TEST(sizes_near_the_limits) {
    clattn_context *context = open_device(api_devices[_i]);
    clattn_attention_desc desc = good_attention();
    /* more than 2^31 and 2^32 elements, through strides of 0 that need no memory: planned, not run */
    static const int64_t lens[] = {INT32_MAX, (int64_t)INT32_MAX + 1, UINT32_MAX, (int64_t)UINT32_MAX + 2, (int64_t)1 << 40};
    for (size_t n = 0; n < COUNT(lens); n++) {
        desc = good_attention();
        desc.k = view(2, 2, lens[n], 8);
        desc.v = view(2, 2, lens[n], 6);
        ck_assert_int_eq(see(clattn_supports_attention(context, &desc, NULL)), CLATTN_OK);
        desc.k.stride[2] = desc.v.stride[2] = 0;
        ck_assert_int_eq(see(clattn_supports_attention(context, &desc, NULL)), CLATTN_OK);
        desc = good_attention();
        desc.q = view(2, 4, lens[n], 8);
        desc.out = view(2, 4, lens[n], 6);
        ck_assert_int_eq(see(clattn_supports_attention(context, &desc, NULL)), CLATTN_OK);
    }
    /* the scores of these would be more than an index can hold */
    desc = good_attention();
    desc.q = view(1, 1, (int64_t)1 << 31, 1);
    desc.k = desc.v = view(1, 1, (int64_t)1 << 31, 1);
    desc.out = desc.q;
    desc.scores = view(1, 1, (int64_t)1 << 31, (int64_t)1 << 31);
    CHECK_REFUSED(attention, context, &desc, NULL, ((refusal){"2^62 scores", "scores 2147483648", CLATTN_ERROR_OVERFLOW}));
    clattn_context_destroy(context);
}
END_TEST

START_TEST(workspace_beyond_an_index) {
    clattn_context *context = open_device("native");
    clattn_attention_desc desc = good_attention();
    desc.q = desc.k = desc.v = desc.out = view(1, 1, (int64_t)1 << 31, 1);
    CHECK_REFUSED(attention, context, &desc, OPTIONS(.algorithm = CLATTN_ALGORITHM_STAGED),
                  ((refusal){"2^62 workspace", "workspace", CLATTN_ERROR_OVERFLOW}));
    clattn_context_destroy(context);
}
END_TEST

/* ---- arguments of a run ------------------------------------------------------------------------------------------- */

typedef struct run_case {
    clattn_context *context;
    clattn_plan *plan;
    bindings b;
    void *workspace;
    size_t workspace_bytes;
} run_case;

enum { AT_Q, AT_K, AT_V, AT_OUT, AT_LSE };

static run_case run_case_make(const char *device) {
    run_case r = {.context = open_device(device)};
    clattn_attention_desc desc = good_attention();
    desc.lse = view(2, 4, 5, 1);
    rng random = rng_make(77);
    float *data = rng_floats(&random, 1000, 1);
    bind_input(&r.b, CLATTN_TENSOR_Q, desc.q, data);
    bind_input(&r.b, CLATTN_TENSOR_K, desc.k, data);
    bind_input(&r.b, CLATTN_TENSOR_V, desc.v, data);
    bind_output(&r.b, CLATTN_TENSOR_OUT, desc.out);
    bind_output(&r.b, CLATTN_TENSOR_LSE, desc.lse);
    free(data);
    const clattn_plan_options *staged = OPTIONS(.algorithm = CLATTN_ALGORITHM_STAGED);
    assert_ok(r.context, clattn_plan_create_attention(r.context, &desc, staged, &r.plan));
    clattn_plan_info info = {.struct_size = sizeof info};
    assert_ok(r.context, clattn_plan_get_info(r.plan, &info));
    r.workspace_bytes = info.workspace_bytes;
    r.workspace = aligned_alloc(64, (info.workspace_bytes + 64) / 64 * 64 + 64);
    ck_assert_ptr_nonnull(r.workspace);
    return r;
}

static void run_case_free(run_case *r) {
    clattn_plan_destroy(r->plan);
    clattn_context_destroy(r->context);
    bindings_free(&r->b);
    free(r->workspace);
}

static void assert_run_refused(run_case *r, const clattn_arg *args, size_t count, clattn_status status, const char *words) {
    clattn_status got = see(clattn_plan_run(r->plan, args, count));
    ck_assert_msg(got == status, "%s: %s instead of %s: %s", words, clattn_status_name(got), clattn_status_name(status),
                  error_text(r->context));
    assert_words(error_text(r->context), words, words);
    for (size_t n = 0; n < r->b.count; n++) {
        ck_assert_msg(guarded_untouched(&r->b.memory[n]), "%s: %s was written", words, clattn_tensor_name(r->b.args[n].id));
    }
}

/* A tensor that is changed in place has its elements apart, and shares none with another. */
START_TEST(updated_tensors_are_outputs_too) {
    clattn_context *context = open_device("native");
    clattn_plan plan = {.context = context};
    const clattn_tensor packed = view(1, 2, 8, 4);
    clattn_tensor folded = packed;
    folded.stride[2] = 0;
    float memory[2 * 8 * 4];
    ck_assert_int_eq(see(clattn__plan_declare(&plan, CLATTN_TENSOR_K, &folded, CLATTN__UPDATE)), CLATTN_ERROR_ALIAS);
    assert_ok(context, clattn__plan_declare(&plan, CLATTN_TENSOR_K, &packed, CLATTN__UPDATE));
    ck_assert(plan.bytes == 2.0 * sizeof memory);
    assert_ok(context, clattn__plan_declare(&plan, CLATTN_TENSOR_V, &folded, CLATTN__READ));
    clattn__binding bindings[] = {{CLATTN_TENSOR_K, NULL, memory}, {CLATTN_TENSOR_V, NULL, memory}};
    ck_assert_int_eq(see(clattn__plan_check_alias(&plan, bindings, COUNT(bindings))), CLATTN_ERROR_ALIAS);
    assert_words(error_text(context), "k v", "k is updated");
    clattn_context_destroy(context);
}
END_TEST

START_TEST(run_refuses_arguments) {
    run_case r = run_case_make(api_devices[_i]);
    clattn_arg args[CLATTN_TENSOR_COUNT + 1];
    const size_t all = r.b.count;
#define FRESH memcpy(args, r.b.args, all * sizeof *args)
    FRESH;
    assert_run_refused(&r, NULL, 3, CLATTN_ERROR_ARGUMENT, "args NULL 3");
    assert_run_refused(&r, NULL, 0, CLATTN_ERROR_ARGUMENT, "q missing");
    assert_run_refused(&r, args, all - 1, CLATTN_ERROR_ARGUMENT, "lse missing");
    args[AT_K].id = CLATTN_TENSOR_Q;
    assert_run_refused(&r, args, all, CLATTN_ERROR_ARGUMENT, "q twice");
    args[AT_K].id = CLATTN_TENSOR_W_O;
    assert_run_refused(&r, args, all, CLATTN_ERROR_ARGUMENT, "w_o attention");
    args[AT_K].id = (clattn_tensor_id)1234;
    assert_run_refused(&r, args, all, CLATTN_ERROR_ARGUMENT, "1234");
    args[AT_K].id = (clattn_tensor_id)-1;
    assert_run_refused(&r, args, all, CLATTN_ERROR_ARGUMENT, "-1");
    FRESH;
    args[AT_V].data = NULL;
    assert_run_refused(&r, args, all, CLATTN_ERROR_ARGUMENT, "v NULL 672");
    FRESH;
    args[AT_OUT].data = (char *)args[AT_OUT].data + 2;
    assert_run_refused(&r, args, all, CLATTN_ERROR_ARGUMENT, "out multiple 4");
    FRESH;
    args[AT_Q].bytes = 100;
    assert_run_refused(&r, args, all, CLATTN_ERROR_ARGUMENT, "q 100 1280");
    clattn_plan_destroy(r.plan);
    r.plan = NULL;
    run_case_free(&r);
}
END_TEST

START_TEST(run_refuses_workspaces) {
    run_case r = run_case_make("native");
    clattn_arg args[CLATTN_TENSOR_COUNT + 1];
    const size_t all = r.b.count;
    FRESH;
    ck_assert_uint_gt(r.workspace_bytes, 0);
    args[all] = (clattn_arg){CLATTN_TENSOR_WORKSPACE, r.workspace, r.workspace_bytes - 1};
    assert_run_refused(&r, args, all + 1, CLATTN_ERROR_WORKSPACE, "workspace");
    args[all].bytes = 0;
    assert_run_refused(&r, args, all + 1, CLATTN_ERROR_WORKSPACE, "workspace 0");
    args[all] = (clattn_arg){CLATTN_TENSOR_WORKSPACE, (char *)r.workspace + 4, r.workspace_bytes};
    assert_run_refused(&r, args, all + 1, CLATTN_ERROR_ARGUMENT, "workspace 64");
    args[all] = (clattn_arg){CLATTN_TENSOR_WORKSPACE, NULL, r.workspace_bytes};
    assert_run_refused(&r, args, all + 1, CLATTN_ERROR_ARGUMENT, "workspace NULL");

    /* The caller's and the plan's own give the same. */
    args[all] = (clattn_arg){CLATTN_TENSOR_WORKSPACE, r.workspace, r.workspace_bytes};
    assert_ok(r.context, clattn_plan_run(r.plan, args, all + 1));
    float *first = bound_result(&r.b, CLATTN_TENSOR_OUT);
    ck_assert_ptr_null(r.plan->workspace);
    assert_ok(r.context, clattn_plan_run(r.plan, args, all));
    float *second = bound_result(&r.b, CLATTN_TENSOR_OUT);
    assert_same(first, second, 2 * 4 * 5 * 6, "workspace", "out");
    assert_intact(&r.b, "workspace");
    free(second);
    free(first);
    run_case_free(&r);
}
END_TEST

START_TEST(run_refuses_overlaps) {
    run_case r = run_case_make(api_devices[_i]);
    clattn_arg args[CLATTN_TENSOR_COUNT + 1];
    const size_t all = r.b.count;
    FRESH;
    args[AT_OUT].data = args[AT_Q].data;
    args[AT_OUT].bytes = 0;
    assert_run_refused(&r, args, all, CLATTN_ERROR_ALIAS, "out q");
    args[AT_OUT].data = (float *)args[AT_V].data + 2 * 2 * 7 * 6 - 1; /* the last element of v */
    assert_run_refused(&r, args, all, CLATTN_ERROR_ALIAS, "out v");
    FRESH;
    args[AT_LSE].data = (float *)args[AT_OUT].data + 7;
    assert_run_refused(&r, args, all, CLATTN_ERROR_ALIAS, "lse out");
    if (r.workspace_bytes) {
        FRESH;
        args[all] = (clattn_arg){CLATTN_TENSOR_WORKSPACE, r.workspace, r.workspace_bytes};
        args[AT_OUT].data = r.workspace;
        assert_run_refused(&r, args, all + 1, CLATTN_ERROR_ALIAS, "out workspace");
        FRESH;
        args[AT_K].data = (float *)r.workspace + 3;
        assert_run_refused(&r, args, all + 1, CLATTN_ERROR_ALIAS, "workspace k");
    }
    /* Inputs may be the same. */
    FRESH;
    args[AT_V].data = args[AT_K].data;
    assert_ok(r.context, clattn_plan_run(r.plan, args, all));
    run_case_free(&r);
}
END_TEST
#undef FRESH

/* Outputs that interleave element by element share nothing; an output in the gaps of an input neither. */
START_TEST(interleaved_is_not_overlapping) {
    clattn_context *context = open_device(api_devices[_i]);
    clattn_attention_desc desc = CLATTN_ATTENTION_DESC_INIT;
    desc.q = desc.k = desc.v = desc.out = view(1, 2, 6, 4);
    for (int d = 0; d < 4; d++) desc.q.stride[d] = desc.out.stride[d] = 2 * desc.q.stride[d];
    float memory[2 * 48], k[48], q[48];
    rng r = rng_make(88);
    for (int n = 0; n < 48; n++) q[n] = memory[2 * n] = rng_normal(&r), k[n] = rng_normal(&r), memory[2 * n + 1] = NAN;
    const clattn_arg args[] = {{CLATTN_TENSOR_Q, memory, 0},
                               {CLATTN_TENSOR_K, k, 0},
                               {CLATTN_TENSOR_V, k, 0},
                               {CLATTN_TENSOR_OUT, memory + 1, 0}};
    assert_ok(context, clattn_attention(context, &desc, NULL, args, COUNT(args)));
    float alone[48];
    assert_ok(context, clattn_attention_f32(context, 1, 2, 2, 6, 6, 4, 0, q, k, k, alone));
    for (int n = 0; n < 48; n++) {
        ck_assert(memory[2 * n] == q[n]);
        ck_assert(memory[2 * n + 1] == alone[n]);
    }
    clattn_context_destroy(context);
}
END_TEST

START_TEST(empty_tensors_need_no_memory) {
    clattn_context *context = open_device(api_devices[_i]);
    assert_ok(context, clattn_attention_f32(context, 0, 2, 2, 5, 7, 8, 0, NULL, NULL, NULL, NULL));
    float q[8] = {1}, out[8];
    memset(out, 0xff, sizeof out);
    assert_ok(context, clattn_attention_f32(context, 1, 1, 1, 1, 0, 8, 0, q, NULL, NULL, out));
    for (size_t n = 0; n < COUNT(out); n++) ck_assert(out[n] == 0);
    clattn_context_destroy(context);
}
END_TEST

START_TEST(one_line_call) {
    float q[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8] = {0}, again[8] = {0};
    ck_assert_int_eq(see(clattn_attention_f32(NULL, 1, 2, 2, 2, 2, 2, 1, q, q, q, out)), CLATTN_OK);
    ck_assert(out[0] == 1 && out[1] == 2 && out[4] == 5 && out[5] == 6);
    ck_assert_int_eq(see(clattn_attention_f32(NULL, 1, 2, 2, 2, 2, 2, -8, q, q, q, again)), CLATTN_OK);
    ck_assert_mem_eq(out, again, sizeof out); /* any causal but 0 is 1 */
    clattn_context *context = open_device("reference");
    assert_ok(context, clattn_attention_f32(context, 1, 2, 2, 2, 2, 2, 1, q, q, q, again));
    for (int n = 0; n < 8; n++) ck_assert(fabsf(out[n] - again[n]) < 1e-5f);
    memset(out, 0x11, sizeof out);
    memcpy(again, out, sizeof out);
    ck_assert_int_eq(see(clattn_attention_f32(NULL, 1, 2, 2, 2, 2, 2, 1, NULL, q, q, out)), CLATTN_ERROR_ARGUMENT);
    ck_assert_int_eq(see(clattn_attention_f32(NULL, 1, 3, 2, 2, 2, 2, 1, q, q, q, out)), CLATTN_ERROR_HEADS);
    ck_assert_int_eq(see(clattn_attention_f32(NULL, 1, 2, 2, -2, 2, 2, 1, q, q, q, out)), CLATTN_ERROR_OVERFLOW);
    ck_assert_int_eq(see(clattn_attention_f32(context, 1, 2, 2, 2, 2, 2, 1, q, q, q, q)), CLATTN_ERROR_ALIAS);
    ck_assert_mem_eq(out, again, sizeof out);
    clattn_context_destroy(context);
}
END_TEST

/* ---- memory that is not there ------------------------------------------------------------------------------------- */

/* A workspace of 2^50 bytes: more than the address space. */
START_TEST(out_of_memory) {
    const int64_t len = (int64_t)1 << 24;
    clattn_context *context = open_device("native");
    clattn_attention_desc desc = CLATTN_ATTENTION_DESC_INIT;
    desc.q = desc.k = desc.v = desc.out = view(1, 1, len, 1);
    desc.q.stride[2] = desc.k.stride[2] = desc.v.stride[2] = 0;
    float q = 1, k = 1, v = 1;
    guarded out = guarded_output(desc.out);
    const clattn_arg args[] = {
        {CLATTN_TENSOR_Q, &q, 0}, {CLATTN_TENSOR_K, &k, 0}, {CLATTN_TENSOR_V, &v, 0}, {CLATTN_TENSOR_OUT, out.data, 0}};
    const clattn_plan_options *staged = OPTIONS(.algorithm = CLATTN_ALGORITHM_STAGED);
    ck_assert_int_eq(see(clattn_attention(context, &desc, staged, args, COUNT(args))), CLATTN_ERROR_MEMORY);
    assert_words(error_text(context), "workspace 1125899906842624", "out of memory");
    ck_assert(guarded_untouched(&out));
    guarded_free(&out);
    clattn_context_destroy(context);
}
END_TEST

/* ---- backends that fail ------------------------------------------------------------------------------------------- */

static clattn_status fake_status;
static const clattn__row *fake_refused; /* prepare fails for it; for every row when it is not in the table */
static int fake_prepared;

static clattn_status fake_prepare(clattn_plan *plan, clattn__step *step) {
    if (fake_refused && (fake_refused == step->row || fake_refused == &clattn__rows[clattn__row_count])) {
        return clattn__fail(plan->context, CLATTN_ERROR_BUILD, "the compiler dislikes %s", step->row->name);
    }
    fake_prepared++;
    return CLATTN_OK;
}

static void fake_release(clattn_context *context, clattn__step *step) {
    (void)context;
    (void)step;
    fake_prepared--;
}

static clattn_status fake_run(clattn_plan *plan, void *const tensors[CLATTN_TENSOR_COUNT]) {
    (void)tensors;
    return clattn__fail(plan->context, fake_status, "it failed so");
}

static const clattn__backend fake_backend = {.name = "fake", .prepare = fake_prepare, .release = fake_release, .run = fake_run};

/* A GPU that is not there, large enough for every row. */
static clattn_context *fake_gpu(void) {
    clattn_context *context = open_device("reference");
    context->backend = &fake_backend;
    context->device = (clattn__device){.info = {.id = "fake", .kind = CLATTN_DEVICE_OPENCL_GPU},
                                       .has_gpu_family = true,
                                       .max_work_group = 1024,
                                       .local_bytes = 65536,
                                       .max_params_bytes = 4096};
    return context;
}

START_TEST(status_of_a_backend_arrives) {
    clattn_context *context = fake_gpu();
    const clattn_attention_desc desc = good_attention();
    float q[320] = {0}, k[224] = {0}, v[168] = {0}, out[240];
    const clattn_arg args[] = {
        {CLATTN_TENSOR_Q, q, 0}, {CLATTN_TENSOR_K, k, 0}, {CLATTN_TENSOR_V, v, 0}, {CLATTN_TENSOR_OUT, out, 0}};
    const clattn_status statuses[] = {CLATTN_ERROR_OPENCL, CLATTN_ERROR_INTERNAL, CLATTN_ERROR_MEMORY};
    fake_refused = NULL;
    for (size_t n = 0; n < COUNT(statuses); n++) {
        fake_status = statuses[n];
        ck_assert_int_eq(see(clattn_attention(context, &desc, NULL, args, COUNT(args))), statuses[n]);
        ck_assert_str_eq(error_text(context), "it failed so");
        ck_assert_int_eq(fake_prepared, 0);
    }
    clattn_context_destroy(context);
}
END_TEST

/* A row that does not build is left out, and the plan says so; when none is left the build's failure is the error. */
START_TEST(rows_that_do_not_build) {
    clattn_context *context = fake_gpu();
    clattn_attention_desc desc = good_attention();
    const clattn_plan_options *staged = OPTIONS(.algorithm = CLATTN_ALGORITHM_STAGED);
    clattn_plan *plan;
    fake_refused = NULL;
    assert_ok(context, clattn_plan_create_attention(context, &desc, staged, &plan));
    fake_refused = plan->steps[1].row;
    clattn_plan_destroy(plan);
    ck_assert_int_eq(fake_prepared, 0);

    assert_ok(context, clattn_plan_create_attention(context, &desc, staged, &plan));
    ck_assert(plan->steps[1].row != fake_refused && plan->steps[1].row->role == fake_refused->role);
    char text[2048];
    clattn_plan_explain(plan, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, fake_refused->name));
    ck_assert_ptr_nonnull(strstr(text, "the compiler dislikes"));
    clattn_plan_destroy(plan);

    fake_refused = &clattn__rows[clattn__row_count];
    ck_assert_int_eq(see(clattn_plan_create_attention(context, &desc, staged, &plan)), CLATTN_ERROR_BUILD);
    assert_words(error_text(context), "scores dislikes", "no row builds");
    ck_assert_int_eq(fake_prepared, 0);
    clattn_context_destroy(context);
}
END_TEST

/* The last test: by now a public function has returned every status. */
START_TEST(every_status_was_reached) {
    for (size_t n = 0; n < COUNT(seen); n++) ck_assert_msg(seen[n], "never returned: %s", clattn_status_name((clattn_status)n));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("api");
    TCase *tests = tcase_create("api");
    tcase_add_test(tests, statuses_have_texts);
    tcase_add_test(tests, version);
    tcase_add_test(tests, tensors_have_names);
    tcase_add_test(tests, tensors);
    tcase_add_test(tests, contexts_that_cannot_be);
    tcase_add_test(tests, context_error_buffer);
    tcase_add_test(tests, context_null_handling);
    tcase_add_test(tests, context_says_what_it_is);
    tcase_add_test(tests, threads_are_taken);
    tcase_add_test(tests, devices_are_listed);
    tcase_add_test(tests, devices_are_listed_to_older_callers);
    tcase_add_test(tests, errors_are_logged);
    tcase_add_loop_test(tests, attention_refuses, 0, COUNT(api_devices));
    tcase_add_loop_test(tests, project_refuses, 0, COUNT(api_devices));
    tcase_add_loop_test(tests, mha_refuses, 0, COUNT(api_devices));
    tcase_add_loop_test(tests, recurrence_refuses, 0, COUNT(api_devices));
    tcase_add_test(tests, plan_null_handling);
    tcase_add_test(tests, struct_size_policy);
    tcase_add_test(tests, struct_size_of_options);
    tcase_add_test(tests, updated_tensors_are_outputs_too);
    tcase_add_test(tests, struct_size_of_plan_options);
    tcase_add_test(tests, no_struct_ends_in_padding);
    tcase_add_test(tests, struct_size_of_info);
    tcase_add_test(tests, plan_says_what_it_does);
    tcase_add_test(tests, fused_keeps_no_matrix);
    tcase_add_test(tests, recurrence_says_how_long_its_chain_is);
    tcase_add_loop_test(tests, sizes_near_the_limits, 0, COUNT(api_devices));
    tcase_add_test(tests, workspace_beyond_an_index);
    tcase_add_loop_test(tests, run_refuses_arguments, 0, COUNT(api_devices));
    tcase_add_test(tests, run_refuses_workspaces);
    tcase_add_loop_test(tests, run_refuses_overlaps, 0, COUNT(api_devices));
    tcase_add_loop_test(tests, interleaved_is_not_overlapping, 0, COUNT(api_devices));
    tcase_add_loop_test(tests, empty_tensors_need_no_memory, 0, COUNT(api_devices));
    tcase_add_test(tests, one_line_call);
    tcase_add_test(tests, out_of_memory);
    tcase_add_test(tests, status_of_a_backend_arrives);
    tcase_add_test(tests, rows_that_do_not_build);
    tcase_add_test(tests, every_status_was_reached);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
