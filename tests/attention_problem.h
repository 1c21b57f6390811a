/* An attention problem: random inputs, and what every output must be.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_TESTS_ATTENTION_PROBLEM_H
#define CLATTN_TESTS_ATTENTION_PROBLEM_H

#include "support.h"

typedef struct attention_case {
    const char *name;
    int64_t batch, heads_q, heads_kv, len_q, len_kv, head_dim, value_dim;
    int causal;
    clattn_align align;
    int64_t position; /* past_len or offset */
    int has_scale;
    float scale;
    float amplitude; /* of q; 0: 1 */
} attention_case;

/* All arrays are packed. */
typedef struct attention_problem {
    attention_case c;
    clattn_attention_options options; /* of the case, its scale resolved */
    float *q, *k, *v;
    double *out, *lse, *scores, *weights;
    float *naive_out, *naive_lse, *naive_scores, *naive_weights;
    double *out_magnitude, *lse_magnitude, *scores_magnitude, *weights_magnitude;
} attention_problem;

/* Random inputs, solved. */
attention_problem attention_problem_make(const attention_case *c, rng *r);
/* Solve again after inputs were changed. */
void attention_problem_solve(attention_problem *p);
void attention_problem_free(attention_problem *p);

/* What the results of a problem are judged against. */
expected attention_expect_out(const attention_problem *p);
expected attention_expect_lse(const attention_problem *p);
expected attention_expect_scores(const attention_problem *p);
expected attention_expect_weights(const attention_problem *p);

/* The problem's descriptor with packed tensors; optional outputs absent. */
clattn_attention_desc attention_desc(const attention_problem *p);

enum { WANT_LSE = 1, WANT_SCORES = 2, WANT_WEIGHTS = 4 };

/* Packed results; NULL where not asked for. */
typedef struct attention_results {
    float *out, *lse, *scores, *weights;
    char row[160];
} attention_results;

/* Run in guarded memory of a layout; asserts success and untouched surroundings. */
attention_results attention_run(clattn_context *context, const attention_problem *p, layout l, clattn_algorithm algorithm,
                                int want);
void attention_results_free(attention_results *r);
/* Judge all that is there. */
void attention_assert_close(const attention_results *r, const attention_problem *p, const char *where);

#endif
