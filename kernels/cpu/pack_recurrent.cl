/* packed[((block * hidden + k) * gates + g) * lanes + lane] = W_h[g * hidden + block * lanes + lane, k], 0 beyond the last row.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * group = block of `lanes` hidden units. The transposition goes CHUNK columns at a time, so that what it writes stays in the
 * nearest cache until its lines are full. No private memory.
 */
#include "prelude.h"

#define CHUNK 16

INLINE void pack_chunk(__global const float *w_h, __global float *packed, const recurrence_params *p, i64 block, i64 k, i64 end) {
    for (i64 n = 0; n < p->gates * p->lanes; n++) {
        i64 gate = n / p->lanes, unit = block * p->lanes + n % p->lanes;
        __global const float *row = w_h + (gate * p->hidden + unit) * p->w_h.l;
        for (i64 i = k; i < end; i++)
            packed[(block * p->hidden + i) * p->gates * p->lanes + n] = unit < p->hidden ? row[i * p->w_h.d] : 0.0f;
    }
}

__kernel GROUP_OF_ONE void pack_recurrent(__global const float *w_h, __global float *packed, recurrence_params p) {
    w_h += p.base[0], packed += p.base[1];
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0))
        for (i64 k = 0; k < p.hidden; k += CHUNK)
            pack_chunk(w_h, packed, &p, group, k, k + CHUNK < p.hidden ? k + CHUNK : p.hidden);
}
