/* What kernels/cpu uses of OpenCL C, for two compilers: an OpenCL compiler, and gcc or clang with vector extensions.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A CPU kernel is a group of one work-item on vectors of VECTOR_WIDTH floats. It uses no barrier, no local memory and, beyond
 * the C that both languages share, only what stands here. vec is a vector of floats, ivec one of 32-bit integers as wide; a
 * comparison of two vecs is an ivec of 0 and -1.
 */
#ifndef CLATTN_KERNELS_CPU_PRELUDE_H
#define CLATTN_KERNELS_CPU_PRELUDE_H

#include "../params.h"

#if VECTOR_WIDTH != 4 && VECTOR_WIDTH != 8 && VECTOR_WIDTH != 16
#error "VECTOR_WIDTH must be 4, 8 or 16"
#endif

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

#if defined(__OPENCL_C_VERSION__)

#define GROUP_OF_ONE __attribute__((reqd_work_group_size(1, 1, 1)))
#define UNROLL _Pragma("unroll")

typedef JOIN(float, VECTOR_WIDTH) vec;
typedef JOIN(int, VECTOR_WIDTH) ivec;

#define vec_load(p) JOIN(vload, VECTOR_WIDTH)(0, p)
#define vec_store(x, p) JOIN(vstore, VECTOR_WIDTH)(x, 0, p)
#define ivec_load(p) JOIN(vload, VECTOR_WIDTH)(0, p)
#define vec_splat(x) ((vec)(x))
#define ivec_splat(x) ((ivec)(x))
#define vec_bits(x) JOIN(as_int, VECTOR_WIDTH)(x)
#define vec_of_bits(x) JOIN(as_float, VECTOR_WIDTH)(x)
#define vec_select(condition, yes, no) ((condition) ? (yes) : (no))
#define vec_any_nan(x) any(isnan(x))
/* a > b ? a : b, so that b is the result wherever one of them is NaN. */
#define vec_max(a, b) ((a) > (b) ? (a) : (b))

#else

#include <math.h>

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

#define __kernel static
#define __global
#define __private
#define GROUP_OF_ONE
#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

/* The group that the calling thread runs and the stride to its next: set by the function that calls the kernel. */
static _Thread_local i64 native_group_id, native_num_groups;
#define get_group_id(dimension) native_group_id
#define get_num_groups(dimension) native_num_groups

typedef float vec __attribute__((vector_size(4 * VECTOR_WIDTH)));
typedef i32 ivec __attribute__((vector_size(4 * VECTOR_WIDTH)));
typedef float vec_unaligned __attribute__((vector_size(4 * VECTOR_WIDTH), aligned(4), may_alias));
typedef i32 ivec_unaligned __attribute__((vector_size(4 * VECTOR_WIDTH), aligned(4), may_alias));

#define vec_load(p) ((vec) * (const vec_unaligned *)(p))
#define vec_store(x, p) ((void)(*(vec_unaligned *)(p) = (x)))
#define ivec_load(p) ((ivec) * (const ivec_unaligned *)(p))
#define vec_splat(x) ((float)(x) - (vec){0})
#define ivec_splat(x) ((i32)(x) - (ivec){0})
#define vec_bits(x) ((ivec)(x))
#define vec_of_bits(x) ((vec)(x))
#define vec_select(condition, yes, no) vec_of_bits(((condition) & vec_bits(yes)) | (~(condition) & vec_bits(no)))
#if VECTOR_WIDTH == 16 && defined(__AVX512F__)
#define vec_max(a, b) ((vec)_mm512_max_ps((__m512)(a), (__m512)(b)))
#elif VECTOR_WIDTH == 8 && defined(__AVX__)
#define vec_max(a, b) ((vec)_mm256_max_ps((__m256)(a), (__m256)(b)))
#elif VECTOR_WIDTH == 4 && defined(__SSE__)
#define vec_max(a, b) ((vec)_mm_max_ps((__m128)(a), (__m128)(b)))
#else
#define vec_max(a, b) vec_select((a) > (b), a, b)
#endif

#define log(x) logf(x)

static inline int vec_any_nan(vec x) {
    ivec nan = x != x;
    i32 any = 0;
    for (int i = 0; i < VECTOR_WIDTH; i++) any |= nan[i];
    return any;
}

#endif

#define INLINE static inline __attribute__((always_inline))
#define LOG2_E 1.44269504088896341f
#define LN_2 0.693147180559945309f

/* 2^x for x <= 128. Relative error below 2e-7; 0 from -126.5 down to -infinity; NaN gives NaN. The nearest integer n of x
 * is taken by adding a number so large that the sum has no room for a fraction; its low bits then are n + 127, the exponent
 * of 2^n. 2^(x-n) is a polynomial, least maximal relative error on [-1/2, 1/2] with the constant term 1. */
INLINE vec vec_exp2(vec x) {
    const float round = 12582912.0f + 127.0f; /* 1.5 * 2^23 + the exponent's bias */
    x = vec_max(vec_splat(-127.0f), x);
    vec n = x + round;
    vec f = x - (n - round);
    vec y = vec_splat(1.32647273e-3f);
    y = y * f + 9.67151299e-3f;
    y = y * f + 5.55073358e-2f;
    y = y * f + 2.40222424e-1f;
    y = y * f + 6.93147004e-1f;
    y = y * f + 1.0f;
    return y * vec_of_bits(vec_bits(n) << 23);
}

#endif
