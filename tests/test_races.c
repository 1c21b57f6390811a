/* Kernel rows, watched at each access: test_races WATCH [ROW|long]; with long those that other runs leave out.
 *
 * races: under oclgrind, which interprets kernels: data races between work-items and between groups, accesses past a buffer
 *
 * uninitialized: under oclgrind: values that nothing has set, accesses past a buffer; without long, of the rows that test_draws takes
 *
 * memcheck: under valgrind: the native backend's compiled rows
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * tests/CMakeLists.txt sets the environment. oclgrind writes what it finds to $OCLGRIND_LOG, and any message there fails the
 * row; valgrind fails the program. A line a row is printed. Results are checked, too. The net itself is tested with faults
 * planted in copies of real kernels.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attention_problem.h"
#include "patched_kernel.h"
#include "plain_problem.h"

typedef enum watch { RACES, UNINITIALIZED, MEMCHECK } watch;

static watch watched;
static const char *only; /* this row, if the command line says so */
static bool is_long;     /* the rows that are left to long runs, or that other runs draw from */

/* ---- the log ------------------------------------------------------------------------------------------------------- */

typedef struct findings {
    int races, bounds, uninitialized, other; /* messages, as oclgrind begins them; other: of no such kind */
    char first[400];                         /* the beginning of the first */
} findings;

static int total(const findings *f) {
    return f->races + f->bounds + f->uninitialized + f->other;
}

static bool begins(const char *line, const char *with) {
    return strncmp(line, with, strlen(with)) == 0;
}

/* A message is a line without indentation, followed by indented ones. */
static void count_line(findings *f, const char *line) {
    if (line[0] == '\n' || line[0] == '\t' || line[0] == ' ') return;
    if (strstr(line, "data race"))
        f->races++;
    else if (begins(line, "Invalid read") || begins(line, "Invalid write"))
        f->bounds++;
    else if (begins(line, "Uninitialized"))
        f->uninitialized++;
    else
        f->other++;
}

static const char *log_path(void) {
    const char *path = getenv("OCLGRIND_LOG");
    ck_assert_msg(path != NULL, "OCLGRIND_LOG is not set: ctest sets what this suite needs");
    return path;
}

/* All that oclgrind said since the last context was opened: each one begins the file anew. */
static findings read_log(void) {
    findings f = {0};
    if (watched == MEMCHECK) return f; /* valgrind has a log of its own */
    FILE *log = fopen(log_path(), "r");
    ck_assert_msg(log != NULL, "%s: no log was written", log_path());
    char line[1024];
    while (fgets(line, sizeof line, log)) {
        count_line(&f, line);
        const size_t length = strlen(f.first);
        if (total(&f) == 1) snprintf(f.first + length, sizeof f.first - length, "%.120s", line);
    }
    fclose(log);
    return f;
}

/* ---- devices ------------------------------------------------------------------------------------------------------- */

static clattn_context *open_device(const char *name) {
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    clattn_context *context;
    char why[400];
    options.device = name;
    options.error = why;
    options.error_size = sizeof why;
    if (clattn_context_create(&options, &context) != CLATTN_OK) ck_abort_msg("%s: %s", name, why);
    return context;
}

/* A context in which the row may serve, whatever vectors the device likes. */
static clattn_context *open_for(const clattn__row *row) {
    if (watched == MEMCHECK) {
        clattn_context *native = open_device(clattn__row_macro(row, "VECTOR_WIDTH", 0) == 8 ? "native:avx2" : "native:generic");
        native->device.features |= 1u << CLATTN__FEATURE_emulated;
        return native;
    }
    clattn_context *context = open_device(row->family == CLATTN__FAMILY_CPU ? "opencl:0:0:cpu" : "opencl:0:0:gpu");
    if (!strstr(context->device.info.name, "Oclgrind")) ck_abort_msg("%s is no oclgrind", context->device.info.name);
    context->device.vector_width = clattn__row_macro(row, "VECTOR_WIDTH", 0);
    context->device.mma = -clattn__row_macro(row, "MMA", 0);
    return context;
}

/* ---- shapes -------------------------------------------------------------------------------------------------------- */

/* More keys than the largest tile and more depth than a chunk, so that tiles are used again; nothing is a multiple of anything.
 */
#define ALL_OPTIONS                                                                                                            \
    .causal = 1, .align = CLATTN_ALIGN_BOTTOM_RIGHT, .mask = {.given = true, .per_cent = 20},                                  \
    .bias = {.given = true, .per_cent = 10}, .has_window = 1, .left = 60, .right = 3, .softcap = 3, .alibi = ALIBI_GIVEN,      \
    .sinks = true, .lengths = true

static const attention_case fused_cases[] = {
    {"f32 with all options", 1, 2, 1, 5, 69, 19, 21, ALL_OPTIONS},
    {"f32 in a window", 1, 2, 1, 5, 69, 19, 21, .has_window = 1, .left = 60, .right = 3, .sinks = true, .lengths = true},
    {"f16 causal", 1, 1, 1, 67, 9, 5, 7, .causal = 1, .dtype = CLATTN_F16},
    {"bf16 ragged", 2, 1, 1, 5, 9, 3, 5, .ragged = true, .dtype = CLATTN_BF16},
    {"bf16 with all options", 1, 1, 1, 35, 69, 35, 37, ALL_OPTIONS, .dtype = CLATTN_BF16},
};
/* Of fragments. A tile of keys that every query sees, one that some see, one with a key that none sees, which is not finite. However
 * few the rows of a tile are, all of it is computed: there are few tiles. */
static const attention_case fragment_cases[] = {
    {"f16 causal, unseen NaN", 1, 1, 1, 35, 69, 19, 21, .causal = 1, .align = CLATTN_ALIGN_OFFSET, .position = 33,
     .poison = true, .dtype = CLATTN_F16},
    {"bf16 with all options", 1, 1, 1, 35, 69, 19, 21, ALL_OPTIONS, .dtype = CLATTN_BF16},
    {"bf16 ragged", 2, 1, 1, 5, 9, 19, 5, .ragged = true, .dtype = CLATTN_BF16},
};
static const attention_case split_cases[] = {
    {"f32 with all options", 1, 2, 1, 2, 139, 19, 21, ALL_OPTIONS},
    {"f16", 1, 3, 1, 1, 69, 5, 7, .dtype = CLATTN_F16},
};
/* For rows that want their lanes filled. */
static const attention_case group_cases[] = {
    {"f32 with all options", 1, 2, 1, 16, 139, 19, 21, ALL_OPTIONS},
    {"f16", 1, 1, 1, 31, 69, 5, 7, .dtype = CLATTN_F16},
};
static const attention_case staged_cases[] = {
    {"f32 with all options", 1, 1, 1, 5, 69, 19, 21, ALL_OPTIONS},
    {"f16 causal", 1, 2, 1, 5, 9, 5, 67, .causal = 1, .dtype = CLATTN_F16},
};
static const attention_case staged_fragment_cases[] = {
    {"f16 causal, unseen NaN", 1, 1, 1, 35, 69, 67, 21, .causal = 1, .align = CLATTN_ALIGN_OFFSET, .position = 33,
     .poison = true, .dtype = CLATTN_F16},
    {"bf16 with all options", 1, 1, 1, 35, 69, 67, 21, ALL_OPTIONS, .dtype = CLATTN_BF16},
};
static const attention_case copy_cases[] = {
    {"a past, rotated", 2, 2, 1, 5, 9, 10, 7, .cache = CACHE_PAST, .past = 4, .rotary = CLATTN_ROTARY_HALF, .pairs = 3},
    {"in place", 2, 2, 1, 5, 5, 10, 7, .cache = CACHE_IN_PLACE, .past = 6, .rotary = CLATTN_ROTARY_INTERLEAVED, .pairs = 5,
     .dtype = CLATTN_BF16},
};

static const plain_sizes merge_sizes = {.batch = 2, .heads = 3, .len = 5, .dim = 19, .parts = 3};
static const plain_sizes product_sizes = {.batch = 2, .len = 3, .len_kv = 5, .d_in = 19, .heads = 3, .heads_kv = 1, .dim = 23};
static const plain_sizes layer_sizes = {.batch = 1, .len = 3, .len_kv = 5, .d_in = 7, .heads = 2, .heads_kv = 1, .dim = 5};
static const plain_sizes pack_rnn_sizes = {.cell = CLATTN_CELL_RNN, .batch = 1, .len = 1, .d_in = 5, .dim = 37};
static const plain_sizes pack_lstm_sizes = {.cell = CLATTN_CELL_LSTM, .batch = 1, .len = 1, .d_in = 5, .dim = 37};
static const plain_sizes rnn_sizes = {.cell = CLATTN_CELL_RNN, .batch = 3, .len = 3, .d_in = 5, .dim = 37};
static const plain_sizes lstm_sizes = {.cell = CLATTN_CELL_LSTM, .batch = 3, .len = 3, .d_in = 5, .dim = 37};

/* ---- runs ---------------------------------------------------------------------------------------------------------- */

/* One row, in a context for each case: oclgrind takes memory that a case had and gave back for what it was then. */
typedef struct trial {
    const clattn__row *row;
    clattn_context *context, *reference;
    clattn__text shapes; /* what has been run */
    findings found;
} trial;

static void add_findings(findings *all, findings f) {
    if (!total(all)) memcpy(all->first, f.first, sizeof all->first);
    all->races += f.races;
    all->bounds += f.bounds;
    all->uninitialized += f.uninitialized;
    all->other += f.other;
}

/* Of the other roles in a plan rows of one work-item serve, which waste the least of these small shapes: interpreting is slow.
 */
static void spare_the_others(clattn_context *context, const clattn__row *row) {
    for (const clattn__row *other = clattn__rows; other < clattn__rows + clattn__row_count; other++)
        if (other->role != row->role && clattn__row_macro(other, "WORK_GROUP", 1) > 1 && !clattn__row_ban(context, other, NULL))
            ck_abort_msg("out of memory");
}

static void begin_case(trial *t) {
    const clattn__params none = {0};
    t->context = open_for(t->row);
    force_row(t->context, t->row, &none);
    spare_the_others(t->context, t->row);
}

static void end_case(trial *t, const char *what, verdict v) {
    clattn_context_destroy(t->context);
    add_findings(&t->found, read_log());
    clattn__text_add(&t->shapes, "%s%s", t->shapes.length ? "; " : "", what);
    if (!v.ok) ck_abort_msg("%s, %s: %s", t->row->name, what, v.text);
}

/* Whether the row is made for such a case. */
static bool takes(const clattn__row *row, const attention_case *c) {
    const bool modified = c->mask.given || c->bias.given || c->softcap != 0 || c->alibi;
    const bool unmodified = clattn__row_macro(row, "UNMODIFIED", 0);
    if (modified && unmodified) return false;
    if (c->has_window && !modified && !unmodified) return false; /* it has the window among all options */
    if (clattn__row_macro(row, "ONLY_DTYPE", 0)) return (int)c->dtype == clattn__row_macro(row, "ONLY_DTYPE", 0);
    return true;
}

/* The case with heads that the row is made for. */
static attention_case with_heads_of(const clattn__row *row, attention_case c) {
    const int above = clattn__row_macro(row, "HEAD_DIM_ABOVE", 0);
    c.head_dim += above;
    c.value_dim += above;
    return c;
}

/* The case as it is watched. What one group leaves unset does not depend on another, and oclgrind takes four times as long to
 * follow values as to follow accesses: one group a member is enough there. */
static attention_case watched_case(attention_case c) {
    if (watched != UNINITIALIZED) return c;
    c.heads_q = c.heads_kv;
    if (c.len_q > 5) c.len_q = 5;
    return c;
}

/* Drawn anew until there is a query: without one no kernel runs. */
static attention_problem draw_with_queries(const attention_case *c, rng *r) {
    for (;;) {
        attention_problem p = attention_problem_make(c, r);
        if (!c->ragged || p.data[CLATTN_TENSOR_Q_OFFSETS][c->batch] > 0) return p;
        attention_problem_free(&p);
    }
}

static void attend(trial *t, const attention_case *cases, size_t count, clattn_algorithm algorithm) {
    for (size_t n = 0; n < count; n++) {
        if (!takes(t->row, &cases[n])) continue;
        rng r = rng_make(n);
        const attention_case c = watched_case(with_heads_of(t->row, cases[n]));
        attention_problem p = draw_with_queries(&c, &r);
        const bool ragged = cases[n].ragged;
        attention_results results;
        begin_case(t);
        verdict v = attention_try(t->context, &p, LAYOUT_BHLD, ragged ? CLATTN_ALGORITHM_AUTO : algorithm,
                                  attention_outputs(&p, algorithm), &results);
        if (v.ok) v = attention_judge(&results, &p);
        end_case(t, cases[n].name, v);
        ck_assert_msg(strstr(results.row, t->row->name) != NULL, "%s: %s ran instead of %s", cases[n].name, results.row,
                      t->row->name);
        attention_results_free(&results);
        attention_problem_free(&p);
    }
}

static void compute(trial *t, const char *what, const plain_problem *p, const clattn_plan_options *options) {
    rng r = rng_make(7);
    begin_case(t);
    end_case(t, what, plain_try(t->context, t->reference, p, options, &r));
}

/* What a context makes of a product in f16 or bf16, of w as it is stored or of its transpose. */
static float *narrow_product(clattn_context *context, clattn_dtype dtype, bool transposed) {
    enum { LEN = 5, DEPTH = 67, COLUMNS = 23 };
    rng r = rng_make(7);
    clattn_project_qkv_desc desc = CLATTN_PROJECT_QKV_DESC_INIT;
    desc.x = clattn_tensor_bhld(dtype, 1, 1, LEN, DEPTH);
    desc.w_q = transposed ? clattn_tensor_transposed(clattn_tensor_matrix(dtype, COLUMNS, DEPTH))
                          : clattn_tensor_matrix(dtype, DEPTH, COLUMNS);
    desc.b_q = clattn_tensor_matrix(dtype, 1, COLUMNS);
    desc.q = clattn_tensor_bhld(dtype, 1, 1, LEN, COLUMNS);
    float *x = rng_floats(&r, LEN * DEPTH, 1), *w = rng_floats(&r, DEPTH * COLUMNS, 1), *bias = rng_floats(&r, COLUMNS, 1);
    bindings b = {0};
    bind_input(&b, CLATTN_TENSOR_X, desc.x, x);
    bind_input(&b, CLATTN_TENSOR_W_Q, desc.w_q, w);
    bind_input(&b, CLATTN_TENSOR_B_Q, desc.b_q, bias);
    bind_output(&b, CLATTN_TENSOR_Q, desc.q);
    assert_ok(context, clattn_project_qkv(context, &desc, NULL, b.args, b.count));
    float *y = bound_result(&b, CLATTN_TENSOR_Q);
    bindings_free(&b);
    free(bias);
    free(w);
    free(x);
    return y;
}

/* Of a row that takes no f32. */
static void project_narrow(trial *t, const char *what, clattn_dtype dtype, bool transposed) {
    enum { COUNT_OF_Y = 5 * 23 };
    const float ulp = dtype == CLATTN_F16 ? 0x1p-10f : 0x1p-7f;
    begin_case(t);
    float *y = narrow_product(t->context, dtype, transposed), *right = narrow_product(t->reference, dtype, transposed);
    verdict v = {.ok = true};
    for (int n = 0; n < COUNT_OF_Y && v.ok; n++) {
        if (fabsf(y[n] - right[n]) <= ulp * (1 + fabsf(right[n]))) continue;
        v.ok = false;
        snprintf(v.text, sizeof v.text, "element %d is %g instead of %g", n, (double)y[n], (double)right[n]);
    }
    free(right);
    free(y);
    end_case(t, what, v);
}

static void recur(trial *t, const plain_sizes *sizes, clattn_recurrence_form form) {
    const plain_problem p = plain_recurrence(sizes);
    compute(t, sizes->cell == CLATTN_CELL_LSTM ? "lstm" : "rnn", &p, OPTIONS(.recurrence = form));
}

/* Everything that the row's role can be asked for. */
static void run_role(trial *t) {
    const plain_problem merge = plain_merge(&merge_sizes), project = plain_project_qkv(&product_sizes),
                        mha = plain_mha(&layer_sizes);
    switch (t->row->role) {
    case CLATTN__ROLE_ATTENTION:
        if (clattn__row_macro(t->row, "MMA", 0))
            attend(t, fragment_cases, COUNT(fragment_cases), CLATTN_ALGORITHM_FUSED);
        else
            attend(t, fused_cases, COUNT(fused_cases), CLATTN_ALGORITHM_FUSED);
        break;
    case CLATTN__ROLE_ATTENTION_SPLIT:
        if (clattn__row_macro(t->row, "LANES_FILLED", 0))
            attend(t, group_cases, COUNT(group_cases), CLATTN_ALGORITHM_SPLIT);
        else
            attend(t, split_cases, COUNT(split_cases), CLATTN_ALGORITHM_SPLIT);
        break;
    case CLATTN__ROLE_SCORES:
    case CLATTN__ROLE_MASK:
    case CLATTN__ROLE_SOFTMAX:
    case CLATTN__ROLE_WEIGHTED_VALUES:
        if (clattn__row_macro(t->row, "MMA", 0))
            attend(t, staged_fragment_cases, COUNT(staged_fragment_cases), CLATTN_ALGORITHM_STAGED);
        else
            attend(t, staged_cases, COUNT(staged_cases), CLATTN_ALGORITHM_STAGED);
        break;
    case CLATTN__ROLE_COPY:
        attend(t, copy_cases, COUNT(copy_cases), CLATTN_ALGORITHM_AUTO);
        break;
    case CLATTN__ROLE_MERGE:
        compute(t, "merge", &merge, NULL);
        break;
    case CLATTN__ROLE_PROJECT:
        if (clattn__row_macro(t->row, "MMA", 0)) {
            project_narrow(t, "a product in f16", CLATTN_F16, false);
            project_narrow(t, "in bf16, by a transpose", CLATTN_BF16, true);
            break;
        }
        if (clattn__row_macro(t->row, "ONLY_DTYPE", DTYPE_F32) == DTYPE_BF16) {
            project_narrow(t, "a product in bf16", CLATTN_BF16, false);
            break;
        }
        compute(t, "q, k, v with bias", &project, NULL);
        compute(t, "a layer with residual", &mha, NULL);
        break;
    case CLATTN__ROLE_PACK_RECURRENT:
        recur(t, &pack_rnn_sizes, CLATTN_RECURRENCE_STEPS);
        recur(t, &pack_lstm_sizes, CLATTN_RECURRENCE_PERSISTENT);
        break;
    case CLATTN__ROLE_RNN_STEP:
        recur(t, &rnn_sizes, CLATTN_RECURRENCE_STEPS);
        break;
    case CLATTN__ROLE_RNN_LOOP:
        recur(t, &rnn_sizes, CLATTN_RECURRENCE_PERSISTENT);
        break;
    case CLATTN__ROLE_LSTM_STEP:
        recur(t, &lstm_sizes, CLATTN_RECURRENCE_STEPS);
        break;
    case CLATTN__ROLE_LSTM_LOOP:
        recur(t, &lstm_sizes, CLATTN_RECURRENCE_PERSISTENT);
        break;
    case CLATTN__ROLE_COUNT:
        ck_abort_msg("%s has no role", t->row->name);
    }
}

static findings try_row(const clattn__row *row, clattn__text *shapes) {
    trial t = {.row = row, .reference = open_device("reference")};
    run_role(&t);
    clattn_context_destroy(t.reference);
    *shapes = t.shapes;
    return t.found;
}

/* Rows of fragments that take oclgrind a quarter of a minute each: those of large tiles, and where it follows values all that
 * attend. */
static bool takes_long(const clattn__row *row) {
    if (watched == MEMCHECK || !clattn__row_macro(row, "MMA", 0)) return false;
    const bool attends = row->role == CLATTN__ROLE_ATTENTION;
    return clattn__row_macro(row, "LOCAL_BYTES", 0) > 32768 || (attends && watched == UNINITIALIZED);
}

/* Why a row cannot be watched, or NULL. */
static const char *blind_spot(const clattn__row *row) {
    const bool cpu = row->family == CLATTN__FAMILY_CPU || row->family == CLATTN__FAMILY_NATIVE;
    if (row->family == CLATTN__FAMILY_CLBLAST) return "a library's kernels";
    if (watched != MEMCHECK && row->family == CLATTN__FAMILY_NATIVE) return "a row of the native backend, for memcheck";
    if (watched == UNINITIALIZED && row->family == CLATTN__FAMILY_CPU)
        return "oclgrind 21.10 loses what vectors hold; memcheck follows this source as it is compiled natively";
    if (watched == MEMCHECK && !cpu) return "not a row of the native backend";
    if (watched == MEMCHECK && clattn__row_macro(row, "VECTOR_WIDTH", 0) == 16) return "valgrind knows no AVX-512";
    return NULL;
}

static void print_findings(const findings *f, const char *shapes) {
    if (watched == MEMCHECK) printf("valgrind reports at the end   %s\n", shapes);
    if (watched == RACES) printf("%d races, %d out of bounds   %s\n", f->races, f->bounds, shapes);
    if (watched == UNINITIALIZED) printf("%d uninitialized, %d out of bounds   %s\n", f->uninitialized, f->bounds, shapes);
}

START_TEST(row_is_clean) {
    const clattn__row *row = &clattn__rows[_i];
    const bool is_drawn = watched != UNINITIALIZED || test_draws((size_t)_i, clattn__row_count);
    /* A long run leaves out what every other run has watched. */
    if (only ? strcmp(row->name, only) != 0 : is_long && watched != UNINITIALIZED && !takes_long(row)) return;
    if (blind_spot(row)) {
        printf("%-22s not run: %s\n", row->name, blind_spot(row));
        return;
    }
    if (!only && !is_long && (takes_long(row) || !is_drawn)) {
        printf("%-22s not run: %sleft to `./run test --long`\n", row->name, is_drawn ? "" : "not drawn, ");
        return;
    }
    clattn__text shapes = {0};
    const clock_t start = clock();
    const findings f = try_row(row, &shapes);
    printf("%-22s %5.1f s ", row->name, (double)(clock() - start) / CLOCKS_PER_SEC);
    print_findings(&f, shapes.data);
    clattn__text_free(&shapes);
    ck_assert_msg(total(&f) == 0, "%s: %d messages, the first: %s", row->name, total(&f), f.first);
}
END_TEST

/* ---- the net ------------------------------------------------------------------------------------------------------- */

/* Right or wrong. */
static void attend_once(clattn_context *context, const attention_case *c, clattn_algorithm algorithm, int want) {
    rng r = rng_make(1);
    attention_problem p = attention_problem_make(c, &r);
    attention_results results;
    attention_try(context, &p, LAYOUT_BHLD, algorithm, want, &results);
    attention_results_free(&results);
    attention_problem_free(&p);
}

static void attend_staged(clattn_context *context) {
    attend_once(context, &(attention_case){"planted", 1, 1, 1, 5, 69, 3, 3}, CLATTN_ALGORITHM_STAGED, WANT_WEIGHTS);
}

static void attend_fused(clattn_context *context) {
    attend_once(context, &(attention_case){"planted", 1, 1, 1, 5, 37, 19, 21, .dtype = CLATTN_F16}, CLATTN_ALGORITHM_FUSED, 0);
}

static void project(clattn_context *context) {
    free(narrow_product(context, CLATTN_F16, false));
}

/* Faults in copies of a row's kernel, and the finding that each must be. */
#define BARRIER "barrier(CLK_LOCAL_MEM_FENCE);\n"
static const struct {
    const char *fault, *row, *from, *to;
    void (*compute)(clattn_context *);
    size_t finding; /* offset of its count */
    watch seen_by;
} planted[] = {
    {"a missing barrier", "softmax_4", BARRIER "        if (lane < reach)", "if (lane < reach)", attend_staged,
     offsetof(findings, races), RACES},
    {"no barrier after fragments of values", "attention_mma_xe8",
     "multiply_values(exchange, state->acc, scores, values);\n            " BARRIER,
     "multiply_values(exchange, state->acc, scores, values);\n", attend_fused, offsetof(findings, races), RACES},
    {"no barrier after a product of fragments", "project_mma_rdna3", BARRIER "        }\n        turn", "}\n        turn",
     project, offsetof(findings, races), RACES},
    {"writes past the last row", "softmax_4", "i < p.len_q ? live_range(&p, &m, i) : none", "live_range(&p, &m, i)",
     attend_staged, offsetof(findings, bounds), RACES},
    {"reads past the last key", "attention_mma_xe8", "row < from.rows ? from.columns - d : 0", "from.columns - d", attend_fused,
     offsetof(findings, bounds), RACES},
    {"a sum that begins with nothing", "softmax_4", "exp_sum total = {-INFINITY, 0.0f};",
     "exp_sum total; total.max = -INFINITY;", attend_staged, offsetof(findings, uninitialized), UNINITIALIZED},
    {"fragments that begin with nothing", "attention_mma_xe8", "state.acc[n] = 0.0f;", "", attend_fused,
     offsetof(findings, uninitialized), UNINITIALIZED},
};

static const clattn__row *row_named(const char *name) {
    for (const clattn__row *row = clattn__rows; row < clattn__rows + clattn__row_count; row++)
        if (strcmp(row->name, name) == 0) return row;
    ck_abort_msg("there is no row %s", name);
    return NULL;
}

START_TEST(planted_fault_is_caught) {
    if (planted[_i].seen_by != watched || only || is_long) return;
    const clattn__row *row = row_named(planted[_i].row);
    const clattn__params none = {0};
    clattn_context *context = open_for(row);
    force_row(context, row, &none);
    patch_kernel(context, row, planted[_i].from, planted[_i].to);
    planted[_i].compute(context);
    clattn_context_destroy(context);
    const findings f = read_log();
    const int count = *(const int *)((const char *)&f + planted[_i].finding);
    printf("planted: %s in %s: %s\n", planted[_i].fault, row->name, count ? "caught" : "not caught");
    ck_assert_msg(count > 0, "%s was not caught; other messages: %d", planted[_i].fault, total(&f));
}
END_TEST

int main(int argc, char **argv) {
    static const char *const names[] = {[RACES] = "races", [UNINITIALIZED] = "uninitialized", [MEMCHECK] = "memcheck"};
    for (watched = RACES; watched <= MEMCHECK && argc > 1 && strcmp(argv[1], names[watched]) != 0;) watched++;
    if (argc < 2 || watched > MEMCHECK) {
        fprintf(stderr, "usage: test_races races|uninitialized|memcheck [ROW|long]\n");
        return 2;
    }
    is_long = argc > 2 && strcmp(argv[2], "long") == 0;
    only = argc > 2 && !is_long ? argv[2] : NULL;
    Suite *suite = suite_create("races");
    TCase *tests = tcase_create("races");
    tcase_add_loop_test(tests, row_is_clean, 0, (int)clattn__row_count);
    /* after the rows: what a fault left in oclgrind's memory of what is set would be found again in them */
    tcase_add_loop_test(tests, planted_fault_is_caught, 0, COUNT(planted));
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
