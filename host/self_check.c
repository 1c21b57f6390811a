/* One small case for each role of kernels, and which rows have passed theirs.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A case is a problem of a public operator, planned with the row under check and run on the context's device as far as that row
 * is needed; the reference computes the same in double precision. Sizes are small, odd, and past the first tile of keys.
 */
#include "self_check.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "reference/reference.h"

/* ---- what is known -------------------------------------------------------------------------------------------------- */

typedef struct verdict {
    struct verdict *next;
    bool saved;
    char what[]; /* row and macros */
} verdict;

struct clattn__self_checks {
    verdict *right; /* under context->lock */
    char *key;      /* NULL: the kernels are the library's own code */
    bool loaded;
};

/* Of the library's own code, which is the same in every context. It is kept until the process ends. */
static verdict *right_in_process;
static pthread_mutex_t process_lock = PTHREAD_MUTEX_INITIALIZER;

static char *copy_of(const char *text, size_t length) {
    char *copy = malloc(length + 1);
    if (!copy) return NULL;
    memcpy(copy, text, length);
    copy[length] = 0;
    return copy;
}

static bool is_listed(const verdict *list, const char *what) {
    for (; list; list = list->next)
        if (strcmp(list->what, what) == 0) return true;
    return false;
}

/* A verdict that does not fit into memory is one to be found again. */
static void list_add(verdict **list, const char *what, size_t length, bool saved) {
    verdict *added = malloc(sizeof *added + length + 1);
    if (!added) return;
    memcpy(added->what, what, length);
    added->what[length] = 0;
    added->saved = saved;
    added->next = *list;
    if (is_listed(*list, added->what)) {
        free(added);
        return;
    }
    *list = added;
}

static void list_free(verdict *list) {
    while (list) {
        verdict *first = list;
        list = first->next;
        free(first);
    }
}

/* ---- on disk: a verdict a line --------------------------------------------------------------------------------------- */

static verdict *read_verdicts(const clattn_context *context) {
    verdict *list = NULL;
    size_t length;
    char *text = clattn__cache_read(&context->cache, CLATTN__CACHE_SELF_CHECK, context->self_checks->key, &length);
    for (char *at = text, *end; at && (end = strchr(at, '\n')); at = end + 1) list_add(&list, at, (size_t)(end - at), true);
    free(text);
    return list;
}

/* Under context->lock. */
static void load(const clattn_context *context) {
    struct clattn__self_checks *checks = context->self_checks;
    if (checks->loaded) return;
    checks->loaded = true;
    checks->right = read_verdicts(context);
}

/* Take over what is not in a list yet. */
static void list_join(verdict **list, const verdict *from) {
    for (; from; from = from->next) list_add(list, from->what, strlen(from->what), true);
}

/* A copy of all verdicts, which from now on count as saved; NULL where they did before. */
static verdict *take_fresh(clattn_context *context) {
    verdict *copy = NULL;
    bool fresh = false;
    pthread_mutex_lock(&context->lock);
    for (verdict *v = context->self_checks->right; v; v = v->next) {
        fresh |= !v->saved;
        v->saved = true;
    }
    if (fresh) list_join(&copy, context->self_checks->right);
    pthread_mutex_unlock(&context->lock);
    return copy;
}

void clattn__self_checks_save(clattn_context *context) {
    const struct clattn__self_checks *checks = context->self_checks;
    verdict *all = checks && checks->key ? take_fresh(context) : NULL;
    if (!all) return;
    verdict *theirs = read_verdicts(context); /* what other processes have found meanwhile */
    list_join(&all, theirs);
    list_free(theirs);
    clattn__text text = {0};
    for (const verdict *v = all; v; v = v->next) clattn__text_add(&text, "%s\n", v->what);
    const int failure =
        text.failed ? ENOMEM
                    : clattn__cache_write(&context->cache, CLATTN__CACHE_SELF_CHECK, checks->key, text.data, text.length);
    if (failure) clattn__log(context, CLATTN_LOG_INFO, "what the self-check found is not kept: %s", strerror(failure));
    clattn__text_free(&text);
    list_free(all);
}

clattn_status clattn__self_checks_open(clattn_context *context, const char *key) {
    if (!clattn__is_on(CLATTN__SELF_CHECK)) return CLATTN_OK;
    struct clattn__self_checks *checks = calloc(1, sizeof *checks);
    if (checks && key) checks->key = copy_of(key, strlen(key));
    if (!checks || (key && !checks->key)) {
        free(checks);
        return clattn__fail(context, CLATTN_ERROR_MEMORY, "no memory for the self-check");
    }
    context->self_checks = checks;
    return CLATTN_OK;
}

void clattn__self_checks_close(clattn_context *context) {
    struct clattn__self_checks *checks = context->self_checks;
    if (!checks) return;
    list_free(checks->right);
    free(checks->key);
    free(checks);
    context->self_checks = NULL;
}

/* ---- cases ---------------------------------------------------------------------------------------------------------- */

static clattn_tensor packed(clattn_dtype dtype, int64_t batch, int64_t len, int64_t dim) {
    return clattn_tensor_bhld(dtype, batch, 1, len, dim);
}

static int variant_macro(const clattn__step *step, const char *name, int missing) {
    for (const clattn__macro *macro = step->variant.macros; macro < step->variant.macros + CLATTN__MAX_MACROS && macro->name;
         macro++)
        if (strcmp(macro->name, name) == 0) return macro->value;
    return missing;
}

/* In the step's variant: its type, its sizes of heads nearly filled, modified or not. */
static void describe_attention(clattn_plan *plan, const clattn__step *step, clattn_algorithm algorithm) {
    clattn_attention_desc *d = &plan->desc.attention;
    const clattn_dtype dtype = (clattn_dtype)variant_macro(step, "DTYPE", CLATTN_F32);
    const int head_dim = variant_macro(step, "HEAD_DIM_MAX", 16) - 3, value_dim = variant_macro(step, "VALUE_DIM_MAX", 24) - 3;
    /* as many queries as the row asks for */
    const int len_q = clattn__row_macro(step->row, "LANES_FILLED", 0) ? clattn__row_lanes(step->row) : 3;
    const int len_kv = algorithm == CLATTN_ALGORITHM_SPLIT ? 150 : 75; /* two parts, or two tiles */
    *d = (clattn_attention_desc)CLATTN_ATTENTION_DESC_INIT;
    d->q = packed(dtype, 1, len_q, head_dim);
    d->k = packed(dtype, 1, len_kv, head_dim);
    d->v = packed(dtype, 1, len_kv, value_dim);
    d->out = packed(dtype, 1, len_q, value_dim);
    d->options.causal = 1;
    d->options.align = CLATTN_ALIGN_BOTTOM_RIGHT;
    if (variant_macro(step, "MODIFIED", 0) || step->row->role == CLATTN__ROLE_MASK) {
        d->options.softcap = 2;
        d->options.bias = packed(dtype == CLATTN_F64 ? CLATTN_F64 : CLATTN_F32, 1, len_q, len_kv);
    }
    plan->op = &clattn__operator_attention;
    plan->options.algorithm = algorithm;
}

static void describe_fused(clattn_plan *plan, const clattn__step *step) {
    describe_attention(plan, step, CLATTN_ALGORITHM_FUSED);
}
static void describe_split(clattn_plan *plan, const clattn__step *step) {
    describe_attention(plan, step, CLATTN_ALGORITHM_SPLIT);
}

static void describe_staged(clattn_plan *plan, const clattn__step *step) {
    clattn_attention_desc *d = &plan->desc.attention;
    describe_attention(plan, step, CLATTN_ALGORITHM_STAGED);
    const clattn_tensor matrix = packed(d->q.dtype == CLATTN_F64 ? CLATTN_F64 : CLATTN_F32, 1, d->q.size[2], d->k.size[2]);
    if (step->row->role == CLATTN__ROLE_SOFTMAX || step->row->role == CLATTN__ROLE_WEIGHTED_VALUES) {
        d->options.causal = 0; /* no mask on the way */
        d->options.align = CLATTN_ALIGN_TOP_LEFT;
        d->weights = matrix;
        return;
    }
    d->scores = matrix;
    d->options.scores_form = step->row->role == CLATTN__ROLE_MASK ? CLATTN_SCORES_BIAS : CLATTN_SCORES_RAW;
}

static void describe_copy(clattn_plan *plan, const clattn__step *step) {
    clattn_attention_desc *d = &plan->desc.attention;
    enum { PAST = 4, NEW = 3, DIM = 13, PAIRS = 5 };
    (void)step;
    *d = (clattn_attention_desc)CLATTN_ATTENTION_DESC_INIT;
    d->q = d->k = d->v = d->out = packed(CLATTN_F32, 1, NEW, DIM);
    d->past_k = d->past_v = packed(CLATTN_F32, 1, PAST, DIM);
    d->present_k = d->present_v = packed(CLATTN_F32, 1, PAST + NEW, DIM);
    d->rotary = CLATTN_ROTARY_HALF;
    d->rotary_cos = d->rotary_sin = packed(CLATTN_F32, 1, PAST + NEW, PAIRS);
    plan->op = &clattn__operator_attention;
}

static void describe_merge(clattn_plan *plan, const clattn__step *step) {
    clattn_merge_desc *d = &plan->desc.merge;
    (void)step;
    *d = (clattn_merge_desc)CLATTN_MERGE_DESC_INIT;
    d->out_parts = packed(CLATTN_F32, 3, 5, 19);
    d->lse_parts = packed(CLATTN_F32, 3, 5, 1);
    d->out = packed(CLATTN_F32, 1, 5, 19);
    plan->op = &clattn__operator_merge;
}

static void describe_project(clattn_plan *plan, const clattn__step *step) {
    clattn_project_qkv_desc *d = &plan->desc.project_qkv;
    const clattn_dtype dtype = (clattn_dtype)variant_macro(step, "DTYPE", CLATTN_F32);
    *d = (clattn_project_qkv_desc)CLATTN_PROJECT_QKV_DESC_INIT;
    d->x = packed(dtype, 1, 5, 35);
    d->w_q = packed(dtype, 1, 35, 23);
    d->q = packed(dtype, 1, 5, 23);
    if (step->row->family != CLATTN__FAMILY_CLBLAST) d->b_q = packed(dtype, 1, 1, 23); /* which it cannot add */
    plan->op = &clattn__operator_project_qkv;
}

static void describe_recurrence(clattn_plan *plan, const clattn__step *step) {
    clattn_recurrence_desc *d = &plan->desc.recurrence;
    enum { BATCH = 2, STEPS = 3, D_IN = 5, HIDDEN = 37 };
    const clattn__role role = step->row->role;
    const bool lstm = role == CLATTN__ROLE_LSTM_STEP || role == CLATTN__ROLE_LSTM_LOOP;
    const bool loop = role == CLATTN__ROLE_RNN_LOOP || role == CLATTN__ROLE_LSTM_LOOP;
    const int rows = (lstm ? 4 : 1) * HIDDEN;
    *d = (clattn_recurrence_desc)CLATTN_RECURRENCE_DESC_INIT;
    d->cell = lstm ? CLATTN_CELL_LSTM : CLATTN_CELL_RNN;
    d->x = packed(CLATTN_F32, BATCH, STEPS, D_IN);
    d->w_in = packed(CLATTN_F32, 1, rows, D_IN);
    d->w_h = packed(CLATTN_F32, 1, rows, HIDDEN);
    d->h_0 = packed(CLATTN_F32, BATCH, 1, HIDDEN);
    d->out = packed(CLATTN_F32, BATCH, STEPS, HIDDEN);
    plan->op = &clattn__operator_recurrence;
    plan->options.recurrence = loop ? CLATTN_RECURRENCE_PERSISTENT : CLATTN_RECURRENCE_STEPS;
}

/* ---- packing alone: no public operator shows what it writes ---- */

/* out (blocks, hidden, gates, lanes), as recurrence_params says of `lanes`. */
static clattn_status pack_validate(clattn_plan *plan) {
    const clattn_recurrence_desc *d = &plan->desc.recurrence;
    clattn_status status = clattn__plan_declare(plan, CLATTN_TENSOR_W_H, &d->w_h, CLATTN__READ);
    return status == CLATTN_OK ? clattn__plan_declare(plan, CLATTN_TENSOR_OUT, &d->out, CLATTN__WRITE) : status;
}

static clattn_status pack_build(clattn_plan *plan) {
    const clattn_recurrence_desc *d = &plan->desc.recurrence;
    const clattn__operand w_h = clattn__plan_operand(plan, CLATTN_TENSOR_W_H),
                          out = clattn__plan_operand(plan, CLATTN_TENSOR_OUT);
    const clattn__params params = {.recurrence = {.w_h = clattn__strides(&d->w_h),
                                                  .batch = 1,
                                                  .steps = 1,
                                                  .hidden = d->w_h.size[3],
                                                  .lanes = d->out.size[3],
                                                  .gates = d->out.size[2]}};
    return clattn__plan_step(plan, CLATTN__ROLE_PACK_RECURRENT, (clattn__place[]){w_h.place, out.place}, &params, 1);
}

static clattn_status pack_reference(const clattn_plan *plan, void *const tensors[CLATTN_TENSOR_COUNT]) {
    const clattn_recurrence_desc *d = &plan->desc.recurrence;
    const float *w_h = tensors[CLATTN_TENSOR_W_H];
    float *out = tensors[CLATTN_TENSOR_OUT];
    const i64 hidden = d->w_h.size[3], gates = d->out.size[2], lanes = d->out.size[3];
    for (i64 n = 0; n < clattn__tensor_elements(&d->out); n++) {
        const i64 lane = n % lanes, g = n / lanes % gates, k = n / lanes / gates % hidden, block = n / lanes / gates / hidden;
        const i64 row = block * lanes + lane;
        out[n] = row < hidden ? w_h[(g * hidden + row) * hidden + k] : 0;
    }
    return CLATTN_OK;
}

static const clattn__operator pack_operator = {
    .name = "pack_recurrent", .validate = pack_validate, .build = pack_build, .reference = pack_reference};

static void describe_pack(clattn_plan *plan, const clattn__step *step) {
    enum { HIDDEN = 37 };
    const i64 lanes = step->params.recurrence.lanes, gates = step->params.recurrence.gates;
    plan->desc.recurrence.w_h = packed(CLATTN_F32, 1, gates * HIDDEN, HIDDEN);
    plan->desc.recurrence.out = clattn_tensor_bhld(CLATTN_F32, (HIDDEN + lanes - 1) / lanes, HIDDEN, gates, lanes);
    plan->op = &pack_operator;
}

/* What a row of each role has to compute. Steps behind the last one of the role `until` are not run. */
static const struct trial_case {
    void (*describe)(clattn_plan *, const clattn__step *);
    clattn_tensor_id judged;
    clattn__role until;
} cases[CLATTN__ROLE_COUNT] = {
    [CLATTN__ROLE_PROJECT] = {describe_project, CLATTN_TENSOR_Q, CLATTN__ROLE_PROJECT},
    [CLATTN__ROLE_SCORES] = {describe_staged, CLATTN_TENSOR_SCORES, CLATTN__ROLE_SCORES},
    [CLATTN__ROLE_MASK] = {describe_staged, CLATTN_TENSOR_SCORES, CLATTN__ROLE_MASK},
    [CLATTN__ROLE_SOFTMAX] = {describe_staged, CLATTN_TENSOR_WEIGHTS, CLATTN__ROLE_SOFTMAX},
    [CLATTN__ROLE_WEIGHTED_VALUES] = {describe_staged, CLATTN_TENSOR_OUT, CLATTN__ROLE_WEIGHTED_VALUES},
    [CLATTN__ROLE_ATTENTION] = {describe_fused, CLATTN_TENSOR_OUT, CLATTN__ROLE_ATTENTION},
    [CLATTN__ROLE_ATTENTION_SPLIT] = {describe_split, CLATTN_TENSOR_OUT, CLATTN__ROLE_MERGE},
    [CLATTN__ROLE_MERGE] = {describe_merge, CLATTN_TENSOR_OUT, CLATTN__ROLE_MERGE},
    [CLATTN__ROLE_COPY] = {describe_copy, CLATTN_TENSOR_PRESENT_K, CLATTN__ROLE_COPY},
    [CLATTN__ROLE_PACK_RECURRENT] = {describe_pack, CLATTN_TENSOR_OUT, CLATTN__ROLE_PACK_RECURRENT},
    [CLATTN__ROLE_RNN_STEP] = {describe_recurrence, CLATTN_TENSOR_OUT, CLATTN__ROLE_RNN_STEP},
    [CLATTN__ROLE_LSTM_STEP] = {describe_recurrence, CLATTN_TENSOR_OUT, CLATTN__ROLE_LSTM_STEP},
    [CLATTN__ROLE_RNN_LOOP] = {describe_recurrence, CLATTN_TENSOR_OUT, CLATTN__ROLE_RNN_LOOP},
    [CLATTN__ROLE_LSTM_LOOP] = {describe_recurrence, CLATTN_TENSOR_OUT, CLATTN__ROLE_LSTM_LOOP},
};

/* ---- a trial -------------------------------------------------------------------------------------------------------- */

typedef struct trial {
    clattn_plan *plan;
    size_t prepared; /* steps */
    void *memory[CLATTN_TENSOR_COUNT],
        *right[CLATTN_TENSOR_COUNT]; /* tensors of the device's run, and the reference's outputs */
} trial;

static void trial_free(clattn_context *context, trial *t) {
    for (int id = 0; id < CLATTN_TENSOR_COUNT; id++) {
        free(t->memory[id]);
        free(t->right[id]);
    }
    while (t->prepared > 0) context->backend->release(context, &t->plan->steps[--t->prepared]);
    clattn_plan_destroy(t->plan);
}

/* A plan of the case, cut off behind what the row needs. */
static clattn_status trial_plan(clattn_context *context, const clattn__step *step, trial *t) {
    const struct trial_case *c = &cases[step->row->role];
    clattn_plan *plan = t->plan = calloc(1, sizeof *plan);
    if (!plan) return clattn__fail(context, CLATTN_ERROR_MEMORY, "no memory for a self-check");
    plan->context = context;
    plan->options = (clattn_plan_options)CLATTN_PLAN_OPTIONS_INIT;
    plan->probing = true; /* steps are prepared here, and only those that are run */
    plan->only_row = step->row;
    c->describe(plan, step);
    plan->name = plan->op->name;
    clattn_status status = plan->op->validate(plan);
    if (status == CLATTN_OK) status = plan->op->build(plan);
    size_t count = plan->step_count;
    while (count > 0 && plan->steps[count - 1].row->role != c->until) count--;
    plan->step_count = count;
    bool has_row = false;
    for (size_t n = 0; n < count; n++) has_row |= plan->steps[n].row == step->row;
    if (status == CLATTN_OK && !has_row)
        status = clattn__fail(context, CLATTN_ERROR_INTERNAL, "the self-check of %s does not run it", step->row->name);
    for (; status == CLATTN_OK && t->prepared < count; t->prepared += status == CLATTN_OK)
        status = context->backend->prepare(plan, &plan->steps[t->prepared]);
    return status;
}

/* Numbers from -1 to 1, the same on every machine. */
static void fill(const clattn_tensor *t, void *memory, uint32_t seed) {
    for (i64 n = 0; n < clattn__tensor_elements(t); n++) {
        seed = seed * 1664525 + 1013904223; /* Numerical Recipes */
        clattn__store(t->dtype, memory, n, (double)(seed >> 8) / (1 << 23) - 1);
    }
}

static clattn_status trial_memory(clattn_context *context, trial *t) {
    for (int id = 0; id < CLATTN_TENSOR_COUNT; id++) {
        const clattn_tensor *view = &t->plan->tensors[id];
        if (view->dtype == CLATTN_ABSENT || id == CLATTN_TENSOR_WORKSPACE) continue;
        const size_t bytes = clattn__tensor_span(view);
        t->memory[id] = calloc(1, bytes);
        if (t->plan->access[id] != CLATTN__READ) t->right[id] = calloc(1, bytes);
        if (!t->memory[id] || (t->plan->access[id] != CLATTN__READ && !t->right[id]))
            return clattn__fail(context, CLATTN_ERROR_MEMORY, "no memory for a self-check");
        fill(view, t->memory[id], (uint32_t)id); /* outputs, too: nothing that is left as it was is right */
    }
    return CLATTN_OK;
}

static clattn_status trial_run(clattn_context *context, trial *t) {
    void *tensors[CLATTN_TENSOR_COUNT];
    clattn_status status = context->backend->run(t->plan, t->memory);
    if (status != CLATTN_OK) return status;
    for (int id = 0; id < CLATTN_TENSOR_COUNT; id++) tensors[id] = t->right[id] ? t->right[id] : t->memory[id];
    return t->plan->op->reference(t->plan, tensors);
}

/* Far from any rounding, and near enough for whatever is wrong to show: results are of the size of 1. */
static double tolerance_of(clattn_dtype dtype) {
    switch (dtype) {
    case CLATTN_F64:
        return 1e-9;
    case CLATTN_F16:
        return 1e-2;
    case CLATTN_BF16:
        return 6e-2;
    default:
        return 1e-3;
    }
}

static clattn_status trial_judge(clattn_context *context, const clattn__step *step, const trial *t) {
    const clattn_tensor_id id = cases[step->row->role].judged;
    const clattn_tensor *view = &t->plan->tensors[id];
    for (i64 n = 0; n < clattn__tensor_elements(view); n++) {
        const double value = clattn__load(view->dtype, t->memory[id], n), right = clattn__load(view->dtype, t->right[id], n);
        if (value == right || fabs(value - right) <= tolerance_of(view->dtype) * (1 + fabs(right)))
            continue; /* -infinity is equal */
        return clattn__fail(context, CLATTN_ERROR_BUILD, "self-check: element %lld of %s is %.9g instead of %.9g", (long long)n,
                            clattn_tensor_name(id), value, right);
    }
    return CLATTN_OK;
}

static double now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e3 * (double)time.tv_sec + 1e-6 * (double)time.tv_nsec;
}

static clattn_status try_row(clattn_context *context, const clattn__step *step) {
    const double start = now_ms();
    trial t = {0};
    clattn_status status = trial_plan(context, step, &t);
    if (status == CLATTN_OK) status = trial_memory(context, &t);
    if (status == CLATTN_OK) status = trial_run(context, &t);
    if (status == CLATTN_OK) status = trial_judge(context, step, &t);
    if (status == CLATTN_OK)
        clattn__log(context, CLATTN_LOG_INFO, "self-check: %s computes right, found in %.3f ms", step->row->name,
                    now_ms() - start);
    trial_free(context, &t);
    return status == CLATTN_ERROR_OPENCL ? CLATTN_ERROR_BUILD : status; /* a kernel that cannot be run: its error is the text */
}

/* ---- rows ------------------------------------------------------------------------------------------------------------ */

static void add_macros(clattn__text *what, const clattn__macro *macros) {
    for (const clattn__macro *m = macros; m < macros + CLATTN__MAX_MACROS && m->name; m++)
        clattn__text_add(what, " %s=%d", m->name, m->value);
}

static bool is_known(clattn_context *context, const char *what) {
    struct clattn__self_checks *checks = context->self_checks;
    pthread_mutex_t *lock = checks->key ? &context->lock : &process_lock;
    pthread_mutex_lock(lock);
    if (checks->key) load(context);
    const bool known = is_listed(checks->key ? checks->right : right_in_process, what);
    pthread_mutex_unlock(lock);
    return known;
}

static void remember(clattn_context *context, const clattn__text *what) {
    struct clattn__self_checks *checks = context->self_checks;
    pthread_mutex_t *lock = checks->key ? &context->lock : &process_lock;
    pthread_mutex_lock(lock);
    list_add(checks->key ? &checks->right : &right_in_process, what->data, what->length, false);
    pthread_mutex_unlock(lock);
}

clattn_status clattn__self_check(clattn_context *context, const clattn__step *step) {
    if (!context->self_checks) return CLATTN_OK;
    clattn__text what = {0};
    clattn__text_add(&what, "%s", step->row->name);
    add_macros(&what, step->row->macros);
    add_macros(&what, step->variant.macros);
    if (step->row->role == CLATTN__ROLE_PACK_RECURRENT)
        clattn__text_add(&what, " lanes=%lld gates=%lld", (long long)step->params.recurrence.lanes,
                         (long long)step->params.recurrence.gates);
    if (!context->self_checks->key) clattn__text_add(&what, " at %p", step->prepared); /* which instruction set's */
    if (what.failed) {
        clattn__text_free(&what);
        return clattn__fail(context, CLATTN_ERROR_MEMORY, "no memory for a self-check");
    }
    const bool known = is_known(context, what.data);
    clattn_status status = known ? CLATTN_OK : try_row(context, step);
    if (!known && status == CLATTN_OK) remember(context, &what);
    clattn__text_free(&what);
    return status;
}
