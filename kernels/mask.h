/* Which keys a query may look at: one definition for every kernel and for the host.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The keys of a query are a range. Neither end of it falls as the query rises, so that some queries in a row look, together, at
 * no more than from the first one's first key to the last one's end, and each of them at all between the last one's first key
 * and the first one's end.
 *
 * A kernel that walks tiles of keys has them begin at multiples of the tile, never at the first live key: the order of a sum
 * then does not depend on the mask.
 */
#ifndef CLATTN_KERNELS_MASK_H
#define CLATTN_KERNELS_MASK_H

#include "params.h"

static inline key_mask key_mask_of(int causal, i64 offset) {
    const key_mask mask = {offset, -1, causal ? 0 : -1};
    return mask;
}

static inline int mask_hides(const key_mask *mask) { return mask->left >= 0 || mask->right >= 0; }

/* The keys first <= j < end. In an empty range first == end. */
typedef struct key_range {
    i64 first, end;
} key_range;

static inline i64 mask_clamp(i64 x, i64 low, i64 high) { return x < low ? low : x < high ? x : high; }

/* The live keys of query i of batch member b; 0 <= first <= end <= len_kv. Callers pass the b that they work on, though no mask
 * depends on it yet. */
static inline key_range live_range(const attention_params *p, i64 b, i64 i) {
    const i64 position = i + p->mask.offset;
    key_range live = {0, p->len_kv};
    (void)b;
    if (p->mask.left >= 0) live.first = mask_clamp(position - p->mask.left, 0, p->len_kv);
    if (p->mask.right >= 0) live.end = mask_clamp(position + p->mask.right + 1, live.first, p->len_kv);
    return live;
}

static inline int is_live(key_range live, i64 j) { return live.first <= j && j < live.end; }

/* What lies in [start, start + extent) of a range, counted from start. */
static inline key_range range_in_tile(key_range range, i64 start, i64 extent) {
    const key_range part = {mask_clamp(range.first - start, 0, extent), mask_clamp(range.end - start, 0, extent)};
    return part;
}

/* Of `rows` queries from i on, as far as they exist: the last. */
static inline i64 last_query(const attention_params *p, i64 i, i64 rows) {
    return (rows < p->len_q - i ? i + rows : p->len_q) - 1;
}

/* The keys that any of these queries may look at, and those that all of them may, of which there may be none: end <= first. */
static inline key_range live_for_any(const attention_params *p, i64 b, i64 i, i64 rows) {
    const key_range any = {live_range(p, b, i).first, live_range(p, b, last_query(p, i, rows)).end};
    return any;
}

static inline key_range live_for_all(const attention_params *p, i64 b, i64 i, i64 rows) {
    const key_range all = {live_range(p, b, last_query(p, i, rows)).first, live_range(p, b, i).end};
    return all;
}

#endif
