/* Any operator on random numbers, in memory of exactly the bytes that its views span: what a device computes beside what the
 * reference does.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_TESTS_PLAIN_PROBLEM_H
#define CLATTN_TESTS_PLAIN_PROBLEM_H

#include "support.h"

/* One of CLATTN__OPERATORS and its descriptor: f32, packed views, no integers among the inputs. */
typedef struct plain_problem {
    const clattn__operator *op;
    union {
#define X(op) clattn_##op##_desc op;
        CLATTN__OPERATORS(X)
#undef X
    };
} plain_problem;

typedef struct plain_sizes {
    int64_t batch, len, len_kv, d_in, heads, heads_kv, dim; /* what an operator has no use for is not read */
    int64_t parts;                                          /* merge */
    clattn_cell cell;                                       /* recurrence; steps are len, hidden is dim */
} plain_sizes;

/* Every optional tensor is there. */
plain_problem plain_merge(const plain_sizes *s);
plain_problem plain_project_qkv(const plain_sizes *s);
plain_problem plain_mha(const plain_sizes *s);
plain_problem plain_recurrence(const plain_sizes *s);

/* A plan of it. */
clattn_status plain_plan(clattn_context *context, const plain_problem *p, const clattn_plan_options *options,
                         clattn_plan **plan);
/* Run on both devices; not ok where that fails or a result is far from the reference's. */
verdict plain_try(clattn_context *context, clattn_context *reference, const plain_problem *p,
                  const clattn_plan_options *options, rng *r);
/* The same, and not ok where a result is not bitwise the other device's. */
verdict plain_same(clattn_context *context, clattn_context *other, const plain_problem *p, const clattn_plan_options *options,
                   rng *r);

#endif
