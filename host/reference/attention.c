/* Attention in double precision: the oracle.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * For every batch member b, query head h and query i, with g = h / (heads_q / heads_kv) and over the keys j of that member:
 *   raw[j]    = scale * sum over d of q[b,h,i,d] * k[b,g,j,d]
 *   score[j]  = softcap * tanh(raw[j] / softcap) + bias[b,h,i,j] - slope[h] * |j - position of i|        -infinity for a masked j
 *   weight[j] = exp(score[j]) / (sum over live j of exp(score[j]) + exp(sink[h]))                        0 for a masked j
 *   out[d]    = sum over live j of weight[j] * v[b,g,j,d]
 *   lse       = log(sum over live j of exp(score[j]) + exp(sink[h]))
 * Keys and values are those of the cache and then the new ones; new keys, and the queries, may be rotated.
 */
#include <math.h>
#include <stdlib.h>

#include "reference.h"

typedef clattn__oracle_attention_args oracle;

/* A sum with what its roundings lost (Knuth, TAOCP 4.2.2, theorem B; Ogita, Rump and Oishi 2005, algorithm 4.4): its error does not
 * grow with the number of terms, so that f64 results of long rows can be judged by it. */
typedef struct compensated {
    double sum, lost;
} compensated;

static void add(compensated *s, double term) {
    const double sum = s->sum + term, added = sum - s->sum;
    s->lost += (s->sum - (sum - added)) + (term - added);
    s->sum = sum;
}

/* Infinite terms and NaN lose nothing that could be told. */
static double total(const compensated *s) { return isfinite(s->sum) ? s->sum + s->lost : s->sum; }

static double dot(const double *x, const double *y, i64 count) {
    compensated s = {0, 0};
    for (i64 n = 0; n < count; n++) add(&s, x[n] * y[n]);
    return total(&s);
}

/* ---- members of the batch ------------------------------------------------------------------------------------------------ */

/* One member: how much it has, and where. */
typedef struct member_of_batch {
    i64 b;              /* in the views' batch */
    i64 number;         /* among the members */
    i64 q_first, len_q; /* its rows of q */
    i64 kv_first;       /* its first row of k */
    i64 past, len_kv;   /* keys before the new ones; all keys */
} seat;

static i64 integer(const clattn__view *list, i64 b, i64 n) { return (i64)clattn__get(list, b, 0, 0, n); }

static seat seat_of(const oracle *a, i64 number) {
    seat m = {.b = number, .number = number, .len_q = a->q.size[2], .len_kv = a->k.size[2]};
    if (a->q_offsets.present) {
        m.b = 0;
        m.q_first = integer(&a->q_offsets, 0, number);
        m.len_q = integer(&a->q_offsets, 0, number + 1) - m.q_first;
        m.kv_first = integer(&a->kv_offsets, 0, number);
        m.len_kv = integer(&a->kv_offsets, 0, number + 1) - m.kv_first;
    }
    if (a->kv_lengths.present) m.len_kv = integer(&a->kv_lengths, number, 0);
    if (a->past_k.present) m.past = a->past_k.size[2];
    if (a->past_lengths.present) m.past = integer(&a->past_lengths, number, 0);
    m.len_kv += m.past;
    return m;
}

/* ---- keys, values and queries --------------------------------------------------------------------------------------------- */

/* One row of a head in double. */
static void read_row(const clattn__view *x, i64 b, i64 h, i64 l, double *row) {
    for (i64 d = 0; d < x->size[3]; d++) row[d] = clattn__get(x, b, h, l, d);
}

/* Su et al. 2021, eq. 34, on the pairs that the layout names. */
static void rotate(const oracle *a, i64 b, i64 position, double *row) {
    const i64 pairs = a->rotary_cos.size[3], table = a->rotary_cos.size[0] == 1 ? 0 : b;
    for (i64 t = 0; t < pairs && a->rotary != CLATTN_ROTARY_NONE; t++) {
        double *x = &row[a->rotary == CLATTN_ROTARY_HALF ? t : 2 * t], *y = a->rotary == CLATTN_ROTARY_HALF ? x + pairs : x + 1;
        const double cosine = clattn__get(&a->rotary_cos, table, 0, position, t), sine = clattn__get(&a->rotary_sin, table, 0, position, t);
        const double turned = *x * cosine - *y * sine;
        *y = *x * sine + *y * cosine;
        *x = turned;
    }
}

/* Where the first query and the first new key stand. */
static i64 first_position(const oracle *a, const seat *m) {
    if (a->past_k.present || a->past_lengths.present) return m->past;
    return a->options->align == CLATTN_ALIGN_PAST ? a->options->past_len : 0;
}

/* Stored as present is, where there is one: a key that was rotated is rounded before it is used. */
static void read_new_row(const oracle *a, const seat *m, const clattn__view *fresh, const clattn__view *present, bool rotates, i64 g,
                         i64 j, double *row) {
    read_row(fresh, m->b, g, m->kv_first + j, row);
    if (rotates) rotate(a, m->b, first_position(a, m) + j, row);
    for (i64 d = 0; d < fresh->size[3] && present->present; d++) {
        clattn__set(present, m->b, g, m->past + j, d, row[d]);
        row[d] = clattn__get(present, m->b, g, m->past + j, d);
    }
}

/* All rows of a member's head, past and new, [len_kv][dim]; written to present on the way. */
static void gather(const oracle *a, const seat *m, const clattn__view *fresh, const clattn__view *past, const clattn__view *present,
                   bool rotates, i64 g, double *rows) {
    const i64 dim = fresh->size[3];
    for (i64 j = 0; j < m->len_kv; j++) {
        if (j >= m->past) {
            read_new_row(a, m, fresh, present, rotates, g, j - m->past, rows + j * dim);
            continue;
        }
        read_row(past->present ? past : present, m->b, g, j, rows + j * dim);
        for (i64 d = 0; d < dim && past->present && present->present; d++) clattn__set(present, m->b, g, j, d, rows[j * dim + d]);
    }
}

/* ---- scores ---------------------------------------------------------------------------------------------------------------- */

static i64 position_of(const oracle *a, const seat *m, i64 i) {
    switch (a->options->align) {
    case CLATTN_ALIGN_TOP_LEFT: break;
    case CLATTN_ALIGN_BOTTOM_RIGHT: return i + m->len_kv - m->len_q;
    case CLATTN_ALIGN_PAST: return i + (a->past_k.present || a->past_lengths.present ? m->past : a->options->past_len);
    case CLATTN_ALIGN_OFFSET: return i + a->options->offset;
    }
    return i;
}

/* An element that broadcasts: a dimension of size 1 has one value for all. */
static double broadcast(const clattn__view *x, i64 b, i64 h, i64 i, i64 j) {
    return clattn__get(x, x->size[0] == 1 ? 0 : b, x->size[1] == 1 ? 0 : h, x->size[2] == 1 ? 0 : i, j);
}

static bool is_live_key(const oracle *a, const seat *m, i64 h, i64 i, i64 j) {
    const clattn_attention_options *options = a->options;
    const i64 position = position_of(a, m, i);
    if (j >= m->len_kv) return false;
    if (options->causal && j > position) return false;
    if (options->has_window && options->window_left >= 0 && j < position - options->window_left) return false;
    if (options->has_window && options->window_right >= 0 && j > position + options->window_right) return false;
    if (a->mask.present && (j >= a->mask.size[3] || broadcast(&a->mask, m->b, h, i, j) == 0)) return false;
    if (a->bias.present && (j >= a->bias.size[3] || broadcast(&a->bias, m->b, h, i, j) == -INFINITY)) return false;
    return true;
}

/* The slope of a head: Press et al. 2022, section 3, and for numbers that are no power of two their published code. */
static double slope_of(const oracle *a, const seat *m, i64 h) {
    if (a->alibi_slopes.present) return broadcast(&a->alibi_slopes, m->number, h, 0, 0);
    if (!a->options->alibi) return 0;
    const i64 heads = a->q.size[1];
    i64 power = 1;
    while (2 * power <= heads) power *= 2;
    return h < power ? pow(2, -8.0 * (double)(h + 1) / (double)power) : pow(2, -8.0 * (double)(2 * (h - power) + 1) / (double)(2 * power));
}

static double capped(const oracle *a, double raw) {
    const double softcap = a->options->softcap;
    return softcap ? softcap * tanh(raw / softcap) : raw;
}

/* One row of scores, and those of it that the caller wants. Raw ones are of every key there is memory for. */
static void compute_scores(const oracle *a, const seat *m, i64 h, i64 i, const double *q, const double *k, double *score) {
    const i64 head_dim = a->q.size[3];
    const double slope = slope_of(a, m, h);
    for (i64 j = 0; j < m->len_kv; j++) {
        const double raw = a->options->scale * dot(q, k + j * head_dim, head_dim);
        score[j] = capped(a, raw);
        double shown = a->options->scores_form == CLATTN_SCORES_RAW ? raw : score[j];
        if (a->bias.present && j < a->bias.size[3]) score[j] += broadcast(&a->bias, m->b, h, i, j);
        if (slope != 0) score[j] -= slope * fabs((double)(j - position_of(a, m, i)));
        if (!is_live_key(a, m, h, i, j)) score[j] = -INFINITY;
        if (a->options->scores_form == CLATTN_SCORES_BIAS) shown = score[j];
        if (a->scores.present) clattn__set(&a->scores, m->b, h, i, j, shown);
    }
}

/* What scores hold of keys past the member's: their products if the form has no mask, else -infinity. */
static void compute_padding(const oracle *a, const seat *m, i64 h, i64 g, i64 i, const double *q, double *key) {
    const bool in_place = a->past_lengths.present;
    for (i64 j = m->len_kv; a->scores.present && j < a->scores.size[3]; j++) {
        read_row(in_place ? &a->present_k : &a->k, m->b, g, j, key);
        if (!in_place) rotate(a, m->b, first_position(a, m) + j, key);
        const double raw = a->options->scale * dot(q, key, a->q.size[3]);
        const clattn_scores_form form = a->options->scores_form;
        clattn__set(&a->scores, m->b, h, i, j, form == CLATTN_SCORES_BIAS ? -INFINITY : form == CLATTN_SCORES_RAW ? raw : capped(a, raw));
    }
}

/* ---- softmax and values ----------------------------------------------------------------------------------------------------- */

/* Turn the row's scores into its weights, in place; returns the row's log-sum-exp. */
static double softmax(const oracle *a, const seat *m, i64 h, i64 i, double *row) {
    const double sink = a->sinks.present ? broadcast(&a->sinks, m->number, h, 0, 0) : -INFINITY;
    double row_max = sink;
    for (i64 j = 0; j < m->len_kv; j++) {
        if (is_live_key(a, m, h, i, j)) row_max = fmax(row_max, row[j]);
    }
    /* Any shift gives the same quotient; the maximum keeps exp from overflowing. Without a finite score none is needed. */
    double shift = row_max == -INFINITY ? 0 : row_max;
    compensated sum = {exp(sink - shift), 0};
    for (i64 j = 0; j < m->len_kv; j++) {
        if (is_live_key(a, m, h, i, j)) add(&sum, exp(row[j] - shift));
    }
    const double row_sum = total(&sum);
    for (i64 j = 0; j < m->len_kv; j++) {
        const bool weighs = is_live_key(a, m, h, i, j) && row[j] != -INFINITY;
        row[j] = weighs ? exp(row[j] - shift) / row_sum : 0;
    }
    return shift + log(row_sum);
}

static void weigh_values(const oracle *a, const seat *m, i64 h, i64 i, const double *weight, const double *v) {
    const i64 value_dim = a->v.size[3];
    for (i64 d = 0; d < value_dim; d++) {
        compensated sum = {0, 0};
        for (i64 j = 0; j < m->len_kv; j++) {
            if (is_live_key(a, m, h, i, j)) add(&sum, weight[j] * v[j * value_dim + d]);
        }
        clattn__set(&a->out, m->b, h, m->q_first + i, d, total(&sum));
    }
}

static void attend_row(const oracle *a, const seat *m, i64 h, i64 g, i64 i, const double *k, const double *v, double *q, double *key,
                       double *row) {
    read_row(&a->q, m->b, h, m->q_first + i, q);
    rotate(a, m->b, first_position(a, m) + i, q);
    for (i64 d = 0; d < a->q.size[3] && a->rotary; d++) q[d] = clattn__round(a->q.dtype, q[d]);
    compute_scores(a, m, h, i, q, k, row);
    compute_padding(a, m, h, g, i, q, key);
    const double lse = softmax(a, m, h, i, row);
    if (a->lse.present) clattn__set(&a->lse, m->b, h, m->q_first + i, 0, lse);
    for (i64 j = 0; a->weights.present && j < a->weights.size[3]; j++)
        clattn__set(&a->weights, m->b, h, i, j, j < m->len_kv ? row[j] : 0);
    weigh_values(a, m, h, i, row, v);
}

/* ---- the operator ------------------------------------------------------------------------------------------------------------ */

static i64 most_keys(const oracle *a) {
    if (a->past_lengths.present) return a->present_k.size[2];
    return a->k.size[2] + (a->past_k.present ? a->past_k.size[2] : 0);
}

clattn_status clattn__oracle_attention(const oracle *a) {
    const i64 members = a->q_offsets.present ? a->q_offsets.size[3] - 1 : a->q.size[0];
    const i64 heads_q = a->q.size[1], heads_kv = a->k.size[1], len_kv = most_keys(a);
    double *k = clattn__new_doubles(1, 1, len_kv, a->q.size[3]), *v = clattn__new_doubles(1, 1, len_kv, a->v.size[3]);
    double *row = clattn__new_doubles(1, 1, 1, len_kv), *q = clattn__new_doubles(1, 1, 1, a->q.size[3]);
    double *key = clattn__new_doubles(1, 1, 1, a->q.size[3]);
    const clattn_status status = k && v && row && q && key ? CLATTN_OK : CLATTN_ERROR_MEMORY;
    for (i64 number = 0; number < members && status == CLATTN_OK; number++) {
        const seat m = seat_of(a, number);
        for (i64 g = 0; g < heads_kv; g++) {
            gather(a, &m, &a->k, &a->past_k, &a->present_k, true, g, k);
            gather(a, &m, &a->v, &a->past_v, &a->present_v, false, g, v);
            for (i64 h = g * (heads_q / heads_kv); h < (g + 1) * (heads_q / heads_kv); h++) {
                for (i64 i = 0; i < m.len_q; i++) attend_row(a, &m, h, g, i, k, v, q, key, row);
            }
        }
    }
    free(key);
    free(q);
    free(row);
    free(v);
    free(k);
    return status;
}

clattn_status clattn__reference_attention(const clattn_plan *plan, void *const tensors[CLATTN_TENSOR_COUNT]) {
    const oracle args = {
        .q = clattn__view_of(plan, tensors, CLATTN_TENSOR_Q),
        .k = clattn__view_of(plan, tensors, CLATTN_TENSOR_K),
        .v = clattn__view_of(plan, tensors, CLATTN_TENSOR_V),
        .out = clattn__view_of(plan, tensors, CLATTN_TENSOR_OUT),
        .lse = clattn__view_of(plan, tensors, CLATTN_TENSOR_LSE),
        .scores = clattn__view_of(plan, tensors, CLATTN_TENSOR_SCORES),
        .weights = clattn__view_of(plan, tensors, CLATTN_TENSOR_WEIGHTS),
        .mask = clattn__view_of(plan, tensors, CLATTN_TENSOR_MASK),
        .bias = clattn__view_of(plan, tensors, CLATTN_TENSOR_BIAS),
        .alibi_slopes = clattn__view_of(plan, tensors, CLATTN_TENSOR_ALIBI_SLOPES),
        .sinks = clattn__view_of(plan, tensors, CLATTN_TENSOR_SINKS),
        .kv_lengths = clattn__view_of(plan, tensors, CLATTN_TENSOR_KV_LENGTHS),
        .past_k = clattn__view_of(plan, tensors, CLATTN_TENSOR_PAST_K),
        .past_v = clattn__view_of(plan, tensors, CLATTN_TENSOR_PAST_V),
        .past_lengths = clattn__view_of(plan, tensors, CLATTN_TENSOR_PAST_LENGTHS),
        .present_k = clattn__view_of(plan, tensors, CLATTN_TENSOR_PRESENT_K),
        .present_v = clattn__view_of(plan, tensors, CLATTN_TENSOR_PRESENT_V),
        .rotary_cos = clattn__view_of(plan, tensors, CLATTN_TENSOR_ROTARY_COS),
        .rotary_sin = clattn__view_of(plan, tensors, CLATTN_TENSOR_ROTARY_SIN),
        .q_offsets = clattn__view_of(plan, tensors, CLATTN_TENSOR_Q_OFFSETS),
        .kv_offsets = clattn__view_of(plan, tensors, CLATTN_TENSOR_KV_OFFSETS),
        .rotary = plan->desc.attention.rotary,
        .options = &plan->desc.attention.options,
    };
    return clattn__oracle_attention(&args);
}
