/* Elements of a type that is known at run time, for the kernels that convert: copy and merge.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * 16-bit types are converted in integers, the same in every compiler: f16 and bf16 round to nearest, ties to even, a NaN stays
 * one, and nothing depends on how the processor treats subnormals. The loops have no branch and compilers vectorise them.
 * f64 is the native build's alone; to the 16-bit types it goes by way of f32.
 */
#ifndef CLATTN_KERNELS_CPU_ELEMENT_H
#define CLATTN_KERNELS_CPU_ELEMENT_H

#include "prelude.h"

#if defined(__OPENCL_C_VERSION__)
#define float_bits(x) as_int(x)
#define float_of_bits(x) as_float(x)
#else
static inline i32 float_bits(float x) {
    const union { float value; i32 bits; } u = {x};
    return u.bits;
}
static inline float float_of_bits(i32 bits) {
    const union { i32 bits; float value; } u = {bits};
    return u.value;
}
#endif

/* The exponent is moved from one bias to the other; where it is 0, 2^-14 is added and taken away again, which normalises. */
INLINE float f16_value(ushort x) {
    const i32 shifted = (x & 0x7fff) << 13, exponent = x & 0x7c00;
    const float small = float_of_bits(shifted + (113 << 23)) - float_of_bits(113 << 23);
    const i32 large = shifted + (exponent == 0x7c00 ? 224 << 23 : 112 << 23);
    return float_of_bits((exponent == 0 ? float_bits(small) : large) | (i32)((unsigned)(x & 0x8000) << 16));
}

/* Below 2^-14 the last place is that of 1/2's, so that adding it rounds; from 2^16 on all is infinite. */
INLINE ushort f16_of(float value) {
    const i32 bits = float_bits(value), size = bits & 0x7fffffff;
    const i32 small = float_bits(float_of_bits(size < 113 << 23 ? size : 0) + 0.5f) - (126 << 23);
    const i32 normal = (size - (112 << 23) + 0xfff + ((size >> 13) & 1)) >> 13;
    const i32 large = size > 0x7f800000 ? 0x7e00 : 0x7c00;
    const i32 finite = size < 113 << 23 ? small : normal;
    return (ushort)((size < 143 << 23 ? finite : large) | ((bits >> 16) & 0x8000));
}

INLINE float bf16_value(ushort x) { return float_of_bits((i32)((unsigned)x << 16)); }

INLINE ushort bf16_of(float value) {
    const i32 bits = float_bits(value);
    const unsigned upper = (unsigned)bits >> 16, rounded = ((unsigned)bits + 0x7fffu + (upper & 1)) >> 16;
    return (ushort)((bits & 0x7fffffff) > 0x7f800000 ? upper | 0x40 : rounded);
}

/* Declares both loops of a run, that over neighbours and that over strides. */
#define FOR_RUN(n, place, step, count)                                                                                   \
    if ((step) == 1)                                                                                                     \
        for (int n = 0, place = 0; n < (count); n++, place++)
#define FOR_STRIDED_RUN(n, place, step, count)                                                                           \
    else for (i64 n = 0, place = 0; n < (count); n++, place += (step))

#define RUN(count, step, statement)                                                                                      \
    do {                                                                                                                 \
        FOR_RUN(n, place, step, count) { statement; }                                                                    \
        FOR_STRIDED_RUN(n, place, step, count) { statement; }                                                            \
    } while (0)

/* to[n] = x[at + n * step] as floats. */
INLINE void run_load(float *to, __global const void *x, i32 dtype, i64 at, i64 step, int count) {
    __global const float *x_32 = (__global const float *)x + at;
    __global const ushort *x_16 = (__global const ushort *)x + at;
    switch (dtype) {
    case DTYPE_F32: RUN(count, step, to[n] = x_32[place]); break;
    case DTYPE_F16: RUN(count, step, to[n] = f16_value(x_16[place])); break;
    case DTYPE_BF16: RUN(count, step, to[n] = bf16_value(x_16[place])); break;
    }
}

/* y[at + n * step] = from[n]. */
INLINE void run_store(const float *from, __global void *y, i32 dtype, i64 at, i64 step, int count) {
    __global float *y_32 = (__global float *)y + at;
    __global ushort *y_16 = (__global ushort *)y + at;
    switch (dtype) {
    case DTYPE_F32: RUN(count, step, y_32[place] = from[n]); break;
    case DTYPE_F16: RUN(count, step, y_16[place] = f16_of(from[n])); break;
    case DTYPE_BF16: RUN(count, step, y_16[place] = bf16_of(from[n])); break;
    }
}

#if !defined(__OPENCL_C_VERSION__)
static inline double f64_load(const void *x, i32 dtype, i64 at) {
    switch (dtype) {
    case DTYPE_F32: return ((const float *)x)[at];
    case DTYPE_F16: return f16_value(((const ushort *)x)[at]);
    case DTYPE_BF16: return bf16_value(((const ushort *)x)[at]);
    default: return ((const double *)x)[at];
    }
}

static inline void f64_store(double value, void *y, i32 dtype, i64 at) {
    switch (dtype) {
    case DTYPE_F32: ((float *)y)[at] = (float)value; break;
    case DTYPE_F16: ((ushort *)y)[at] = f16_of((float)value); break;
    case DTYPE_BF16: ((ushort *)y)[at] = bf16_of((float)value); break;
    default: ((double *)y)[at] = value; break;
    }
}
#endif

#endif
