/* SPDX-License-Identifier: Apache-2.0 */
#include "compute.h"

#include <string.h>

/* ---- running ------------------------------------------------------------------------------------------------------- */

enum { MAX_ARGS = 16 };

typedef struct bindings {
    clattn_arg args[MAX_ARGS];
    size_t count;
} bindings;

void lesson_require(lesson *lesson, clattn_status status) {
    if (status == CLATTN_OK) return;
    char text[1024] = "";
    clattn_context_error(lesson->context, text, sizeof text);
    text[strcspn(text, "\n")] = '\0';
    lesson_fail(lesson, cli_exit_code(status), "%s", *text != '\0' ? text : clattn_status_text(status));
}

static clattn_tensor bind(bindings *bindings, clattn_tensor_id id, clattn_tensor tensor, float *data) {
    bindings->args[bindings->count++] = (clattn_arg){.id = id, .data = data};
    return tensor;
}

static clattn_tensor bind_mat(bindings *bindings, clattn_tensor_id id, mat m) {
    return bind(bindings, id, clattn_tensor_matrix(CLATTN_F32, m.rows, m.cols), m.at);
}

/* ---- projection ---------------------------------------------------------------------------------------------------- */

mat lesson_product(lesson *lesson, mat x, mat w) {
    mat product = mat_new(&lesson->arena, x.rows, w.cols);
    bindings b = {.count = 0};
    clattn_project_qkv_desc desc = CLATTN_PROJECT_QKV_DESC_INIT;
    desc.x = bind_mat(&b, CLATTN_TENSOR_X, x);
    desc.w_q = bind_mat(&b, CLATTN_TENSOR_W_Q, w);
    desc.q = bind_mat(&b, CLATTN_TENSOR_Q, product);
    lesson_require(lesson, clattn_project_qkv(lesson->context, &desc, NULL, b.args, b.count));
    return product;
}

void lesson_project(lesson *lesson, mat x, mat w_q, mat w_k, mat w_v, mat *q, mat *k, mat *v) {
    bindings b = {.count = 0};
    *q = mat_new(&lesson->arena, x.rows, w_q.cols);
    *k = mat_new(&lesson->arena, x.rows, w_k.cols);
    *v = mat_new(&lesson->arena, x.rows, w_v.cols);
    clattn_project_qkv_desc desc = CLATTN_PROJECT_QKV_DESC_INIT;
    desc.x = bind_mat(&b, CLATTN_TENSOR_X, x);
    desc.w_q = bind_mat(&b, CLATTN_TENSOR_W_Q, w_q);
    desc.w_k = bind_mat(&b, CLATTN_TENSOR_W_K, w_k);
    desc.w_v = bind_mat(&b, CLATTN_TENSOR_W_V, w_v);
    desc.q = bind_mat(&b, CLATTN_TENSOR_Q, *q);
    desc.k = bind_mat(&b, CLATTN_TENSOR_K, *k);
    desc.v = bind_mat(&b, CLATTN_TENSOR_V, *v);
    lesson_require(lesson, clattn_project_qkv(lesson->context, &desc, NULL, b.args, b.count));
}

/* ---- attention ----------------------------------------------------------------------------------------------------- */

void lesson_attend(lesson *lesson, lesson_attention *attention) {
    arena *arena = &lesson->arena;
    mat v = attention->v.at != NULL ? attention->v : attention->k;
    mat out = mat_new(arena, attention->q.rows, v.cols);
    attention->scores = mat_new(arena, attention->q.rows, attention->k.rows);
    attention->weights = mat_new(arena, attention->q.rows, attention->k.rows);
    attention->lse = mat_new(arena, attention->q.rows, 1);

    bindings b = {.count = 0};
    clattn_attention_desc desc = CLATTN_ATTENTION_DESC_INIT;
    desc.q = bind_mat(&b, CLATTN_TENSOR_Q, attention->q);
    desc.k = bind_mat(&b, CLATTN_TENSOR_K, attention->k);
    desc.v = bind_mat(&b, CLATTN_TENSOR_V, v);
    desc.out = bind_mat(&b, CLATTN_TENSOR_OUT, out);
    desc.scores = bind_mat(&b, CLATTN_TENSOR_SCORES, attention->scores);
    desc.weights = bind_mat(&b, CLATTN_TENSOR_WEIGHTS, attention->weights);
    desc.lse = bind_mat(&b, CLATTN_TENSOR_LSE, attention->lse);
    if (attention->bias.at != NULL) desc.options.bias = bind_mat(&b, CLATTN_TENSOR_BIAS, attention->bias);
    desc.options.causal = attention->causal;
    desc.options.has_scale = attention->has_scale;
    desc.options.scale = attention->scale;
    desc.options.scores_form = attention->form;
    lesson_require(lesson, clattn_attention(lesson->context, &desc, NULL, b.args, b.count));
    if (attention->v.at != NULL) attention->out = out;
}

/* Both, one behind the other, as parts of one batch. */
static mat stack(arena *arena, mat a, mat b) {
    mat both = mat_new(arena, 2 * a.rows, a.cols);
    for (int64_t i = 0; i < a.rows * a.cols; i++) {
        both.at[i] = a.at[i];
        both.at[a.rows * a.cols + i] = b.at[i];
    }
    return both;
}

lesson_partial lesson_merge(lesson *lesson, lesson_partial a, lesson_partial b) {
    enum { PARTS = 2 };
    arena *arena = &lesson->arena;
    const int64_t rows = a.out.rows, cols = a.out.cols;
    const mat outs = stack(arena, a.out, b.out), lses = stack(arena, a.lse, b.lse);
    const lesson_partial merged = {mat_new(arena, rows, cols), mat_new(arena, rows, 1)};
    bindings bound = {.count = 0};
    clattn_merge_desc desc = CLATTN_MERGE_DESC_INIT;
    desc.out_parts = bind(&bound, CLATTN_TENSOR_OUT_PARTS, clattn_tensor_bhld(CLATTN_F32, PARTS, 1, rows, cols), outs.at);
    desc.lse_parts = bind(&bound, CLATTN_TENSOR_LSE_PARTS, clattn_tensor_bhld(CLATTN_F32, PARTS, 1, rows, 1), lses.at);
    desc.out = bind(&bound, CLATTN_TENSOR_OUT, clattn_tensor_bhld(CLATTN_F32, 1, 1, rows, cols), merged.out.at);
    desc.lse = bind(&bound, CLATTN_TENSOR_LSE, clattn_tensor_bhld(CLATTN_F32, 1, 1, rows, 1), merged.lse.at);
    lesson_require(lesson, clattn_merge(lesson->context, &desc, NULL, bound.args, bound.count));
    return merged;
}

mat lesson_sigmoid(lesson *lesson, mat z) {
    arena *arena = &lesson->arena;
    const int64_t count = z.rows * z.cols;
    lesson_attention pairs = {.q = mat_new(arena, count, 1), .k = mat_new(arena, 2, 1), .bias = mat_new(arena, count, 2)};
    for (int64_t i = 0; i < count; i++) pairs.bias.at[2 * i] = z.at[i];
    lesson_attend(lesson, &pairs);
    mat open = mat_new(arena, z.rows, z.cols);
    for (int64_t i = 0; i < count; i++) open.at[i] = pairs.weights.at[2 * i];
    return open;
}

void lesson_mha(lesson *lesson, lesson_layer *layer) {
    const bool projected = layer->w_o.at != NULL;
    const int64_t len = layer->x.rows;
    layer->out = mat_new(&lesson->arena, len, projected ? layer->w_o.cols : layer->w_v.cols);
    layer->weights = mat_new(&lesson->arena, layer->heads * len, len);

    bindings b = {.count = 0};
    clattn_mha_desc desc = CLATTN_MHA_DESC_INIT;
    desc.x = bind_mat(&b, CLATTN_TENSOR_X, layer->x);
    desc.w_q = bind_mat(&b, CLATTN_TENSOR_W_Q, layer->w_q);
    desc.w_k = bind_mat(&b, CLATTN_TENSOR_W_K, layer->w_k);
    desc.w_v = bind_mat(&b, CLATTN_TENSOR_W_V, layer->w_v);
    if (projected) desc.w_o = bind_mat(&b, CLATTN_TENSOR_W_O, layer->w_o);
    desc.out = bind_mat(&b, CLATTN_TENSOR_OUT, layer->out);
    desc.weights =
        bind(&b, CLATTN_TENSOR_WEIGHTS, clattn_tensor_bhld(CLATTN_F32, 1, layer->heads, len, len), layer->weights.at);
    desc.heads_q = layer->heads;
    lesson_require(lesson, clattn_mha(lesson->context, &desc, NULL, b.args, b.count));
}

/* ---- recurrence ---------------------------------------------------------------------------------------------------- */

/* Every h, and the last cell where it has values. */
static mat recur(lesson *lesson, const lesson_recurrence *recurrence, mat c_n) {
    const mat *x = &recurrence->x;
    const int64_t batch = recurrence->batch, steps = x->rows / batch, hidden = recurrence->w_h.cols;
    mat out = mat_new(&lesson->arena, x->rows, hidden);
    bindings b = {.count = 0};
    clattn_recurrence_desc desc = CLATTN_RECURRENCE_DESC_INIT;
    desc.cell = recurrence->cell;
    desc.x = bind(&b, CLATTN_TENSOR_X, clattn_tensor_bhld(CLATTN_F32, batch, 1, steps, x->cols), x->at);
    desc.w_in = bind_mat(&b, CLATTN_TENSOR_W_IN, recurrence->w_in);
    desc.w_h = bind_mat(&b, CLATTN_TENSOR_W_H, recurrence->w_h);
    if (recurrence->h_0.at != NULL)
        desc.h_0 = bind(&b, CLATTN_TENSOR_H_0, clattn_tensor_bhld(CLATTN_F32, batch, 1, 1, hidden), recurrence->h_0.at);
    if (c_n.at != NULL) desc.c_n = bind(&b, CLATTN_TENSOR_C_N, clattn_tensor_bhld(CLATTN_F32, batch, 1, 1, hidden), c_n.at);
    desc.out = bind(&b, CLATTN_TENSOR_OUT, clattn_tensor_bhld(CLATTN_F32, batch, 1, steps, hidden), out.at);
    desc.forget_bias = recurrence->forget_bias;
    lesson_require(lesson, clattn_recurrence(lesson->context, &desc, NULL, b.args, b.count));
    return out;
}

mat lesson_recur(lesson *lesson, const lesson_recurrence *recurrence) {
    return recur(lesson, recurrence, (mat){0});
}

mat lesson_last_cell(lesson *lesson, const lesson_recurrence *recurrence) {
    mat c_n = mat_new(&lesson->arena, recurrence->batch, recurrence->w_h.cols);
    recur(lesson, recurrence, c_n);
    return c_n;
}

bool lesson_fits(lesson *lesson, mat x, mat w) {
    clattn_project_qkv_desc desc = CLATTN_PROJECT_QKV_DESC_INIT;
    desc.x = clattn_tensor_matrix(CLATTN_F32, x.rows, x.cols);
    desc.w_q = clattn_tensor_matrix(CLATTN_F32, w.rows, w.cols);
    desc.q = clattn_tensor_matrix(CLATTN_F32, x.rows, w.cols);
    return clattn_supports_project_qkv(lesson->context, &desc, NULL) == CLATTN_OK;
}
