/* The recurrences in double precision: one word after the other, each waiting for the state of the last.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   rnn   h_t = tanh(W_in x_t + W_h h_{t-1} + bias)
 *   lstm  the four row blocks of W_in x_t + W_h h_{t-1} + bias are, in ONNX's order, the sums of
 *         i = sigmoid(.), o = sigmoid(.), f = sigmoid(. + forget_bias), c~ = tanh(.)
 *         c_t = f c_{t-1} + i c~,   h_t = o tanh(c_t)
 */
#include <math.h>
#include <stdlib.h>

#include "reference.h"

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* sum[r] = W_in[r,:] x_t + W_h[r,:] h + bias[r] */
static void sum_inputs(const clattn__oracle_recurrence_args *args, i64 b, i64 t, const double *h, double *sum) {
    for (i64 r = 0; r < args->w_in.size[2]; r++) {
        sum[r] = args->bias.present ? clattn__get(&args->bias, 0, 0, 0, r) : 0;
        for (i64 k = 0; k < args->w_in.size[3]; k++) {
            sum[r] += clattn__get(&args->w_in, 0, 0, r, k) * clattn__get(&args->x, b, 0, t, k);
        }
        for (i64 k = 0; k < args->w_h.size[3]; k++) sum[r] += clattn__get(&args->w_h, 0, 0, r, k) * h[k];
    }
}

static void rnn_step(const double *sum, i64 hidden, double *h) {
    for (i64 n = 0; n < hidden; n++) h[n] = tanh(sum[n]);
}

static void lstm_step(const double *sum, i64 hidden, double forget_bias, double *h, double *c) {
    for (i64 n = 0; n < hidden; n++) {
        double in = sigmoid(sum[n]);
        double out = sigmoid(sum[hidden + n]);
        double forget = sigmoid(sum[2 * hidden + n] + forget_bias);
        double candidate = tanh(sum[3 * hidden + n]);
        c[n] = forget * c[n] + in * candidate;
        h[n] = out * tanh(c[n]);
    }
}

static void run_sequence(const clattn__oracle_recurrence_args *args, i64 b, double *h, double *c, double *sum) {
    i64 steps = args->x.size[2], hidden = args->w_h.size[3];
    for (i64 n = 0; n < hidden; n++) {
        h[n] = args->h_0.present ? clattn__get(&args->h_0, b, 0, 0, n) : 0;
        c[n] = args->c_0.present ? clattn__get(&args->c_0, b, 0, 0, n) : 0;
    }
    for (i64 t = 0; t < steps; t++) {
        sum_inputs(args, b, t, h, sum);
        if (args->cell == CLATTN_CELL_RNN) rnn_step(sum, hidden, h);
        if (args->cell == CLATTN_CELL_LSTM) lstm_step(sum, hidden, args->forget_bias, h, c);
        for (i64 n = 0; n < hidden; n++) clattn__set(&args->out, b, 0, t, n, h[n]);
    }
    for (i64 n = 0; n < hidden && args->h_n.present; n++) clattn__set(&args->h_n, b, 0, 0, n, h[n]);
    for (i64 n = 0; n < hidden && args->c_n.present; n++) clattn__set(&args->c_n, b, 0, 0, n, c[n]);
}

clattn_status clattn__oracle_recurrence(const clattn__oracle_recurrence_args *args) {
    i64 hidden = args->w_h.size[3], rows = args->w_h.size[2];
    double *h = clattn__new_doubles(1, 1, 1, hidden);
    double *c = clattn__new_doubles(1, 1, 1, hidden);
    double *sum = clattn__new_doubles(1, 1, 1, rows);
    clattn_status status = h && c && sum ? CLATTN_OK : CLATTN_ERROR_MEMORY;
    for (i64 b = 0; b < args->x.size[0] && status == CLATTN_OK; b++) run_sequence(args, b, h, c, sum);
    free(sum);
    free(c);
    free(h);
    return status;
}

clattn_status clattn__reference_recurrence(const clattn_plan *plan, void *const tensors[CLATTN_TENSOR_COUNT]) {
    clattn__oracle_recurrence_args args = {
        .cell = plan->desc.recurrence.cell,
        .x = clattn__view_of(plan, tensors, CLATTN_TENSOR_X),
        .w_in = clattn__view_of(plan, tensors, CLATTN_TENSOR_W_IN),
        .w_h = clattn__view_of(plan, tensors, CLATTN_TENSOR_W_H),
        .bias = clattn__view_of(plan, tensors, CLATTN_TENSOR_BIAS),
        .h_0 = clattn__view_of(plan, tensors, CLATTN_TENSOR_H_0),
        .c_0 = clattn__view_of(plan, tensors, CLATTN_TENSOR_C_0),
        .out = clattn__view_of(plan, tensors, CLATTN_TENSOR_OUT),
        .h_n = clattn__view_of(plan, tensors, CLATTN_TENSOR_H_N),
        .c_n = clattn__view_of(plan, tensors, CLATTN_TENSOR_C_N),
        .forget_bias = plan->desc.recurrence.forget_bias,
    };
    return clattn__oracle_recurrence(&args);
}
