/* packed[((block * hidden + k) * gates + g) * lanes + lane] = W_h[g * hidden + block * lanes + lane, k], 0 past the last row:
 * the layout of params.h, in which the recurrent kernels read W_h line after line.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shapes          w_h (1, 1, gates * hidden, hidden), packed (blocks, hidden, gates, lanes), blocks = ceil(hidden / lanes)
 * Group           one block, in tiles of TILE_M rows by TILE_K columns that are read along k and written along the rows
 * Local memory    TILE_K * (TILE_M + 1) floats
 * Work-group      any WORK_GROUP
 * Compiled        what compilers make of each row, offline.md in the results of `./run test --all` says; not yet measured on a GPU
 */
#include "../params.h"
#include "work_group.h"

#if !defined(TILE_M) || !defined(TILE_K)
#error "TILE_M and TILE_K come from the kernel's row"
#endif
#define LINE (TILE_M + 1)

/* tile[k][row] = rows first_row ... of gate g, columns first_k ...; what does not exist is 0. */
INLINE void read_tile(const recurrence_params *p, local float *tile, const global float *w_h, i64 g, i64 first_row,
                      i64 first_k) {
    for (int n = (int)get_local_id(0); n < TILE_M * TILE_K; n += WORK_GROUP) {
        const i64 row = first_row + n / TILE_K, k = first_k + n % TILE_K;
        const bool inside = row < p->hidden && k < p->hidden;
        tile[n % TILE_K * LINE + n / TILE_K] = inside ? w_h[(g * p->hidden + row) * p->w_h.l + k * p->w_h.d] : 0.0f;
    }
}

/* The tile into lanes first_lane ... of a block's gate g. */
INLINE void write_tile(const recurrence_params *p, const local float *tile, global float *block, i64 g, i64 first_lane,
                       i64 first_k) {
    for (int n = (int)get_local_id(0); n < TILE_M * TILE_K; n += WORK_GROUP) {
        const i64 lane = first_lane + n % TILE_M, k = first_k + n / TILE_M;
        if (lane < p->lanes && k < p->hidden)
            block[(k * p->gates + g) * p->lanes + lane] = tile[n / TILE_M * LINE + n % TILE_M];
    }
}

KERNEL void pack_recurrent(const global float *w_h, global float *packed, const recurrence_params p) {
    local float tile[TILE_K * LINE];
    w_h += p.base[0];
    packed += p.base[1];
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        global float *block = packed + group * p.hidden * p.gates * p.lanes;
        for (i64 g = 0; g < p.gates; g++) {
            for (i64 lane = 0; lane < p.lanes; lane += TILE_M) {
                for (i64 k = 0; k < p.hidden; k += TILE_K) {
                    read_tile(&p, tile, w_h, g, group * p.lanes + lane, k);
                    barrier(CLK_LOCAL_MEM_FENCE);
                    write_tile(&p, tile, block, g, lane, k);
                    barrier(CLK_LOCAL_MEM_FENCE);
                }
            }
        }
    }
}
