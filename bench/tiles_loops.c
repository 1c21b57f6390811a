/* The loop of one feature. The build sets TILES_NAME, TILES, and the compiler's flags for it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define VECTOR_WIDTH 16
#include "native/tiles.h"
#include "tiles.h"

#if TILES == TILES_AMX_BF16
/* Four sums of 16 x 16, of two tiles of 16 x 32 and two of 32 x 16: what tiles_product keeps in registers. */
enum { FLOPS_PER_ROUND = 4 * 2 * 16 * 16 * 32 };

static void multiply(int64_t rounds, float *sink) {
    (void)native_group_id, (void)native_num_groups; /* of a kernel, which this is not */
    float sums[16] = {0};
    tiles_begin();
    for (int64_t round = 0; round < rounds; round++) {
        tile_multiply(0, 4, 6);
        tile_multiply(1, 4, 7);
        tile_multiply(2, 5, 6);
        tile_multiply(3, 5, 7);
    }
    tile_store(0, sums, 0); /* sixteen rows in one place */
    tiles_end();
    *sink = sums[0];
}
#else
/* As many chains as a strip of tiles_product has; they begin apart, or a compiler would make one of them. */
#define CHAINS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
enum { FLOPS_PER_ROUND = 16 * 2 * 32 };

static void multiply(int64_t rounds, float *sink) {
    (void)native_group_id, (void)native_num_groups; /* of a kernel, which this is not */
    __m512i zeros = _mm512_setzero_si512();
#define X(n) __m512 chain##n = _mm512_set1_ps(n);
    CHAINS(X)
#undef X
    for (int64_t round = 0; round < rounds; round++) {
        __asm__ volatile("" : "+v"(zeros)); /* not known to be zeros */
#define X(n) chain##n = _mm512_dpbf16_ps(chain##n, (__m512bh)zeros, (__m512bh)zeros);
        CHAINS(X)
#undef X
    }
    __m512 total = _mm512_setzero_ps();
#define X(n) total = _mm512_add_ps(total, chain##n);
    CHAINS(X)
#undef X
    *sink = _mm512_reduce_add_ps(total);
}
#endif

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
const bench_tiles PASTE(bench_tiles_, TILES_NAME) = {TILES, multiply, FLOPS_PER_ROUND};
