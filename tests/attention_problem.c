/* SPDX-License-Identifier: Apache-2.0 */
#include "attention_problem.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- descriptors -------------------------------------------------------------------------------------------------- */

/* Every tensor of a descriptor. */
typedef enum use { INPUT, OUTPUT, UPDATE_OR_OUTPUT } use;

static const struct {
    clattn_tensor_id id;
    size_t place;
    use use;
    int want; /* optional outputs */
} tensors[] = {
#define TENSOR(id, field, ...) {CLATTN_TENSOR_##id, offsetof(clattn_attention_desc, field), __VA_ARGS__},
    TENSOR(Q, q, INPUT)
    TENSOR(K, k, INPUT)
    TENSOR(V, v, INPUT)
    TENSOR(OUT, out, OUTPUT)
    TENSOR(LSE, lse, OUTPUT, WANT_LSE)
    TENSOR(SCORES, scores, OUTPUT, WANT_SCORES)
    TENSOR(WEIGHTS, weights, OUTPUT, WANT_WEIGHTS)
    TENSOR(PAST_K, past_k, INPUT)
    TENSOR(PAST_V, past_v, INPUT)
    TENSOR(PAST_LENGTHS, past_lengths, INPUT)
    TENSOR(PRESENT_K, present_k, UPDATE_OR_OUTPUT)
    TENSOR(PRESENT_V, present_v, UPDATE_OR_OUTPUT)
    TENSOR(ROTARY_COS, rotary_cos, INPUT)
    TENSOR(ROTARY_SIN, rotary_sin, INPUT)
    TENSOR(Q_OFFSETS, q_offsets, INPUT)
    TENSOR(KV_OFFSETS, kv_offsets, INPUT)
    TENSOR(MASK, options.mask, INPUT)
    TENSOR(BIAS, options.bias, INPUT)
    TENSOR(ALIBI_SLOPES, options.alibi_slopes, INPUT)
    TENSOR(SINKS, options.sinks, INPUT)
    TENSOR(KV_LENGTHS, options.kv_lengths, INPUT)
#undef TENSOR
};

clattn_tensor *attention_tensor(clattn_attention_desc *desc, clattn_tensor_id id) {
    for (size_t n = 0; n < COUNT(tensors); n++) {
        if (tensors[n].id == id) return (clattn_tensor *)((char *)desc + tensors[n].place);
    }
    return NULL;
}

static clattn_tensor tensor_of(const attention_problem *p, clattn_tensor_id id) {
    return *attention_tensor((clattn_attention_desc *)&p->desc, id);
}

static int64_t count_of(const clattn_tensor *t) { return t->dtype == CLATTN_ABSENT ? 0 : clattn__tensor_elements(t); }

int64_t attention_count(const attention_problem *p, clattn_tensor_id id) {
    const clattn_tensor t = tensor_of(p, id);
    return count_of(&t);
}

static clattn_tensor matrix_tensor(const attention_case *c, const matrix_case *m, clattn_dtype dtype, int64_t keys) {
    const int64_t told = m->missing < keys ? keys - m->missing : 0;
    const bool ones = !(m->broadcast & BY_STRIDE);
    return clattn_tensor_bhld(dtype, ones && m->broadcast & ONE_BATCH ? 1 : c->batch,
                              ones && m->broadcast & ONE_HEAD ? 1 : c->heads_q, ones && m->broadcast & ONE_QUERY ? 1 : c->len_q,
                              told);
}

static void describe_options(attention_problem *p) {
    const attention_case *c = &p->c;
    const int64_t tables = c->by_member ? c->batch : 1;
    clattn_attention_options *o = &p->desc.options;
    *o = (clattn_attention_options){
        .has_scale = 1,
        .scale = c->has_scale ? c->scale : naive_scale(c->head_dim),
        .causal = c->causal,
        .align = c->align,
        .past_len = c->align == CLATTN_ALIGN_PAST && !c->cache ? c->position : 0,
        .offset = c->align == CLATTN_ALIGN_OFFSET ? c->position : 0,
        .has_window = c->has_window,
        .window_left = c->left,
        .window_right = c->right,
        .softcap = c->softcap,
        .alibi = c->alibi == ALIBI_STANDARD,
        .scores_form = c->form,
    };
    if (c->mask.given) o->mask = matrix_tensor(c, &c->mask, CLATTN_BOOL, p->keys);
    if (c->bias.given) o->bias = matrix_tensor(c, &c->bias, c->bias.narrow ? c->dtype : CLATTN_F32, p->keys);
    if (c->alibi == ALIBI_GIVEN) o->alibi_slopes = clattn_tensor_bhld(CLATTN_F32, tables, c->heads_q, 1, 1);
    if (c->sinks) o->sinks = clattn_tensor_bhld(CLATTN_F32, tables, c->heads_q, 1, 1);
    if (c->lengths) o->kv_lengths = clattn_tensor_bhld(c->wide ? CLATTN_I64 : CLATTN_I32, c->batch, 1, 1, 1);
}

static void describe_cache(attention_problem *p) {
    const attention_case *c = &p->c;
    clattn_attention_desc *d = &p->desc;
    if (c->cache == CACHE_PAST || c->cache == CACHE_PAST_ONLY) {
        d->past_k = clattn_tensor_bhld(c->dtype, c->batch, c->heads_kv, c->past, c->head_dim);
        d->past_v = clattn_tensor_bhld(c->dtype, c->batch, c->heads_kv, c->past, c->value_dim);
    }
    if (c->cache == CACHE_PAST || c->cache == CACHE_IN_PLACE) {
        d->present_k = clattn_tensor_bhld(c->dtype, c->batch, c->heads_kv, p->keys, c->head_dim);
        d->present_v = clattn_tensor_bhld(c->dtype, c->batch, c->heads_kv, p->keys, c->value_dim);
    }
    if (c->cache == CACHE_IN_PLACE) d->past_lengths = clattn_tensor_bhld(c->wide ? CLATTN_I64 : CLATTN_I32, c->batch, 1, 1, 1);
    d->rotary = c->rotary;
    if (!c->rotary) return;
    const int64_t past = c->cache ? c->past : c->align == CLATTN_ALIGN_PAST ? c->position : 0;
    const int64_t positions = past + (c->len_q > c->len_kv ? c->len_q : c->len_kv);
    d->rotary_cos = d->rotary_sin = clattn_tensor_bhld(CLATTN_F32, c->by_member ? c->batch : 1, 1, positions, c->pairs);
}

/* queries, keys: how many there are in all; rows that no member has among them */
static void describe(attention_problem *p, int64_t batch, int64_t queries, int64_t keys) {
    const attention_case *c = &p->c;
    clattn_attention_desc *d = &p->desc;
    const clattn_dtype matrix = c->narrow ? c->dtype : CLATTN_F32;
    *d = (clattn_attention_desc)CLATTN_ATTENTION_DESC_INIT;
    d->q = clattn_tensor_bhld(c->dtype, batch, c->heads_q, queries, c->head_dim);
    d->k = clattn_tensor_bhld(c->dtype, batch, c->heads_kv, keys, c->head_dim);
    d->v = clattn_tensor_bhld(c->dtype, batch, c->heads_kv, keys, c->value_dim);
    d->out = clattn_tensor_bhld(c->dtype, batch, c->heads_q, queries, c->value_dim);
    d->lse = clattn_tensor_bhld(CLATTN_F32, batch, c->heads_q, queries, 1);
    p->keys = keys + (c->cache ? c->past : 0);
    describe_options(p);
    describe_cache(p);
    if (c->ragged)
        d->q_offsets = d->kv_offsets = clattn_tensor_bhld(c->wide ? CLATTN_I64 : CLATTN_I32, 1, 1, 1, c->batch + 1);
    else
        d->scores = d->weights = clattn_tensor_bhld(matrix, batch, c->heads_q, queries, p->keys);
}

/* ---- random inputs ------------------------------------------------------------------------------------------------ */

static double *draw_normal(const attention_problem *p, clattn_tensor_id id, double amplitude, rng *r) {
    const clattn_tensor t = tensor_of(p, id);
    double *values = test_alloc((size_t)count_of(&t), sizeof *values);
    for (int64_t n = 0; n < count_of(&t); n++) values[n] = clattn__round(t.dtype, amplitude * rng_fine(r));
    return values;
}

/* Repeat what is broadcast by strides. */
static void spread_values(const clattn_tensor *t, int broadcast, double *values) {
    if (!(broadcast & BY_STRIDE)) return;
    for (int64_t n = 0; n < count_of(t); n++) {
        const int64_t j = n % t->size[3], i = n / t->size[3] % t->size[2], h = n / t->size[3] / t->size[2] % t->size[1];
        const int64_t b = n / t->size[3] / t->size[2] / t->size[1];
        const int64_t b0 = broadcast & ONE_BATCH ? 0 : b, h0 = broadcast & ONE_HEAD ? 0 : h, i0 = broadcast & ONE_QUERY ? 0 : i;
        values[n] = values[((b0 * t->size[1] + h0) * t->size[2] + i0) * t->size[3] + j];
    }
}

static double least_of(clattn_dtype dtype) {
    if (dtype == CLATTN_F64) return -DBL_MAX;
    return dtype == CLATTN_F16 ? -65504 : dtype == CLATTN_BF16 ? -0x1.fep127 : -FLT_MAX;
}

static double *draw_matrix(const attention_problem *p, clattn_tensor_id id, const matrix_case *m, rng *r) {
    const clattn_tensor t = tensor_of(p, id);
    double *values = draw_normal(p, id, 1, r);
    const double masked = t.dtype == CLATTN_BOOL ? 0 : m->least ? least_of(t.dtype) : -INFINITY;
    for (int64_t row = 0; row * t.size[3] < count_of(&t); row++) {
        const bool whole = m->whole_rows && rng_below(r, 4) == 0;
        for (int64_t j = 0; j < t.size[3]; j++) {
            double *value = &values[row * t.size[3] + j];
            if (t.dtype == CLATTN_BOOL) *value = 1;
            if (whole || rng_below(r, 100) < m->per_cent) *value = masked;
        }
    }
    spread_values(&t, m->broadcast, values);
    return values;
}

/* Lengths up to `most`, a tenth of them 0 and a tenth of them all. */
static int64_t draw_length(int64_t most, rng *r) {
    const int64_t kind = rng_below(r, 10);
    return kind == 0 ? 0 : kind == 1 ? most : rng_below(r, most + 1);
}

static double *draw_lengths(int64_t count, int64_t most, rng *r) {
    double *lengths = test_alloc((size_t)count, sizeof *lengths);
    for (int64_t n = 0; n < count; n++) lengths[n] = (double)draw_length(most, r);
    return lengths;
}

static double *draw_offsets(int64_t members, int64_t most, rng *r) {
    double *offsets = test_alloc((size_t)(members + 1), sizeof *offsets);
    for (int64_t n = 0; n < members; n++) offsets[n + 1] = offsets[n] + (double)draw_length(most, r);
    return offsets;
}

static void draw_tables(attention_problem *p, rng *r) {
    const clattn_tensor *t = &p->desc.rotary_cos;
    double *cosines = test_alloc((size_t)count_of(t), sizeof *cosines), *sines = test_alloc((size_t)count_of(t), sizeof *sines);
    for (int64_t n = 0; n < count_of(t); n++) {
        const int64_t pair = n % t->size[3], position = n / t->size[3] % t->size[2];
        const double angle = (double)position * pow(10000, -(double)pair / (double)t->size[3]) + 0.01 * rng_fine(r);
        cosines[n] = (float)cos(angle);
        sines[n] = (float)sin(angle);
    }
    p->data[CLATTN_TENSOR_ROTARY_COS] = cosines;
    p->data[CLATTN_TENSOR_ROTARY_SIN] = sines;
}

static void draw_options(attention_problem *p, rng *r) {
    const attention_case *c = &p->c;
    if (c->mask.given) p->data[CLATTN_TENSOR_MASK] = draw_matrix(p, CLATTN_TENSOR_MASK, &c->mask, r);
    if (c->bias.given) p->data[CLATTN_TENSOR_BIAS] = draw_matrix(p, CLATTN_TENSOR_BIAS, &c->bias, r);
    if (c->alibi == ALIBI_GIVEN) {
        p->data[CLATTN_TENSOR_ALIBI_SLOPES] = draw_normal(p, CLATTN_TENSOR_ALIBI_SLOPES, 0.1, r);
    }
    if (c->sinks) p->data[CLATTN_TENSOR_SINKS] = draw_normal(p, CLATTN_TENSOR_SINKS, 2, r);
    if (c->lengths) p->data[CLATTN_TENSOR_KV_LENGTHS] = draw_lengths(c->batch, p->keys, r);
    if (c->cache == CACHE_IN_PLACE) p->data[CLATTN_TENSOR_PAST_LENGTHS] = draw_lengths(c->batch, c->past, r);
    if (c->rotary) draw_tables(p, r);
}

static void draw_cache(attention_problem *p, rng *r) {
    static const clattn_tensor_id ids[] = {CLATTN_TENSOR_PAST_K, CLATTN_TENSOR_PAST_V, CLATTN_TENSOR_PRESENT_K,
                                           CLATTN_TENSOR_PRESENT_V};
    for (size_t n = 0; n < COUNT(ids); n++) {
        if (n < 2 || p->c.cache == CACHE_IN_PLACE) {
            if (tensor_of(p, ids[n]).dtype != CLATTN_ABSENT) p->data[ids[n]] = draw_normal(p, ids[n], 1, r);
        }
    }
}

/* A NaN or an infinity. */
static double special(int64_t n) { return n % 3 == 0 ? NAN : n % 3 == 1 ? INFINITY : -INFINITY; }

static void draw_live_nan(attention_problem *p, rng *r) {
    static const clattn_tensor_id ids[] = {CLATTN_TENSOR_Q, CLATTN_TENSOR_K, CLATTN_TENSOR_V};
    for (size_t n = 0; n < COUNT(ids); n++) {
        const int64_t count = attention_count(p, ids[n]);
        if (count && rng_below(r, 2)) p->data[ids[n]][rng_below(r, count)] = NAN;
    }
}

attention_problem attention_problem_draw(const attention_case *c, rng *r) {
    attention_problem p = {.c = *c};
    if (!p.c.dtype) p.c.dtype = CLATTN_F32;
    if (c->ragged) {
        double *q = draw_offsets(c->batch, c->len_q, r), *kv = draw_offsets(c->batch, c->len_kv, r);
        p.data[CLATTN_TENSOR_Q_OFFSETS] = q;
        p.data[CLATTN_TENSOR_KV_OFFSETS] = kv;
        describe(&p, 1, (int64_t)q[c->batch] + rng_below(r, 3), (int64_t)kv[c->batch] + rng_below(r, 3));
    } else {
        describe(&p, c->batch, c->len_q, c->len_kv);
    }
    p.data[CLATTN_TENSOR_Q] = draw_normal(&p, CLATTN_TENSOR_Q, c->amplitude != 0 ? c->amplitude : 1, r);
    p.data[CLATTN_TENSOR_K] = draw_normal(&p, CLATTN_TENSOR_K, 1, r);
    p.data[CLATTN_TENSOR_V] = draw_normal(&p, CLATTN_TENSOR_V, 1, r);
    draw_options(&p, r);
    draw_cache(&p, r);
    if (c->live_nan) draw_live_nan(&p, r);
    return p;
}

attention_problem attention_problem_make(const attention_case *c, rng *r) {
    attention_problem p = attention_problem_draw(c, r);
    attention_problem_solve(&p);
    return p;
}

/* ---- poison ------------------------------------------------------------------------------------------------------- */

static naive_attention_args naive_args(const attention_problem *p) {
    naive_attention_args a = {.options = &p->desc.options, .rotary = p->desc.rotary};
    for (size_t n = 0; n < COUNT(tensors); n++) {
        const clattn_tensor t = tensor_of(p, tensors[n].id);
        if (t.dtype == CLATTN_ABSENT) continue;
        a.tensors[tensors[n].id] =
            (naive_tensor){p->data[tensors[n].id], t.dtype, {t.size[0], t.size[1], t.size[2], t.size[3]}};
    }
    return a;
}

static bool anyone_looks(const naive_attention_args *a, const naive_member *m, int64_t g, int64_t j, int64_t ratio) {
    for (int64_t h = g * ratio; h < (g + 1) * ratio; h++) {
        for (int64_t i = 0; i < m->len_q; i++) {
            if (naive_live(a, m, h, i, j)) return true;
        }
    }
    return false;
}

static void poison_row(const attention_problem *p, clattn_tensor_id id, int64_t b, int64_t g, int64_t l) {
    const clattn_tensor t = tensor_of(p, id);
    double *row = p->data[id] + ((b * t.size[1] + g) * t.size[2] + l) * t.size[3];
    for (int64_t d = 0; d < t.size[3]; d++) row[d] = special(l + g);
}

/* Key j of a member, in the new ones or in the cache. */
static void poison_key(const attention_problem *p, const naive_member *m, int64_t g, int64_t j) {
    const bool in_past = j < m->past, in_place = p->c.cache == CACHE_IN_PLACE;
    if (in_past) {
        poison_row(p, in_place ? CLATTN_TENSOR_PRESENT_K : CLATTN_TENSOR_PAST_K, m->b, g, j);
        poison_row(p, in_place ? CLATTN_TENSOR_PRESENT_V : CLATTN_TENSOR_PAST_V, m->b, g, j);
    } else {
        poison_row(p, CLATTN_TENSOR_K, m->b, g, m->kv_first + j - m->past);
        poison_row(p, CLATTN_TENSOR_V, m->b, g, m->kv_first + j - m->past);
    }
}

/* Make keys and values that no query looks at NaN and infinite. */
static void poison(const attention_problem *p) {
    const naive_attention_args a = naive_args(p);
    const int64_t heads_kv = p->desc.k.size[1], ratio = heads_kv ? p->desc.q.size[1] / heads_kv : 0;
    const int64_t members = naive_members(&a);
    for (int64_t g = 0; g < heads_kv; g++) {
        for (int64_t number = 0; number < members; number++) {
            const naive_member m = naive_member_of(&a, number);
            const int64_t there = p->c.ragged ? m.len_kv : p->c.lengths ? p->keys : m.past + p->desc.k.size[2];
            for (int64_t j = 0; j < there; j++) {
                if (!anyone_looks(&a, &m, g, j, ratio)) poison_key(p, &m, g, j);
            }
            for (int64_t j = m.past; j < p->keys && p->c.cache == CACHE_IN_PLACE; j++) {
                poison_row(p, CLATTN_TENSOR_PRESENT_K, m.b, g, j);
                poison_row(p, CLATTN_TENSOR_PRESENT_V, m.b, g, j);
            }
        }
        for (int64_t l = p->c.ragged ? (int64_t)p->data[CLATTN_TENSOR_KV_OFFSETS][members] : p->desc.k.size[2];
             l < p->desc.k.size[2]; l++) {
            poison_row(p, CLATTN_TENSOR_K, 0, g, l);
            poison_row(p, CLATTN_TENSOR_V, 0, g, l);
        }
    }
}

/* ---- solutions ---------------------------------------------------------------------------------------------------- */

/* A tensor as the oracle takes it: in its own type where the oracle rounds to that, else in double. */
static clattn__view view_of(const attention_problem *p, clattn_tensor_id id, double *data, bool typed) {
    const clattn_tensor t = tensor_of(p, id);
    clattn__view view = clattn__view_of_doubles(data, t.size[0], t.size[1], t.size[2], t.size[3]);
    view.present = t.dtype != CLATTN_ABSENT;
    if (typed && view.present) {
        const int64_t count = count_of(&t);
        view.data = test_alloc((size_t)count, clattn__dtype_size(t.dtype));
        view.dtype = t.dtype;
        for (int64_t n = 0; n < count && data; n++) clattn__store(t.dtype, view.data, n, data[n]);
    }
    return view;
}

static void take_back(const clattn__view *view, double *data, int64_t count) {
    for (int64_t n = 0; n < count && data; n++) data[n] = clattn__load(view->dtype, view->data, n);
    free(view->data);
}

static void solve_oracle(attention_problem *p) {
#define IN(id) view_of(p, CLATTN_TENSOR_##id, p->data[CLATTN_TENSOR_##id], false)
#define RESULT(id) view_of(p, CLATTN_TENSOR_##id, p->expected[CLATTN_TENSOR_##id].oracle, false)
#define PRESENT(id) view_of(p, CLATTN_TENSOR_##id, p->data[CLATTN_TENSOR_##id], true)
    clattn__oracle_attention_args args = {
        .q = view_of(p, CLATTN_TENSOR_Q, p->data[CLATTN_TENSOR_Q], true),
        .k = IN(K), .v = IN(V), .out = RESULT(OUT), .lse = RESULT(LSE), .scores = RESULT(SCORES), .weights = RESULT(WEIGHTS),
        .mask = IN(MASK), .bias = IN(BIAS), .alibi_slopes = IN(ALIBI_SLOPES), .sinks = IN(SINKS), .kv_lengths = IN(KV_LENGTHS),
        .past_k = IN(PAST_K), .past_v = IN(PAST_V), .past_lengths = IN(PAST_LENGTHS), .present_k = PRESENT(PRESENT_K),
        .present_v = PRESENT(PRESENT_V), .rotary_cos = IN(ROTARY_COS), .rotary_sin = IN(ROTARY_SIN), .q_offsets = IN(Q_OFFSETS),
        .kv_offsets = IN(KV_OFFSETS), .rotary = p->desc.rotary, .options = &p->desc.options,
    };
#undef PRESENT
#undef RESULT
#undef IN
    if (clattn__oracle_attention(&args) != CLATTN_OK) ck_abort_msg("the oracle is out of memory");
    free(args.q.data);
    static const clattn_tensor_id ids[] = {CLATTN_TENSOR_PRESENT_K, CLATTN_TENSOR_PRESENT_V};
    const clattn__view *const present[] = {&args.present_k, &args.present_v};
    for (size_t n = 0; n < COUNT(ids); n++) {
        if (present[n]->present) take_back(present[n], p->expected[ids[n]].oracle, attention_count(p, ids[n]));
    }
}

static void solve_naive(attention_problem *p) {
    naive_attention_args a = naive_args(p);
    for (size_t n = 0; n < COUNT(tensors); n++) {
        if (tensors[n].use == INPUT) continue;
        a.tensors[tensors[n].id].data = p->expected[tensors[n].id].naive;
        a.magnitude[tensors[n].id] = p->expected[tensors[n].id].magnitude;
    }
    naive_attention(&a);
}

/* A query that is rotated and stored in 16 bits may be rounded to either side: a step of its type is no mistake. In f64 the
 * oracle itself is no better than what it judges. */
static double epsilon_of(const attention_problem *p, clattn_dtype dtype) {
    if (p->c.rotary && p->c.dtype == CLATTN_F16) return 0x1p-11 / 4;
    if (p->c.rotary && p->c.dtype == CLATTN_BF16) return 0x1p-8 / 4;
    return dtype == CLATTN_F64 ? 8 * DBL_EPSILON : FLT_EPSILON;
}

/* Room for an output. What no member writes stays as it was: NaN. */
static void expect(attention_problem *p, clattn_tensor_id id, int64_t columns) {
    expected_values *e = &p->expected[id];
    const int64_t count = attention_count(p, id);
    const clattn_dtype dtype = tensor_of(p, id).dtype;
    if (!e->oracle) {
        *e = (expected_values){test_alloc((size_t)count, sizeof(double)), test_alloc((size_t)count, sizeof(double)),
                               test_alloc((size_t)count, sizeof(double)), columns ? count / columns : 0, columns,
                               epsilon_of(p, dtype),
                               dtype == CLATTN_F64 ? 1e-300 : dtype == CLATTN_F16 ? 0x1p-24 : 1e-36};
    }
    for (int64_t n = 0; n < count; n++) {
        e->oracle[n] = e->naive[n] = p->data[id] ? p->data[id][n] : NAN;
        e->magnitude[n] = fabs(e->oracle[n]);
    }
}

/* What a type cannot hold is infinite in it. */
static void overflow(attention_problem *p, clattn_tensor_id id) {
    const clattn_dtype dtype = tensor_of(p, id).dtype;
    double *oracle = p->expected[id].oracle;
    for (int64_t n = 0; n < attention_count(p, id); n++) {
        const double value = clattn__round(dtype, oracle[n]);
        if (isinf(value)) oracle[n] = value;
    }
}

void attention_problem_solve(attention_problem *p) {
    if (p->c.poison) poison(p);
    const bool matrices = p->desc.scores.dtype != CLATTN_ABSENT;
    expect(p, CLATTN_TENSOR_OUT, p->desc.out.size[3]);
    expect(p, CLATTN_TENSOR_LSE, 1);
    if (matrices) expect(p, CLATTN_TENSOR_SCORES, 1); /* elements of a row may be of very different sizes */
    if (matrices) expect(p, CLATTN_TENSOR_WEIGHTS, p->keys);
    if (p->desc.present_k.dtype) expect(p, CLATTN_TENSOR_PRESENT_K, p->c.head_dim);
    if (p->desc.present_v.dtype) expect(p, CLATTN_TENSOR_PRESENT_V, p->c.value_dim);
    solve_oracle(p);
    solve_naive(p);
    for (size_t n = 0; n < COUNT(tensors); n++) {
        if (tensors[n].use != INPUT) overflow(p, tensors[n].id);
    }
    static const clattn_tensor_id ids[] = {CLATTN_TENSOR_PRESENT_K, CLATTN_TENSOR_PRESENT_V};
    for (size_t id = 0; id < COUNT(ids); id++) {
        expected_values *e = &p->expected[ids[id]];
        for (int64_t n = 0; n < attention_count(p, ids[id]); n++) e->magnitude[n] = fabs(e->oracle[n]);
    }
}

attention_problem attention_problem_member(const attention_problem *p, int64_t b) {
    attention_problem member = *p;
    for (size_t n = 0; n < COUNT(tensors); n++) {
        clattn_tensor *t = attention_tensor(&member.desc, tensors[n].id);
        if (t->dtype == CLATTN_ABSENT || t->size[0] != p->c.batch || p->c.batch == 1) continue;
        t->size[0] = 1;
        if (member.data[tensors[n].id]) member.data[tensors[n].id] += b * count_of(t);
    }
    member.c.batch = 1;
    return member;
}

void attention_problem_free(attention_problem *p) {
    for (int id = 0; id < CLATTN_TENSOR_COUNT; id++) {
        free(p->data[id]);
        free(p->expected[id].oracle);
        free(p->expected[id].naive);
        free(p->expected[id].magnitude);
    }
    *p = (attention_problem){0};
}

/* ---- runs --------------------------------------------------------------------------------------------------------- */

/* Strides of 0 for what is broadcast by them. */
static void broadcast_strides(clattn_tensor *t, const matrix_case *m) {
    if (!m->given || !(m->broadcast & BY_STRIDE)) return;
    for (int d = 0; d < 3; d++) {
        if (m->broadcast & 1 << d) t->stride[d] = 0;
    }
}

clattn_attention_desc attention_desc(const attention_problem *p, layout l, int want) {
    clattn_attention_desc desc = p->desc;
    for (size_t n = 0; n < COUNT(tensors); n++) {
        clattn_tensor *t = attention_tensor(&desc, tensors[n].id);
        if (tensors[n].want && !(want & tensors[n].want)) *t = (clattn_tensor){0};
        if (t->dtype != CLATTN_ABSENT) *t = layout_of(l, *t);
    }
    broadcast_strides(&desc.options.mask, &p->c.mask);
    broadcast_strides(&desc.options.bias, &p->c.bias);
    if (!(want & WANT_SCORES)) desc.options.scores_form = CLATTN_SCORES_RAW;
    if (!p->c.has_scale) desc.options.has_scale = 0, desc.options.scale = 0;
    return desc;
}

static void bind_all(bindings *b, const attention_problem *p, clattn_attention_desc *desc) {
    for (size_t n = 0; n < COUNT(tensors); n++) {
        const clattn_tensor_id id = tensors[n].id;
        const clattn_tensor view = *attention_tensor(desc, id);
        if (p->data[id])
            bind_values(b, id, view, p->data[id], tensors[n].use != INPUT);
        else
            bind_output(b, id, view);
    }
}

static verdict failure(const char *format, ...) __attribute__((format(printf, 1, 2)));
static verdict failure(const char *format, ...) {
    verdict v = {.ok = false};
    va_list list;
    va_start(list, format);
    vsnprintf(v.text, sizeof v.text, format, list);
    va_end(list);
    return v;
}

static verdict run_bound(clattn_context *context, const clattn_attention_desc *desc, const bindings *b,
                         const clattn_plan_options *options, attention_results *results) {
    clattn_plan *plan;
    clattn_status status = clattn_plan_create_attention(context, desc, options, &plan);
    if (status != CLATTN_OK) return failure("a plan: %s: %.200s", clattn_status_name(status), error_text(context));
    clattn_plan_info info = {.struct_size = sizeof info};
    status = clattn_plan_get_info(plan, &info);
    if (status == CLATTN_OK) snprintf(results->row, sizeof results->row, "%s", info.row);
    if (status == CLATTN_OK) status = clattn_plan_run(plan, b->args, b->count);
    clattn_plan_destroy(plan);
    if (status != CLATTN_OK) return failure("a run: %s: %.200s", clattn_status_name(status), error_text(context));
    for (size_t n = 0; n < b->count; n++) {
        if (!guarded_intact(&b->memory[n]))
            return failure("memory around %s, or the input itself, was written", clattn_tensor_name(b->args[n].id));
    }
    return (verdict){.ok = true};
}

verdict attention_try(clattn_context *context, const attention_problem *p, layout l, clattn_algorithm algorithm, int want,
                      attention_results *results) {
    clattn_attention_desc desc = attention_desc(p, l, want);
    const clattn_plan_options *options = OPTIONS(.algorithm = algorithm, .split_devices = p->c.split_devices);
    bindings b = {0};
    bind_all(&b, p, &desc);
    *results = (attention_results){0};
    const verdict v = run_bound(context, &desc, &b, options, results);
    for (size_t n = 0; n < COUNT(tensors) && v.ok; n++) {
        if (tensors[n].use != INPUT) results->data[tensors[n].id] = bound_values(&b, tensors[n].id);
    }
    bindings_free(&b);
    return v;
}

attention_results attention_run(clattn_context *context, const attention_problem *p, layout l, clattn_algorithm algorithm,
                                int want) {
    attention_results results;
    const verdict v = attention_try(context, p, l, algorithm, want, &results);
    if (!v.ok) ck_abort_msg("%s, %s, %s: %s", p->c.name, results.row, layout_name(l), v.text);
    return results;
}

void attention_results_free(attention_results *r) {
    for (int id = 0; id < CLATTN_TENSOR_COUNT; id++) free(r->data[id]);
    *r = (attention_results){0};
}

/* Of a cache all but the elements of new keys that are rotated is copied, bit by bit. */
static bool is_copied(const attention_problem *p, clattn_tensor_id id, int64_t n) {
    if (id == CLATTN_TENSOR_PRESENT_V || !p->c.rotary) return true;
    const clattn_tensor *t = &p->desc.present_k;
    const int64_t d = n % t->size[3], l = n / t->size[3] % t->size[2], b = n / t->size[3] / t->size[2] / t->size[1];
    const double *lengths = p->data[CLATTN_TENSOR_PAST_LENGTHS];
    const int64_t past = lengths ? (int64_t)lengths[b] : p->c.past;
    return d >= 2 * p->c.pairs || l < past || l >= past + p->desc.k.size[2];
}

static void judge_cache(verdict *v, const double *result, const attention_problem *p, clattn_tensor_id id) {
    for (int64_t n = 0; v->ok && n < attention_count(p, id); n++) {
        const double value = result[n], oracle = p->expected[id].oracle[n];
        if (!is_copied(p, id, n) || value == oracle || (isnan(value) && isnan(oracle))) continue;
        v->ok = false;
        snprintf(v->text, sizeof v->text, "element %lld is %.9g instead of %.9g, which it is a copy of (seed %llu)",
                 (long long)n, value, oracle, (unsigned long long)test_seed());
    }
}

/* What tensor cores and tiles lose, relative to a row's values: weights are of the values' type there. */
static double rounding_of_weights(const attention_results *r, const attention_problem *p) {
    if (!strstr(r->row, "attention_mma") && !strstr(r->row, "attention_tiles")) return 0;
    return 2 * ldexp(1, p->c.dtype == CLATTN_BF16 ? -8 : -11);
}

verdict attention_judge(const attention_results *r, const attention_problem *p) {
    verdict v = {.ok = true};
    for (size_t n = 0; n < COUNT(tensors) && v.ok; n++) {
        const clattn_tensor_id id = tensors[n].id;
        if (!r->data[id]) continue;
        expected_values expected = p->expected[id];
        expected.epsilon += rounding_of_weights(r, p) / 8; /* of which judge_values allows 8 */
        v = judge_values(r->data[id], &expected);
        if (tensors[n].use == UPDATE_OR_OUTPUT) judge_cache(&v, r->data[id], p, id);
        if (v.ok) continue;
        char text[sizeof v.text];
        snprintf(text, sizeof text, "%s", v.text);
        snprintf(v.text, sizeof v.text, "%s: %.280s", clattn_tensor_name(id), text);
    }
    return v;
}

void attention_assert_close(const attention_results *r, const attention_problem *p, const char *where) {
    const verdict v = attention_judge(r, p);
    if (!v.ok) ck_abort_msg("%s, %s (%s): %s", where, p->c.name, r->row, v.text);
}

void attention_assert_out(const float *out, const attention_problem *p, const char *where) {
    attention_results r = {.data = {[CLATTN_TENSOR_OUT] = widened(out, attention_count(p, CLATTN_TENSOR_OUT))}};
    attention_assert_close(&r, p, where);
    attention_results_free(&r);
}

void attention_assert_same(const attention_results *a, const attention_results *b, const attention_problem *p,
                           const char *where) {
    for (size_t n = 0; n < COUNT(tensors); n++) {
        const clattn_tensor_id id = tensors[n].id;
        assert_same_values(a->data[id], b->data[id], attention_count(p, id), where, clattn_tensor_name(id));
    }
}

void attention_assert_unseen(const attention_results *a, const attention_results *b, const attention_problem *p, int64_t j,
                             const char *where) {
    static const clattn_tensor_id ids[] = {CLATTN_TENSOR_OUT, CLATTN_TENSOR_LSE};
    const naive_attention_args args = naive_args(p);
    const int64_t heads = p->desc.q.size[1], len_q = p->desc.q.size[2];
    for (int64_t row = 0; row < p->c.batch * heads * len_q; row++) {
        const naive_member m = naive_member_of(&args, row / len_q / heads);
        if (naive_live(&args, &m, row / len_q % heads, row % len_q, m.past + j)) continue;
        for (size_t n = 0; n < COUNT(ids); n++) {
            const int64_t columns = p->expected[ids[n]].columns;
            char what[256];
            snprintf(what, sizeof what, "%s: row %lld, which does not look at it", where, (long long)row);
            assert_same_values(a->data[ids[n]] + row * columns, b->data[ids[n]] + row * columns, columns, what,
                               clattn_tensor_name(ids[n]));
        }
    }
}

int attention_outputs(const attention_problem *p, clattn_algorithm algorithm) {
    return p->c.ragged || algorithm != CLATTN_ALGORITHM_STAGED ? WANT_LSE : WANT_LSE | WANT_MATRICES;
}

/* ---- every row ---------------------------------------------------------------------------------------------------- */

enum { STAGED = ROLE_BIT(SCORES) | ROLE_BIT(MASK) | ROLE_BIT(SOFTMAX) | ROLE_BIT(WEIGHTED_VALUES) };

typedef struct check {
    attention_check function;
    const attention_problem *problem;
    clattn_algorithm algorithm;
    bool reference; /* and the reference */
} check;

/* Not every device computes in f64. */
static bool lacks_type(const clattn_context *context, const attention_problem *p) {
    return p->c.dtype == CLATTN_F64 && !context->backend->runs_operators && !context->device.has_f64;
}

bool attention_is_modified(const attention_case *c) { return c->softcap != 0 || c->mask.given || c->bias.given || c->alibi; }

static clattn__params params_of(const attention_problem *p, clattn_dtype dtype) {
    return (clattn__params){.attention = {.heads_q = p->c.heads_q,
                                          .heads_kv = p->c.heads_kv,
                                          .len_q = p->c.len_q,
                                          .head_dim = (i32)p->c.head_dim,
                                          .value_dim = (i32)p->c.value_dim,
                                          .dtype = (i32)dtype,
                                          .modified = attention_is_modified(&p->c)}};
}

/* OpenCL compiles a row for each type and size of heads, which takes a second or more. All rows prove themselves in f32, plain
 * and modified with small heads, fused and plain with large ones; of the rest of the variants only the row that is chosen. */
static bool is_spared(clattn_context *context, const attention_problem *p, const clattn__row *row,
                      const clattn__params *params) {
    const attention_case *c = &p->c;
    const bool is_small = c->head_dim <= 64 && c->value_dim <= 64, is_fused = row->role == CLATTN__ROLE_ATTENTION;
    if (context->device.info.kind < CLATTN_DEVICE_OPENCL_CPU) return false;
    if (c->dtype == CLATTN_F32 && (is_small || (is_fused && !attention_is_modified(c)))) return false;
    if (!is_fused && row->role != CLATTN__ROLE_ATTENTION_SPLIT) return false;
    force_none(context);
    const bool is_chosen = clattn__choose_row(context, row->role, params, NULL) == row;
    return !force_row(context, row, params) || !is_chosen;
}

static void check_row(clattn_context *context, const clattn__row *row, const char *where, void *data) {
    const check *c = data;
    const clattn__params params = params_of(c->problem, c->problem->c.dtype);
    if (row && lacks_type(context, c->problem)) return;
    if (!row && c->reference)
        c->function(context, c->problem, c->problem->c.ragged ? CLATTN_ALGORITHM_AUTO : CLATTN_ALGORITHM_STAGED, where);
    if (row && !is_spared(context, c->problem, row, &params)) c->function(context, c->problem, c->algorithm, where);
}

void attention_on_every_row(const attention_problem *p, attention_check function) {
    const clattn_dtype dtype = p->c.dtype, arithmetic = dtype == CLATTN_F64 ? CLATTN_F64 : CLATTN_F32;
    const clattn__params params = params_of(p, dtype), staged = params_of(p, arithmetic), none = {0};
    const bool copies = p->c.cache || p->c.rotary || dtype != arithmetic;
    for_every_row(ROLE_BIT(ATTENTION), &params, check_row, &(check){function, p, CLATTN_ALGORITHM_FUSED, true});
    if (p->c.ragged) return;
    for_every_row(STAGED, &staged, check_row, &(check){function, p, CLATTN_ALGORITHM_STAGED});
    if (copies) for_every_row(ROLE_BIT(COPY), &none, check_row, &(check){function, p, CLATTN_ALGORITHM_STAGED});
    if (dtype == CLATTN_F64 || p->c.bias.lowest) return; /* split serves no such type, and no such scores: see clattn_algorithm */
    for_every_row(ROLE_BIT(ATTENTION_SPLIT), &params, check_row, &(check){function, p, CLATTN_ALGORITHM_SPLIT});
}

void attention_on_every_device(const attention_problem *p, attention_check function) {
    for (size_t d = 0; d < test_device_count(); d++) {
        clattn_context *context = test_context(d);
        if (!context) continue;
        const clattn_attention_desc desc = attention_desc(p, LAYOUT_BHLD, 0);
        if (lacks_type(context, p)) {
            assert_status(context, clattn_supports_attention(context, &desc, NULL), CLATTN_ERROR_UNSUPPORTED);
            continue;
        }
        function(context, p, CLATTN_ALGORITHM_AUTO, test_device_name(d));
        if (!p->c.ragged) function(context, p, CLATTN_ALGORITHM_STAGED, test_device_name(d));
    }
}
