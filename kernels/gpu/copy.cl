/* y[b,h,at + l,:] = x[b,h,l,:], converted to y's type, and rotated (Su et al. 2021) at position + l where rotary says so:
 *
 *      (y0, y1) = (x0 cos - x1 sin, x0 sin + x1 cos)    for each pair of the first rotary_dim elements; the others as they are
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * What keeps its type and is not turned is moved as bits, of any type; else elements are f32, f16 or bf16.
 *
 * Shapes          x (batch, heads, len, dim), y (batch, heads, capacity, dim), cosines and sines (.., rotary_dim / 2)
 * Group           TILE_M rows of one head; LANES = WORK_GROUP / TILE_M work-items walk a row side by side
 * Local memory    none
 * Work-group      WORK_GROUP, a multiple of TILE_M
 * Compiled        what compilers make of each row, offline.md in the results of `./run test --all` says; not yet measured on a GPU
 */
#include "../mask.h"
#include "element.h"

#ifndef TILE_M
#error "TILE_M comes from the kernel's row"
#endif
#define LANES (WORK_GROUP / TILE_M)

/* Where a row begins, in elements, and from one of its elements to the next. */
typedef struct row_at {
    i64 at, step;
} row_at;

#define MOVE(type, to, to_step, from, from_step, first, end)                                                                   \
    for (i64 n = (first) + lane; n < (end); n += LANES)                                                                        \
        ((global type *)(to))[n * (to_step)] = ((const global type *)(from))[n * (from_step)];

/* Bytes that lie side by side on both sides, as many at a time as their addresses allow. */
INLINE void move_bytes(const global char *from, global char *to, i64 bytes, int lane) {
    const size_t all = (size_t)from | (size_t)to | (size_t)bytes;
    if (all % 16 == 0) {
        MOVE(uint4, to, 1, from, 1, 0, bytes / 16)
    } else if (all % 4 == 0) {
        MOVE(uint, to, 1, from, 1, 0, bytes / 4)
    } else {
        MOVE(ushort, to, 1, from, 1, 0, bytes / 2)
    }
}

/* Elements [first, end) without a change of type. */
INLINE void move_row(const global char *x, row_at from, global char *y, row_at to, i32 dtype, i64 first, i64 end, int lane) {
    const int size = dtype == DTYPE_F64 ? 8 : bytes_of(dtype);
    x += from.at * size;
    y += to.at * size;
    if (from.step == 1 && to.step == 1) {
        move_bytes(x + first * size, y + first * size, (end - first) * size, lane);
    } else if (size == 8) {
        MOVE(ulong, y, to.step, x, from.step, first, end)
    } else if (size == 4) {
        MOVE(uint, y, to.step, x, from.step, first, end)
    } else {
        MOVE(ushort, y, to.step, x, from.step, first, end)
    }
}

/* A pair's place in a row is t * pair, and its second element `apart` further. */
INLINE void rotate_row(const copy_params *p, const global void *x, row_at from, global void *y, row_at to,
                       const global float *cosines, const global float *sines, int lane) {
    const i64 pairs = p->rotary_dim / 2, pair = p->rotary == ROTARY_HALF ? 1 : 2, apart = p->rotary == ROTARY_HALF ? pairs : 1;
    for (i64 t = lane; t < pairs; t += LANES) {
        const float x_0 = load_typed(x, from.at + t * pair * from.step, p->x_dtype);
        const float x_1 = load_typed(x, from.at + (t * pair + apart) * from.step, p->x_dtype);
        const float c = cosines[t * p->cosines.d], s = sines[t * p->sines.d];
        store_typed(y, to.at + t * pair * to.step, p->y_dtype, x_0 * c - x_1 * s);
        store_typed(y, to.at + (t * pair + apart) * to.step, p->y_dtype, x_0 * s + x_1 * c);
    }
}

INLINE void copy_row(const copy_params *p, const global void *x, row_at from, global void *y, row_at to,
                     const global float *cosines, const global float *sines, int lane) {
    const i64 turned = p->rotary == ROTARY_NONE ? 0 : p->rotary_dim;
    if (turned) rotate_row(p, x, from, y, to, cosines, sines, lane);
    if (p->x_dtype == p->y_dtype) {
        move_row(x, from, y, to, p->x_dtype, turned, p->dim, lane);
        return;
    }
    for (i64 d = turned + lane; d < p->dim; d += LANES)
        store_typed(y, to.at + d * to.step, p->y_dtype, load_typed(x, from.at + d * from.step, p->x_dtype));
}

/* starts[b], kept where sums with it do not overflow; what is so far out is outside y anyway. */
INLINE i64 start_of(const copy_params *p, INT_BUFFER starts, i64 b) {
    const i64 most = (i64)1 << 61;
    return p->starts.present ? mask_clamp(int_at(p->starts, starts, b), -most, most) : 0;
}

KERNEL void copy(const global void *x, global void *y, const global float *cosines, const global float *sines,
                 INT_BUFFER starts, const copy_params p) {
    const int lane = (int)get_local_id(0) % LANES, row = (int)get_local_id(0) / LANES;
    const i64 tiles = (p.len + TILE_M - 1) / TILE_M;
    cosines += p.base[2];
    sines += p.base[3];
    starts += p.base[4];
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        const i64 b = group / tiles / p.heads, h = group / tiles % p.heads, l = group % tiles * TILE_M + row;
        const i64 start = start_of(&p, starts, b), place = p.at + (p.moves ? start : 0) + l;
        const i64 position = mask_clamp(p.position + start + l, 0, p.positions - 1);
        const row_at from = {p.base[0] + b * p.x.b + h * p.x.h + l * p.x.l, p.x.d};
        const row_at to = {p.base[1] + b * p.y.b + h * p.y.h + place * p.y.l, p.y.d};
        if (l >= p.len || place < 0 || place >= p.capacity) continue;
        copy_row(&p, x, from, y, to, cosines + b * p.cosines.b + position * p.cosines.l,
                 sines + b * p.sines.b + position * p.sines.l, lane);
    }
}
