/* Attention of few queries over many keys, a part of the keys at a time: for each part softmax(scores) V over its live keys and
 * the log-sum-exp, which the role merge makes one. Where so many rows share a key that they fill vectors attention_rows.cl does it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Bound by memory: each byte of K and V is read once for all rows of a group, which are the queries of all heads that share a
 * key/value head, and in the order in which it lies there. Dims lie in lanes. For each tile of TILE_KV keys
 *      scores    the dot products of ROWS rows with KEYS / ROWS keys, or of one row with KEYS, summed across lanes together (sums.h)
 *      weights   keys in lanes; the running maximum and sum of a row rescaled                 (Dao 2023, algorithm 1)
 *      values    KEYS keys added to ROWS rows or to one, some vectors of a row at a time, which stay in registers
 * K and V whose dims are neighbours are read where they lie; others, and 16-bit ones for many rows, are copied, converted, KEYS keys
 * at a time.
 *
 * group: split_group_at (mask.h) with tiles of TILE_Q rows. Results are of f32.
 * Private memory: (HEAD_DIM_MAX + VALUE_DIM_MAX + TILE_KV) * TILE_Q + KEYS * DIM_MAX floats, where MODIFIED TILE_KV * TILE_Q more;
 * of it only what the dims and rows in use need is touched.
 *
 * MODIFIED, NaN: as in attention.cl. A masked key weighs 0; where V of KEYS keys of which some are masked is not finite, 0 * V may be
 * NaN, and each row goes over its live keys alone.
 *
 * Keys that come next are fetched while others are read, a line for each that is: in bursts they wait for one another. Each block of
 * ROWS rows fetches its share, so that there is something to wait for while the others compute.
 * Tried (AVX-512, one core, times reading and summing the same bytes, in turns; D128, 16384 keys, one query of 32 heads over 8; f32,
 * f16): as it is 1.23, 1.51; fetched in bursts of FEW keys, KEYS / ROWS keys added to rows in memory, f16 converted into a copy
 * 1.41, 1.98.
 * Tried (likewise, f32, 8192 keys, 2 and 4 queries, times the same reading): all fetched by the first block 1.42, 2.23; a share by each
 * 1.25, 2.06 to 2.12; and keys FEW at a time meeting all rows 1.20, 2.0. Lines fetched 8 to 64 KiB ahead into the second-level cache, one
 * query: 1.15 to 1.29 for 1.04.
 * Tried (likewise, bf16, 16384 keys, one query): widened in turns, even elements by a shift, odd ones by a mask, an instruction for each
 * vector in place of two: in the second-level cache 1.10 times as fast, from the last cache 1.37 for 1.24 of the reading.
 * Tried (AVX2, one core, in that older form, times the processor time of the same reading; one query of 8 heads or of 32 over 8): as
 * it was 1.30, 1.36 to 1.45; without fetching ahead 1.74, 2.28; all of a tile of 32 keys fetched a phase ahead 1.40, 1.65; values of
 * ROWS x 2 vectors in registers while 32 keys go by, not fetched 1.65, 2.46; TILE_KV 64, 512 1.41, 1.47; 1.27, 1.46.
 */
#include "../mask.h"
#include "row_options.h"
#include "sums.h"

#if !defined(ROWS) || !defined(KEYS) || !defined(TILE_Q) || !defined(TILE_KV) || !defined(HEAD_DIM_MAX) || !defined(VALUE_DIM_MAX)
#error "ROWS, KEYS: the register blocks; TILE_Q: rows of a group; TILE_KV: keys of a tile; *_DIM_MAX: bounds of the dims"
#endif
#if !defined(MODIFIED)
#error "MODIFIED: whether scores go through options.h"
#endif
#if KEYS % VECTOR_WIDTH || KEYS % ROWS || TILE_KV % KEYS || DTYPE == DTYPE_F64
#error "KEYS must be a multiple of VECTOR_WIDTH and of ROWS, TILE_KV of KEYS; f64 is not served"
#endif
#define FEW (KEYS / ROWS)
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

/* ---- micro-kernels -------------------------------------------------------------------------------------------------
 * While they read some keys they fetch as many others, or their share of those, into the nearest cache. */

/* Lines that are to be fetched: `key` from one key to the next. Of up to four at a time line n is at n / 2 * two + n % 2 * one: whose
 * share is a half of them has two = 0, a quarter one = 0, too, and has the same lines fetched again, which costs no branch. */
typedef struct lines {
    __global const stored *at;
    i64 key, one, two;
} lines;
#define LINE_OF(lines, n) ((lines).at + (n) / 2 * (lines).two + (n) % 2 * (lines).one)

/* What block n of rows fetches of `count` lines that lie `step` apart, where each fetches `each`. */
INLINE lines share_of(lines all, int n, int each, int count, i64 step) {
    all.at += n * each % count * step;
    all.one = each > 1 ? step : 0;
    all.two = each > 2 ? 2 * step : 0;
    return all;
}

/* s[r][j] = <q[r], k[j]> for R rows and J keys, G of these at a time. */
#define DEFINE_DOTS(name, R, J, G, SPACE, TYPE, LOAD)                                                                    \
    INLINE void name(float *s, SPACE const TYPE *k, i64 step, lines ahead, const float *q, int dim) {                    \
        vec sum[R * J];                                                                                                  \
        float lanes[R * J];                                                                                              \
        UNROLL for (int n = 0; n < R * J; n++) sum[n] = vec_splat(0.0f);                                                 \
        UNROLL for (int g = 0; g < J; g += G) {                                                                          \
            for (int d = 0; d < dim; d += WIDTH) {                                                                       \
                vec k_d[G];                                                                                              \
                UNROLL for (int j = 0; j < G; j++) k_d[j] = LOAD(k + (g + j) * step + d);                                \
                if (WIDTH >= LINE || d % LINE == 0) UNROLL                                                               \
                    for (int j = 0; j < G; j++) FETCH(LINE_OF(ahead, j) + g * ahead.key + d);                            \
                UNROLL for (int r = 0; r < R; r++) {                                                                     \
                    const vec q_d = vec_load(q + r * dim + d);                                                           \
                    UNROLL for (int j = 0; j < G; j++) sum[r * J + g + j] += q_d * k_d[j];                               \
                }                                                                                                        \
            }                                                                                                            \
        }                                                                                                                \
        UNROLL for (int n = 0; n < R * J; n += WIDTH) vec_store(sums_of(sum + n), lanes + n);                            \
        UNROLL for (int r = 0; r < R; r++) UNROLL for (int j = 0; j < J; j++) s[r * TILE_KV + j] = lanes[r * J + j];     \
    }

/* out[r] += s[r][j] * v[j] for R rows and KEYS keys, one after the other: V vectors of a row, which stay in registers. */
#define DEFINE_VALUES_PART(name, R, V, SPACE, TYPE, LOAD)                                                                \
    INLINE void name(float *out, SPACE const TYPE *v, i64 step, lines ahead, const float *s, int dim) {                  \
        vec sum[R * (V)];                                                                                                \
        UNROLL for (int r = 0; r < R; r++) UNROLL for (int n = 0; n < V; n++) sum[r * (V) + n] =                         \
            vec_load(out + r * dim + n * WIDTH);                                                                         \
        for (int j = 0; j < KEYS; j++) {                                                                                 \
            vec v_j[V];                                                                                                  \
            UNROLL for (int n = 0; n < V; n++) v_j[n] = LOAD(v + j * step + n * WIDTH);                                  \
            UNROLL for (int n = 0; n < V; n++) if (n * WIDTH % LINE == 0)                                                \
                FETCH(LINE_OF(ahead, n * WIDTH / LINE) + j * ahead.key);                                                 \
            UNROLL for (int r = 0; r < R; r++) {                                                                         \
                const vec weight = vec_splat(s[r * TILE_KV + j]);                                                        \
                UNROLL for (int n = 0; n < V; n++) sum[r * (V) + n] += weight * v_j[n];                                  \
            }                                                                                                            \
        }                                                                                                                \
        UNROLL for (int r = 0; r < R; r++) UNROLL for (int n = 0; n < V; n++)                                            \
            vec_store(sum[r * (V) + n], out + r * dim + n * WIDTH);                                                      \
    }

#define DEFINE_VALUES(name, R, V, SPACE, TYPE, LOAD)                                                                     \
    DEFINE_VALUES_PART(name##_whole, R, V, SPACE, TYPE, LOAD)                                                            \
    DEFINE_VALUES_PART(name##_half, R, (V) / 2, SPACE, TYPE, LOAD)                                                       \
    DEFINE_VALUES_PART(name##_vector, R, 1, SPACE, TYPE, LOAD)                                                           \
    INLINE void name(float *out, SPACE const TYPE *v, i64 step, lines ahead, const float *s, int dim) {                  \
        int d = 0;                                                                                                       \
        for (; d + (V)*WIDTH <= dim; d += (V)*WIDTH, ahead.at += (V)*WIDTH)                                              \
            name##_whole(out + d, v + d, step, ahead, s, dim);                                                           \
        if (d + (V) / 2 * WIDTH <= dim) {                                                                                \
            name##_half(out + d, v + d, step, ahead, s, dim);                                                            \
            d += (V) / 2 * WIDTH, ahead.at += (V) / 2 * WIDTH;                                                           \
        }                                                                                                                \
        for (; d < dim; d += WIDTH, ahead.at += WIDTH) name##_vector(out + d, v + d, step, ahead, s, dim);               \
    }

/* As many sums as hide the latency of a multiply-add, and as there are registers for. The narrowest vectors take two instructions to
 * broadcast a weight, and a copy more for each product: fewer rows, of more vectors. */
#define VALUE_ROWS (WIDTH > 4 ? ROWS : ROWS / 2)
#define ROWS_VECTORS (WIDTH == 8 ? 2 : 4)
#define ROW_VECTORS 8
/* How many keys meet all rows before the next do. */
#define NEAR_KEYS (WIDTH > 4 ? FEW : KEYS)
#define VALUE_LINES ((ROWS_VECTORS * WIDTH + LINE - 1) / LINE)
DEFINE_DOTS(dots_copy, ROWS, FEW, FEW, __private, float, vec_load)
DEFINE_DOTS(dots_one_copy, 1, KEYS, FEW, __private, float, vec_load)
DEFINE_VALUES(values_copy, VALUE_ROWS, ROWS_VECTORS, __private, float, vec_load)
DEFINE_VALUES(values_one_copy, 1, ROW_VECTORS, __private, float, vec_load)
DEFINE_DOTS(dots_there, ROWS, FEW, FEW, __global, stored, stored_vec_load)
DEFINE_DOTS(dots_one_there, 1, KEYS, FEW, __global, stored, stored_vec_load)
DEFINE_VALUES(values_there, VALUE_ROWS, ROWS_VECTORS, __global, stored, stored_vec_load)
DEFINE_VALUES(values_one_there, 1, ROW_VECTORS, __global, stored, stored_vec_load)

/* KEYS keys or values: element (j, d) is at j * step + d. */
typedef struct keys {
    __global const stored *there; /* NULL where they had to be copied */
    const float *copy;
    i64 step;
    lines ahead; /* those that come next */
} keys;

#define ON_KEYS(name, to, x, j, ahead, from, dim)                                                                        \
    do {                                                                                                                 \
        if ((x)->there != 0)                                                                                             \
            name##_there(to, (x)->there + (j) * (x)->step, (x)->step, ahead, from, dim);                                 \
        else                                                                                                             \
            name##_copy(to, (x)->copy + (j) * (x)->step, (x)->step, ahead, from, dim);                                   \
    } while (0)

/* How many rows at most read keys where they lie: 16-bit elements are converted for each block of rows then, and for more of them once,
 * into a copy. The narrowest vectors have no instructions for it. */
#define ROWS_IN_PLACE (STORED_IS_REAL ? TILE_Q : WIDTH > 4 ? 2 * ROWS : VALUE_ROWS)

/* KEYS rows of a view, of which there are `count` to read, for so many rows of queries: where they lie if kernels of whole vectors
 * can read them there, else copied; 0 past the last row and the last column. */
INLINE keys keys_of(__global const stored *x, const strides *stride, int dim, int count, int rows, float *copy) {
    const int step = WHOLE_VECTORS(dim);
    const lines none = {x, 0, 0, 0};
    const keys copied = {0, copy, step, none};
    if (stride->d == 1 && dim == step && count >= KEYS && rows <= ROWS_IN_PLACE) {
        const keys there = {x, copy, stride->l, none};
        return there;
    }
    for (int j = 0; j < KEYS; j++) {
        const int columns = j < count ? dim : 0;
        stored_row_load(copy + j * step, x + j * stride->l, stride->d, columns);
        for (int d = columns; d < step; d++) copy[j * step + d] = 0.0f;
    }
    return copied;
}

INLINE vec keys_load(const keys *x, int j, int d) {
    if (x->there != 0) return stored_vec_load(x->there + j * x->step + d);
    return vec_load(x->copy + j * x->step + d);
}

/* ---- a group ------------------------------------------------------------------------------------------------------- */

typedef struct row {
    key_range live; /* its keys, but those that elements mask */
    int first, end; /* which of the tile they are */
    float max;      /* of its scores so far */
    row_options options;
} row;

typedef struct work {
    const attention_params *p;
    const member *m;
    int count;                 /* rows */
    int q_step, out_step;      /* from one row to the next */
    row *rows;
    vec *sums;                 /* of a row's weights so far, one in each lane */
    float *q, *out;            /* [count][*_step], q scaled, out not yet divided */
    float *s, *addends, *copy; /* [count][TILE_KV], the same, and what keys_of copies */
    i64 start;                 /* the tile's first key */
    int first, end;            /* which of its keys any row looks at: KEYS by KEYS; */
    int partial;               /* whether some row does not look at them all */
} work;

/* How many of `count` lines each block of so many rows fetches. */
INLINE int share(const work *w, int rows, int count) {
    return w->count < 2 * rows ? count : (count * rows + w->count - 1) / w->count;
}

/* ---- the tile of keys ---------------------------------------------------------------------------------------------- */

/* Whether elements leave any key of the tile to any row. */
INLINE int load_addends(work *w) {
    const vec masked = vec_splat(-INFINITY);
    ivec some = ivec_splat(0), all = ivec_splat(-1);
    for (int r = 0; r < w->count; r++) {
        const row *row = &w->rows[r];
        float *addends = w->addends + r * TILE_KV;
        for (int j = w->first; j < w->end; j += WIDTH) vec_store(masked, addends + j);
        row_addends(addends + row->first, &row->options, w->p, w->start + row->first, row->end - row->first);
        for (int j = w->first; j < w->end; j += WIDTH) {
            const ivec live = vec_load(addends + j) != masked;
            some |= live;
            all &= live;
        }
    }
    w->partial |= ivec_any(~all);
    return ivec_any(some);
}

/* Whether any row looks at any key of the tile from `start` on, and which. */
INLINE int look_at_tile(work *w, i64 start) {
    w->start = start;
    w->first = TILE_KV;
    w->end = 0;
    for (int r = 0; r < w->count; r++) {
        const key_range live = range_in_tile(w->rows[r].live, start, TILE_KV);
        w->rows[r].first = (int)live.first;
        w->rows[r].end = (int)live.end;
        if (live.first == live.end) continue;
        if (w->first > live.first) w->first = (int)live.first;
        if (w->end < live.end) w->end = (int)live.end;
    }
    if (w->first >= w->end) return 0;
    w->first = w->first / KEYS * KEYS;
    w->end = (w->end + KEYS - 1) / KEYS * KEYS;
    w->partial = 0;
    for (int r = 0; r < w->count; r++) w->partial |= w->rows[r].first != w->first || w->rows[r].end != w->end;
    return !HAS_ELEMENTS(w->p) || load_addends(w);
}

/* How many of the keys from j of the tile on the member has. */
INLINE int keys_left(const work *w, int j) {
    const i64 left = w->m->len_kv - w->start - j;
    return left < KEYS ? (int)left : KEYS;
}

/* ---- scores -------------------------------------------------------------------------------------------------------- */

/* A row's raw scores to scores, -infinity where masked. */
INLINE void finish_scores(const work *w, int r) {
    const row *row = &w->rows[r];
    float *s = w->s + r * TILE_KV;
    if (MODIFIED) {
        for (int j = w->first; j < w->end; j += WIDTH)
            vec_store(row_modified(vec_load(s + j), &row->options, w->p, w->addends + r * TILE_KV + j, w->start + j), s + j);
    }
    for (int j = w->first; j < row->first && j < w->end; j++) s[j] = -INFINITY;
    for (int j = row->end > w->first ? row->end : w->first; j < w->end; j++) s[j] = -INFINITY;
}

/* Of k and v what this tile's keys point at. */
INLINE void tile_scores(const work *w, __global const stored *k, __global const stored *v) {
    const attention_params *p = w->p;
    const int each = share(w, ROWS, FEW);
    for (int j = w->first; j < w->end; j += KEYS) {
        keys x = keys_of(k + j * p->k.l, &p->k, p->head_dim, keys_left(w, j), w->count, w->copy);
        const int last = j + KEYS == w->end;
        x.ahead.at = last ? v + w->first * p->v.l : k + (j + KEYS) * p->k.l;
        x.ahead.key = last ? p->v.l : p->k.l;
        const int blocks_end = w->count / ROWS * ROWS;
        for (int n = 0; n < KEYS; n += NEAR_KEYS) {
            for (int r = 0; r < blocks_end; r += ROWS) {
                lines ahead = share_of(x.ahead, r / ROWS, each, FEW, x.ahead.key);
                ahead.at += n * ahead.key;
                for (int near = n; near < n + NEAR_KEYS; near += FEW, ahead.at += FEW * ahead.key)
                    ON_KEYS(dots, w->s + r * TILE_KV + j + near, &x, near, ahead, w->q + r * w->q_step, w->q_step);
            }
        }
        const lines ahead = share_of(x.ahead, 0, FEW, FEW, x.ahead.key);
        for (int r = blocks_end; r < w->count; r++)
            ON_KEYS(dots_one, w->s + r * TILE_KV + j, &x, 0, ahead, w->q + r * w->q_step, w->q_step);
    }
    if (!MODIFIED && !w->partial) return;
    for (int r = 0; r < w->count; r++) finish_scores(w, r);
}

/* ---- weights ------------------------------------------------------------------------------------------------------- */

/* Scores of R rows to weights, not yet divided by their sums; what a row gathered so far is rescaled to the new maximum. A NaN need not
 * be the maximum: its weight is NaN, and so is the sum. Several rows at a time, since each waits for its maximum. */
#define DEFINE_WEIGHTS(name, R)                                                                                          \
    INLINE void name(const work *w, int first) {                                                                         \
        row *rows = &w->rows[first];                                                                                     \
        float *s = w->s + first * TILE_KV, *out = w->out + first * w->out_step, lanes[R][WIDTH], max[R];                 \
        vec top[R], shift[R], sum[R];                                                                                    \
        UNROLL for (int r = 0; r < R; r++) top[r] = vec_splat(-INFINITY);                                                \
        for (int j = w->first; j < w->end; j += WIDTH) UNROLL                                                            \
            for (int r = 0; r < R; r++) top[r] = vec_max(top[r], vec_load(s + r * TILE_KV + j));                         \
        UNROLL for (int r = 0; r < R; r++) vec_store(top[r], lanes[r]), max[r] = rows[r].max;                            \
        for (int lane = 0; lane < WIDTH; lane++) UNROLL                                                                  \
            for (int r = 0; r < R; r++) max[r] = lanes[r][lane] > max[r] ? lanes[r][lane] : max[r];                      \
        UNROLL for (int r = 0; r < R; r++) {                                                                             \
            shift[r] = vec_splat(max[r] == -INFINITY ? 0.0f : max[r]);                                                   \
            const vec rescale = weight_of(vec_splat(rows[r].max) - shift[r]);                                            \
            sum[r] = w->sums[first + r] * rescale;                                                                       \
            for (int d = 0; d < w->out_step && max[r] != rows[r].max; d += WIDTH)                                        \
                vec_store(rescale * vec_load(out + r * w->out_step + d), out + r * w->out_step + d);                     \
            rows[r].max = max[r];                                                                                        \
        }                                                                                                                \
        for (int j = w->first; j < w->end; j += WIDTH) UNROLL                                                            \
            for (int r = 0; r < R; r++) {                                                                                \
                const vec weight = weight_of(vec_load(s + r * TILE_KV + j) - shift[r]);                                  \
                sum[r] += weight;                                                                                        \
                vec_store(weight, s + r * TILE_KV + j);                                                                  \
            }                                                                                                            \
        UNROLL for (int r = 0; r < R; r++) w->sums[first + r] = sum[r];                                                  \
    }
DEFINE_WEIGHTS(rows_weights, ROWS)
DEFINE_WEIGHTS(row_weights, 1)

INLINE void tile_weights(const work *w) {
    int r = 0;
    for (; r + ROWS <= w->count; r += ROWS) rows_weights(w, r);
    for (; r < w->count; r++) row_weights(w, r);
}

/* ---- values -------------------------------------------------------------------------------------------------------- */

INLINE int keys_are_finite(const keys *x, int dim) {
    vec nothing = vec_splat(0.0f);
    for (int j = 0; j < KEYS; j++) {
        for (int d = 0; d < dim; d += WIDTH) nothing += keys_load(x, j, d) - keys_load(x, j, d);
    }
    return !vec_any_nan(nothing);
}

/* The values of a row's live keys among those from j on. */
static void add_live_values(const work *w, const keys *x, int r, int j) {
    const row *row = &w->rows[r];
    float *out = w->out + r * w->out_step;
    for (int n = 0; n < KEYS; n++) {
        if (j + n < row->first || j + n >= row->end) continue;
        if (HAS_ELEMENTS(w->p) && w->addends[r * TILE_KV + j + n] == -INFINITY) continue;
        const vec weight = vec_splat(w->s[r * TILE_KV + j + n]);
        for (int d = 0; d < w->out_step; d += WIDTH) vec_store(vec_load(out + d) + weight * keys_load(x, n, d), out + d);
    }
}

INLINE void tile_values(const work *w, __global const stored *k, __global const stored *v) {
    const attention_params *p = w->p;
    const int each = share(w, VALUE_ROWS, VALUE_LINES);
    for (int j = w->first; j < w->end; j += KEYS) {
        keys x = keys_of(v + j * p->v.l, &p->v, p->value_dim, keys_left(w, j), w->count, w->copy);
        const int last = j + KEYS == w->end;
        x.ahead.at = last ? k + TILE_KV * p->k.l : v + (j + KEYS) * p->v.l;
        x.ahead.key = last ? p->k.l : p->v.l;
        int r = 0;
        if (w->partial && !keys_are_finite(&x, w->out_step)) {
            for (; r < w->count; r++) add_live_values(w, &x, r, j);
            continue;
        }
        for (; r + VALUE_ROWS <= w->count; r += VALUE_ROWS) {
            const lines ahead = share_of(x.ahead, r / VALUE_ROWS, each, VALUE_LINES, LINE);
            ON_KEYS(values, w->out + r * w->out_step, &x, 0, ahead, w->s + r * TILE_KV + j, w->out_step);
        }
        const lines ahead = share_of(x.ahead, 0, VALUE_LINES, VALUE_LINES, LINE);
        for (; r < w->count; r++) ON_KEYS(values_one, w->out + r * w->out_step, &x, 0, ahead, w->s + r * TILE_KV + j, w->out_step);
    }
}

/* ---- the part ------------------------------------------------------------------------------------------------------ */

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
        tile_scores(w, k + start * w->p->k.l, v + start * w->p->v.l);
        tile_weights(w);
        tile_values(w, k + start * w->p->k.l, v + start * w->p->v.l);
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
    for (int d = 0; d < p->head_dim; d++) to[d] = stored_load(q + d * p->q.d) * (p->scale * SCORE_UNIT);
    for (int d = p->head_dim; d < w->q_step; d++) to[d] = 0.0f;
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
    vec q_memory[TILE_Q * ((HEAD_DIM_MAX + WIDTH - 1) / WIDTH)], out_memory[TILE_Q * ((VALUE_DIM_MAX + WIDTH - 1) / WIDTH)];
    vec s_memory[TILE_Q * TILE_KV / WIDTH], addends_memory[MODIFIED ? TILE_Q * TILE_KV / WIDTH : 1], sums[TILE_Q];
    vec copy_memory[KEYS * ((DIM_MAX + WIDTH - 1) / WIDTH)];
    row rows[TILE_Q];
    q += p.base[0], k += p.base[1], v += p.base[2], out += p.base[3], lse += p.base[4], kv_lengths += p.base[5];
    mask += p.base[6], slopes += p.base[8];
    bias = bias_from(&p, bias, p.base[7]);
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        const split_group at = split_group_at(&p, TILE_Q, group);
        const member whole = member_of(&p, kv_lengths, kv_lengths, kv_lengths, at.b);
        const member m = MODIFIED ? within_elements(&p, whole) : whole;
        const key_range part = split_part(&p, &m, at.part);
        const i64 left = at.rows - at.first;
        work w = {&p, &m, (int)(left < TILE_Q ? left : TILE_Q), WHOLE_VECTORS(p.head_dim), WHOLE_VECTORS(p.value_dim),
                  rows, sums, (float *)q_memory, (float *)out_memory, (float *)s_memory, (float *)addends_memory,
                  (float *)copy_memory, 0, 0, 0, 0};
        for (int r = 0; r < w.count; r++) {
            const i64 h = at.h + (at.first + r) / p.len_q, i = (at.first + r) % p.len_q;
            const float slope = MODIFIED ? slope_of(&p, slopes, at.b, h) : 0.0f;
            load_row(&w, r, q + at.b * p.q.b + h * p.q.h + i * p.q.l, part, i,
                     row_options_of(&p, mask, bias, at.b, h, i, i + m.offset, slope));
        }
        attend_part(&w, k + at.b * p.k.b + at.g * p.k.h, v + at.b * p.v.b + at.g * p.v.h);
        for (int r = 0; r < w.count; r++) {
            const i64 h = at.h + (at.first + r) / p.len_q, i = (at.first + r) % p.len_q;
            store_row(&w, r, out + at.b_out * p.out.b + h * p.out.h + i * p.out.l,
                      lse + at.b_out * p.lse.b + h * p.lse.h + i * p.lse.l);
        }
    }
}
