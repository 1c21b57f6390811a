/* SPDX-License-Identifier: Apache-2.0 */
#include "contract.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "words.h"

/* Shapes below, at and above a tile, primes, and last those that need care: what is right before and wrong there has a cause.
 */
const lab_step lab_steps[] = {
    {
        .name = "softmax",
        .kernel = "softmax",
        .formula = "weights[i][j] = exp(scores[i][j]) / sum over j of exp(scores[i][j]), in each row i on its own",
        .arguments = {{"scores", LAB_INPUT, "MN", "rows x cols; may hold -INFINITY, but never a whole row of it"},
                      {"weights", LAB_OUTPUT, "MN", "rows x cols"},
                      {"rows", LAB_INT, "M", ""},
                      {"cols", LAB_INT, "N", ""}},
        .dimensions = 1,
        .local = {64, 1},
        .tile = {64, 1},
        .tolerance = 1e-4,
        .flops_mn = 4,
        .tiny = {{3, 5}, {5, 17}, {2, 67}},
        .shapes = {{1, 1},
                   {3, 8},
                   {64, 64},
                   {65, 63},
                   {63, 129},
                   {130, 1000},
                   {7, 1025},
                   {20, 77, 0, LAB_MASKED},
                   {33, 100, 0, LAB_LARGE}},
        .timed = {1024, 1024},
    },
    {
        .name = "scores",
        .kernel = "scores",
        .formula = "scores[i][j] = scale * sum over d of q[i][d] * k[j][d]",
        .arguments = {{"q", LAB_INPUT, "MK", "len_q x head_dim"},
                      {"k", LAB_INPUT, "NK", "len_kv x head_dim"},
                      {"scores", LAB_OUTPUT, "MN", "len_q x len_kv"},
                      {"len_q", LAB_INT, "M", ""},
                      {"len_kv", LAB_INT, "N", ""},
                      {"head_dim", LAB_INT, "K", ""},
                      {"scale", LAB_SCALE, "", "1 / sqrt(head_dim)"}},
        .dimensions = 2,
        .local = {8, 8},
        .tile = {8, 8},
        .tolerance = 1e-4,
        .flops_mnk = 2,
        .tiny = {{3, 5, 4}, {9, 7, 3}, {2, 17, 5}},
        .shapes = {{1, 1, 1}, {5, 3, 8}, {64, 64, 64}, {65, 63, 64}, {63, 65, 40}, {129, 31, 128}, {17, 200, 33}},
        .timed = {1024, 1024, 64},
    },
    {
        .name = "weighted-values",
        .kernel = "weighted_values",
        .formula = "out[i][d] = sum over j of weights[i][j] * v[j][d]",
        .arguments = {{"weights", LAB_INPUT, "MK", "len_q x len_kv"},
                      {"v", LAB_INPUT, "KN", "len_kv x value_dim"},
                      {"out", LAB_OUTPUT, "MN", "len_q x value_dim"},
                      {"len_q", LAB_INT, "M", ""},
                      {"len_kv", LAB_INT, "K", ""},
                      {"value_dim", LAB_INT, "N", ""}},
        .dimensions = 2,
        .local = {8, 8},
        .tile = {8, 8},
        .tolerance = 1e-4,
        .flops_mnk = 2,
        .tiny = {{3, 5, 4}, {9, 7, 3}, {2, 17, 5}},
        .shapes = {{1, 1, 1}, {5, 3, 8}, {64, 64, 64}, {65, 64, 63}, {63, 40, 65}, {31, 128, 129}, {17, 33, 200}},
        .timed = {1024, 64, 1024},
    },
    {
        .name = "mask",
        .kernel = "mask",
        .formula = "masked[i][j] = scores[i][j] where j <= i, else -INFINITY",
        .arguments = {{"scores", LAB_INPUT, "MN", "len_q x len_kv"},
                      {"masked", LAB_OUTPUT, "MN", "len_q x len_kv"},
                      {"len_q", LAB_INT, "M", ""},
                      {"len_kv", LAB_INT, "N", ""}},
        .dimensions = 2,
        .local = {8, 8},
        .tile = {8, 8},
        .tolerance = 1e-6,
        .tiny = {{3, 5}, {9, 7}, {2, 17}},
        .shapes = {{1, 1}, {5, 3}, {64, 64}, {65, 63}, {63, 65}, {129, 31}, {17, 200}},
        .timed = {1024, 1024},
    },
    {
        .name = "project",
        .kernel = "project",
        .formula = "y[r][c] = bias[c] + sum over d of x[r][d] * w[d][c]",
        .arguments = {{"x", LAB_INPUT, "MK", "rows x depth"},
                      {"w", LAB_INPUT, "KN", "depth x cols"},
                      {"bias", LAB_INPUT, "1N", "cols"},
                      {"y", LAB_OUTPUT, "MN", "rows x cols"},
                      {"rows", LAB_INT, "M", ""},
                      {"depth", LAB_INT, "K", ""},
                      {"cols", LAB_INT, "N", ""}},
        .dimensions = 2,
        .local = {8, 8},
        .tile = {8, 8},
        .tolerance = 1e-4,
        .flops_mnk = 2,
        .tiny = {{3, 5, 4}, {9, 7, 3}, {2, 17, 5}},
        .shapes = {{1, 1, 1}, {5, 3, 8}, {64, 64, 64}, {65, 64, 63}, {63, 40, 65}, {31, 128, 129}, {17, 33, 200}},
        .timed = {512, 512, 256},
    },
    {
        .name = "attention",
        .kernel = "attention",
        .formula = "out[i][d] = sum over j of w[i][j] * v[j][d], w = softmax over j of scale * sum over d of q[i][d] * k[j][d]",
        .arguments = {{"q", LAB_INPUT, "MN", "len_q x head_dim"},
                      {"k", LAB_INPUT, "KN", "len_kv x head_dim"},
                      {"v", LAB_INPUT, "KN", "len_kv x head_dim"},
                      {"out", LAB_OUTPUT, "MN", "len_q x head_dim"},
                      {"len_q", LAB_INT, "M", ""},
                      {"len_kv", LAB_INT, "K", ""},
                      {"head_dim", LAB_INT, "N", "at most HEAD_DIM_MAX, which is 128"},
                      {"scale", LAB_SCALE, "", "1 / sqrt(head_dim)"}},
        .dimensions = 1,
        .local = {64, 1},
        .tile = {64, 1},
        .tolerance = 2e-4,
        .flops_mnk = 4,
        .flops_mk = 4,
        .tiny = {{3, 4, 5}, {5, 3, 17}, {2, 8, 33}},
        .shapes = {{1, 1, 1}, {5, 8, 3}, {64, 64, 64}, {65, 64, 63}, {63, 40, 130}, {17, 128, 200}, {31, 16, 65, LAB_LARGE}},
        .timed = {512, 64, 512},
    },
};

const size_t lab_step_count = sizeof lab_steps / sizeof *lab_steps;

const lab_step *lab_step_find(const char *name) {
    for (size_t i = 0; i < lab_step_count; i++)
        if (strcmp(lab_steps[i].name, name) == 0) return &lab_steps[i];
    return NULL;
}

size_t lab_argument_count(const lab_step *step) {
    size_t count = 0;
    while (count < LAB_MAX_ARGUMENTS && step->arguments[count].name != NULL) count++;
    return count;
}

const char *lab_argument_type(const lab_argument *argument) {
    static const char *const types[] = {
        [LAB_INPUT] = "float*", [LAB_OUTPUT] = "float*", [LAB_INT] = "int", [LAB_SCALE] = "float"};
    return types[argument->kind];
}

int64_t lab_letter(const lab_shape *shape, char letter) {
    switch (letter) {
    case 'M':
        return shape->m;
    case 'N':
        return shape->n;
    case 'K':
        return shape->k;
    default:
        return 1;
    }
}

size_t lab_elements(const lab_argument *argument, const lab_shape *shape) {
    if (argument->kind > LAB_OUTPUT) return 0;
    return (size_t)(lab_letter(shape, argument->size[0]) * lab_letter(shape, argument->size[1]));
}

size_t lab_buffer_bytes(const lab_argument *argument, const lab_shape *shape) {
    return lab_elements(argument, shape) * sizeof(float);
}

static const lab_argument *argument_of_kind(const lab_step *step, lab_kind kind) {
    for (size_t i = 0; i < lab_argument_count(step); i++)
        if (step->arguments[i].kind == kind) return &step->arguments[i];
    return NULL;
}

float lab_scale(const lab_step *step, const lab_shape *shape) {
    /* Of the first input's columns, which are the head's in all steps that have a scale. */
    const lab_argument *q = argument_of_kind(step, LAB_INPUT);
    return 1 / sqrtf((float)lab_letter(shape, q->size[1]));
}

void lab_global(const lab_step *step, const lab_shape *shape, const lab_grid *grid, size_t global[2]) {
    const int extent[2] = {step->dimensions == 2 ? shape->n : shape->m, step->dimensions == 2 ? shape->m : 1};
    for (int d = 0; d < 2; d++) global[d] = (size_t)((extent[d] + grid->tile[d] - 1) / grid->tile[d] * grid->local[d]);
}

static int at_most(int wanted, int limit) {
    return wanted < limit ? wanted : limit;
}

lab_shape lab_one_group(const lab_step *step, const lab_grid *grid) {
    if (step->dimensions == 2) return (lab_shape){at_most(5, grid->tile[1]), at_most(7, grid->tile[0]), 11, LAB_PLAIN};
    return (lab_shape){at_most(5, grid->tile[0]), 37, 11, LAB_PLAIN};
}

double lab_flops(const lab_step *step, const lab_shape *shape) {
    const double m = shape->m, n = shape->n, k = shape->k;
    return step->flops_mnk * m * n * k + step->flops_mn * m * n + step->flops_mk * m * k;
}

double lab_bytes(const lab_step *step, const lab_shape *shape) {
    double bytes = 0;
    for (size_t i = 0; i < lab_argument_count(step); i++) bytes += (double)lab_buffer_bytes(&step->arguments[i], shape);
    return bytes;
}

void lab_shape_text(const lab_step *step, const lab_shape *shape, char *text, size_t size) {
    static const char *const data[] = {[LAB_PLAIN] = "", [LAB_LARGE] = ", large scores", [LAB_MASKED] = ", masked scores"};
    size_t used = 0;
    for (size_t i = 0; i < lab_argument_count(step) && used < size; i++) {
        const lab_argument *argument = &step->arguments[i];
        if (argument->kind != LAB_INT) continue;
        used += (size_t)snprintf(text + used, size - used, "%s%s %lld", used > 0 ? ", " : "", argument->name,
                                 (long long)lab_letter(shape, argument->size[0]));
    }
    if (used < size) snprintf(text + used, size - used, "%s", lab_words(data[shape->data]));
}

void lab_signature(const lab_step *step, char *text, size_t size) {
    static const char *const types[] = {
        [LAB_INPUT] = "global const float *", [LAB_OUTPUT] = "global float *", [LAB_INT] = "int ", [LAB_SCALE] = "float "};
    size_t used = (size_t)snprintf(text, size, "kernel void %s(", step->kernel);
    for (size_t i = 0; i < lab_argument_count(step) && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s%s", i > 0 ? ", " : "", types[step->arguments[i].kind],
                                 step->arguments[i].name);
    if (used < size) snprintf(text + used, size - used, ")");
}
