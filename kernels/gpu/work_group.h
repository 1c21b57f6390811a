/* What every kernel of work-groups begins with.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_GPU_WORK_GROUP_H
#define CLATTN_GPU_WORK_GROUP_H

#ifndef WORK_GROUP
#error "WORK_GROUP comes from the kernel's row"
#endif

#define KERNEL kernel __attribute__((reqd_work_group_size(WORK_GROUP, 1, 1)))
/* Pointers to private memory keep a kernel's arrays out of registers unless the function that takes them is inlined. */
#define INLINE static inline __attribute__((always_inline))

#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* Loops over registers are unrolled whole. Compilers may unroll a function before they inline it, so that the bound of a loop
 * must be a constant there: EACH takes the `count` that is one only afterwards, and the `most` that it may be. A group of few
 * work-items keeps arrays too long for that in private memory. */
#if WORK_GROUP >= 16
#define UNROLL _Pragma("unroll")
#define EACH(n, count, most) _Pragma("unroll") for (int n = 0; n < (most); n++) if (n < (count))
#else
#define UNROLL
#define EACH(n, count, most) for (int n = 0; n < (count); n++)
#endif

/* Whether a work-item of the group found something; the same for all of them. Begins and ends with the flag free. */
INLINE bool any_found(bool found, local int *flag) {
    if (get_local_id(0) == 0) *flag = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (found) atomic_or(flag, 1);
    barrier(CLK_LOCAL_MEM_FENCE);
    const bool any = *flag;
    barrier(CLK_LOCAL_MEM_FENCE);
    return any;
}

#endif
