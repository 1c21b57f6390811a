/* y[b,h,at + l,:] = x[b,h,l,:], converted to y's type, and rotated (Su et al. 2021) at position + l where rotary says so:
 *
 *      (y0, y1) = (x0 cos - x1 sin, x0 sin + x1 cos)    for each pair of the first rotary_dim elements; the others as they are
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * group = (b * heads + h) * ceil(len / TILE_M) + tile of TILE_M rows.
 * What keeps its type and is not turned is moved as bits. Other elements pass CHUNK at a time through private memory, 4 * CHUNK
 * floats, where they are floats; f64 goes one by one, in f64.
 */
#include "../mask.h"
#include "element.h"

#if !defined(TILE_M)
#error "TILE_M: rows of a group"
#endif
#define CHUNK 128

/* Where a row begins, and from one of its elements to the next. */
typedef struct row_at {
    i64 at, step;
} row_at;

INLINE int chunk_at(i64 n, i64 count) { return (int)(count - n < CHUNK ? count - n : CHUNK); }

/* Elements [first, end) without a change of type. */
INLINE void move_row(__global const void *x, row_at from, __global void *y, row_at to, i32 dtype, i64 first, i64 end) {
#define MOVE(type)                                                                                                       \
    if (from.step == 1 && to.step == 1)                                                                                  \
        for (i64 d = first; d < end; d++) ((__global type *)y)[to.at + d] = ((__global const type *)x)[from.at + d];     \
    else                                                                                                                 \
        for (i64 d = first; d < end; d++)                                                                                \
            ((__global type *)y)[to.at + d * to.step] = ((__global const type *)x)[from.at + d * from.step];
    switch (dtype) {
    case DTYPE_F32: MOVE(i32) break;
    case DTYPE_F64: MOVE(i64) break;
    default: MOVE(ushort) break;
    }
}

INLINE void convert_row(__global const void *x, row_at from, __global void *y, row_at to, const copy_params *p, i64 first) {
    float chunk[CHUNK];
    for (i64 d = first; d < p->dim; d += CHUNK) {
        const int count = chunk_at(d, p->dim);
        run_load(chunk, x, p->x_dtype, from.at + d * from.step, from.step, count);
        run_store(chunk, y, p->y_dtype, to.at + d * to.step, to.step, count);
    }
}

/* A pair's place in a row is t * pair, and its second element `apart` further. */
INLINE void rotate_row(__global const void *x, row_at from, __global void *y, row_at to, const copy_params *p,
                       __global const float *cosines, __global const float *sines) {
    const i64 pairs = p->rotary_dim / 2, pair = p->rotary == ROTARY_HALF ? 1 : 2, apart = p->rotary == ROTARY_HALF ? pairs : 1;
    float x_0[CHUNK], x_1[CHUNK], c[CHUNK], s[CHUNK];
    for (i64 t = 0; t < pairs; t += CHUNK) {
        const int count = chunk_at(t, pairs);
        run_load(x_0, x, p->x_dtype, from.at + t * pair * from.step, pair * from.step, count);
        run_load(x_1, x, p->x_dtype, from.at + (t * pair + apart) * from.step, pair * from.step, count);
        run_load(c, cosines, DTYPE_F32, t * p->cosines.d, p->cosines.d, count);
        run_load(s, sines, DTYPE_F32, t * p->sines.d, p->sines.d, count);
        for (int n = 0; n < count; n++) {
            const float x0 = x_0[n], x1 = x_1[n];
            x_0[n] = x0 * c[n] - x1 * s[n];
            x_1[n] = x0 * s[n] + x1 * c[n];
        }
        run_store(x_0, y, p->y_dtype, to.at + t * pair * to.step, pair * to.step, count);
        run_store(x_1, y, p->y_dtype, to.at + (t * pair + apart) * to.step, pair * to.step, count);
    }
}

#if !defined(__OPENCL_C_VERSION__)
/* A row where one side is of f64. */
static void copy_row_f64(const void *x, row_at from, void *y, row_at to, const copy_params *p, const float *cosines,
                         const float *sines) {
    const i64 turned = p->rotary == ROTARY_NONE ? 0 : p->rotary_dim, pairs = turned / 2;
    const i64 pair = p->rotary == ROTARY_HALF ? 1 : 2, apart = p->rotary == ROTARY_HALF ? pairs : 1;
    for (i64 t = 0; t < pairs; t++) {
        const double x0 = f64_load(x, p->x_dtype, from.at + t * pair * from.step);
        const double x1 = f64_load(x, p->x_dtype, from.at + (t * pair + apart) * from.step);
        const double c = cosines[t * p->cosines.d], s = sines[t * p->sines.d];
        f64_store(x0 * c - x1 * s, y, p->y_dtype, to.at + t * pair * to.step);
        f64_store(x0 * s + x1 * c, y, p->y_dtype, to.at + (t * pair + apart) * to.step);
    }
    for (i64 d = turned; d < p->dim; d++)
        f64_store(f64_load(x, p->x_dtype, from.at + d * from.step), y, p->y_dtype, to.at + d * to.step);
}
#endif

INLINE void copy_row(__global const void *x, row_at from, __global void *y, row_at to, const copy_params *p,
                     __global const float *cosines, __global const float *sines) {
    const i64 turned = p->rotary == ROTARY_NONE ? 0 : p->rotary_dim;
#if !defined(__OPENCL_C_VERSION__)
    if (p->x_dtype != p->y_dtype || turned) {
        if (p->x_dtype == DTYPE_F64 || p->y_dtype == DTYPE_F64) {
            copy_row_f64(x, from, y, to, p, cosines, sines);
            return;
        }
    }
#endif
    if (turned) rotate_row(x, from, y, to, p, cosines, sines);
    if (p->x_dtype == p->y_dtype)
        move_row(x, from, y, to, p->x_dtype, turned, p->dim);
    else
        convert_row(x, from, y, to, p, turned);
}

/* starts[b], kept where sums with it do not overflow; what is so far out lies outside y, and past the tables. */
INLINE i64 start_of(const copy_params *p, INT_BUFFER starts, i64 b) {
    const i64 most = (i64)1 << 61;
    return p->starts.present ? mask_clamp(int_at(p->starts, starts, b), -most, most) : 0;
}

__kernel GROUP_OF_ONE void copy(__global const void *x, __global void *y, __global const float *cosines,
                                __global const float *sines, INT_BUFFER starts, copy_params p) {
    cosines += p.base[2], sines += p.base[3], starts += p.base[4];
    const i64 tiles = (p.len + TILE_M - 1) / TILE_M;
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        const i64 b = group / tiles / p.heads, h = group / tiles % p.heads, first = group % tiles * TILE_M;
        const i64 end = first + TILE_M < p.len ? first + TILE_M : p.len, start = start_of(&p, starts, b);
        for (i64 l = first; l < end; l++) {
            const i64 place = p.at + (p.moves ? start : 0) + l, position = mask_clamp(p.position + start + l, 0, p.positions - 1);
            const row_at from = {p.base[0] + b * p.x.b + h * p.x.h + l * p.x.l, p.x.d};
            const row_at to = {p.base[1] + b * p.y.b + h * p.y.h + place * p.y.l, p.y.d};
            if (place < 0 || place >= p.capacity) continue;
            copy_row(x, from, y, to, &p, cosines + b * p.cosines.b + position * p.cosines.l,
                     sines + b * p.sines.b + position * p.sines.l);
        }
    }
}
