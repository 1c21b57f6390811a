/* The limits of an OpenCL device: multiply-adds in registers, and reading.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   VECTOR_WIDTH   floats a vector: the device's native width, 1 on GPUs
 */
#if VECTOR_WIDTH == 1
typedef float vec;
#define SUM(v) (v)
#elif VECTOR_WIDTH == 4
typedef float4 vec;
#define SUM(v) (v.x + v.y + v.z + v.w)
#elif VECTOR_WIDTH == 8
typedef float8 vec;
#define SUM(v) (v.s0 + v.s1 + v.s2 + v.s3 + v.s4 + v.s5 + v.s6 + v.s7)
#elif VECTOR_WIDTH == 16
typedef float16 vec;
#define HALF(v) (v.s0 + v.s1 + v.s2 + v.s3 + v.s4 + v.s5 + v.s6 + v.s7)
#define SUM(v) (HALF(v.lo) + HALF(v.hi))
#else
#error "VECTOR_WIDTH must be 1, 4, 8 or 16"
#endif

/* Twelve independent chains of `rounds` multiply-adds in every work-item; each converges to 1. Compilers differ in which of mad()
 * and fma() becomes one instruction: the host takes the faster. */
#define CHAINS(NAME, MULTIPLY_ADD)                                                                                       \
    kernel void NAME(const long rounds, global float *sink) {                                                            \
        const vec factor = (vec)(0.75f), term = (vec)(0.25f);                                                            \
        vec c0 = (vec)(1.0f), c1 = (vec)(2.0f), c2 = (vec)(3.0f), c3 = (vec)(4.0f), c4 = (vec)(5.0f), c5 = (vec)(6.0f);  \
        vec c6 = (vec)(7.0f), c7 = (vec)(8.0f), c8 = (vec)(9.0f), c9 = (vec)(10.0f), c10 = (vec)(11.0f);                 \
        vec c11 = (vec)(12.0f);                                                                                          \
        for (long round = 0; round < rounds; round++) {                                                                  \
            c0 = MULTIPLY_ADD(c0, factor, term);                                                                         \
            c1 = MULTIPLY_ADD(c1, factor, term);                                                                         \
            c2 = MULTIPLY_ADD(c2, factor, term);                                                                         \
            c3 = MULTIPLY_ADD(c3, factor, term);                                                                         \
            c4 = MULTIPLY_ADD(c4, factor, term);                                                                         \
            c5 = MULTIPLY_ADD(c5, factor, term);                                                                         \
            c6 = MULTIPLY_ADD(c6, factor, term);                                                                         \
            c7 = MULTIPLY_ADD(c7, factor, term);                                                                         \
            c8 = MULTIPLY_ADD(c8, factor, term);                                                                         \
            c9 = MULTIPLY_ADD(c9, factor, term);                                                                         \
            c10 = MULTIPLY_ADD(c10, factor, term);                                                                       \
            c11 = MULTIPLY_ADD(c11, factor, term);                                                                       \
        }                                                                                                                \
        const vec total = ((c0 + c1) + (c2 + c3)) + ((c4 + c5) + (c6 + c7)) + ((c8 + c9) + (c10 + c11));                 \
        sink[get_global_id(0)] = SUM(total);                                                                             \
    }

CHAINS(multiply_add_mad, mad)
CHAINS(multiply_add_fma, fma)

/* Work-item i reads `count` vectors, a multiple of 8, from i * item_stride on, each `stride` after the last, `repeat` times. */
kernel void read_floats(global const vec *values, const long count, const long item_stride, const long stride,
                        const long repeat, global float *sink) {
    vec t0 = (vec)(0.0f), t1 = t0, t2 = t0, t3 = t0, t4 = t0, t5 = t0, t6 = t0, t7 = t0;
    for (long walk = 0; walk < repeat; walk++) {
        global const vec *from = values + get_global_id(0) * item_stride;
        for (long i = 0; i < count; i += 8) {
            t0 += from[0];
            t1 += from[stride];
            t2 += from[2 * stride];
            t3 += from[3 * stride];
            t4 += from[4 * stride];
            t5 += from[5 * stride];
            t6 += from[6 * stride];
            t7 += from[7 * stride];
            from += 8 * stride;
        }
    }
    const vec total = ((t0 + t1) + (t2 + t3)) + ((t4 + t5) + (t6 + t7));
    sink[get_global_id(0)] = SUM(total);
}
