/* Elements of a type that is known at run time, for the kernels that convert: copy and merge.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * They compute in f32. Where f64 comes in, which is the native build's alone, copy goes element by element in f64, and to the short
 * types by way of f32.
 */
#ifndef CLATTN_KERNELS_CPU_ELEMENT_H
#define CLATTN_KERNELS_CPU_ELEMENT_H

#include "storage.h"

/* One type's loop over a run: vectors of neighbours, then what is left, or all where a step parts them. */
#define RUN(count, step, of_vector, of_one)                                                                              \
    do {                                                                                                                 \
        int n = 0;                                                                                                       \
        if ((step) == 1)                                                                                                 \
            for (; n + WIDTH <= (count); n += WIDTH) of_vector;                                                          \
        for (; n < (count); n++) of_one;                                                                                 \
    } while (0)

/* to[n] = x[at + n * step] as floats. */
INLINE void run_load(float *to, __global const void *x, i32 dtype, i64 at, i64 step, int count) {
    __global const float *x_32 = (__global const float *)x + at;
    __global const ushort *x_16 = (__global const ushort *)x + at;
    switch (dtype) {
    case DTYPE_F32: RUN(count, step, vec_store(vec_load(x_32 + n), to + n), to[n] = x_32[n * step]); break;
    case DTYPE_F16: RUN(count, step, vec_store(f16_vec_load(x_16 + n), to + n), to[n] = f16_load(x_16 + n * step)); break;
    case DTYPE_BF16: RUN(count, step, vec_store(bf16_vec_load(x_16 + n), to + n), to[n] = bf16_load(x_16 + n * step)); break;
    }
}

/* y[at + n * step] = from[n]. */
INLINE void run_store(const float *from, __global void *y, i32 dtype, i64 at, i64 step, int count) {
    __global float *y_32 = (__global float *)y + at;
    __global ushort *y_16 = (__global ushort *)y + at;
    switch (dtype) {
    case DTYPE_F32: RUN(count, step, vec_store(vec_load(from + n), y_32 + n), y_32[n * step] = from[n]); break;
    case DTYPE_F16: RUN(count, step, f16_vec_store(vec_load(from + n), y_16 + n), f16_store(from[n], y_16 + n * step)); break;
    case DTYPE_BF16: RUN(count, step, bf16_vec_store(vec_load(from + n), y_16 + n), bf16_store(from[n], y_16 + n * step)); break;
    }
}

#if !defined(__OPENCL_C_VERSION__)
static inline double f64_load(const void *x, i32 dtype, i64 at) {
    switch (dtype) {
    case DTYPE_F32: return ((const float *)x)[at];
    case DTYPE_F16: return f16_load((const ushort *)x + at);
    case DTYPE_BF16: return bf16_load((const ushort *)x + at);
    default: return ((const double *)x)[at];
    }
}

static inline void f64_store(double value, void *y, i32 dtype, i64 at) {
    switch (dtype) {
    case DTYPE_F32: ((float *)y)[at] = (float)value; break;
    case DTYPE_F16: f16_store((float)value, (ushort *)y + at); break;
    case DTYPE_BF16: bf16_store((float)value, (ushort *)y + at); break;
    default: ((double *)y)[at] = value; break;
    }
}
#endif

#endif
