/* SPDX-License-Identifier: Apache-2.0 */
#include "pairs.h"

#include <math.h>
#include <string.h>

enum { MOST_NUMBERS = 1 << 26 };

pairs_setting pairs_take_setting(const lesson *lesson) {
    static const int64_t lengths[] = {2, 4, 8, 16, 32};
    pairs_setting setting = {
        .seed = (uint32_t)lesson_integer(lesson->parameters.seed, PAIRS_SEED),
        .pairs = lesson_integer(lesson->parameters.pairs, PAIRS_COUNT),
        .dim = lesson_integer(lesson->parameters.dim, PAIRS_DIM),
    };
    setting.length_count = lesson_lengths(lesson, lengths, sizeof lengths / sizeof *lengths, setting.lengths);
    return setting;
}

void pairs_put_setting(lesson *lesson, const char *key, const pairs_setting *setting) {
    figures_number(&lesson->figures, arena_format(&lesson->arena, "%s/seed", key), setting->seed);
    figures_number(&lesson->figures, arena_format(&lesson->arena, "%s/pairs", key), (double)setting->pairs);
}

mat pairs_draw(lesson *lesson, numpy_random *random, int64_t pairs, int64_t length, int64_t dim) {
    if (2 * pairs * length * dim > MOST_NUMBERS)
        lesson_fail(lesson, CLI_USAGE, "%lld pairs of %lld words of %lld numbers are too many: at most %d numbers in all",
                    (long long)pairs, (long long)length, (long long)dim, MOST_NUMBERS);
    mat x = mat_new(&lesson->arena, 2 * pairs * length, dim);
    for (int64_t p = 0; p < pairs; p++) {
        float *a = x.at + 2 * p * length * dim, *b = a + length * dim;
        for (int64_t i = 0; i < length * dim; i++) a[i] = (float)numpy_randn(random);
        memcpy(b, a, (size_t)(length * dim) * sizeof *a);
        for (int64_t d = 0; d < dim; d++) a[d] = (float)numpy_randn(random);
        for (int64_t d = 0; d < dim; d++) b[d] = (float)numpy_randn(random);
    }
    return x;
}

double pairs_mean_cosine(mat states, int64_t pairs) {
    const int64_t length = states.rows / (2 * pairs);
    double sum = 0;
    for (int64_t p = 0; p < pairs; p++) {
        const float *a = states.at + ((2 * p + 1) * length - 1) * states.cols, *b = a + length * states.cols;
        sum += mat_cosine(a, b, states.cols);
    }
    return sum / (double)pairs;
}

void pairs_measure(lesson *lesson, const pairs_setting *setting, numpy_random *random, lesson_recurrence recurrence,
                   double *cosines) {
    recurrence.batch = 2 * setting->pairs;
    for (size_t i = 0; i < setting->length_count; i++) {
        recurrence.x = pairs_draw(lesson, random, setting->pairs, setting->lengths[i], setting->dim);
        cosines[i] = pairs_mean_cosine(lesson_recur(lesson, &recurrence), setting->pairs);
    }
}

double pairs_distance(const float *a, const float *b, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    return sqrt(sum);
}

double pairs_factor(double factor, int64_t dim) {
    return factor * sqrt((double)PAIRS_DIM / (double)dim);
}
