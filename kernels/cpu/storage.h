/* The elements of tensors as they are stored, and as they are computed with.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * `stored` is the type that the macro DTYPE names: float, double, and ushort for f16 (IEEE binary16) and bf16 (the upper half
 * of an f32). For it and for each of the two short types, whatever DTYPE is, there are
 *      x_load(p), x_store(value, p)            one element
 *      x_vec_load(p), x_vec_store(values, p)   WIDTH of them, at any alignment
 * with x one of stored, f16 and bf16 (but no vectors of f16 and bf16 where real is double). Stores round to nearest even; what
 * is too large becomes infinite; a NaN stays one.
 */
#ifndef CLATTN_KERNELS_CPU_STORAGE_H
#define CLATTN_KERNELS_CPU_STORAGE_H

#include "prelude.h"

#if defined(__OPENCL_C_VERSION__)

#define float_bits(x) as_uint(x)
#define float_of_bits(x) as_float(x)

#define f16_load(p) vload_half(0, (__global const half *)(p))
#define f16_store(x, p) vstore_half_rte(x, 0, (__global half *)(p))
#define f16_vec_load(p) JOIN(vload_half, WIDTH)(0, (__global const half *)(p))
#define f16_vec_store(x, p) JOIN(JOIN(vstore_half, WIDTH), _rte)(x, 0, (__global half *)(p))

#if DTYPE != DTYPE_F64
typedef JOIN(uint, WIDTH) uvec;
#define uvec_bits(x) JOIN(as_uint, WIDTH)(x)
#define vec_of_ubits(x) JOIN(as_float, WIDTH)(x)
#define ushorts_load(p) JOIN(convert_uint, WIDTH)(JOIN(vload, WIDTH)(0, p))
#define ushorts_store(x, p) JOIN(vstore, WIDTH)(JOIN(convert_ushort, WIDTH)(x), 0, p)
#define uvec_select(condition, yes, no) ((condition) ? (yes) : (no))
#endif

#else

typedef uint32_t uint;

static inline uint float_bits(float x) {
    union {
        float x;
        uint bits;
    } both = {x};
    return both.bits;
}

static inline float float_of_bits(uint bits) {
    union {
        uint bits;
        float x;
    } both = {bits};
    return both.x;
}

#if DTYPE != DTYPE_F64
typedef uint uvec __attribute__((vector_size(4 * WIDTH)));
typedef ushort ushorts __attribute__((vector_size(2 * WIDTH), aligned(2), may_alias));
#define uvec_bits(x) ((uvec)(x))
#define vec_of_ubits(x) ((vec)(x))
#define ushorts_load(p) __builtin_convertvector(*(const ushorts *)(p), uvec)
#define ushorts_store(x, p) ((void)(*(ushorts *)(p) = __builtin_convertvector(x, ushorts)))
#define uvec_select(condition, yes, no) (((uvec)(condition) & (yes)) | (~(uvec)(condition) & (no)))
#endif

/* f16 by the bits. To f32: exponent and fraction in their new places are too small by 2^112, subnormals included; infinity and
 * NaN are what is then past the largest f16. From f32: the bits dropped round the rest up, or, where the result is subnormal,
 * an addition whose sum's lowest bit is that of a subnormal f16. */
#define F16_SCALE 0x1p112f
static inline float f16_load_bits(uint half) {
    const float size = float_of_bits((half & 0x7fff) << 13) * F16_SCALE;
    return float_of_bits(float_bits(size) | (size >= 65536.0f ? 0x7f800000 : 0) | (half & 0x8000) << 16);
}

static inline ushort f16_bits(float x) {
    const uint bits = float_bits(x), size = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;
    if (size > 0x7f800000) return (ushort)(sign | 0x7e00 | (size >> 13 & 0x3ff));
    if (size >= 0x47800000) return (ushort)(sign | 0x7c00);
    if (size < 0x38800000) return (ushort)(sign | (float_bits(float_of_bits(size) + 0.5f) - 0x3f000000));
    return (ushort)(sign | (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13);
}

#if defined(__aarch64__)
#define f16_load(p) ((float)*(const __fp16 *)(p))
#define f16_store(x, p) ((void)(*(__fp16 *)(p) = (__fp16)(x)))
#elif defined(__F16C__)
#define f16_load(p) _cvtsh_ss(*(const ushort *)(p))
#define f16_store(x, p) ((void)(*(ushort *)(p) = (ushort)_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT)))
#else
#define f16_load(p) f16_load_bits(*(const ushort *)(p))
#define f16_store(x, p) ((void)(*(ushort *)(p) = f16_bits(x)))
#endif

#if DTYPE == DTYPE_F64
/* no vectors */
#elif WIDTH == 16 && defined(__AVX512F__)
#define f16_vec_load(p) ((vec)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(p))))
#define f16_vec_store(x, p) _mm256_storeu_si256((__m256i *)(p), _mm512_cvtps_ph((__m512)(x), _MM_FROUND_TO_NEAREST_INT))
#elif WIDTH == 8 && defined(__F16C__)
#define f16_vec_load(p) ((vec)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p))))
#define f16_vec_store(x, p) _mm_storeu_si128((__m128i *)(p), _mm256_cvtps_ph((__m256)(x), _MM_FROUND_TO_NEAREST_INT))
#else
static inline vec f16_vec_load(const ushort *p) {
    const uvec half = ushorts_load(p);
    const vec size = vec_of_ubits((half & 0x7fff) << 13) * F16_SCALE;
    return vec_of_ubits(uvec_bits(size) | ((uvec)(size >= 65536.0f) & 0x7f800000) | (half & 0x8000) << 16);
}

static inline void f16_vec_store(vec x, ushort *p) {
    for (int lane = 0; lane < WIDTH; lane++) f16_store(x[lane], p + lane);
}
#endif

#endif

#define bf16_load(p) float_of_bits((uint)*(p) << 16)
#define bf16_store(x, p) ((void)(*(p) = bf16_bits(x)))

static inline ushort bf16_bits(float x) {
    const uint bits = float_bits(x);
    return (ushort)(x == x ? (bits + 0x7fff + (bits >> 16 & 1)) >> 16 : bits >> 16 | 0x40);
}

#if DTYPE != DTYPE_F64
INLINE uvec bf16_vec_bits(vec x) {
    const uvec bits = uvec_bits(x);
    return uvec_select(x == x, (bits + 0x7fff + (bits >> 16 & 1)) >> 16, bits >> 16 | 0x40);
}
/* gcc widens vectors of ushort by halves. */
#if defined(__OPENCL_C_VERSION__)
#define bf16_vec_load(p) vec_of_ubits(ushorts_load(p) << 16)
#elif WIDTH == 16 && defined(__AVX512F__)
#define bf16_vec_load(p) ((vec)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(p))), 16))
#elif WIDTH == 8 && defined(__AVX2__)
#define bf16_vec_load(p) ((vec)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(p))), 16))
#else
#define bf16_vec_load(p) vec_of_ubits(ushorts_load(p) << 16)
#endif
#define bf16_vec_store(x, p) ushorts_store(bf16_vec_bits(x), p)
#endif

#if DTYPE == DTYPE_F16
typedef ushort stored;
#define stored_load(p) f16_load(p)
#define stored_store(x, p) f16_store(x, p)
#define stored_vec_load(p) f16_vec_load(p)
#define stored_vec_store(x, p) f16_vec_store(x, p)
#elif DTYPE == DTYPE_BF16
typedef ushort stored;
#define stored_load(p) bf16_load(p)
#define stored_store(x, p) bf16_store(x, p)
#define stored_vec_load(p) bf16_vec_load(p)
#define stored_vec_store(x, p) bf16_vec_store(x, p)
#else
typedef real stored;
#define stored_load(p) (*(p))
#define stored_store(x, p) ((void)(*(p) = (x)))
#define stored_vec_load(p) vec_load(p)
#define stored_vec_store(x, p) vec_store(x, p)
#endif
/* Whether elements are computed with as they lie. */
#define STORED_IS_REAL (DTYPE == DTYPE_F32 || DTYPE == DTYPE_F64)

/* Elements of a line of a cache. */
#define LINE ((int)(64 / sizeof(stored)))

/* to[n] = from[n * step] for n = 0 ... count - 1. */
INLINE void stored_row_load(real *to, __global const stored *from, i64 step, int count) {
    int n = 0;
    if (step == 1) {
        for (; n + WIDTH <= count; n += WIDTH) vec_store(stored_vec_load(from + n), to + n);
    }
    for (; n < count; n++) to[n] = stored_load(from + n * step);
}

#endif
