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

typedef unsigned char uchar;
typedef unsigned short ushort;

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

#define __kernel static __attribute__((unused))
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

/* 2^f * 2^n for |f| <= 1/2, n one of the integers -127 (giving 0) ... 128 (giving infinity) plus EXP_ROUND, which is so large
 * that the sum has no room for a fraction and its low bits are n + 127, the exponent of 2^n. 2^f is the polynomial of least
 * maximal relative error among those with the constant term 1. */
#define EXP_ROUND (12582912.0f + 127.0f)
INLINE vec vec_exp2_parts(vec n, vec f) {
    vec y = vec_splat(1.32647273e-3f);
    y = y * f + 9.67151299e-3f;
    y = y * f + 5.55073358e-2f;
    y = y * f + 2.40222424e-1f;
    y = y * f + 6.93147004e-1f;
    y = y * f + 1.0f;
    return y * vec_of_bits(vec_bits(n) << 23);
}

/* 2^x for x <= 128, relative error below 2e-7; 0 from -126.5 down to -infinity; NaN gives NaN. */
INLINE vec vec_exp2(vec x) {
    x = vec_max(vec_splat(-127.0f), x);
    vec n = x + EXP_ROUND;
    return vec_exp2_parts(n, x - (n - EXP_ROUND));
}

/* e^x, relative error below 3e-7; 0 below -87.7, infinity above 88.37; NaN gives NaN. ln(2) in two parts, the first so short
 * that its product with n is exact, keeps large arguments as accurate as small ones. */
INLINE vec vec_exp(vec x) {
    x = vec_max(vec_splat(-88.0296919f), x);
    x = -vec_max(vec_splat(-88.7228394f), -x);
    vec n = x * LOG2_E + EXP_ROUND, whole = n - EXP_ROUND;
    vec rest = x - whole * 0.693359375f;
    return vec_exp2_parts(n, (rest + whole * 2.12194440e-4f) * LOG2_E);
}

INLINE vec vec_sigmoid(vec x) { return 1.0f / (1.0f + vec_exp(-x)); }

/* Near 0 an odd polynomial (Cephes' tanhf), where the quotient would cancel. */
INLINE vec vec_tanh(vec x) {
    vec size = vec_max(x, -x), square = x * x;
    vec y = vec_splat(-5.70498872745e-3f);
    y = y * square + 2.06390887954e-2f;
    y = y * square - 5.37397155531e-2f;
    y = y * square + 1.33314422036e-1f;
    y = y * square - 3.33332819422e-1f;
    vec near = y * square * x + x, far = 1.0f - 2.0f / (vec_exp(size + size) + 1.0f);
    return vec_select(size < vec_splat(0.625f), near, vec_select(x < vec_splat(0.0f), -far, far));
}

/* The next vector of a strided row of which `left` elements are left; `fill` in the lanes beyond. */
INLINE vec row_load(__global const float *row, i64 step, i64 left, float fill) {
    if (step == 1 && left >= VECTOR_WIDTH) return vec_load(row);
    float lanes[VECTOR_WIDTH];
    for (int lane = 0; lane < VECTOR_WIDTH; lane++) lanes[lane] = lane < left ? row[lane * step] : fill;
    return vec_load(lanes);
}

INLINE void row_store(__global float *row, i64 step, i64 left, vec x) {
    if (step == 1 && left >= VECTOR_WIDTH) {
        vec_store(x, row);
        return;
    }
    float lanes[VECTOR_WIDTH];
    vec_store(x, lanes);
    for (int lane = 0; lane < VECTOR_WIDTH && lane < left; lane++) row[lane * step] = lanes[lane];
}

#endif
