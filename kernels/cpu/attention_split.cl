/* Attention of few queries over many keys, a part of the keys at a time: for each part softmax(scores) V over its live keys and
 * the log-sum-exp, which the role merge makes one.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Bound by memory: each byte of K and V is read once for all rows of a group, which are the queries of all heads that share a
 * key/value head. Dims lie in lanes. A tile of TILE_KV keys stays in the nearest cache for
 *      scores    for each row, KEYS dot products at a time, summed across lanes together (sums.h)
 *      weights   keys in lanes; the running maximum and sum of a row rescaled                 (Dao 2023, algorithm 1)
 *      values    ROWS rows by VECTORS vectors of dims, or 1 by WIDE, in registers while the tile's keys go by
 * K and V of f32 whose dims are neighbours are read where they lie; others are copied a tile at a time, converted.
 *
 * group = ((part * batch + b) * heads_kv + g) * ceil(rows / TILE_Q) + tile of rows; row r of g is query r % len_q of head
 * g * ratio + r / len_q. Part `part` of member b is member part * batch + b of out and lse, both of f32.
 * Private memory: (HEAD_DIM_MAX + VALUE_DIM_MAX) * TILE_Q + TILE_KV * (TILE_Q + the larger of both) floats, of it only what the
 * dims in use need is touched.
 *
 * MODIFIED, masks, NaN: as in attention.cl.
 */
#include "../mask.h"
#include "gemm.h"
#include "row_options.h"
#include "sums.h"

#if !defined(ROWS) || !defined(VECTORS) || !defined(WIDE) || !defined(KEYS) || !defined(TILE_Q) || !defined(TILE_KV)
#error "ROWS, VECTORS, WIDE: register blocks of values; KEYS: of scores; TILE_Q: rows of a group; TILE_KV: keys of a tile"
#endif
#if !defined(HEAD_DIM_MAX) || !defined(VALUE_DIM_MAX) || !defined(MODIFIED)
#error "*_DIM_MAX: bounds of the dims; MODIFIED: whether scores go through options.h"
#endif
#if KEYS % VECTOR_WIDTH || TILE_KV % KEYS || DTYPE == DTYPE_F64
#error "KEYS must be a multiple of VECTOR_WIDTH, TILE_KV of KEYS; f64 is not served"
#endif
#define WHOLE_VECTORS(n) (((n) + WIDTH - 1) / WIDTH * WIDTH)
#define DIM_MAX (HEAD_DIM_MAX > VALUE_DIM_MAX ? HEAD_DIM_MAX : VALUE_DIM_MAX)

/* Scores are kept SCORE_UNIT times as large. */
#if MODIFIED
#define HAS_ELEMENTS(p) has_elements(p)
#define SCORE_UNIT 1.0f
#define weight_of(score) vec_exp2((score) * LOG2_E)
#else
#define HAS_ELEMENTS(p) 0
#define SCORE_UNIT LOG2_E
#define weight_of(score) vec_exp2(score)
#endif

/* s[j] = <q, k[j]> for KEYS keys. */
#define DEFINE_DOTS(name, SPACE)                                                                                         \
    INLINE void name(float *s, SPACE const float *k, i64 step, const float *q, int dim) {                                \
        vec sum[KEYS];                                                                                                   \
        UNROLL for (int j = 0; j < KEYS; j++) sum[j] = vec_splat(0.0f);                                                  \
        for (int d = 0; d < dim; d += WIDTH) {                                                                           \
            const vec q_d = vec_load(q + d);                                                                             \
            UNROLL for (int j = 0; j < KEYS; j++) sum[j] += q_d * vec_load(k + j * step + d);                            \
        }                                                                                                                \
        UNROLL for (int j = 0; j < KEYS; j += WIDTH) vec_store(sums_of(sum + j), s + j);                                 \
    }

/* The micro-kernels: for the tile's copy, and for where it lies. */
DEFINE_DOTS(dots_copy, __private)
DEFINE_MULTIPLY(many_copy, ROWS, VECTORS, __private, __private)
DEFINE_MULTIPLY(many_narrow_copy, ROWS, 1, __private, __private)
DEFINE_MULTIPLY(one_copy, 1, WIDE, __private, __private)
DEFINE_MULTIPLY(one_narrow_copy, 1, 1, __private, __private)
#if STORED_IS_REAL
DEFINE_DOTS(dots_there, __global)
DEFINE_MULTIPLY(many_there, ROWS, VECTORS, __private, __global)
DEFINE_MULTIPLY(many_narrow_there, ROWS, 1, __private, __global)
DEFINE_MULTIPLY(one_there, 1, WIDE, __private, __global)
DEFINE_MULTIPLY(one_narrow_there, 1, 1, __private, __global)
#endif

/* Keys or values of a tile of keys: element (j, d) is at j * step + d. */
typedef struct tile {
    __global const stored *there; /* NULL where they had to be copied */
    const float *copy;
    i64 step;
} tile;

#if STORED_IS_REAL
#define IN_PLACE(t) ((t)->there != 0)
#define tile_element(t, n) (IN_PLACE(t) ? (t)->there[n] : (t)->copy[n])
#else
#define IN_PLACE(t) 0
#define tile_element(t, n) (t)->copy[n]
#endif

/* One row of a group. */
typedef struct row {
    key_range live; /* its keys, but those that elements mask */
    int first, end; /* which of the tile they are */
    float max;      /* of its scores so far */
    float rescale;  /* e^(old max - new) */
    row_options options;
} row;

typedef struct work {
    const attention_params *p;
    const member *m;
    int count;                 /* rows */
    i64 q_step, out_step;      /* from one row to the next */
    row *rows;
    vec *sums;                 /* of a row's weights so far, one in each lane */
    float *q, *out;            /* [count][*_step], q scaled, out not yet divided */
    float *s, *addends, *copy; /* [count][TILE_KV], the same, and a tile of keys or of values */
    i64 start;                 /* the tile's first key */
    int first, end;            /* which of its keys any row looks at, */
    int partial;               /* and whether some row looks at fewer */
} work;

/* ---- the tile of keys ---------------------------------------------------------------------------------------------- */

/* Whether elements leave any key of the tile to any row. */
INLINE int addends_of_tile(work *w) {
    const vec masked = vec_splat(-INFINITY);
    ivec any = ivec_splat(0);
    for (int r = 0; r < w->count; r++) {
        float *addends = w->addends + r * TILE_KV;
        for (int j = 0; j < TILE_KV; j += WIDTH) vec_store(masked, addends + j);
        row_addends(addends + w->first, &w->rows[r].options, w->p, w->start + w->first, w->end - w->first);
        for (int j = 0; j < TILE_KV; j += WIDTH) any |= vec_load(addends + j) != masked;
        for (int j = w->first; j < w->end; j++) w->partial |= addends[j] == -INFINITY;
    }
    return ivec_any(any);
}

/* Whether any row looks at any key of the tile from `start` on, and which. */
INLINE int look_at_tile(work *w, i64 start) {
    w->start = start;
    w->first = TILE_KV;
    w->end = 0;
    w->partial = 0;
    for (int r = 0; r < w->count; r++) {
        const key_range live = range_in_tile(w->rows[r].live, start, TILE_KV);
        w->rows[r].first = (int)live.first;
        w->rows[r].end = (int)live.end;
        if (live.first == live.end) continue;
        if (w->first > live.first) w->first = (int)live.first;
        if (w->end < live.end) w->end = (int)live.end;
    }
    if (w->first >= w->end) return 0;
    for (int r = 0; r < w->count; r++) w->partial |= w->rows[r].first != w->first || w->rows[r].end != w->end;
    return !HAS_ELEMENTS(w->p) || addends_of_tile(w);
}

/* Rows [first, end) of a tile of `dim` columns, where they lie if that is how a kernel of whole vectors can read them. */
INLINE tile tile_of(__global const stored *x, const strides *stride, int dim, int first, int end, int whole, float *copy) {
    const int step = WHOLE_VECTORS(dim);
    if (STORED_IS_REAL && stride->d == 1 && dim == step && whole) {
        const tile there = {x, copy, stride->l};
        return there;
    }
    for (int j = first; j < end; j++) {
        stored_row_load(copy + j * step, x + j * stride->l, stride->d, dim);
        for (int d = dim; d < step; d++) copy[j * step + d] = 0.0f;
    }
    const tile copied = {0, copy, step};
    return copied;
}

/* ---- scores -------------------------------------------------------------------------------------------------------- */

/* Raw scores of a row's keys [from, to) to scores, -infinity where masked. */
INLINE void finish_scores(const work *w, int r, int from, int to) {
    const row *row = &w->rows[r];
    float *s = w->s + r * TILE_KV;
    if (MODIFIED) {
        for (int j = from; j < to; j += WIDTH) {
            const vec raw = vec_load(s + j);
            vec_store(row_modified(raw, &row->options, w->p, w->addends + r * TILE_KV + j, w->start + j), s + j);
        }
    }
    for (int j = from; j < row->first; j++) s[j] = -INFINITY;
    for (int j = row->end > from ? row->end : from; j < to; j++) s[j] = -INFINITY;
}

INLINE void tile_scores(work *w, __global const stored *k, int from, int to) {
    const attention_params *p = w->p;
    const tile keys = tile_of(k + w->start * p->k.l, &p->k, p->head_dim, from, w->end, w->start + to <= w->m->len_kv, w->copy);
    for (int n = w->end * (int)keys.step; !IN_PLACE(&keys) && n < to * keys.step; n++) w->copy[n] = 0.0f;
    for (int j = from; j < to; j += KEYS) {
        for (int r = 0; r < w->count; r++) {
            float *s = w->s + r * TILE_KV + j;
            const float *q = w->q + r * w->q_step;
#if STORED_IS_REAL
            if (IN_PLACE(&keys)) {
                dots_there(s, keys.there + j * keys.step, keys.step, q, (int)w->q_step);
                continue;
            }
#endif
            dots_copy(s, keys.copy + j * keys.step, keys.step, q, (int)w->q_step);
        }
    }
    for (int r = 0; r < w->count; r++) finish_scores(w, r, from, to);
}

/* ---- weights ------------------------------------------------------------------------------------------------------- */

/* A row's scores to weights, not yet divided by their sum. A NaN need not be the maximum: its weight is NaN, and so is the sum. */
INLINE void row_weights(work *w, int r, int from, int to) {
    row *row = &w->rows[r];
    float *s = w->s + r * TILE_KV, lanes[WIDTH], max = row->max;
    vec top = vec_splat(-INFINITY), sum;
    for (int j = from; j < to; j += WIDTH) top = vec_max(top, vec_load(s + j));
    vec_store(top, lanes);
    for (int lane = 0; lane < WIDTH; lane++) max = lanes[lane] > max ? lanes[lane] : max;

    const vec shift = vec_splat(max == -INFINITY ? 0.0f : max);
    vec_store(weight_of(vec_splat(row->max) - shift), lanes);
    row->rescale = lanes[0];
    row->max = max;
    sum = w->sums[r] * row->rescale;
    for (int j = from; j < to; j += WIDTH) {
        const vec weight = weight_of(vec_load(s + j) - shift);
        sum += weight;
        vec_store(weight, s + j);
    }
    w->sums[r] = sum;
}

/* ---- values -------------------------------------------------------------------------------------------------------- */

/* Dims d to d + dims of a row without the keys that it does not look at: their weights are 0, their values may be anything. */
static void values_of_live(const work *w, const tile *values, int r, int d, int dims) {
    const row *row = &w->rows[r];
    const float *s = w->s + r * TILE_KV;
    float *out = w->out + r * w->out_step + d;
    for (int n = 0; n < dims; n++) {
        float sum = row->rescale * out[n];
        for (int j = row->first; j < row->end; j++) {
            if (HAS_ELEMENTS(w->p) && w->addends[r * TILE_KV + j] == -INFINITY) continue;
            sum += s[j] * tile_element(values, j * values->step + d + n);
        }
        out[n] = sum;
    }
}

#if STORED_IS_REAL
#define MULTIPLY_TILE(name, acc, rows, weights, values, at, step, keys)                                                  \
    if (IN_PLACE(values))                                                                                                \
        name##_there(acc, rows, weights, TILE_KV, 1, (values)->there + (at), step, keys);                                \
    else                                                                                                                 \
        name##_copy(acc, rows, weights, TILE_KV, 1, (values)->copy + (at), step, keys)
#else
#define MULTIPLY_TILE(name, acc, rows, weights, values, at, step, keys)                                                  \
    name##_copy(acc, rows, weights, TILE_KV, 1, (values)->copy + (at), step, keys)
#endif

/* `rows` rows from r on, R at most; V vectors from dim d on. */
#define DEFINE_VALUES(name, R, V)                                                                                        \
    INLINE void name##_values(const work *w, const tile *values, int r, int rows, int d) {                               \
        vec acc[R][V], nothing = vec_splat(0.0f);                                                                        \
        float *out = w->out + r * w->out_step + d;                                                                       \
        UNROLL for (int n = 0; n < R; n++) UNROLL for (int v = 0; v < V; v++) acc[n][v] =                                \
            w->rows[r + ROW_AT(n, rows)].rescale * vec_load(out + ROW_AT(n, rows) * w->out_step + v * WIDTH);            \
        MULTIPLY_TILE(name, acc, rows, w->s + r * TILE_KV + w->first, values, w->first * values->step + d, values->step, \
                      w->end - w->first);                                                                                \
        if (w->partial) {                                                                                                \
            UNROLL for (int n = 0; n < R; n++) UNROLL for (int v = 0; v < V; v++) nothing += acc[n][v] - acc[n][v];      \
            if (vec_any_nan(nothing)) {                                                                                  \
                for (int n = 0; n < R && n < rows; n++) values_of_live(w, values, r + n, d, V * WIDTH);                  \
                return;                                                                                                  \
            }                                                                                                            \
        }                                                                                                                \
        UNROLL for (int n = 0; n < R; n++) UNROLL for (int v = 0; v < V; v++) if (n < rows)                              \
            vec_store(acc[n][v], out + n * w->out_step + v * WIDTH);                                                     \
    }
DEFINE_VALUES(many, ROWS, VECTORS)
DEFINE_VALUES(many_narrow, ROWS, 1)
DEFINE_VALUES(one, 1, WIDE)
DEFINE_VALUES(one_narrow, 1, 1)

INLINE void tile_values(work *w, __global const stored *v) {
    const attention_params *p = w->p;
    const tile values = tile_of(v + w->start * p->v.l, &p->v, p->value_dim, w->first, w->end, 1, w->copy);
    const int dim = (int)w->out_step;
    for (int r = 0; r < w->count; r += ROWS) {
        const int rows = w->count - r;
        int d = 0;
        if (rows == 1) {
            for (; d + WIDE * WIDTH <= dim; d += WIDE * WIDTH) one_values(w, &values, r, 1, d);
            for (; d < dim; d += WIDTH) one_narrow_values(w, &values, r, 1, d);
            continue;
        }
        for (; d + VECTORS * WIDTH <= dim; d += VECTORS * WIDTH) many_values(w, &values, r, rows, d);
        for (; d < dim; d += WIDTH) many_narrow_values(w, &values, r, rows, d);
    }
}

/* ---- a group ------------------------------------------------------------------------------------------------------- */

/* The keys of the part that any row looks at. */
INLINE key_range live_in_part(const work *w) {
    key_range any = {w->m->len_kv, 0};
    for (int r = 0; r < w->count; r++) {
        const key_range live = w->rows[r].live;
        if (live.first == live.end) continue;
        if (any.first > live.first) any.first = live.first;
        if (any.end < live.end) any.end = live.end;
    }
    return any;
}

INLINE void attend_part(work *w, __global const stored *k, __global const stored *v) {
    const key_range live = live_in_part(w);
    for (i64 start = live.first / TILE_KV * TILE_KV; start < live.end; start += TILE_KV) {
        if (!look_at_tile(w, start)) continue;
        const int from = w->first / KEYS * KEYS, to = (w->end + KEYS - 1) / KEYS * KEYS;
        tile_scores(w, k, from, to);
        for (int r = 0; r < w->count; r++) row_weights(w, r, from, to);
        tile_values(w, v);
    }
}

/* Row r of the group is query i of head h. */
INLINE void load_row(work *w, int r, __global const stored *q, key_range part, i64 i, row_options options) {
    const attention_params *p = w->p;
    const key_range live = live_range(p, w->m, i);
    row *row = &w->rows[r];
    float *to = w->q + r * w->q_step;
    row->live.first = mask_clamp(live.first, part.first, part.end);
    row->live.end = mask_clamp(live.end, row->live.first, part.end);
    row->max = -INFINITY;
    row->options = options;
    w->sums[r] = vec_splat(0.0f);
    for (int d = 0; d < w->q_step; d++) to[d] = d < p->head_dim ? stored_load(q + d * p->q.d) * (p->scale * SCORE_UNIT) : 0.0f;
    for (int d = 0; d < w->out_step; d++) w->out[r * w->out_step + d] = 0.0f;
}

/* Divide by the sum. A sum of 0 is that of a row without a finite score, all of whose weights are 0. */
INLINE void store_row(const work *w, int r, __global float *out, __global float *lse) {
    const float *from = w->out + r * w->out_step;
    float lanes[WIDTH], sum = 0.0f;
    vec_store(w->sums[r], lanes);
    for (int lane = 0; lane < WIDTH; lane++) sum += lanes[lane];
    const float factor = sum == 0.0f ? 1.0f : 1.0f / sum;
    for (int d = 0; d < w->p->value_dim; d++) out[d * w->p->out.d] = from[d] * factor;
    *lse = w->rows[r].max * (1.0f / SCORE_UNIT) + log(sum);
}

__kernel GROUP_OF_ONE void attention_split(__global const stored *restrict q, __global const stored *restrict k,
                                           __global const stored *restrict v, __global float *restrict out,
                                           __global float *restrict lse, INT_BUFFER kv_lengths, __global const uchar *mask,
                                           __global const void *bias, __global const float *slopes, attention_params p) {
    vec q_memory[TILE_Q * (HEAD_DIM_MAX + WIDTH - 1) / WIDTH], out_memory[TILE_Q * (VALUE_DIM_MAX + WIDTH - 1) / WIDTH];
    vec s_memory[TILE_Q * TILE_KV / WIDTH], addends_memory[MODIFIED ? TILE_Q * TILE_KV / WIDTH : 1], sums[TILE_Q];
    vec copy_memory[TILE_KV * (DIM_MAX + WIDTH - 1) / WIDTH];
    row rows[TILE_Q];
    q += p.base[0], k += p.base[1], v += p.base[2], out += p.base[3], lse += p.base[4], kv_lengths += p.base[5];
    mask += p.base[6], slopes += p.base[8];
    bias = bias_from(&p, bias, p.base[7]);
    const i64 ratio = p.heads_q / p.heads_kv, count = ratio * p.len_q, tiles = (count + TILE_Q - 1) / TILE_Q;
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        const i64 r_0 = group % tiles * TILE_Q, g = group / tiles % p.heads_kv, b_out = group / tiles / p.heads_kv;
        const i64 b = b_out % p.batch, part = b_out / p.batch;
        const member whole = member_of(&p, kv_lengths, kv_lengths, kv_lengths, b);
        const member m = MODIFIED ? within_elements(&p, whole) : whole;
        const key_range keys = {part * p.split, m.len_kv < (part + 1) * p.split ? m.len_kv : (part + 1) * p.split};
        work w = {&p, &m, (int)(count - r_0 < TILE_Q ? count - r_0 : TILE_Q), WHOLE_VECTORS(p.head_dim), WHOLE_VECTORS(p.value_dim),
                  rows, sums, (float *)q_memory, (float *)out_memory, (float *)s_memory, (float *)addends_memory,
                  (float *)copy_memory, 0, 0, 0, 0};
        for (int r = 0; r < w.count; r++) {
            const i64 h = g * ratio + (r_0 + r) / p.len_q, i = (r_0 + r) % p.len_q;
            const float slope = MODIFIED ? slope_of(&p, slopes, b, h) : 0.0f;
            load_row(&w, r, q + b * p.q.b + h * p.q.h + i * p.q.l, keys, i,
                     row_options_of(&p, mask, bias, b, h, i, i + m.offset, slope));
        }
        attend_part(&w, k + b * p.k.b + g * p.k.h, v + b * p.v.b + g * p.v.h);
        for (int r = 0; r < w.count; r++) {
            const i64 h = g * ratio + (r_0 + r) / p.len_q, i = (r_0 + r) % p.len_q;
            store_row(&w, r, out + b_out * p.out.b + h * p.out.h + i * p.out.l, lse + b_out * p.lse.b + h * p.lse.h + i * p.lse.l);
        }
    }
}
