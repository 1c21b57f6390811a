/* SPDX-License-Identifier: Apache-2.0 */
#include "trial.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "words.h"

/* A quiet NaN that no arithmetic makes. */
static const uint32_t POISON = 0x7fdead5a;

/* ---- inputs -------------------------------------------------------------------------------------------------------- */

/* Whole numbers times `unit`: products and sums of them are exact in floats, so that large scores are not a matter of rounding.
 */
static void fill_whole(bench_random *random, float *values, size_t count, float unit) {
    for (size_t i = 0; i < count; i++) values[i] = unit * ((float)bench_random_below(random, 15) - 7);
}

static void hide_some(bench_random *random, float *values, int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows; i++) {
        const int64_t kept = (int64_t)bench_random_below(random, (uint64_t)columns);
        for (int64_t j = 0; j < columns; j++)
            if (j != kept && bench_random_below(random, 3) == 0) values[i * columns + j] = -INFINITY;
    }
}

static void fill(bench_random *random, const lab_trial *trial, const lab_argument *argument, uint32_t index, float *values) {
    const size_t count = lab_elements(argument, &trial->shape);
    const bool is_attention = trial->output == 3; /* q, k, v */
    if (trial->shape.data == LAB_LARGE && is_attention && index < 2) {
        fill_whole(random, values, count, index == 0 ? 1 : 8);
        return;
    }
    bench_random_normal(random, values, count, trial->shape.data == LAB_LARGE && !is_attention ? 10 : 1);
    if (trial->shape.data == LAB_LARGE && !is_attention)
        for (size_t i = 0; i < count; i++) values[i] += 1000;
    if (trial->shape.data == LAB_MASKED) hide_some(random, values, trial->shape.m, trial->shape.n);
}

bool lab_trial_make(lab_trial *trial, const lab_step *step, const lab_shape *shape, bench_random *random) {
    *trial = (lab_trial){.step = step, .shape = *shape, .canary = (uint32_t)bench_random_below(random, UINT32_MAX)};
    uint32_t count = 0;
    for (size_t i = 0; i < lab_argument_count(step); i++) {
        if (step->arguments[i].kind == LAB_OUTPUT) trial->output = count;
        count += step->arguments[i].kind <= LAB_OUTPUT;
    }
    uint32_t index = 0;
    for (size_t i = 0; i < lab_argument_count(step); i++) {
        const lab_argument *argument = &step->arguments[i];
        if (argument->kind == LAB_INPUT) {
            trial->inputs[index] = malloc(lab_buffer_bytes(argument, shape));
            if (trial->inputs[index] == NULL) return false;
            fill(random, trial, argument, index, trial->inputs[index]);
        }
        index += argument->kind <= LAB_OUTPUT;
    }
    return true;
}

void lab_trial_free(lab_trial *trial) {
    for (int i = 0; i < LAB_MAX_BUFFERS; i++) free(trial->inputs[i]);
    free(trial->expected);
    *trial = (lab_trial){0};
}

/* ---- expected values ----------------------------------------------------------------------------------------------- */

static double *widen(const float *from, size_t count) {
    double *to = malloc(count * sizeof *to);
    for (size_t i = 0; to != NULL && i < count; i++) to[i] = from[i];
    return to;
}

/* Rows of attention in f64, from whichever of its tensors the step has. */
typedef struct attention_run {
    double *q, *k, *v, *bias, *out, *scores, *weights; /* NULL: not there */
    int64_t head_dim, value_dim, len_kv;
    int causal;
} attention_run;

static bool run_attention(clattn_context *reference, const lab_trial *trial, const attention_run *run) {
    const int64_t rows = trial->row_count;
    const clattn_tensor matrix = clattn_tensor_bhld(CLATTN_F64, 1, 1, rows, run->len_kv);
    clattn_attention_desc desc = CLATTN_ATTENTION_DESC_INIT;
    clattn_arg args[7];
    size_t count = 0;
    desc.q = clattn_tensor_bhld(CLATTN_F64, 1, 1, rows, run->head_dim);
    desc.k = clattn_tensor_bhld(CLATTN_F64, 1, 1, run->len_kv, run->head_dim);
    desc.v = clattn_tensor_bhld(CLATTN_F64, 1, 1, run->len_kv, run->value_dim);
    desc.out = clattn_tensor_bhld(CLATTN_F64, 1, 1, rows, run->value_dim);
    args[count++] = (clattn_arg){CLATTN_TENSOR_Q, run->q, 0};
    args[count++] = (clattn_arg){CLATTN_TENSOR_K, run->k, 0};
    args[count++] = (clattn_arg){CLATTN_TENSOR_V, run->v, 0};
    args[count++] = (clattn_arg){CLATTN_TENSOR_OUT, run->out, 0};
    if (run->head_dim > 0) {
        desc.options.has_scale = 1;
        desc.options.scale = lab_scale(trial->step, &trial->shape);
    }
    if (run->bias != NULL) desc.options.bias = matrix, args[count++] = (clattn_arg){CLATTN_TENSOR_BIAS, run->bias, 0};
    if (run->scores != NULL) desc.scores = matrix, args[count++] = (clattn_arg){CLATTN_TENSOR_SCORES, run->scores, 0};
    if (run->weights != NULL) desc.weights = matrix, args[count++] = (clattn_arg){CLATTN_TENSOR_WEIGHTS, run->weights, 0};
    if (run->causal) {
        desc.options.causal = 1;
        desc.options.align = CLATTN_ALIGN_OFFSET;
        desc.options.offset = trial->first_row;
        desc.options.scores_form = CLATTN_SCORES_BIAS;
    }
    return clattn_attention(reference, &desc, NULL, args, count) == CLATTN_OK;
}

/* A matrix of scores, as a bias on scores of heads without elements. */
static bool expect_of_scores(clattn_context *reference, lab_trial *trial, bool masked) {
    const size_t columns = (size_t)trial->shape.n, count = columns * (size_t)trial->row_count;
    attention_run run = {.bias = widen(trial->inputs[0] + columns * (size_t)trial->first_row, count),
                         .len_kv = trial->shape.n,
                         .causal = masked};
    *(masked ? &run.scores : &run.weights) = trial->expected;
    const bool right = run.bias != NULL && run_attention(reference, trial, &run);
    free(run.bias);
    return right;
}

static bool expect_softmax(clattn_context *reference, lab_trial *trial) {
    return expect_of_scores(reference, trial, false);
}

static bool expect_mask(clattn_context *reference, lab_trial *trial) {
    return expect_of_scores(reference, trial, true);
}

static bool expect_scores(clattn_context *reference, lab_trial *trial) {
    const size_t m = (size_t)trial->row_count, n = (size_t)trial->shape.n, k = (size_t)trial->shape.k;
    attention_run run = {.q = widen(trial->inputs[0] + k * (size_t)trial->first_row, m * k),
                         .k = widen(trial->inputs[1], n * k),
                         .scores = trial->expected,
                         .head_dim = trial->shape.k,
                         .len_kv = trial->shape.n};
    const bool right = run.q != NULL && run.k != NULL && run_attention(reference, trial, &run);
    free(run.q);
    free(run.k);
    return right;
}

static bool expect_attention(clattn_context *reference, lab_trial *trial) {
    const size_t m = (size_t)trial->row_count, n = (size_t)trial->shape.n, k = (size_t)trial->shape.k;
    attention_run run = {.q = widen(trial->inputs[0] + n * (size_t)trial->first_row, m * n),
                         .k = widen(trial->inputs[1], k * n),
                         .v = widen(trial->inputs[2], k * n),
                         .out = trial->expected,
                         .head_dim = trial->shape.n,
                         .value_dim = trial->shape.n,
                         .len_kv = trial->shape.k};
    const bool right = run.q != NULL && run.k != NULL && run.v != NULL && run_attention(reference, trial, &run);
    free(run.q);
    free(run.k);
    free(run.v);
    return right;
}

/* Sums are doubles, rounded to floats at the end. */
static bool expect_product(clattn_context *reference, lab_trial *trial) {
    const int64_t m = trial->row_count, n = trial->shape.n, k = trial->shape.k;
    const bool has_bias = trial->output == 3; /* x, w, bias */
    clattn_project_qkv_desc desc = CLATTN_PROJECT_QKV_DESC_INIT;
    float *out = malloc((size_t)(m * n) * sizeof *out);
    desc.x = clattn_tensor_bhld(CLATTN_F32, 1, 1, m, k);
    desc.w_q = clattn_tensor_matrix(CLATTN_F32, k, n);
    desc.q = clattn_tensor_bhld(CLATTN_F32, 1, 1, m, n);
    if (has_bias) desc.b_q = clattn_tensor_matrix(CLATTN_F32, 1, n);
    const clattn_arg args[] = {{CLATTN_TENSOR_X, trial->inputs[0] + k * trial->first_row, 0},
                               {CLATTN_TENSOR_W_Q, trial->inputs[1], 0},
                               {CLATTN_TENSOR_Q, out, 0},
                               {CLATTN_TENSOR_B_Q, trial->inputs[2], 0}};
    const bool right = out != NULL && clattn_project_qkv(reference, &desc, NULL, args, has_bias ? 4 : 3) == CLATTN_OK;
    for (int64_t i = 0; right && i < m * n; i++) trial->expected[i] = out[i];
    free(out);
    return right;
}

static const struct {
    const char *step;
    bool (*expect)(clattn_context *, lab_trial *);
} oracles[] = {{"softmax", expect_softmax}, {"scores", expect_scores},   {"weighted-values", expect_product},
               {"mask", expect_mask},       {"project", expect_product}, {"attention", expect_attention}};

bool lab_trial_expect(lab_trial *trial, clattn_context *reference, int first_row, int row_count) {
    size_t oracle = 0;
    free(trial->expected);
    trial->first_row = first_row;
    trial->row_count = row_count;
    trial->expected = malloc((size_t)row_count * (size_t)trial->shape.n * sizeof *trial->expected);
    while (strcmp(oracles[oracle].step, trial->step->name) != 0) oracle++;
    return trial->expected != NULL && oracles[oracle].expect(reference, trial);
}

/* ---- shared memory ------------------------------------------------------------------------------------------------- */

static void fill_words(char *to, size_t bytes, uint32_t word) {
    for (size_t i = 0; i + sizeof word <= bytes; i += sizeof word) memcpy(to + i, &word, sizeof word);
}

bool lab_trial_place(lab_trial *trial, char *memory, uint32_t slot, lab_buffers layout) {
    trial->slot = slot;
    if (!lab_layout(trial->step, &trial->shape, slot, layout, trial->buffers)) return false;
    for (uint32_t i = 0; i < LAB_MAX_BUFFERS && (trial->inputs[i] != NULL || i == trial->output); i++) {
        const lab_buffer *buffer = &trial->buffers[i];
        char *data = memory + lab_data_offset(buffer);
        fill_words(memory + buffer->offset, buffer->pages, trial->canary);
        if (trial->inputs[i] != NULL)
            memcpy(data, trial->inputs[i], buffer->bytes);
        else
            fill_words(data, buffer->bytes, POISON);
    }
    return true;
}

const float *lab_trial_output(const lab_trial *trial, const char *memory) {
    return (const float *)(memory + lab_data_offset(&trial->buffers[trial->output]));
}

/* Bytes from the beginning to the first word that is no canary; `bytes` when all are. */
static size_t untouched(const char *from, size_t bytes, uint32_t canary) {
    for (size_t i = 0; i + sizeof canary <= bytes; i += sizeof canary)
        if (memcmp(from + i, &canary, sizeof canary) != 0) return i;
    return bytes;
}

static const char *buffer_name(const lab_trial *trial, uint32_t index) {
    for (size_t i = 0; i < lab_argument_count(trial->step); i++)
        if (trial->step->arguments[i].kind <= LAB_OUTPUT && index-- == 0) return trial->step->arguments[i].name;
    return "?";
}

void lab_trial_find_stray(const lab_trial *trial, const char *memory, char *text, size_t size) {
    text[0] = 0;
    for (uint32_t i = 0; i < LAB_MAX_BUFFERS && (trial->inputs[i] != NULL || i == trial->output) && text[0] == 0; i++) {
        const lab_buffer *buffer = &trial->buffers[i];
        const char *pages = memory + buffer->offset, *data = memory + lab_data_offset(buffer), *name = buffer_name(trial, i);
        const size_t front = buffer->pages - buffer->padded, back = buffer->padded - buffer->bytes;
        const size_t before = untouched(pages, front, trial->canary),
                     behind = untouched(data + buffer->bytes, back, trial->canary);
        if (before < front)
            snprintf(text, size, lab_words("writes %zu elements before %s begins"), (front - before) / sizeof(float), name);
        else if (behind < back)
            snprintf(text, size, lab_words("writes element %zu of %s, which has %zu"), (buffer->bytes + behind) / sizeof(float),
                     name, (size_t)buffer->bytes / sizeof(float));
        else if (trial->inputs[i] != NULL && memcmp(data, trial->inputs[i], buffer->bytes) != 0)
            snprintf(text, size, lab_words("writes into its input %s"), name);
    }
}

/* ---- comparison ---------------------------------------------------------------------------------------------------- */

static bool is_poison(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits == POISON;
}

/* NaN first: a comparison with it is false whichever way it is put. */
static bool is_wrong(double got, double expected, double allowed) {
    if (isnan(got)) return true;
    if (isinf(expected) || isinf(got)) return got != expected;
    return !(fabs(got - expected) <= allowed);
}

static double largest(const double *row, int columns) {
    double most = 0;
    for (int j = 0; j < columns; j++)
        if (isfinite(row[j])) most = fmax(most, fabs(row[j]));
    return most;
}

/* A cell of the map shows the worst of what it stands for. */
static void mark(lab_errors *errors, const lab_trial *trial, int row, int column, float got) {
    char *cell = &errors->map[row * errors->map_rows / trial->row_count][column * errors->map_columns / trial->shape.n];
    const char letter = is_poison(got) ? '?' : isnan(got) ? 'n' : '#';
    if (*cell == '.' || letter == '#') *cell = letter;
}

static void note(lab_errors *errors, const lab_trial *trial, int row, int column, float got, double expected) {
    if (errors->wrong++ == 0) {
        errors->row = row + trial->first_row;
        errors->column = column;
        errors->expected = expected;
        errors->got = got;
        errors->is_unwritten = is_poison(got);
        errors->least_row = errors->row;
        errors->least_column = column;
    }
    if (column < errors->least_column) errors->least_column = column;
    errors->unwritten += is_poison(got);
    errors->not_a_number += !isfinite(got) && !is_poison(got);
    mark(errors, trial, row, column, got);
}

static int at_most(int wanted, int limit) {
    return wanted < limit ? wanted : limit;
}

lab_errors lab_trial_compare(const lab_trial *trial, const float *output) {
    const int columns = trial->shape.n;
    lab_errors errors = {.map_rows = at_most(trial->row_count, LAB_MAP_ROWS), .map_columns = at_most(columns, LAB_MAP_COLUMNS)};
    for (int i = 0; i < errors.map_rows; i++) memset(errors.map[i], '.', (size_t)errors.map_columns);
    for (int i = 0; i < trial->row_count; i++) {
        const double *expected = trial->expected + (size_t)i * (size_t)columns;
        const float *got = output + (size_t)(i + trial->first_row) * (size_t)columns;
        const double allowed = trial->step->tolerance * largest(expected, columns) + FLT_MIN;
        for (int j = 0; j < columns; j++) {
            errors.checked++;
            errors.zero += got[j] == 0;
            if (is_wrong(got[j], expected[j], allowed)) note(&errors, trial, i, j, got[j], expected[j]);
        }
    }
    return errors;
}

bool lab_trial_is_unwritten(const lab_trial *trial, const float *output) {
    for (size_t i = 0; i < (size_t)trial->shape.m * (size_t)trial->shape.n; i++)
        if (is_poison(output[i])) return true;
    return false;
}
