/* Products of blocks of bf16 with sums of f32: by AMX tiles, by the same tiles in plain C, or by AVX512_BF16.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *      tiles_product:  C (TILES_ROWS x TILES_LANES) = or += A (TILES_ROWS x depth) B (depth x TILES_LANES)
 *
 * with depth a multiple of TILES_DEPTH. Elements of a row of A lie side by side. Of B two elements of a column do, as one uint: pair
 * k of column n has element 2 k in its low half, 2 k + 1 in its high half. Rows of any of the three lie any distance apart.
 *
 * AMX (Intel SDM, vol. 1 chapter 18; Intrinsics Guide): eight tiles of up to 16 rows of 64 bytes. A thread configures them, and
 * releases them when it is done, lest they be saved with its registers for ever. TDPBF16PS is
 *      for m < rows of c, k < bytes of a row of a / 4, n < bytes of a row of c / 4:
 *          c.f32[m][n] += a.bf16[m][2 k] b.bf16[k][2 n] + a.bf16[m][2 k + 1] b.bf16[k][2 n + 1]
 * Four tiles are the sums of a block of 2 x 2, two are of A and two of B: each one loaded serves two products.
 *
 * AMX and AVX512_BF16 take denormal elements for 0 and make denormal sums 0; the emulation keeps both.
 */
#ifndef CLATTN_NATIVE_TILES_H
#define CLATTN_NATIVE_TILES_H

#include <stddef.h>

#include "cpu/prelude.h"

/* The values of TILES: numbers of features.def. */
#define TILES_EMULATED 1
#define TILES_AVX512_BF16 2
#define TILES_AMX_BF16 3

enum { TILES_ROWS = 32, TILES_LANES = 32, TILES_DEPTH = 32 };

#if TILES == TILES_AVX512_BF16
/* ---- AVX512_BF16 ------------------------------------------------------------------------------------------------------- */

#define tiles_begin() ((void)0)
#define tiles_end() ((void)0)

/* Sums of STRIP rows stay in registers. */
enum { STRIP = 8 };

INLINE void strip_product(float *c, i64 c_row, const ushort *a, i64 a_row, const uint32_t *b, i64 b_row, i64 depth, int add) {
    __m512 sum[STRIP][2];
    UNROLL for (int r = 0; r < STRIP; r++) UNROLL for (int v = 0; v < 2; v++)
        sum[r][v] = add ? _mm512_loadu_ps(c + r * c_row + v * 16) : _mm512_setzero_ps();
    for (i64 k = 0; k < depth; k += 2, b += b_row) {
        const __m512bh low = (__m512bh)_mm512_loadu_si512(b), high = (__m512bh)_mm512_loadu_si512(b + 16);
        UNROLL for (int r = 0; r < STRIP; r++) {
            int pair;
            __builtin_memcpy(&pair, a + r * a_row + k, sizeof pair);
            const __m512bh both = (__m512bh)_mm512_set1_epi32(pair);
            sum[r][0] = _mm512_dpbf16_ps(sum[r][0], both, low);
            sum[r][1] = _mm512_dpbf16_ps(sum[r][1], both, high);
        }
    }
    UNROLL for (int r = 0; r < STRIP; r++) UNROLL for (int v = 0; v < 2; v++) _mm512_storeu_ps(c + r * c_row + v * 16, sum[r][v]);
}

INLINE void tiles_product(float *c, i64 c_row, const ushort *a, i64 a_row, const uint32_t *b, i64 b_row, i64 depth, int add) {
    for (int r = 0; r < TILES_ROWS; r += STRIP) strip_product(c + r * c_row, c_row, a + r * a_row, a_row, b, b_row, depth, add);
}

#else

/* What LDTILECFG reads, of palette 1. */
typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[8];
    uint8_t no_row_bytes[16];
    uint8_t rows[8];
    uint8_t no_rows[8];
} tile_config;
_Static_assert(sizeof(tile_config) == 64 && offsetof(tile_config, row_bytes) == 16 && offsetof(tile_config, rows) == 48,
               "Intel SDM, table of the memory area of LDTILECFG");

/* All tiles whole: 16 rows of 64 bytes. */
static const tile_config whole_tiles __attribute__((aligned(64))) = {
    .palette = 1, .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, 16, 16}};

#if TILES == TILES_AMX_BF16
/* ---- AMX: the numbers of tiles are parts of the instructions ------------------------------------------------------------- */

/* gcc 12's TILELOADD does not say that it reads memory: what was written before must be there. */
#define tiles_written() __asm__ volatile("" ::: "memory")
#define tiles_begin() _tile_loadconfig(&whole_tiles)
#define tiles_end() _tile_release()
#define tile_zero(tile) _tile_zero(tile)
#define tile_load(tile, from, bytes) _tile_loadd(tile, from, (size_t)(bytes))
#define tile_store(tile, to, bytes) _tile_stored(tile, to, (size_t)(bytes))
#define tile_multiply(c, a, b) _tile_dpbf16ps(c, a, b)

#elif TILES == TILES_EMULATED
/* ---- the same in plain C: an instruction that the processor would refuse ends the program ----------------------------------- */

typedef struct tile_state {
    tile_config config;
    uint8_t tiles[8][16][64];
} tile_state;

static _Thread_local tile_state tile_file;

#define tiles_written() ((void)0)

static inline void tiles_begin(void) { tile_file.config = whole_tiles; }

/* What tiles hold is lost, and no instruction but the next configuration is legal. */
static inline void tiles_end(void) {
    __builtin_memset(&tile_file, 0, sizeof tile_file);
}

static inline tile_state *tiles_configured(void) {
    if (tile_file.config.palette != 1) __builtin_trap();
    return &tile_file;
}

static inline void tile_zero(int tile) {
    __builtin_memset(tiles_configured()->tiles[tile], 0, sizeof tile_file.tiles[tile]);
}

static inline void tile_load(int tile, const void *from, i64 bytes) {
    tile_state *t = tiles_configured();
    tile_zero(tile);
    for (int m = 0; m < t->config.rows[tile]; m++)
        __builtin_memcpy(t->tiles[tile][m], (const char *)from + m * bytes, t->config.row_bytes[tile]);
}

static inline void tile_store(int tile, void *to, i64 bytes) {
    const tile_state *t = tiles_configured();
    for (int m = 0; m < t->config.rows[tile]; m++)
        __builtin_memcpy((char *)to + m * bytes, t->tiles[tile][m], t->config.row_bytes[tile]);
}

/* Element n of a row of bf16 in a tile. */
static inline float tile_element(const uint8_t row[64], int n) {
    ushort half;
    __builtin_memcpy(&half, row + 2 * n, sizeof half);
    const uint32_t bits = (uint32_t)half << 16;
    float element;
    __builtin_memcpy(&element, &bits, sizeof element);
    return element;
}

static inline void tile_multiply(int c, int a, int b) {
    tile_state *t = tiles_configured();
    if (t->config.row_bytes[a] / 4 > t->config.rows[b]) __builtin_trap();
    for (int m = 0; m < t->config.rows[c]; m++) {
        float sums[16];
        __builtin_memcpy(sums, t->tiles[c][m], sizeof sums);
        for (int k = 0; k < t->config.row_bytes[a] / 4; k++) {
            const float low = tile_element(t->tiles[a][m], 2 * k), high = tile_element(t->tiles[a][m], 2 * k + 1);
            for (int n = 0; n < t->config.row_bytes[c] / 4; n++)
                sums[n] += low * tile_element(t->tiles[b][k], 2 * n) + high * tile_element(t->tiles[b][k], 2 * n + 1);
        }
        __builtin_memcpy(t->tiles[c][m], sums, sizeof sums);
    }
}
#else
#error "TILES: a number of features.def"
#endif

INLINE void tiles_product(float *c, i64 c_row, const ushort *a, i64 a_row, const uint32_t *b, i64 b_row, i64 depth, int add) {
    float *c_low = c + 16 * c_row;
    tiles_written();
    if (add) {
        tile_load(0, c, 4 * c_row);
        tile_load(1, c + 16, 4 * c_row);
        tile_load(2, c_low, 4 * c_row);
        tile_load(3, c_low + 16, 4 * c_row);
    } else {
        tile_zero(0);
        tile_zero(1);
        tile_zero(2);
        tile_zero(3);
    }
    for (i64 k = 0; k < depth; k += TILES_DEPTH) {
        tile_load(4, a + k, 2 * a_row);
        tile_load(6, b + k / 2 * b_row, 4 * b_row);
        tile_load(7, b + k / 2 * b_row + 16, 4 * b_row);
        tile_load(5, a + 16 * a_row + k, 2 * a_row);
        tile_multiply(0, 4, 6);
        tile_multiply(1, 4, 7);
        tile_multiply(2, 5, 6);
        tile_multiply(3, 5, 7);
    }
    tile_store(0, c, 4 * c_row);
    tile_store(1, c + 16, 4 * c_row);
    tile_store(2, c_low, 4 * c_row);
    tile_store(3, c_low + 16, 4 * c_row);
}

#endif
#endif
