/* The sums across lanes of WIDTH vectors at once.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A tree of WIDTH - 1 steps, each of which makes one vector of two by adding their halves, first those that lie far apart: two
 * shuffles and an addition, where the sum of one vector alone takes as many steps as the tree has levels. The leaves stand so that
 * lane n becomes the sum of x[n].
 */
#ifndef CLATTN_KERNELS_CPU_SUMS_H
#define CLATTN_KERNELS_CPU_SUMS_H

#include "prelude.h"

/* halves_N(a, b): of each 2 N lanes the first N and the last N, added; those of a and of b in turns, but of
 * halves_1 two of each in turns, which is one shuffle. */
#if defined(__OPENCL_C_VERSION__)
#if WIDTH == 2
INLINE vec halves_1(vec a, vec b) { return (vec)(a.s0, b.s0) + (vec)(a.s1, b.s1); }
#elif WIDTH == 4
INLINE vec halves_2(vec a, vec b) { return (vec)(a.s01, b.s01) + (vec)(a.s23, b.s23); }
INLINE vec halves_1(vec a, vec b) { return (vec)(a.s02, b.s02) + (vec)(a.s13, b.s13); }
#elif WIDTH == 8
INLINE vec halves_4(vec a, vec b) { return (vec)(a.s0123, b.s0123) + (vec)(a.s4567, b.s4567); }
INLINE vec halves_2(vec a, vec b) { return (vec)(a.s01, b.s01, a.s45, b.s45) + (vec)(a.s23, b.s23, a.s67, b.s67); }
INLINE vec halves_1(vec a, vec b) { return (vec)(a.s02, b.s02, a.s46, b.s46) + (vec)(a.s13, b.s13, a.s57, b.s57); }
#elif WIDTH == 16
INLINE vec halves_8(vec a, vec b) { return (vec)(a.s01234567, b.s01234567) + (vec)(a.s89abcdef, b.s89abcdef); }
INLINE vec halves_4(vec a, vec b) {
    return (vec)(a.s0123, b.s0123, a.s89ab, b.s89ab) +
           (vec)(a.s4567, b.s4567, a.scdef, b.scdef);
}
INLINE vec halves_2(vec a, vec b) {
    return (vec)(a.s01, b.s01, a.s45, b.s45, a.s89, b.s89, a.scd, b.scd) +
           (vec)(a.s23, b.s23, a.s67, b.s67, a.sab, b.sab, a.sef, b.sef);
}
INLINE vec halves_1(vec a, vec b) {
    return (vec)(a.s02, b.s02, a.s46, b.s46, a.s8a, b.s8a, a.sce, b.sce) +
           (vec)(a.s13, b.s13, a.s57, b.s57, a.s9b, b.s9b, a.sdf, b.sdf);
}
#endif
#else
#if WIDTH == 2
INLINE vec halves_1(vec a, vec b) { return SHUFFLE(a, b, 0, 2) + SHUFFLE(a, b, 1, 3); }
#elif WIDTH == 4
INLINE vec halves_2(vec a, vec b) { return SHUFFLE(a, b, 0, 1, 4, 5) + SHUFFLE(a, b, 2, 3, 6, 7); }
INLINE vec halves_1(vec a, vec b) { return SHUFFLE(a, b, 0, 2, 4, 6) + SHUFFLE(a, b, 1, 3, 5, 7); }
#elif WIDTH == 8
INLINE vec halves_4(vec a, vec b) {
    return SHUFFLE(a, b, 0, 1, 2, 3, 8, 9, 10, 11) +
           SHUFFLE(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
}
INLINE vec halves_2(vec a, vec b) {
    return SHUFFLE(a, b, 0, 1, 8, 9, 4, 5, 12, 13) +
           SHUFFLE(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
}
INLINE vec halves_1(vec a, vec b) {
    return SHUFFLE(a, b, 0, 2, 8, 10, 4, 6, 12, 14) +
           SHUFFLE(a, b, 1, 3, 9, 11, 5, 7, 13, 15);
}
#elif WIDTH == 16
INLINE vec halves_8(vec a, vec b) {
    return SHUFFLE(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 24, 25, 26, 27, 28, 29, 30, 31) +
           SHUFFLE(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23);
}
INLINE vec halves_4(vec a, vec b) {
    return SHUFFLE(a, b, 0, 1, 2, 3, 20, 21, 22, 23, 8, 9, 10, 11, 28, 29, 30, 31) +
           SHUFFLE(a, b, 4, 5, 6, 7, 16, 17, 18, 19, 12, 13, 14, 15, 24, 25, 26, 27);
}
INLINE vec halves_2(vec a, vec b) {
    return SHUFFLE(a, b, 0, 1, 18, 19, 4, 5, 22, 23, 8, 9, 26, 27, 12, 13, 30, 31) +
           SHUFFLE(a, b, 2, 3, 16, 17, 6, 7, 20, 21, 10, 11, 24, 25, 14, 15, 28, 29);
}
INLINE vec halves_1(vec a, vec b) {
    return SHUFFLE(a, b, 0, 2, 16, 18, 4, 6, 20, 22, 8, 10, 24, 26, 12, 14, 28, 30) +
           SHUFFLE(a, b, 1, 3, 17, 19, 5, 7, 21, 23, 9, 11, 25, 27, 13, 15, 29, 31);
}
#endif
#endif

/* Four lanes of each x[n + 4 m] side by side: m = 0, 1 ... */
#if WIDTH == 4
#define FOURS(x, n) (x)[n]
#elif WIDTH == 8
#define FOURS(x, n) halves_4((x)[n], (x)[n + 4])
#elif WIDTH == 16
#define FOURS(x, n) halves_4(halves_8((x)[n], (x)[n + 8]), halves_8((x)[n + 4], (x)[n + 12]))
#endif

INLINE vec sums_of(const vec *x) {
#if WIDTH == 2
    return halves_1(x[0], x[1]);
#else
    return halves_1(halves_2(FOURS(x, 0), FOURS(x, 1)), halves_2(FOURS(x, 2), FOURS(x, 3)));
#endif
}

#endif
