/* A square of WIDTH vectors of WIDTH, transposed.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * As many rounds as WIDTH has factors of 2; each shuffles the vectors of the first half of the square into those of the second, lane
 * by lane, as a deck of cards: a vector a shuffle.
 */
#ifndef CLATTN_KERNELS_CPU_TRANSPOSE_H
#define CLATTN_KERNELS_CPU_TRANSPOSE_H

#include "prelude.h"

/* The lanes of the first, the second halves of a and b in turns. */
#if defined(__OPENCL_C_VERSION__)
INLINE vec turns_low(vec a, vec b) {
    vec turns;
    turns.even = a.lo;
    turns.odd = b.lo;
    return turns;
}
INLINE vec turns_high(vec a, vec b) {
    vec turns;
    turns.even = a.hi;
    turns.odd = b.hi;
    return turns;
}
#elif WIDTH == 2
#define turns_low(a, b) SHUFFLE(a, b, 0, 2)
#define turns_high(a, b) SHUFFLE(a, b, 1, 3)
#elif WIDTH == 4
#define turns_low(a, b) SHUFFLE(a, b, 0, 4, 1, 5)
#define turns_high(a, b) SHUFFLE(a, b, 2, 6, 3, 7)
#elif WIDTH == 8
#define turns_low(a, b) SHUFFLE(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define turns_high(a, b) SHUFFLE(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#elif WIDTH == 16
#define turns_low(a, b) SHUFFLE(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define turns_high(a, b) SHUFFLE(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#endif

/* The first halves of a and b, their second ones. */
#if defined(__OPENCL_C_VERSION__)
INLINE vec first_halves(vec a, vec b) { return (vec)(a.lo, b.lo); }
INLINE vec second_halves(vec a, vec b) { return (vec)(a.hi, b.hi); }
#elif WIDTH == 2
#define first_halves(a, b) SHUFFLE(a, b, 0, 2)
#define second_halves(a, b) SHUFFLE(a, b, 1, 3)
#elif WIDTH == 4
#define first_halves(a, b) SHUFFLE(a, b, 0, 1, 4, 5)
#define second_halves(a, b) SHUFFLE(a, b, 2, 3, 6, 7)
#elif WIDTH == 8
#define first_halves(a, b) SHUFFLE(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define second_halves(a, b) SHUFFLE(a, b, 4, 5, 6, 7, 12, 13, 14, 15)
#elif WIDTH == 16
#define first_halves(a, b) SHUFFLE(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23)
#define second_halves(a, b) SHUFFLE(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31)
#endif

INLINE void transpose(vec x[WIDTH]) {
    UNROLL for (int round = 1; round < WIDTH; round *= 2) {
        vec y[WIDTH];
        UNROLL for (int n = 0; n < WIDTH / 2; n++) {
            y[2 * n] = turns_low(x[n], x[n + WIDTH / 2]);
            y[2 * n + 1] = turns_high(x[n], x[n + WIDTH / 2]);
        }
        UNROLL for (int n = 0; n < WIDTH; n++) x[n] = y[n];
    }
}

#endif
