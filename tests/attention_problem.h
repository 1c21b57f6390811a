/* An attention problem: random inputs, and what every output must be.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_TESTS_ATTENTION_PROBLEM_H
#define CLATTN_TESTS_ATTENTION_PROBLEM_H

#include "naive.h"
#include "support.h"

/* A mask or a bias. */
enum {
    ONE_BATCH = 1, /* dimensions of size 1, */
    ONE_HEAD = 2,
    ONE_QUERY = 4,
    BY_STRIDE = 8, /* or the whole size with a stride of 0 */
};
typedef struct matrix_case {
    bool given;
    int broadcast;
    int64_t missing; /* so many keys at the end it does not tell of */
    int per_cent;    /* masked, element by element */
    bool whole_rows; /* some rows are masked as a whole */
    bool least;      /* bias: instead of -infinity the least finite number */
    bool lowest;     /* bias: the test makes rows of nothing else */
    bool narrow;     /* bias: of q's type instead of f32 */
} matrix_case;

typedef enum cache_case { CACHE_NONE, CACHE_PAST, CACHE_PAST_ONLY /* without present */, CACHE_IN_PLACE } cache_case;

/* What is 0 is absent. */
typedef struct attention_case {
    const char *name;
    int64_t batch, heads_q, heads_kv, len_q, len_kv, head_dim, value_dim; /* of a ragged batch: members, and at most so long */
    int causal;
    clattn_align align;
    int64_t position; /* past_len or offset */
    int has_scale;
    double scale;
    double amplitude; /* of q; 0: 1 */
    clattn_dtype dtype; /* 0: f32 */
    matrix_case mask, bias;
    int has_window;
    int64_t left, right;
    double softcap;
    int alibi; /* ALIBI_* */
    bool sinks;
    bool by_member; /* slopes, sinks and rotary tables differ between members of the batch */
    bool lengths, ragged;
    bool wide; /* integers of 64 bits */
    cache_case cache;
    int64_t past; /* keys before the new ones; in place: at most so many */
    clattn_rotary rotary;
    int64_t pairs;
    clattn_scores_form form;
    bool narrow;        /* scores and weights are of q's type */
    bool poison;        /* keys and values that no query looks at are NaN and infinite */
    bool live_nan;      /* and an element of a query, a key or a value somewhere is NaN */
    bool split_devices; /* over all devices of the context */
} attention_case;

/* Numbers are packed and such as their types hold. */
typedef struct attention_problem {
    attention_case c;
    clattn_attention_desc desc; /* packed tensors, optional outputs and all; scale resolved */
    double *data[CLATTN_TENSOR_COUNT];           /* inputs; of a cache in place what it holds before */
    expected_values expected[CLATTN_TENSOR_COUNT]; /* outputs */
    int64_t keys;                                /* len_kv of the matrices */
} attention_problem;

/* Random inputs, solved. */
attention_problem attention_problem_make(const attention_case *c, rng *r);
/* The inputs alone, not poisoned yet. */
attention_problem attention_problem_draw(const attention_case *c, rng *r);
/* Poison, and solve; again after inputs were changed. */
void attention_problem_solve(attention_problem *p);
void attention_problem_free(attention_problem *p);
/* One member of a batch that is not ragged, to run: it shares its data with the whole. */
attention_problem attention_problem_member(const attention_problem *p, int64_t b);

/* Where a descriptor has a tensor; NULL: nowhere. */
clattn_tensor *attention_tensor(clattn_attention_desc *desc, clattn_tensor_id id);
/* Elements of a tensor, 0 without it. */
int64_t attention_count(const attention_problem *p, clattn_tensor_id id);

enum { WANT_LSE = 1, WANT_SCORES = 2, WANT_WEIGHTS = 4, WANT_MATRICES = WANT_SCORES | WANT_WEIGHTS };

/* The problem's descriptor in a layout, with the optional outputs that are wanted. */
/* Whether an option changes scores, as softcap, masks, biases and ALiBi do. */
bool attention_is_modified(const attention_case *c);

clattn_attention_desc attention_desc(const attention_problem *p, layout l, int want);

/* Packed results; NULL where not asked for. */
typedef struct attention_results {
    double *data[CLATTN_TENSOR_COUNT];
    char row[160];
} attention_results;

/* Run in guarded memory of a layout. Not ok where that fails or something else than the outputs was written; then there are no
 * results. */
verdict attention_try(clattn_context *context, const attention_problem *p, layout l, clattn_algorithm algorithm, int want,
                      attention_results *results);
/* The same; asserts success. */
attention_results attention_run(clattn_context *context, const attention_problem *p, layout l, clattn_algorithm algorithm,
                                int want);
void attention_results_free(attention_results *r);
/* Judge all that is there. */
void attention_assert_close(const attention_results *r, const attention_problem *p, const char *where);
/* Of a packed f32 out alone. */
void attention_assert_out(const float *out, const attention_problem *p, const char *where);
/* Bitwise. */
void attention_assert_same(const attention_results *a, const attention_results *b, const attention_problem *p, const char *where);
/* Bitwise, out and lse of the rows that do not look at new key j. */
void attention_assert_unseen(const attention_results *a, const attention_results *b, const attention_problem *p, int64_t j,
                             const char *where);
/* The first output that is wrong, and how; ok where none is. */
verdict attention_judge(const attention_results *r, const attention_problem *p);

/* All that an algorithm gives: staged gives matrices, and auto would be staged if it were asked for them. */
int attention_outputs(const attention_problem *p, clattn_algorithm algorithm);

/* Write the inputs as .npy files into a new folder and print the command that shows what went wrong. */
void attention_reproduce(const attention_problem *p, const char *device, clattn_algorithm algorithm, int want);

/* What a test does on a device with an algorithm, one row of which is forced; `where` says which. */
typedef void (*attention_check)(clattn_context *, const attention_problem *, clattn_algorithm, const char *where);

/* Every way in which each device can compute this problem: each fused and each split row, each row of a stage, each row of the
 * copies and merges on the way, and the reference. */
void attention_on_every_row(const attention_problem *p, attention_check function);
/* As each device chooses itself, without matrices and with them. */
void attention_on_every_device(const attention_problem *p, attention_check function);

#endif
