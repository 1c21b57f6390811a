/* PyTorch's attention beside ours: a python3 that holds the tensors, and that is told over a pipe to run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_BENCH_PEER_TORCH_H
#define CLATTN_BENCH_PEER_TORCH_H

#include "candidate.h"

typedef struct bench_torch bench_torch;

/* PyTorch's implementations of scaled_dot_product_attention, each forced: the names that records carry. NULL ends them. */
extern const char *const bench_torch_backends[];

/* Start python3 with torch on the GPU that has the device's name. One that does not start stays, and every load says why. NULL
 * only without memory. */
bench_torch *bench_torch_open(const bench_device *);
void bench_torch_close(bench_torch *); /* NULL is accepted */

/* Whether PyTorch computes the same: its causal mask is aligned at the top left, and it has no windows. */
bool bench_torch_suits(const bench_shape *);
/* Give it the problem's inputs, for the candidates that are made until the next load. */
bool bench_torch_load(bench_torch *, const bench_problem *, bench_error *);
/* An implementation on what was loaded last. Fails with PyTorch's reason where it does not take the shape or the type. */
bool bench_candidate_torch(bench_candidate *, bench_device *, bench_problem *, bench_torch *, const char *backend, bench_error *);

#endif
