/* Elements as memory holds them, f32, f16 or bf16, and as kernels compute with them, f32.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * f16 goes through OpenCL's vload_half and vstore_half, which need no extension, and by way of private memory, so that elements
 * may be moved as they are and be widened where they are used. Narrowing rounds to nearest even; a NaN stays one.
 */
#ifndef CLATTN_GPU_ELEMENT_H
#define CLATTN_GPU_ELEMENT_H

#include "../params.h"
#include "work_group.h"

INLINE float float_of_f16(ushort bits) { return vload_half(0, (const half *)&bits); }

INLINE float float_of_bf16(ushort bits) { return as_float((uint)bits << 16); }

INLINE ushort f16_of_float(float x) {
    ushort bits;
    vstore_half_rte(x, 0, (half *)&bits);
    return bits;
}

INLINE ushort bf16_of_float(float x) {
    const uint bits = as_uint(x), rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (ushort)(isnan(x) ? bits >> 16 | 0x40 : rounded);
}

/* Of memory whose type a parameter says. */
INLINE float load_typed(const global void *from, i64 n, i32 dtype) {
    if (dtype == DTYPE_F32) return ((const global float *)from)[n];
    const ushort bits = ((const global ushort *)from)[n];
    return dtype == DTYPE_F16 ? float_of_f16(bits) : float_of_bf16(bits);
}

INLINE void store_typed(global void *to, i64 n, i32 dtype, float x) {
    if (dtype == DTYPE_F32)
        ((global float *)to)[n] = x;
    else
        ((global ushort *)to)[n] = dtype == DTYPE_F16 ? f16_of_float(x) : bf16_of_float(x);
}

INLINE int bytes_of(i32 dtype) { return dtype == DTYPE_F32 ? 4 : 2; }

/* The type that the plan says by the macro DTYPE; of kernels that have none, f32. */
#ifndef DTYPE
#define DTYPE DTYPE_F32
#endif
#if DTYPE == DTYPE_F32
typedef float element;
typedef float2 element2;
typedef float4 element4;
INLINE float widen(element x) { return x; }
INLINE element narrow(float x) { return x; }
#elif DTYPE == DTYPE_F16
typedef ushort element;
typedef ushort2 element2;
typedef ushort4 element4;
INLINE float widen(element x) { return float_of_f16(x); }
INLINE element narrow(float x) { return f16_of_float(x); }
#elif DTYPE == DTYPE_BF16
typedef ushort element;
typedef ushort2 element2;
typedef ushort4 element4;
INLINE float widen(element x) { return float_of_bf16(x); }
INLINE element narrow(float x) { return bf16_of_float(x); }
#else
#error "these kernels compute in f32, of elements that are f32, f16 or bf16"
#endif

/* to[0], to[stride], ...: the first `count` of four; one store where memory allows it. `count` is an int: Mesa before 24.1.3 takes no
 * widened int for less than a constant of 64 bits (-2^31 in a rule of its compiler loses its sign), and nothing would be written. */
#define WRITE_FOUR(name, type, of_float)                                                                                       \
    INLINE void name(global type *to, i64 stride, float4 value, int count) {                                                   \
        const type each[4] = {of_float(value.x), of_float(value.y), of_float(value.z), of_float(value.w)};                     \
        if (count >= 4 && stride == 1 && ((size_t)to & (sizeof(type##4) - 1)) == 0) {                                          \
            *(global type##4 *)to = (type##4)(each[0], each[1], each[2], each[3]);                                             \
            return;                                                                                                            \
        }                                                                                                                      \
        UNROLL for (int e = 0; e < 4; e++) {                                                                                   \
            if (e < count) *to = each[e];                                                                                      \
            to += stride;                                                                                                      \
        }                                                                                                                      \
    }
WRITE_FOUR(write_floats, float, )
WRITE_FOUR(write_elements, element, narrow)
#undef WRITE_FOUR

#endif
