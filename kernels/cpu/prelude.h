/* What kernels/cpu uses of OpenCL C, for two compilers: an OpenCL compiler, and gcc or clang with vector extensions.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A CPU kernel is a group of one work-item on vectors of VECTOR_WIDTH floats. It uses no barrier, no local memory and, beyond
 * the C that both languages share, only what stands here. It computes in `real`: double where its DTYPE is that of f64, else
 * float. vec is a vector of WIDTH reals, ivec one of as many integers of a real's size; a comparison of two vecs is an ivec of
 * 0 and -1. REAL(0.5) is a constant of type real.
 */
#ifndef CLATTN_KERNELS_CPU_PRELUDE_H
#define CLATTN_KERNELS_CPU_PRELUDE_H

#include "../params.h"

#if VECTOR_WIDTH != 4 && VECTOR_WIDTH != 8 && VECTOR_WIDTH != 16
#error "VECTOR_WIDTH must be 4, 8 or 16"
#endif

/* Register blocks for the 32 registers of NEON. */
#if defined(__aarch64__) && defined(MORE_ROWS)
#undef ROWS
#undef VECTORS
#define ROWS MORE_ROWS
#define VECTORS MORE_VECTORS
#endif

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

#if !defined(DTYPE) /* what kernels of f32 alone leave out */
#define DTYPE DTYPE_F32
#endif
#if DTYPE == DTYPE_F64
#if defined(__OPENCL_C_VERSION__)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
typedef double real;
typedef i64 integer;
#define REAL(x) x
#define REAL_MAX DBL_MAX
#if VECTOR_WIDTH == 16
#define WIDTH 8
#elif VECTOR_WIDTH == 8
#define WIDTH 4
#else
#define WIDTH 2
#endif
#else
typedef float real;
typedef i32 integer;
#define REAL(x) x##f
#define REAL_MAX FLT_MAX
#define WIDTH VECTOR_WIDTH
#endif

#if defined(__OPENCL_C_VERSION__)

/* How long an array of its own a kernel makes: OpenCL C knows no arrays but of constant lengths. */
#define EXTENT(in_use, most) (most)
#define GROUP_OF_ONE __attribute__((reqd_work_group_size(1, 1, 1)))
#define UNROLL _Pragma("unroll")

#if DTYPE == DTYPE_F64
typedef JOIN(double, WIDTH) vec;
typedef JOIN(long, WIDTH) ivec;
#define vec_bits(x) JOIN(as_long, WIDTH)(x)
#define vec_of_bits(x) JOIN(as_double, WIDTH)(x)
#define real_of_bits(x) as_double(x)
#else
typedef JOIN(float, WIDTH) vec;
typedef JOIN(int, WIDTH) ivec;
#define vec_bits(x) JOIN(as_int, WIDTH)(x)
#define vec_of_bits(x) JOIN(as_float, WIDTH)(x)
#endif

#define vec_load(p) JOIN(vload, WIDTH)(0, p)
#define vec_store(x, p) JOIN(vstore, WIDTH)(x, 0, p)
/* To a vector's place in private memory; PoCL 3 makes four stores of a vstore16. */
#define vec_store_aligned(x, p) ((void)(*(vec *)(p) = (x)))
#define ivec_load(p) JOIN(vload, WIDTH)(0, p)
#define vec_splat(x) ((vec)(x))
#define VEC16(...) ((vec)(__VA_ARGS__))
#define ivec_splat(x) ((ivec)(x))
#define vec_select(condition, yes, no) ((condition) ? (yes) : (no))
#define ivec_any(x) any(x)
/* WIDTH bytes as integers. */
#if DTYPE == DTYPE_F64
#define ivec_of_bytes(p) JOIN(convert_long, WIDTH)(JOIN(vload, WIDTH)(0, p))
#else
#define ivec_of_bytes(p) JOIN(convert_int, WIDTH)(JOIN(vload, WIDTH)(0, p))
#endif
/* a > b ? a : b, so that b is the result wherever one of them is NaN. */
#define vec_max(a, b) ((a) > (b) ? (a) : (b))

#else

#include <float.h>
#include <math.h>

typedef unsigned char uchar;
typedef unsigned short ushort;

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

#define __kernel static __attribute__((unused))
#define __global
#define __private
#define EXTENT(in_use, most) ((in_use) > 0 ? (in_use) : 1)
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

typedef real vec __attribute__((vector_size(4 * VECTOR_WIDTH)));
typedef integer ivec __attribute__((vector_size(4 * VECTOR_WIDTH)));
typedef real vec_unaligned __attribute__((vector_size(4 * VECTOR_WIDTH), aligned(4), may_alias));
typedef integer ivec_unaligned __attribute__((vector_size(4 * VECTOR_WIDTH), aligned(4), may_alias));

#if defined(__clang__)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (ivec){__VA_ARGS__})
#endif

typedef uchar bytes __attribute__((vector_size(WIDTH), aligned(1), may_alias));
#define vec_load(p) ((vec) * (const vec_unaligned *)(p))
#define vec_store(x, p) ((void)(*(vec_unaligned *)(p) = (x)))
#define vec_store_aligned(x, p) vec_store(x, p)
#define ivec_load(p) ((ivec) * (const ivec_unaligned *)(p))
/* By name where gcc 12 would go byte by byte. */
#if WIDTH == 16 && defined(__AVX512F__)
#define ivec_of_bytes(p) ((ivec)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(p))))
#elif WIDTH == 8 && VECTOR_WIDTH == 8 && defined(__AVX2__)
#define ivec_of_bytes(p) ((ivec)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(p))))
#else
#define ivec_of_bytes(p) __builtin_convertvector(*(const bytes *)(p), ivec)
#endif
#define vec_splat(x) ((real)(x) - (vec){0})
#define VEC16(...) ((vec){__VA_ARGS__})
#define ivec_splat(x) ((integer)(x) - (ivec){0})
#define vec_bits(x) ((ivec)(x))
#define vec_of_bits(x) ((vec)(x))
#define vec_select(condition, yes, no) vec_of_bits(((condition) & vec_bits(yes)) | (~(condition) & vec_bits(no)))
#if DTYPE == DTYPE_F64
#if VECTOR_WIDTH == 16 && defined(__AVX512F__)
#define vec_max(a, b) ((vec)_mm512_max_pd((__m512d)(a), (__m512d)(b)))
#elif VECTOR_WIDTH == 8 && defined(__AVX__)
#define vec_max(a, b) ((vec)_mm256_max_pd((__m256d)(a), (__m256d)(b)))
#elif VECTOR_WIDTH == 4 && defined(__SSE2__)
#define vec_max(a, b) ((vec)_mm_max_pd((__m128d)(a), (__m128d)(b)))
#endif
#else
#if VECTOR_WIDTH == 16 && defined(__AVX512F__)
#define vec_max(a, b) ((vec)_mm512_max_ps((__m512)(a), (__m512)(b)))
#elif VECTOR_WIDTH == 8 && defined(__AVX__)
#define vec_max(a, b) ((vec)_mm256_max_ps((__m256)(a), (__m256)(b)))
#elif VECTOR_WIDTH == 4 && defined(__SSE__)
#define vec_max(a, b) ((vec)_mm_max_ps((__m128)(a), (__m128)(b)))
#endif
#define log(x) logf(x)
#endif
#if !defined(vec_max)
#define vec_max(a, b) vec_select((a) > (b), a, b)
#endif

#if DTYPE == DTYPE_F64
static inline double real_of_bits(i64 bits) {
    union {
        i64 bits;
        double real;
    } both = {bits};
    return both.real;
}
#endif

static inline int ivec_any(ivec x) {
    integer any = 0;
    for (int i = 0; i < WIDTH; i++) any |= x[i];
    return any != 0;
}

#endif

#define INLINE static inline __attribute__((always_inline))
/* A rare path, kept out of what is fast: PoCL (LLVM 15) otherwise finds too few registers for sums beside it. */
#define APART static __attribute__((noinline))

/* Have the line that p points into in the nearest cache; in the second-level one. PoCL 3 makes nothing of OpenCL C's prefetch. */
#if !defined(__OPENCL_C_VERSION__)
#define FETCH(p) __builtin_prefetch(p, 0, 3)
#define FETCH_FAR(p) __builtin_prefetch(p, 0, 2)
#elif defined(__x86_64__)
#define FETCH(p) __builtin_prefetch((const void *)(size_t)(p), 0, 3)
#define FETCH_FAR(p) __builtin_prefetch((const void *)(size_t)(p), 0, 2)
#else
#define FETCH(p) prefetch(p, 1)
#define FETCH_FAR(p) prefetch(p, 1)
#endif

/* The scale or the softcap of attention_params. */
#if DTYPE == DTYPE_F64
#define real_parameter(p, name) real_of_bits((p)->name##_f64)
#else
#define real_parameter(p, name) ((p)->name)
#endif

#define vec_any_nan(x) ivec_any((x) != (x))
#define LOG2_E REAL(1.44269504088896341)
#define LN_2 REAL(0.693147180559945309)

/* What the exponentials know of the type: exponents of 2 from -EXP_BIAS (0) to EXP_BIAS + 1 (infinity); EXP_ROUND, so large
 * that x + EXP_ROUND has no room for a fraction and its low bits are the exponent of 2^(x - 1); ln(2) as LN_2_HIGH, so short that a
 * product with an exponent is exact, and what it lacks. */
#if DTYPE == DTYPE_F64
#define EXP_BIAS 1023.0
#define EXP_ROUND (6755399441055744.0 + EXP_BIAS - 1.0)
#define EXP_SHIFT 52
#define LN_2_HIGH 0.69314718036912381649
#define LN_2_LOW 1.9082149292705877e-10
#else
#define EXP_BIAS 127.0f
#define EXP_ROUND (12582912.0f + EXP_BIAS - 1.0f)
#define EXP_SHIFT 23
#define LN_2_HIGH 0.693359375f
#define LN_2_LOW -2.12194440e-4f
#endif

/* 2^(f + 1) for |f| <= 1/2: the polynomial of least maximal relative error (f32 1e-7, f64 2e-17) among those with constant term 2. */
INLINE vec vec_exp2_fraction(vec f) {
#if DTYPE == DTYPE_F64
    vec y = vec_splat(8.1561650721723723e-10);
    y = y * f + 1.414514064151683104e-8;
    y = y * f + 2.0361295153192906e-7;
    y = y * f + 2.64308853515944778e-6;
    y = y * f + 3.05054547708552692e-5;
    y = y * f + 3.0807060883142759e-4;
    y = y * f + 2.66671163068793544e-3;
    y = y * f + 1.923625821521400564e-2;
    y = y * f + 1.11008217329580792e-1;
    y = y * f + 4.8045301391820196e-1;
    y = y * f + 1.386294361119891394;
    return y * f + 2.0;
#else
    vec y = vec_splat(2.65294546e-3f);
    y = y * f + 1.934302598e-2f;
    y = y * f + 1.110146716e-1f;
    y = y * f + 4.80444848e-1f;
    y = y * f + 1.386294008f;
    return y * f + 2.0f;
#endif
}

/* 2^f * 2^n for |f| <= 1/2, n an exponent plus EXP_ROUND; 0 for the least normal exponent, as for those below it: a number that is
 * not normal costs what a hundred products do, each time it is met. So half of 2^n is what the exponent's bits hold. */
INLINE vec vec_exp2_parts(vec n, vec f) { return vec_exp2_fraction(f) * vec_of_bits(vec_bits(n) << EXP_SHIFT); }

/* What vec_exp2 takes of AVX-512: the sum rounded down; what is left of a over the next 32nd below it; of 32 elements those that the
 * low bits of n number; a * 2^floor(b); a * b + c, or 0 where x is below `least`. */
#if defined(__AVX512F__) && defined(__AVX512DQ__) && WIDTH == 16
#if !defined(__OPENCL_C_VERSION__)
#define TABLE_EXP2 1
#define vec_add_down(a, b) ((vec)_mm512_add_round_ps((__m512)(a), (__m512)(b), _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC))
#define vec_over_32nd(a) ((vec)_mm512_reduce_ps((__m512)(a), 5 << 4 | _MM_FROUND_TO_NEG_INF))
#define vec_of_32(low, n, high) ((vec)_mm512_permutex2var_ps((__m512)(low), (__m512i)(n), (__m512)(high)))
#define vec_scale_exp2(a, b) ((vec)_mm512_scalef_ps((__m512)(a), (__m512)(b)))
#define vec_multiply_add_from(least, x, a, b, c)                                                                          \
    ((vec)_mm512_maskz_fmadd_ps(_mm512_cmp_ps_mask((__m512)(x), (__m512)(least), _CMP_NLT_US), (__m512)(a), (__m512)(b),  \
                                (__m512)(c)))
#elif defined(__has_builtin)
#if __has_builtin(__builtin_ia32_addps512) && __has_builtin(__builtin_ia32_reduceps512_mask) &&                           \
    __has_builtin(__builtin_ia32_vpermi2varps512) && __has_builtin(__builtin_ia32_scalefps512_mask) &&                    \
    __has_builtin(__builtin_ia32_cmpps512_mask) && __has_builtin(__builtin_ia32_selectps_512)
#define TABLE_EXP2 1
#define vec_add_down(a, b) __builtin_ia32_addps512(a, b, 9)
#define vec_over_32nd(a) __builtin_ia32_reduceps512_mask(a, 5 << 4 | 1, a, (ushort)-1, 4)
#define vec_of_32(low, n, high) __builtin_ia32_vpermi2varps512(low, n, high)
#define vec_scale_exp2(a, b) __builtin_ia32_scalefps512_mask(a, b, a, (ushort)-1, 4)
#define vec_multiply_add_from(least, x, a, b, c)                                                                          \
    __builtin_ia32_selectps_512(__builtin_ia32_cmpps512_mask(x, least, 5, (ushort)-1, 4), (a) * (b) + (c), vec_splat(0.0f))
#endif
#endif
#endif

/* 2^x for x < EXP_BIAS + 1, relative error below 2e-7 (f64: 3e-16); 0 from -EXP_BIAS + 1.5 down to -infinity, or a little below;
 * NaN stays. */
#if defined(TABLE_EXP2)
/* 11 instructions of arithmetic where the polynomial alone takes 13, the subtraction and the sum beside it included: 2^(n / 32) from
 * a table times 2^f, 0 <= f < 1 / 32. The table takes the constant term of f's polynomial of least maximal error, 1 + 5.3e-8. */
INLINE vec vec_exp2(vec x) {
    const vec low = VEC16(1.0f, 1.0218972f, 1.04427385f, 1.06714046f, 1.09050775f, 1.1143868f, 1.1387887f, 1.1637249f,
                          1.1892072f, 1.21524739f, 1.24185789f, 1.26905107f, 1.29683959f, 1.32523668f, 1.35425568f, 1.38390994f);
    const vec high = VEC16(1.41421366f, 1.44518089f, 1.47682619f, 1.50916445f, 1.54221094f, 1.5759809f, 1.61049044f, 1.64575553f,
                           1.68179297f, 1.71861935f, 1.75625229f, 1.79470921f, 1.83400822f, 1.87416768f, 1.91520667f, 1.95714426f);
    const vec n = vec_add_down(x, vec_splat(12582912.0f / 32.0f)), f = vec_over_32nd(x);
    const vec whole = vec_scale_exp2(vec_of_32(low, vec_bits(n), high), x);
    return vec_multiply_add_from(vec_splat(1.0f - EXP_BIAS), x, f * (f * 0.242840603f + 0.693116546f), whole, whole);
}
#else
INLINE vec vec_exp2(vec x) {
    x = vec_max(vec_splat(REAL(1.0) - EXP_BIAS), x);
    vec n = x + EXP_ROUND;
    return vec_exp2_parts(n, x - (n - EXP_ROUND));
}
#endif

/* e^x, relative error below 3e-7 (f64: 5e-16); 0 below -87.0 (-708.0), infinity above 88.73 (709.79); NaN stays. ln(2) in two
 * parts keeps large arguments as accurate as small ones. */
INLINE vec vec_exp(vec x) {
    x = vec_max(vec_splat((REAL(1.0) - EXP_BIAS) * LN_2), x);
    x = -vec_max(vec_splat(-(EXP_BIAS + REAL(1.25)) * LN_2), -x);
    vec n = x * LOG2_E + EXP_ROUND, whole = n - EXP_ROUND;
    vec rest = x - whole * LN_2_HIGH;
    return vec_exp2_parts(n, (rest - whole * LN_2_LOW) * LOG2_E);
}

INLINE vec vec_sigmoid(vec x) { return REAL(1.0) / (REAL(1.0) + vec_exp(-x)); }

INLINE vec vec_abs(vec x) { return vec_max(x, -x); }

/* tanh(x) / x - 1 over x^2 for |x| <= 0.625, of x^2. f32: Cephes' tanhf; f64: relative error of the whole below 2e-17. */
INLINE vec vec_tanh_fraction(vec square) {
#if DTYPE == DTYPE_F64
    vec y = vec_splat(-1.60725686853804464e-5);
    y = y * square + 7.71443629659281351e-5;
    y = y * square - 2.28564206179101819e-4;
    y = y * square + 5.86316536896368246e-4;
    y = y * square - 1.45495887657015048e-3;
    y = y * square + 3.59198917345180895e-3;
    y = y * square - 8.86322100257199204e-3;
    y = y * square + 2.18694875760887849e-2;
    y = y * square - 5.39682539312673679e-2;
    y = y * square + 1.33333333332620904e-1;
    return y * square - 3.33333333333328553e-1;
#else
    vec y = vec_splat(-5.70498872745e-3f);
    y = y * square + 2.06390887954e-2f;
    y = y * square - 5.37397155531e-2f;
    y = y * square + 1.33314422036e-1f;
    return y * square - 3.33332819422e-1f;
#endif
}

/* Near 0 an odd polynomial, where the quotient would cancel. */
INLINE vec vec_tanh(vec x) {
    vec size = vec_abs(x), square = x * x;
    vec near = vec_tanh_fraction(square) * square * x + x, far = REAL(1.0) - REAL(2.0) / (vec_exp(size + size) + REAL(1.0));
    return vec_select(size < vec_splat(REAL(0.625)), near, vec_select(x < vec_splat(REAL(0.0)), -far, far));
}

/* The next vector of a strided row of which `left` elements are left; `fill` in the lanes beyond. */
INLINE vec row_load(__global const real *row, i64 step, i64 left, real fill) {
    if (step == 1 && left >= WIDTH) return vec_load(row);
    real lanes[WIDTH];
    for (int lane = 0; lane < WIDTH; lane++) lanes[lane] = lane < left ? row[lane * step] : fill;
    return vec_load(lanes);
}

INLINE void row_store(__global real *row, i64 step, i64 left, vec x) {
    if (step == 1 && left >= WIDTH) {
        vec_store(x, row);
        return;
    }
    real lanes[WIDTH];
    vec_store(x, lanes);
    for (int lane = 0; lane < WIDTH && lane < left; lane++) row[lane * step] = lanes[lane];
}

#endif
