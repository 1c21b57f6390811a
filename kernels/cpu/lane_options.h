/* The options of a block of rows that stand in lanes: those of a tile of scores [keys][LANES].
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Any row may stand in any lane. The tile of addends is made before the products, so that a tile whose keys are all masked
 * costs none; in it, keys outside the lane's range count as masked too.
 */
#ifndef CLATTN_KERNELS_CPU_LANE_OPTIONS_H
#define CLATTN_KERNELS_CPU_LANE_OPTIONS_H

#include "gemm.h"
#include "row_options.h"

/* Which of the keys in a tile are live. */
enum { LIVE_NONE, LIVE_SOME, LIVE_ALL };

/* Whether the mask of a row attends to any of `count` keys from j on. No way out of the loops, so that they are ones of
 * vectors. */
INLINE int mask_attends(const row_options *row, const attention_params *p, i64 j, i64 count) {
    __global const uchar *mask = row->mask + j * p->mask.d;
    uchar any = 0;
    if (p->mask.d == 1) {
        for (i64 n = 0; n < count; n++) any |= mask[n];
    } else {
        for (i64 n = 0; n < count; n++) any |= mask[n * p->mask.d];
    }
    return any != 0;
}

/* The addends of one row for `keys` keys from `start` on, of which first <= j < end are in its range. */
INLINE void ranged_addends(real *addends, const row_options *row, const attention_params *p, i64 start, int keys, int first,
                           int end) {
    for (int j = 0; j < first; j++) addends[j] = -INFINITY;
    row_addends(addends + first, row, p, start + first, end - first);
    for (int j = end; j < keys; j++) addends[j] = -INFINITY;
}

INLINE int live_addends(const real *addends, int keys) {
    ivec live = ivec_splat(0), masked = ivec_splat(0);
    for (int n = 0; n < keys * LANES; n += WIDTH) {
        const ivec hidden = vec_load(addends + n) == vec_splat(-INFINITY);
        masked |= hidden;
        live |= ~hidden;
    }
    if (!ivec_any(live)) return LIVE_NONE;
    return ivec_any(masked) ? LIVE_SOME : LIVE_ALL;
}

/* Rows that broadcast have the same elements. */
INLINE int same_elements(const row_options *a, const row_options *b) {
    return a->mask == b->mask && a->bias == b->bias;
}

/* addends[key][lane] for `keys` keys from `start` on, TILE_KV at most; each lane's range is counted from there. Returns
 * which keys are live; where none is, there are no addends. */
INLINE int lane_addends(real *addends, const row_options rows[LANES], const attention_params *p, i64 start, int keys,
                        const integer firsts[LANES], const integer ends[LANES]) {
    real row[TILE_KV];
    int any = !p->has_mask;
    for (int lane = 0; lane < LANES && !any; lane++)
        any = mask_attends(&rows[lane], p, start + firsts[lane], ends[lane] - firsts[lane]);
    if (!any) return LIVE_NONE;
    for (int lane = 0; lane < LANES; lane++) {
        const int again = lane > 0 && same_elements(&rows[lane], &rows[lane - 1]) && firsts[lane] == firsts[lane - 1] &&
                          ends[lane] == ends[lane - 1];
        if (!again) ranged_addends(row, &rows[lane], p, start, keys, (int)firsts[lane], (int)ends[lane]);
        for (int j = 0; j < keys; j++) addends[j * LANES + lane] = row[j];
    }
    return live_addends(addends, keys);
}

/* The slopes of vector v, and how far key `start` is from the positions there. */
INLINE vec lane_slopes(const row_options rows[LANES], int v) {
    real lanes[WIDTH];
    for (int lane = 0; lane < WIDTH; lane++) lanes[lane] = rows[v * WIDTH + lane].slope;
    return vec_load(lanes);
}

INLINE vec lane_distances(const row_options rows[LANES], int v, i64 start) {
    real lanes[WIDTH];
    for (int lane = 0; lane < WIDTH; lane++) lanes[lane] = (real)(start - rows[v * WIDTH + lane].position);
    return vec_load(lanes);
}

#endif
