/* Fuzz descriptors: any bytes are one; it is refused or planned, and what is planned and small runs on memory of exactly its
 * size.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "clattn/clattn.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- bytes -------------------------------------------------------------------------------------------------------- */

typedef struct source {
    const uint8_t *next;
    size_t left;
} source;

static uint8_t take(source *s) {
    if (!s->left) return 0;
    s->left--;
    return *s->next++;
}

/* Mostly a small number; sometimes one where arithmetic ends. */
static int64_t take_number(source *s) {
    static const int64_t ends[] = {-1,        INT64_MAX,           INT64_MIN,         (int64_t)1 << 31,   (int64_t)1 << 32,
                                   INT32_MAX, (int64_t)1 << 61,    (int64_t)1 << 62,  65536,              -((int64_t)1 << 61),
                                   1 << 20,   ((int64_t)1 << 31) - 1, (int64_t)1 << 40, ((int64_t)1 << 61) + 1, 1000003,  7};
    const uint8_t byte = take(s);
    return byte < 200 ? byte % 20 : ends[byte % (sizeof ends / sizeof *ends)];
}

/* These numbers may not fit: then others will do. */
static int64_t plus(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static int64_t times(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }

static double take_real(source *s) {
    double x = 0;
    const uint8_t kind = take(s);
    if (kind < 128) return kind % 4;
    for (size_t n = 0; n < sizeof x; n++) ((uint8_t *)&x)[n] = take(s);
    return x;
}

/* ---- tensors ------------------------------------------------------------------------------------------------------ */

/* The shape that fits, spoilt a little at times. */
static clattn_tensor take_tensor(source *s, clattn_dtype dtype, const int64_t size[4], int per_256) {
    clattn_tensor t = clattn_tensor_bhld(dtype, size[0], size[1], size[2], size[3]);
    const uint8_t how = take(s);
    if (how >= per_256) return (clattn_tensor){0};
    if (how % 8 == 1) t = clattn_tensor_blhd(dtype, size[0], size[1], size[2], size[3]);
    if (how % 8 == 2) t.stride[take(s) % 4] = take_number(s);
    if (how % 16 == 3) t.size[take(s) % 4] = take_number(s);
    if (how % 16 == 4) t.dtype = (clattn_dtype)(take(s) % 9);
    if (how % 64 == 5) t.reserved = take(s);
    if (how % 16 == 6) t.size[take(s) % 4] = 1;
    return t;
}

typedef struct shape {
    clattn_dtype dtype, integers;
    int64_t batch, heads_q, heads_kv, len_q, len_kv, head_dim, value_dim, past;
} shape;

static shape take_shape(source *s) {
    shape p = {.dtype = (clattn_dtype)(CLATTN_F32 + take(s) % 4), .integers = take(s) % 2 ? CLATTN_I64 : CLATTN_I32};
    p.batch = take_number(s);
    p.heads_kv = take_number(s) % 5;
    p.heads_q = p.heads_kv * (1 + take(s) % 3);
    p.len_q = take_number(s);
    p.len_kv = take_number(s);
    p.head_dim = take_number(s);
    p.value_dim = take_number(s);
    p.past = take_number(s) % 9;
    return p;
}

static void take_options(source *s, const shape *p, int64_t keys, clattn_attention_options *o) {
    const int64_t matrix[] = {p->batch, p->heads_q, p->len_q, keys}, heads[] = {p->batch, p->heads_q, 1, 1},
                  members[] = {p->batch, 1, 1, 1};
    o->causal = take(s) % 3 == 1;
    o->align = (clattn_align)(take(s) % 6);
    if (take(s) % 4 == 1) o->has_scale = 1, o->scale = take_real(s);
    if (take(s) % 4 == 1) o->has_window = 1, o->window_left = plus(take_number(s), -1), o->window_right = plus(take_number(s), -1);
    if (o->align == CLATTN_ALIGN_PAST) o->past_len = take_number(s);
    if (o->align == CLATTN_ALIGN_OFFSET) o->offset = plus(take_number(s), -4);
    if (take(s) % 4 == 1) o->softcap = take_real(s);
    o->alibi = take(s) % 4 == 1;
    if (take(s) % 4 == 1) o->scores_form = (clattn_scores_form)(take(s) % 4);
    o->mask = take_tensor(s, CLATTN_BOOL, matrix, 64);
    o->bias = take_tensor(s, take(s) % 2 ? p->dtype : CLATTN_F32, matrix, 64);
    o->alibi_slopes = take_tensor(s, CLATTN_F32, heads, 40);
    o->sinks = take_tensor(s, CLATTN_F32, heads, 64);
    o->kv_lengths = take_tensor(s, p->integers, members, 64);
}

static clattn_attention_desc take_attention(source *s) {
    clattn_attention_desc d = CLATTN_ATTENTION_DESC_INIT;
    const shape p = take_shape(s);
    const uint8_t kind = take(s);
    const bool past = kind % 8 == 1, in_place = kind % 8 == 2, ragged = kind % 8 == 3;
    const int64_t keys = plus(p.len_kv, past || in_place ? p.past : 0), batch = ragged ? 1 : p.batch;
    const int64_t rows[] = {batch, p.heads_q, p.len_q, 1}, matrix[] = {batch, p.heads_q, p.len_q, keys};
    d.q = take_tensor(s, p.dtype, (int64_t[]){batch, p.heads_q, p.len_q, p.head_dim}, 256);
    d.k = take_tensor(s, p.dtype, (int64_t[]){batch, p.heads_kv, p.len_kv, p.head_dim}, 256);
    d.v = take_tensor(s, p.dtype, (int64_t[]){batch, p.heads_kv, p.len_kv, p.value_dim}, 256);
    d.out = take_tensor(s, p.dtype, (int64_t[]){batch, p.heads_q, p.len_q, p.value_dim}, 256);
    d.lse = take_tensor(s, CLATTN_F32, rows, 128);
    d.scores = take_tensor(s, take(s) % 2 ? p.dtype : CLATTN_F32, matrix, 40);
    d.weights = take_tensor(s, take(s) % 2 ? p.dtype : CLATTN_F32, matrix, 40);
    if (past) {
        d.past_k = take_tensor(s, p.dtype, (int64_t[]){batch, p.heads_kv, p.past, p.head_dim}, 256);
        d.past_v = take_tensor(s, p.dtype, (int64_t[]){batch, p.heads_kv, p.past, p.value_dim}, 256);
    }
    if (in_place) d.past_lengths = take_tensor(s, p.integers, (int64_t[]){batch, 1, 1, 1}, 256);
    if (past || in_place) {
        d.present_k = take_tensor(s, p.dtype, (int64_t[]){batch, p.heads_kv, keys, p.head_dim}, 200);
        d.present_v = take_tensor(s, p.dtype, (int64_t[]){batch, p.heads_kv, keys, p.value_dim}, 200);
    }
    if (ragged) {
        d.q_offsets = take_tensor(s, p.integers, (int64_t[]){1, 1, 1, plus(p.batch, 1)}, 256);
        d.kv_offsets = take_tensor(s, p.integers, (int64_t[]){1, 1, 1, plus(p.batch, 1)}, 256);
    }
    if (take(s) % 4 == 1) {
        const int64_t pairs = p.head_dim / 2, positions = plus(p.past, p.len_q > p.len_kv ? p.len_q : p.len_kv);
        d.rotary = (clattn_rotary)(take(s) % 4);
        d.rotary_cos = take_tensor(s, CLATTN_F32, (int64_t[]){1, 1, positions, pairs}, 256);
        d.rotary_sin = take_tensor(s, CLATTN_F32, (int64_t[]){1, 1, positions, pairs}, 256);
    }
    take_options(s, &p, keys, &d.options);
    return d;
}

static clattn_merge_desc take_merge(source *s) {
    clattn_merge_desc d = CLATTN_MERGE_DESC_INIT;
    const shape p = take_shape(s);
    const int64_t members = times(p.past, p.batch);
    d.out_parts = take_tensor(s, p.dtype, (int64_t[]){members, p.heads_q, p.len_q, p.value_dim}, 256);
    d.lse_parts = take_tensor(s, CLATTN_F32, (int64_t[]){members, p.heads_q, p.len_q, 1}, 256);
    d.sinks = take_tensor(s, CLATTN_F32, (int64_t[]){p.batch, p.heads_q, 1, 1}, 64);
    d.out = take_tensor(s, take(s) % 2 ? p.dtype : CLATTN_F32, (int64_t[]){p.batch, p.heads_q, p.len_q, p.value_dim}, 256);
    d.lse = take_tensor(s, CLATTN_F32, (int64_t[]){p.batch, p.heads_q, p.len_q, 1}, 128);
    return d;
}

enum { ROOM = 4096 };

/* A struct of nothing but the input's bytes, its size right, or any of which there is memory. */
static void take_bytes(source *s, void *to, size_t size) {
    if (take(s) % 4 == 0) size = (size_t)(take(s) << 8 | take(s)) % (ROOM + 1);
    memcpy(to, &size, sizeof size);
    for (size_t n = sizeof size; n < size; n++) ((uint8_t *)to)[n] = take(s);
}

/* ---- runs --------------------------------------------------------------------------------------------------------- */

enum { LARGEST_RUN = 1 << 18 };

static size_t element_size(clattn_dtype dtype) {
    static const size_t sizes[] = {0, 4, 2, 2, 8, 1, 4, 8};
    return sizes[dtype];
}

/* Bytes from the first element to the last; a view that a plan holds is sound. */
static size_t span_of(const clattn_tensor *t) {
    int64_t last = 0;
    for (int d = 0; d < 4; d++) {
        if (t->size[d] == 0) return 0;
        if (t->size[d] > 1) last += (t->size[d] - 1) * t->stride[d];
    }
    return ((size_t)last + 1) * element_size(t->dtype);
}

/* Also of what is empty in one dimension: the reference walks the others. */
static double steps_of(const clattn_tensor *t) {
    double steps = 1;
    for (int d = 0; d < 4; d++) steps *= t->size[d] ? (double)t->size[d] : 1;
    return steps;
}

static double work_of(clattn_plan *plan) {
    clattn_plan_info info = CLATTN_PLAN_INFO_INIT;
    return clattn_plan_get_info(plan, &info) == CLATTN_OK ? info.flops + info.bytes + (double)info.workspace_bytes : 1e300;
}

static void run(clattn_plan *plan, source *s) {
    clattn_arg args[CLATTN_TENSOR_COUNT];
    size_t count = 0, total = 0;
    if (work_of(plan) > 1e6) return;
    for (int id = 0; id < CLATTN_TENSOR_COUNT; id++) {
        const clattn_tensor t = clattn_plan_tensor(plan, (clattn_tensor_id)id);
        if (t.dtype == CLATTN_ABSENT) continue;
        const size_t bytes = span_of(&t);
        if (steps_of(&t) > LARGEST_RUN) return;
        total += bytes;
        args[count++] = (clattn_arg){(clattn_tensor_id)id, NULL, bytes};
        if (bytes > LARGEST_RUN || total > LARGEST_RUN) return;
    }
    for (size_t n = 0; n < count; n++) {
        uint8_t *memory = malloc(args[n].bytes ? args[n].bytes : 1);
        if (!memory) abort();
        for (size_t b = 0; b < args[n].bytes; b++) memory[b] = b % 4 ? 0 : take(s) % 16;
        args[n].data = memory;
    }
    clattn_plan_run(plan, args, count);
    for (size_t n = 0; n < count; n++) free(args[n].data);
}

static clattn_context *open_device(const char *device) {
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    clattn_context *context;
    options.device = device;
    options.threads = 1;
    if (clattn_context_create(&options, &context) != CLATTN_OK) abort();
    return context;
}

/* The same answer from both questions. */
#define TRY(op, context, desc, options, s)                                                                               \
    do {                                                                                                                 \
        clattn_plan *plan_ = NULL;                                                                                       \
        const clattn_status supported_ = clattn_supports_##op(context, desc, options);                                   \
        if (clattn_plan_create_##op(context, desc, options, &plan_) != supported_) abort();                              \
        if ((supported_ == CLATTN_OK) != (plan_ != NULL)) abort();                                                       \
        if (plan_) run(plan_, s);                                                                                        \
        clattn_plan_destroy(plan_);                                                                                      \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static clattn_context *contexts[2];
    if (!contexts[0]) contexts[0] = open_device("native"), contexts[1] = open_device("reference");
    source s = {data, size};
    const uint8_t kind = take(&s), device = take(&s) % 2;
    clattn_plan_options options = CLATTN_PLAN_OPTIONS_INIT;
    options.algorithm = (clattn_algorithm)(take(&s) % 5);
    const uint8_t flags = take(&s);
    options.require_fused = flags % 8 == 1;
    options.split_devices = flags % 64 == 2;
    union {
        clattn_attention_desc attention;
        clattn_merge_desc merge;
        clattn_mha_desc mha;
        clattn_project_qkv_desc project_qkv;
        clattn_recurrence_desc recurrence;
        uint8_t room[ROOM];
    } desc;
    memset(&desc, 0, sizeof desc);
    switch (kind % 16) {
    case 0:
        take_bytes(&s, &desc, sizeof desc.attention);
        TRY(attention, contexts[device], &desc.attention, &options, &s);
        break;
    case 1: take_bytes(&s, &desc, sizeof desc.merge); TRY(merge, contexts[device], &desc.merge, NULL, &s); break;
    case 2: take_bytes(&s, &desc, sizeof desc.mha); TRY(mha, contexts[device], &desc.mha, &options, &s); break;
    case 3:
        take_bytes(&s, &desc, sizeof desc.project_qkv);
        TRY(project_qkv, contexts[device], &desc.project_qkv, NULL, &s);
        break;
    case 4: take_bytes(&s, &desc, sizeof desc.recurrence); TRY(recurrence, contexts[device], &desc.recurrence, NULL, &s); break;
    case 5: desc.merge = take_merge(&s); TRY(merge, contexts[device], &desc.merge, NULL, &s); break;
    default: desc.attention = take_attention(&s); TRY(attention, contexts[device], &desc.attention, &options, &s); break;
    }
    return 0;
}
