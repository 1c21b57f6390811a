/* What every suite shares: random data with a printed seed, guarded buffers, the error rule, and the devices to run on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_TESTS_SUPPORT_H
#define CLATTN_TESTS_SUPPORT_H

#include <check.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../host/internal.h"
#include "../host/reference/reference.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Options of a plan: OPTIONS(.algorithm = CLATTN_ALGORITHM_STAGED). */
#define OPTIONS(...) (&(clattn_plan_options){.struct_size = sizeof(clattn_plan_options), __VA_ARGS__})

/* Memory or the end of the test program: tests have nothing to say without it. */
void *test_alloc(size_t count, size_t size);

/* ---- random ------------------------------------------------------------------------------------------------------- */

/* $CLATTN_TEST_SEED, or a fresh one; printed once. */
uint64_t test_seed(void);

typedef struct rng {
    uint64_t state;
} rng;

/* A stream of its own for each number, all of them from the seed. */
rng rng_make(uint64_t stream);
uint64_t rng_next(rng *r);
int64_t rng_below(rng *r, int64_t limit);
float rng_normal(rng *r);
/* With all the digits of a double. */
double rng_fine(rng *r);
/* `count` normal numbers times `amplitude`, newly allocated. */
float *rng_floats(rng *r, int64_t count, float amplitude);

/* |from|, newly allocated; NULL for NULL. */
float *absolute(const float *from, int64_t count);
/* The same numbers, newly allocated; NULL for NULL. */
double *widened(const float *from, int64_t count);
/* In place, to what a type holds; `values` may be NULL. Returns them. */
float *round_to(clattn_dtype dtype, float *values, int64_t count);
float *narrowed(const double *from, int64_t count);

/* Packed floats as the oracle sees them; NULL: not present. */
clattn__view view_of_floats(const float *data, int64_t batch, int64_t heads, int64_t len, int64_t dim);

/* ---- layouts ------------------------------------------------------------------------------------------------------ */

typedef enum layout {
    LAYOUT_BHLD,
    LAYOUT_BLHD,
    LAYOUT_LBDH,       /* every dimension somewhere else */
    LAYOUT_PADDED,     /* gaps after rows, heads and batches */
    LAYOUT_INNER2,     /* every second element */
    LAYOUT_TRANSPOSED, /* (dim, len) matrices */
    LAYOUT_COUNT
} layout;

const char *layout_name(layout l);
clattn_tensor layout_view(layout l, int64_t batch, int64_t heads, int64_t len, int64_t dim);
/* A packed view's elements in a layout; of dimensions of size 1 the strides are junk. */
clattn_tensor layout_of(layout l, clattn_tensor packed);
/* A read-only view of one head and batch, repeated: stride 0. */
clattn_tensor layout_broadcast(int64_t batch, int64_t heads, int64_t len, int64_t dim);

/* Between packed (batch, heads, len, dim) memory and a view's. */
void view_scatter(const clattn_tensor *view, float *data, const float *packed);
void view_gather(const clattn_tensor *view, const float *data, float *packed);

/* ---- guarded buffers ------------------------------------------------------------------------------------------------
 * Memory for a view of any type, with NaN (of integers and bytes: nonsense) before, after and in its gaps; outputs hold another NaN.
 * guarded_intact says whether a run kept its hands off all that is not its own. Data is aligned to its elements and no more. */

typedef struct guarded {
    clattn_tensor view;
    bool is_output;
    size_t elements; /* with margins */
    unsigned char *base, *before; /* as it is, and as it was made */
    void *data;
    int64_t count, *offsets; /* of the view's elements, packed */
} guarded;

guarded guarded_input(clattn_tensor view, const float *packed);
guarded guarded_output(clattn_tensor view);
/* Numbers that the view's type holds; is_output: the run may change them. */
guarded guarded_values(clattn_tensor view, const double *packed, bool is_output);
bool guarded_intact(const guarded *g);
/* Whether an output is still as it was made. */
bool guarded_untouched(const guarded *g);
/* The view's elements, packed and newly allocated. */
float *guarded_result(const guarded *g);
double *guarded_read(const guarded *g);
void guarded_free(guarded *g);

/* ---- bindings ------------------------------------------------------------------------------------------------------
 * The guarded tensors of one run. */

typedef struct bindings {
    size_t count;
    clattn_arg args[CLATTN_TENSOR_COUNT];
    guarded memory[CLATTN_TENSOR_COUNT];
} bindings;

/* Nothing happens for an absent view. */
void bind_input(bindings *b, clattn_tensor_id id, clattn_tensor view, const float *packed);
void bind_output(bindings *b, clattn_tensor_id id, clattn_tensor view);
void bind_values(bindings *b, clattn_tensor_id id, clattn_tensor view, const double *packed, bool is_output);
/* Every buffer is as a run must leave it. */
void assert_intact(const bindings *b, const char *where);
/* The packed result of an output, newly allocated; NULL when it is not bound. */
float *bound_result(const bindings *b, clattn_tensor_id id);
double *bound_values(const bindings *b, clattn_tensor_id id);
void bindings_free(bindings *b);

/* Fail unless `count` floats are bitwise the same; NULL equals NULL. */
void assert_same(const float *a, const float *b, int64_t count, const char *where, const char *what);
/* Of NaN neither sign nor payload is promised. */
bool same_bits(double a, double b);
/* The same; says where the first difference is. */
void assert_same_values(const double *a, const double *b, int64_t count, const char *where, const char *what);

/* ---- the error rule ----------------------------------------------------------------------------------------------- */

/* What a result is held against, packed as (rows, columns). */
typedef struct expected {
    const double *oracle;
    const float *naive;      /* the plain computation in fp32 */
    const double *magnitude; /* what cancelled on the way: the sum of absolute terms; NULL: |oracle| */
    int64_t rows, columns;
} expected;

typedef struct verdict {
    bool ok;
    double error;     /* the largest, relative to its row's magnitude */
    double tolerance; /* twice the naive computation's error, and 8 epsilon */
    char text[320];
} verdict;

/* Where the oracle is NaN or infinite the result must be the same; a NaN anywhere else fails. Errors are taken relative to
 * each row's largest magnitude; the largest may not exceed the tolerance. */
verdict judge(const float *result, const expected *e);

/* The same in double, for results of any type. */
typedef struct expected_values {
    double *oracle, *naive, *magnitude; /* magnitude: never NULL */
    int64_t rows, columns;
    double epsilon; /* of the arithmetic */
    double least;   /* no error is counted that is not larger: the step of the smallest numbers */
} expected_values;

verdict judge_values(const double *result, const expected_values *e);

#define assert_close(result, e, ...)                                                                                     \
    do {                                                                                                                 \
        verdict v_ = judge(result, e);                                                                                   \
        char where_[256];                                                                                                \
        snprintf(where_, sizeof where_, __VA_ARGS__);                                                                    \
        ck_assert_msg(v_.ok, "%s: %s", where_, v_.text);                                                                 \
    } while (0)

/* ---- devices ------------------------------------------------------------------------------------------------------ */

typedef struct test_device {
    char name[64];
    clattn_context *context; /* NULL: not on this machine */
    char why[256];           /* then why not */
} test_device;

/* Whether a run takes case n of count: all of them do, or where $CLATTN_TEST_SHARE is set, one of so many, drawn by the seed; of fewer
 * cases than that one is taken. */
bool test_draws(size_t n, size_t count);

/* Every device there could be: native at each level, the reference, and each OpenCL device in each kernel family. Opened
 * once a process, those not there are printed as skipped. $CLATTN_TEST_DEVICES (patterns of names, as a shell has
 * them, with commas between) keeps only some; a device with a known fault is tested where it is set. */
const test_device *test_devices(size_t *count);
size_t test_device_count(void);
/* NULL where device n is not on this machine. */
clattn_context *test_context(size_t n);
const char *test_device_name(size_t n);
void test_devices_close(void);

/* Whether a device has what a row needs, whatever the parameters. */
bool row_may_serve(const clattn_context *context, const clattn__row *row);

/* Let `row` be the only one of its role that a context may choose. Returns whether it serves there. */
bool force_row(clattn_context *context, const clattn__row *row, const clattn__params *params);
void force_none(clattn_context *context);
/* The layout of fragments (MMA_*) whose rows may serve from now on, emulated, on all devices; 0, as it is at first: none. Compilers
 * take long for them. */
void emulate_layout(int layout);

/* A way to compute: a device, and a kernel row that is forced there (NULL where the device runs operators whole). */
typedef void (*row_function)(clattn_context *context, const clattn__row *row, const char *where, void *data);

/* Call `function` for each row of the roles (a bit mask) on each device that it serves, and for the reference. params are what
 * the choice of rows may depend on. Fails where a device has none for a role. */
void for_every_row(uint32_t roles, const clattn__params *params, row_function function, void *data);
#define ROLE_BIT(role) (1u << CLATTN__ROLE_##role)

/* The values of a macro in the rows of some roles, without repetition, at most `capacity`; returns how many. */
size_t row_macro_values(const char *macro, uint32_t roles, int64_t *values, size_t capacity);

/* Three queries of a head of 2 over three keys, causal: a plan, which is the caller's if it could be made and run, and what it computes.
 */
clattn_status small_attention(clattn_context *context, const clattn_plan_options *options, clattn_plan **plan, float out[6]);
/* The first query looks at the first key alone. */
bool small_attention_is_right(const float out[6]);

/* The last error of a context, in a buffer that the next call overwrites. */
const char *error_text(clattn_context *context);

#define assert_ok(context, call)                                                                                         \
    do {                                                                                                                 \
        clattn_status status_ = (call);                                                                                  \
        if (status_ != CLATTN_OK) ck_abort_msg("%s: %s: %s", #call, clattn_status_name(status_), error_text(context));   \
    } while (0)

#define assert_status(context, call, expected_status)                                                                    \
    do {                                                                                                                 \
        clattn_status status_ = (call);                                                                                  \
        ck_assert_msg(status_ == (expected_status), "%s: %s instead of %s: %s", #call, clattn_status_name(status_),      \
                      clattn_status_name(expected_status), error_text(context));                                         \
    } while (0)

/* Run a suite and say how it went: the exit status. */
int run_suite(Suite *suite);
/* The same for a suite that goes over the devices: it fails where nothing but the reference is there. */
int run_device_suite(Suite *suite);

#endif
