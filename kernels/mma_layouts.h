/* Whose matrix units a row is made for, as its macro MMA says; kernels/gpu/mma.h describes each layout of fragments.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_KERNELS_MMA_LAYOUTS_H
#define CLATTN_KERNELS_MMA_LAYOUTS_H

#define MMA_NVIDIA 1
#define MMA_CDNA 2
#define MMA_RDNA3 3
#define MMA_XE8 4
#define MMA_XE16 5

#endif
