/* SPDX-License-Identifier: Apache-2.0 */
#include "naive.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

typedef naive_attention_args args;

#define T(name) (&a->tensors[CLATTN_TENSOR_##name])

static float dot(const float *a, const float *b, int64_t n) {
    float sum = 0;
    for (int64_t d = 0; d < n; d++) sum += a[d] * b[d];
    return sum;
}

/* As the arithmetic has it. */
static double rounded(const args *a, double x) { return T(Q)->dtype == CLATTN_F64 ? x : (float)x; }

static double *at(const naive_tensor *t, int64_t b, int64_t h, int64_t l) {
    return t->data + ((b * t->size[1] + h) * t->size[2] + l) * t->size[3];
}

/* The row of a tensor that broadcasts. */
static const double *spread(const naive_tensor *t, int64_t b, int64_t h, int64_t l) {
    return at(t, t->size[0] == 1 ? 0 : b, t->size[1] == 1 ? 0 : h, t->size[2] == 1 ? 0 : l);
}

/* ---- members of the batch ----------------------------------------------------------------------------------------- */

int64_t naive_members(const args *a) { return T(Q_OFFSETS)->data ? T(Q_OFFSETS)->size[3] - 1 : T(Q)->size[0]; }

naive_member naive_member_of(const args *a, int64_t number) {
    naive_member m = {number, number, 0, T(Q)->size[2], 0, 0, T(K)->size[2]};
    if (T(Q_OFFSETS)->data) {
        const double *q = T(Q_OFFSETS)->data + number, *kv = T(KV_OFFSETS)->data + number;
        m = (naive_member){0, number, (int64_t)q[0], (int64_t)(q[1] - q[0]), (int64_t)kv[0], 0, (int64_t)(kv[1] - kv[0])};
    }
    if (T(PAST_K)->data) m.past = T(PAST_K)->size[2];
    if (T(PAST_LENGTHS)->data) m.past = (int64_t)T(PAST_LENGTHS)->data[number];
    m.len_kv += m.past;
    if (T(KV_LENGTHS)->data) m.len_kv = (int64_t)T(KV_LENGTHS)->data[number];
    return m;
}

static int64_t position_of(const args *a, const naive_member *m, int64_t i) {
    const clattn_attention_options *o = a->options;
    int64_t given = o->align == CLATTN_ALIGN_PAST ? o->past_len : o->offset;
    if (o->align == CLATTN_ALIGN_PAST && (T(PAST_K)->data || T(PAST_LENGTHS)->data)) given = m->past;
    return i + naive_offset(o->align, m->len_q, m->len_kv, given);
}

bool naive_live(const args *a, const naive_member *m, int64_t h, int64_t i, int64_t j) {
    const clattn_attention_options *o = a->options;
    const int64_t ahead = j - position_of(a, m, i);
    if (j >= m->len_kv || (o->causal && ahead > 0)) return false;
    if (o->has_window && o->window_left != -1 && -ahead > o->window_left) return false;
    if (o->has_window && o->window_right != -1 && ahead > o->window_right) return false;
    if (T(MASK)->data && (j >= T(MASK)->size[3] || spread(T(MASK), m->b, h, i)[j] == 0)) return false;
    return !T(BIAS)->data || (j < T(BIAS)->size[3] && spread(T(BIAS), m->b, h, i)[j] != -INFINITY);
}

/* ---- queries and keys --------------------------------------------------------------------------------------------- */

/* Row l of x, rotated as at `position`, as it is stored. */
static void turn(const args *a, const naive_member *m, const double *x, int64_t dim, int64_t position, double *y) {
    memcpy(y, x, (size_t)dim * sizeof *y);
    const int64_t pairs = a->rotary ? T(ROTARY_COS)->size[3] : 0;
    for (int64_t t = 0; t < pairs; t++) {
        const int64_t first = a->rotary == CLATTN_ROTARY_HALF ? t : 2 * t,
                      second = a->rotary == CLATTN_ROTARY_HALF ? t + pairs : 2 * t + 1;
        const double c = spread(T(ROTARY_COS), m->b, 0, 0)[position * pairs + t],
                     s = spread(T(ROTARY_SIN), m->b, 0, 0)[position * pairs + t];
        y[first] = rounded(a, rounded(a, x[first] * c) - rounded(a, x[second] * s));
        y[second] = rounded(a, rounded(a, x[first] * s) + rounded(a, x[second] * c));
    }
    for (int64_t d = 0; d < 2 * pairs; d++) y[d] = clattn__round(T(Q)->dtype, y[d]);
}

/* Where the first query and the first new key stand. */
static int64_t first_position(const args *a, const naive_member *m) {
    return T(PAST_K)->data || T(PAST_LENGTHS)->data ? m->past : a->options->past_len;
}

/* All keys, or all values, of a member's head; written to present on the way. */
static double *gather(const args *a, const naive_member *m, bool values, int64_t g) {
    const naive_tensor *fresh = values ? T(V) : T(K), *past = values ? T(PAST_V) : T(PAST_K);
    const naive_tensor *present = values ? T(PRESENT_V) : T(PRESENT_K);
    const int64_t dim = fresh->size[3];
    double *rows = test_alloc((size_t)(m->len_kv * dim), sizeof *rows);
    for (int64_t j = 0; j < m->len_kv; j++) {
        double *row = rows + j * dim;
        if (j < m->past) {
            memcpy(row, at(past->data ? past : present, m->b, g, j), (size_t)dim * sizeof *row);
        } else if (values) {
            memcpy(row, at(fresh, m->b, g, m->kv_first + j - m->past), (size_t)dim * sizeof *row);
        } else {
            turn(a, m, at(fresh, m->b, g, m->kv_first + j - m->past), dim, first_position(a, m) + j - m->past, row);
        }
        if (present->data) memcpy(at(present, m->b, g, j), row, (size_t)dim * sizeof *row);
    }
    return rows;
}

/* ---- a row -------------------------------------------------------------------------------------------------------- */

typedef struct score_row {
    int64_t h, g, i;
    double *q, *k, *v;
    double *padding; /* room for a key past the member's */
    double *score, *terms, *weight; /* terms: how large what a score is the sum of */
} score_row;

static double slope_of(const args *a, const naive_member *m, int64_t h) {
    if (T(ALIBI_SLOPES)->data) return spread(T(ALIBI_SLOPES), m->number, h, 0)[0];
    if (!a->options->alibi) return 0;
    int64_t power = 1;
    while (power <= T(Q)->size[1] / 2) power *= 2;
    return h < power ? pow(pow(2, -8.0 / (double)power), (double)(h + 1))
                     : pow(pow(2, -4.0 / (double)power), (double)(2 * (h - power) + 1));
}

/* Of any key that there is memory for. */
static double raw_score(const args *a, const double *q, const double *k, double *terms) {
    const double scale = rounded(a, a->options->scale);
    double sum = 0;
    *terms = 0;
    for (int64_t d = 0; d < T(Q)->size[3]; d++) {
        sum = rounded(a, sum + rounded(a, q[d] * k[d]));
        *terms += fabs(q[d] * k[d]);
    }
    *terms *= fabs(scale);
    return rounded(a, scale * sum);
}

static double capped(const args *a, double raw, double *terms) {
    const double cap = rounded(a, a->options->softcap);
    if (cap == 0) return raw;
    const double t = rounded(a, tanh(rounded(a, raw / cap)));
    *terms = *terms * (1 - t * t) + fabs(cap * t);
    return rounded(a, cap * t);
}

static double biased(const args *a, const naive_member *m, const score_row *r, int64_t j, double score, double *terms) {
    if (T(BIAS)->data && j < T(BIAS)->size[3]) {
        const double bias = spread(T(BIAS), m->b, r->h, r->i)[j];
        score = rounded(a, score + bias);
        *terms += fabs(bias);
    }
    const double slope = rounded(a, slope_of(a, m, r->h));
    if (slope != 0) {
        const double distance = rounded(a, slope * rounded(a, fabs((double)(j - position_of(a, m, r->i)))));
        score = rounded(a, score - distance);
        *terms += fabs(distance);
    }
    return score;
}

static void store(const naive_tensor *t, double *to, double value) { *to = clattn__round(t->dtype, value); }

/* All keys that there is memory for; those past the member's only for the matrix of scores. */
static void compute_scores(const args *a, const naive_member *m, const score_row *r) {
    const clattn_scores_form form = a->options->scores_form;
    double *shown = at(T(SCORES), m->b, r->h, r->i),
           *magnitude = a->magnitude[CLATTN_TENSOR_SCORES] + (shown - T(SCORES)->data);
    const int64_t keys = T(Q_OFFSETS)->data ? m->len_kv : T(SCORES)->size[3];
    for (int64_t j = 0; j < keys; j++) {
        double terms, form_terms, shows;
        const double *k = j < m->len_kv ? r->k + j * T(K)->size[3] : r->padding;
        if (j >= m->len_kv && T(PAST_LENGTHS)->data) k = at(T(PRESENT_K), m->b, r->g, j);
        if (j >= m->len_kv && !T(PAST_LENGTHS)->data)
            turn(a, m, at(T(K), m->b, r->g, j), T(K)->size[3], first_position(a, m) + j, r->padding);
        double score = shows = raw_score(a, r->q, k, &terms);
        form_terms = terms;
        score = capped(a, score, &terms);
        if (form == CLATTN_SCORES_SOFTCAP) shows = score, form_terms = terms;
        score = biased(a, m, r, j, score, &terms);
        if (!naive_live(a, m, r->h, r->i, j)) score = -INFINITY;
        if (form == CLATTN_SCORES_BIAS) shows = score, form_terms = terms;
        /* A bias that swallows all else is exact. */
        if (j < m->len_kv) r->score[j] = score, r->terms[j] = terms > 1e30 ? 0 : terms;
        if (T(Q_OFFSETS)->data) continue;
        store(T(SCORES), &shown[j], shows);
        magnitude[j] = form_terms;
    }
}

/* r->weight = softmax(r->score); returns the log-sum-exp */
static double softmax(const args *a, const naive_member *m, const score_row *r) {
    const double sink = T(SINKS)->data ? spread(T(SINKS), m->number, r->h, 0)[0] : -INFINITY;
    double row_max = sink, row_sum = 0;
    for (int64_t j = 0; j < m->len_kv; j++) {
        if (naive_live(a, m, r->h, r->i, j)) row_max = fmax(row_max, r->score[j]);
    }
    if (row_max == -INFINITY) row_max = 0;
    for (int64_t j = 0; j < m->len_kv; j++) {
        const bool live = naive_live(a, m, r->h, r->i, j);
        r->weight[j] = live ? rounded(a, exp(rounded(a, r->score[j] - row_max))) : 0;
        row_sum = rounded(a, row_sum + r->weight[j]);
    }
    if (sink != -INFINITY) row_sum = rounded(a, row_sum + rounded(a, exp(rounded(a, sink - row_max))));
    for (int64_t j = 0; j < m->len_kv; j++) {
        if (row_sum != 0 && naive_live(a, m, r->h, r->i, j)) r->weight[j] = rounded(a, r->weight[j] / row_sum);
    }
    return rounded(a, row_max + rounded(a, log(row_sum)));
}

static void weigh_values(const args *a, const naive_member *m, const score_row *r, double *out, double *magnitude) {
    const int64_t dim = T(V)->size[3];
    for (int64_t d = 0; d < dim; d++) {
        double sum = 0;
        for (int64_t j = 0; j < m->len_kv; j++) {
            if (naive_live(a, m, r->h, r->i, j)) sum = rounded(a, sum + rounded(a, r->weight[j] * r->v[j * dim + d]));
        }
        store(T(OUT), &out[d], sum);
        magnitude[d] = 0;
        for (int64_t j = 0; j < m->len_kv; j++) {
            const double score = fmax(r->terms[j] > 0 ? fabs(r->score[j]) : 0, r->terms[j] / 4), value = r->v[j * dim + d];
            if (r->weight[j] > 0) magnitude[d] += r->weight[j] * (fabs(value) + score * fabs(value - sum));
        }
    }
}

static void attend_row(const args *a, const naive_member *m, const score_row *r) {
    turn(a, m, at(T(Q), m->b, r->h, m->q_first + r->i), T(Q)->size[3], first_position(a, m) + r->i, r->q);
    compute_scores(a, m, r);
    const double lse = softmax(a, m, r);
    double *out = at(T(OUT), m->b, r->h, m->q_first + r->i), *row_lse = at(T(LSE), m->b, r->h, m->q_first + r->i);
    weigh_values(a, m, r, out, a->magnitude[CLATTN_TENSOR_OUT] + (out - T(OUT)->data));
    store(T(LSE), row_lse, lse);
    double largest = 0, moves = 1;
    for (int64_t j = 0; j < m->len_kv; j++) {
        const double score = fmax(r->terms[j] > 0 ? fabs(r->score[j]) : 0, r->terms[j] / 4);
        if (r->weight[j] > 0) largest = fmax(largest, score), moves += r->weight[j] * score;
    }
    a->magnitude[CLATTN_TENSOR_LSE][row_lse - T(LSE)->data] = isfinite(lse) ? fmax(fabs(lse), moves) : moves;
    if (T(Q_OFFSETS)->data) return;
    double *weights = at(T(WEIGHTS), m->b, r->h, r->i),
           *magnitude = a->magnitude[CLATTN_TENSOR_WEIGHTS] + (weights - T(WEIGHTS)->data);
    for (int64_t j = 0; j < T(WEIGHTS)->size[3]; j++) {
        const double weight = j < m->len_kv ? r->weight[j] : 0;
        store(T(WEIGHTS), &weights[j], weight);
        magnitude[j] = weight * (1 + (1 - weight) * largest);
    }
}

void naive_attention(const args *a) {
    const int64_t heads_q = T(Q)->size[1], heads_kv = T(K)->size[1];
    for (int64_t number = 0; number < naive_members(a); number++) {
        const naive_member m = naive_member_of(a, number);
        score_row r = {.q = test_alloc(2 * (size_t)T(Q)->size[3], sizeof *r.q),
                  .score = test_alloc(3 * (size_t)m.len_kv, sizeof *r.score)};
        r.padding = r.q + T(Q)->size[3];
        r.terms = r.score + m.len_kv;
        r.weight = r.terms + m.len_kv;
        for (r.g = 0; r.g < heads_kv; r.g++) {
            r.k = gather(a, &m, false, r.g);
            r.v = gather(a, &m, true, r.g);
            for (r.h = r.g * (heads_q / heads_kv); r.h < (r.g + 1) * (heads_q / heads_kv); r.h++) {
                for (r.i = 0; r.i < m.len_q; r.i++) attend_row(a, &m, &r);
            }
            free(r.v);
            free(r.k);
        }
        free(r.score);
        free(r.q);
    }
}

void naive_project(int64_t batch, int64_t heads, int64_t len, int64_t depth, int64_t dim, const float *x, const float *w,
                   const float *bias, const float *residual, float *y) {
    const int64_t columns = heads * dim;
    for (int64_t b = 0; b < batch; b++) {
        for (int64_t l = 0; l < len; l++) {
            for (int64_t n = 0; n < columns; n++) {
                float sum = 0;
                for (int64_t k = 0; k < depth; k++) sum += x[(b * len + l) * depth + k] * w[k * columns + n];
                if (bias) sum += bias[n];
                if (residual) sum += residual[(b * len + l) * columns + n];
                y[((b * heads + n / dim) * len + l) * dim + n % dim] = sum;
            }
        }
    }
}

static float sigmoid(float x) { return 1 / (1 + expf(-x)); }

static void naive_sequence(const naive_recurrence_args *a, int64_t b, float *sum) {
    const int64_t hidden = a->hidden, rows = (a->is_lstm ? 4 : 1) * hidden;
    float *h = a->h_n + b * hidden, *c = a->c_n + b * hidden;
    for (int64_t n = 0; n < hidden; n++) {
        h[n] = a->h_0 ? a->h_0[b * hidden + n] : 0;
        c[n] = a->c_0 ? a->c_0[b * hidden + n] : 0;
    }
    for (int64_t t = 0; t < a->steps; t++) {
        for (int64_t r = 0; r < rows; r++) {
            sum[r] = dot(a->w_in + r * a->d_in, a->x + (b * a->steps + t) * a->d_in, a->d_in);
            if (a->bias) sum[r] += a->bias[r];
            sum[r] += dot(a->w_h + r * hidden, h, hidden);
        }
        for (int64_t n = 0; n < hidden; n++) {
            if (a->is_lstm) {
                c[n] = sigmoid(sum[2 * hidden + n] + a->forget_bias) * c[n] + sigmoid(sum[n]) * tanhf(sum[3 * hidden + n]);
                h[n] = sigmoid(sum[hidden + n]) * tanhf(c[n]);
            } else {
                h[n] = tanhf(sum[n]);
            }
        }
        memcpy(a->out + (b * a->steps + t) * hidden, h, (size_t)hidden * sizeof *h);
    }
}

void naive_recurrence(const naive_recurrence_args *a) {
    float *sum = test_alloc((size_t)(4 * a->hidden), sizeof *sum);
    for (int64_t b = 0; b < a->batch; b++) naive_sequence(a, b, sum);
    free(sum);
}

int64_t naive_offset(clattn_align align, int64_t len_q, int64_t len_kv, int64_t given) {
    if (align == CLATTN_ALIGN_TOP_LEFT) return 0;
    return align == CLATTN_ALIGN_BOTTOM_RIGHT ? len_kv - len_q : given;
}

double naive_scale(int64_t head_dim) { return head_dim > 0 ? 1 / sqrt((double)head_dim) : 1; }
