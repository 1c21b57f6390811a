/* numpy.random.RandomState, the legacy generator, bit for bit.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * MT19937 seeded by init_genrand (Matsumoto, Nishimura 1998, and their 2002 initialisation); rand() has 53 bits; randn() is
 * Marsaglia's polar method, which returns the second of a pair and keeps the first for the next call.
 */
#ifndef CLATTN_LESSONS_NUMPY_RANDOM_H
#define CLATTN_LESSONS_NUMPY_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

enum { NUMPY_RANDOM_WORDS = 624 };

typedef struct numpy_random {
    uint32_t words[NUMPY_RANDOM_WORDS];
    int next;
    bool kept; /* a normal number of the last pair */
    double normal;
} numpy_random;

void numpy_seed(numpy_random *, uint32_t seed);
/* Uniform in [0, 1). */
double numpy_rand(numpy_random *);
/* Standard normal. */
double numpy_randn(numpy_random *);
/* numpy.round(x, 2): rint(100 x) / 100. */
double numpy_round2(double x);

#endif
