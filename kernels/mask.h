/* Which keys a query may look at, and which queries a group has: one definition for every kernel and for the host.
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

/* A buffer of integers. */
#if defined(__OPENCL_C_VERSION__)
#define INT_BUFFER __global const i32 *
#define INT_BUFFER_WIDE __global const i64 *
#else
#define INT_BUFFER const i32 *
#define INT_BUFFER_WIDE const i64 *
#endif

static inline i64 mask_clamp(i64 x, i64 low, i64 high) { return x < low ? low : x < high ? x : high; }

/* Element n of a list. */
static inline i64 int_at(int_list list, INT_BUFFER buffer, i64 n) {
    return list.wide ? ((INT_BUFFER_WIDE)buffer)[n * list.stride] : buffer[n * list.stride];
}

/* One member of the batch: how many queries and keys it has, where they begin in its views (q_first in those of q, out and lse,
 * kv_first in those of k and v; not 0 in a ragged batch), and what is added to a query's number to give its position. */
typedef struct member {
    i64 len_q, len_kv, q_first, kv_first, offset;
} member;

/* Lengths are clamped to what the views hold: nothing is read or written outside them, whatever a device's memory says. */
static inline member member_of(const attention_params *p, INT_BUFFER kv_lengths, INT_BUFFER q_offsets, INT_BUFFER kv_offsets,
                               i64 b) {
    member m = {p->len_q, p->len_kv, 0, 0, p->keys.offset};
    if (p->q_offsets.present) {
        m.q_first = mask_clamp(int_at(p->q_offsets, q_offsets, b), 0, p->len_q);
        m.len_q = mask_clamp(int_at(p->q_offsets, q_offsets, b + 1), m.q_first, p->len_q) - m.q_first;
    }
    if (p->kv_offsets.present) {
        m.kv_first = mask_clamp(int_at(p->kv_offsets, kv_offsets, b), 0, p->len_kv);
        m.len_kv = mask_clamp(int_at(p->kv_offsets, kv_offsets, b + 1), m.kv_first, p->len_kv) - m.kv_first;
    }
    if (p->kv_lengths.present) m.len_kv = mask_clamp(int_at(p->kv_lengths, kv_lengths, b) + p->appended, 0, p->len_kv);
    if (p->keys.from_end) m.offset += m.len_kv - m.len_q;
    return m;
}

/* Which tile of queries a group of attention works on: tile `tile` of query head h of member b, which reads key/value head g. */
typedef struct query_tile {
    i64 b, h, g, tile;
} query_tile;

/* The slots for tiles that one head has in a ragged batch: a member that begins at query f owns those from f / tile_q + b on, which
 * are at least as many as its tiles. A slot past them is a tile without queries. */
static inline i64 first_slot(const attention_params *p, INT_BUFFER q_offsets, i64 tile_q, i64 b) {
    return mask_clamp(int_at(p->q_offsets, q_offsets, b), 0, p->len_q) / tile_q + b;
}

static inline query_tile query_tile_at(const attention_params *p, INT_BUFFER q_offsets, i64 tile_q, i64 group) {
    const i64 tiles = (p->len_q + tile_q - 1) / tile_q, slots = p->len_q / tile_q + p->batch, ratio = p->heads_q / p->heads_kv;
    query_tile at = {group / tiles / p->heads_q, group / tiles % p->heads_q, 0, group % tiles};
    if (p->q_offsets.present) {
        i64 low = 0, high = p->batch - 1;
        const i64 slot = group % slots;
        while (low < high) { /* the last member whose first slot is not past this one */
            const i64 middle = low + (high - low + 1) / 2;
            if (first_slot(p, q_offsets, tile_q, middle) <= slot)
                low = middle;
            else
                high = middle - 1;
        }
        at.b = low;
        at.h = group / slots;
        at.tile = slot - first_slot(p, q_offsets, tile_q, low);
    }
    at.g = at.h / ratio;
    return at;
}

/* How many groups that makes. */
static inline i64 query_tiles(const attention_params *p, i64 tile_q) {
    const i64 each = p->len_q / tile_q + (p->len_q % tile_q != 0);
    if (p->q_offsets.present) return p->batch && p->len_q ? p->heads_q * (p->len_q / tile_q + p->batch) : 0;
    return p->batch * p->heads_q * each;
}

/* What a group of attention_split works on: of the rows that share key/value head g of member b, those from `first` on, over part
 * `part` of the keys. Row r is query r % len_q of head h + r / len_q. The part's results are those of member b_out. */
typedef struct split_group {
    i64 b, g, h, rows, first, part, b_out;
} split_group;

static inline split_group split_group_at(const attention_params *p, i64 tile_q, i64 group) {
    const i64 ratio = p->heads_q / p->heads_kv, rows = ratio * p->len_q, tiles = (rows + tile_q - 1) / tile_q;
    const i64 g = group / tiles % p->heads_kv, b_out = group / tiles / p->heads_kv;
    const split_group at = {b_out % p->batch, g, g * ratio, rows, group % tiles * tile_q, b_out / p->batch, b_out};
    return at;
}

/* The slope of ALiBi for head h of `heads` (Press et al. 2022): 2^(-8 (h + 1) / n) for the n = 2^floor(log2(heads)) first heads; the
 * others take every second slope of twice as many. As an exponent of 2. */
static inline float alibi_exponent(i64 h, i64 heads) {
    i64 n = 1;
    while (2 * n <= heads) n *= 2;
    return h < n ? -8.0f * (float)(h + 1) / (float)n : -4.0f * (float)(2 * (h - n) + 1) / (float)n;
}

/* The keys first <= j < end. In an empty range first == end. */
typedef struct key_range {
    i64 first, end;
} key_range;

/* The keys of a member's query i that neither its length, nor causality, nor a window hides; 0 <= first <= end <= len_kv. An element
 * of the mask or the bias may hide more. */
static inline key_range live_range(const attention_params *p, const member *m, i64 i) {
    const i64 position = i + m->offset;
    key_range live = {0, m->len_kv};
    if (p->keys.left >= 0) live.first = mask_clamp(position - p->keys.left, 0, m->len_kv);
    if (p->keys.right >= 0) live.end = mask_clamp(position + p->keys.right + 1, live.first, m->len_kv);
    return live;
}

/* The keys of part `part` that a member has. */
static inline key_range split_part(const attention_params *p, const member *m, i64 part) {
    const key_range keys = {mask_clamp(part * p->split, 0, m->len_kv), mask_clamp((part + 1) * p->split, 0, m->len_kv)};
    return keys;
}

static inline int is_live(key_range live, i64 j) { return live.first <= j && j < live.end; }

/* What lies in [start, start + extent) of a range, counted from start. */
static inline key_range range_in_tile(key_range range, i64 start, i64 extent) {
    const key_range part = {mask_clamp(range.first - start, 0, extent), mask_clamp(range.end - start, 0, extent)};
    return part;
}

/* Of `rows` queries from i on, as far as they exist: the last. */
static inline i64 last_query(const member *m, i64 i, i64 rows) { return (rows < m->len_q - i ? i + rows : m->len_q) - 1; }

/* The keys that any of these queries may look at, and those that all of them may, of which there may be none: end <= first. */
static inline key_range live_for_any(const attention_params *p, const member *m, i64 i, i64 rows) {
    const key_range any = {live_range(p, m, i).first, live_range(p, m, last_query(m, i, rows)).end};
    return any;
}

static inline key_range live_for_all(const attention_params *p, const member *m, i64 i, i64 rows) {
    const key_range all = {live_range(p, m, last_query(m, i, rows)).first, live_range(p, m, i).end};
    return all;
}

#endif
