/* The limits of an OpenCL device: multiply-adds in registers, on tensor cores, and reading.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   VECTOR_WIDTH   floats a vector: the device's native width, 1 on GPUs
 *   FRAGMENTS      whether there are products of fragments: NVIDIA's PTX for sm_80 and newer
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

/* Work-item i reads vectors of its group's local memory, eight a round, side by side with its neighbours', each round further on: no
 * compiler knows when they come round again, so it reads them every time. */
#define LOCAL_VECTORS (4096 / VECTOR_WIDTH) /* a power of two, 16 KiB */
kernel void read_local(const long rounds, global float *sink) {
    local vec values[LOCAL_VECTORS];
    const int items = (int)get_local_size(0);
    for (int i = (int)get_local_id(0); i < LOCAL_VECTORS; i += items) values[i] = (vec)(0.0f);
    barrier(CLK_LOCAL_MEM_FENCE);
    vec t0 = (vec)(0.0f), t1 = t0, t2 = t0, t3 = t0, t4 = t0, t5 = t0, t6 = t0, t7 = t0;
    int at = (int)get_local_id(0);
    for (long round = 0; round < rounds; round++) {
        t0 += values[at & (LOCAL_VECTORS - 1)];
        t1 += values[(at + 1 * items) & (LOCAL_VECTORS - 1)];
        t2 += values[(at + 2 * items) & (LOCAL_VECTORS - 1)];
        t3 += values[(at + 3 * items) & (LOCAL_VECTORS - 1)];
        t4 += values[(at + 4 * items) & (LOCAL_VECTORS - 1)];
        t5 += values[(at + 5 * items) & (LOCAL_VECTORS - 1)];
        t6 += values[(at + 6 * items) & (LOCAL_VECTORS - 1)];
        t7 += values[(at + 7 * items) & (LOCAL_VECTORS - 1)];
        at += 8 * items;
    }
    const vec total = ((t0 + t1) + (t2 + t3)) + ((t4 + t5) + (t6 + t7));
    sink[get_global_id(0)] = SUM(total);
}

#ifdef FRAGMENTS
/* Eight independent sums of products of 16 x 16 and 16 x 8 in every warp, whose lanes hold ones; the instruction of
 * kernels/gpu/mma.h. */
#define PRODUCT(C)                                                                                                       \
    __asm__ volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %4, %4, %4}, {%4, %4}, "   \
                     "{%0, %1, %2, %3};"                                                                                  \
                     : "+f"(C.x), "+f"(C.y), "+f"(C.z), "+f"(C.w)                                                         \
                     : "r"(ones))
kernel void multiply_fragments(const long rounds, global float *sink) {
    const uint ones = 0x3c003c00u;
    float4 c0 = (float4)(0.0f), c1 = c0, c2 = c0, c3 = c0, c4 = c0, c5 = c0, c6 = c0, c7 = c0;
    for (long round = 0; round < rounds; round++) {
        PRODUCT(c0);
        PRODUCT(c1);
        PRODUCT(c2);
        PRODUCT(c3);
        PRODUCT(c4);
        PRODUCT(c5);
        PRODUCT(c6);
        PRODUCT(c7);
    }
    const float4 total = ((c0 + c1) + (c2 + c3)) + ((c4 + c5) + (c6 + c7));
    sink[get_global_id(0)] = total.x + total.y + total.z + total.w;
}
#endif
