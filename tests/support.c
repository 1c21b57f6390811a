/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <float.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What sanitizers ask the program for. An allocation that cannot be is answered with NULL, as it is without them; and the
 * threads of OpenMP and OpenCL, whose code they do not know, are taken to be right. */
#define SANITIZER_OPTIONS(name, options)                                                                                 \
    __attribute__((visibility("default"))) const char *name(void);                                                       \
    const char *name(void) { return options; }
SANITIZER_OPTIONS(__asan_default_options, "allocator_may_return_null=1")
SANITIZER_OPTIONS(__tsan_default_options, "allocator_may_return_null=1:ignore_noninstrumented_modules=1")

void *test_alloc(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory) {
        fprintf(stderr, "tests: out of memory\n");
        exit(EXIT_FAILURE);
    }
    return memory;
}

/* ---- random ------------------------------------------------------------------------------------------------------- */

uint64_t test_seed(void) {
    static uint64_t seed;
    if (seed) return seed;
    const char *given = getenv("CLATTN_TEST_SEED");
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    seed = given ? strtoull(given, NULL, 0) : (uint64_t)now.tv_sec * 1000003u + (uint64_t)now.tv_nsec;
    if (!seed) seed = 1;
    printf("CLATTN_TEST_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

bool test_draws(size_t n, size_t count) {
    const char *share = getenv("CLATTN_TEST_SHARE");
    const uint64_t asked = share ? strtoull(share, NULL, 10) : 1, of = asked < count ? asked : count;
    return of < 2 || (n + test_seed()) % of == 0;
}

/* splitmix64 */
uint64_t rng_next(rng *r) {
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

rng rng_make(uint64_t stream) {
    rng r = {test_seed() + stream * 0xd1342543de82ef95u};
    rng_next(&r);
    return r;
}

int64_t rng_below(rng *r, int64_t limit) { return (int64_t)(rng_next(r) % (uint64_t)limit); }

static double rng_unit(rng *r) { return ((double)(rng_next(r) >> 11) + 0.5) * 0x1p-53; }

double rng_fine(rng *r) {
    double radius = sqrt(-2 * log(rng_unit(r)));
    return radius * cos(6.283185307179586 * rng_unit(r));
}

float rng_normal(rng *r) { return (float)rng_fine(r); }

float *rng_floats(rng *r, int64_t count, float amplitude) {
    float *floats = test_alloc((size_t)count, sizeof *floats);
    for (int64_t n = 0; n < count; n++) floats[n] = amplitude * rng_normal(r);
    return floats;
}

float *absolute(const float *from, int64_t count) {
    if (!from) return NULL;
    float *to = test_alloc((size_t)count, sizeof *to);
    for (int64_t n = 0; n < count; n++) to[n] = fabsf(from[n]);
    return to;
}

float *round_to(clattn_dtype dtype, float *values, int64_t count) {
    double element;
    for (int64_t n = 0; n < count && values && dtype != CLATTN_F32; n++) {
        clattn__store(dtype, &element, 0, values[n]);
        values[n] = (float)clattn__load(dtype, &element, 0);
    }
    return values;
}

double *widened(const float *from, int64_t count) {
    if (!from) return NULL;
    double *to = test_alloc((size_t)count, sizeof *to);
    for (int64_t n = 0; n < count; n++) to[n] = from[n];
    return to;
}

float *narrowed(const double *from, int64_t count) {
    if (!from) return NULL;
    float *to = test_alloc((size_t)count, sizeof *to);
    for (int64_t n = 0; n < count; n++) to[n] = (float)from[n];
    return to;
}

clattn__view view_of_floats(const float *data, int64_t batch, int64_t heads, int64_t len, int64_t dim) {
    clattn__view view = clattn__view_of_doubles(NULL, batch, heads, len, dim);
    view.data = (void *)data;
    view.present = data != NULL;
    view.dtype = CLATTN_F32;
    return view;
}

/* ---- layouts ------------------------------------------------------------------------------------------------------ */

const char *layout_name(layout l) {
    static const char *const names[] = {"bhld", "blhd", "lbdh", "padded", "inner2", "transposed"};
    return names[l];
}

/* Strides of memory in which `order` names the dimensions from the outermost to the innermost, `pad` elements after each. */
static clattn_tensor strided(const int64_t size[4], const int order[4], int64_t inner, int64_t pad) {
    clattn_tensor view = {.dtype = CLATTN_F32};
    int64_t stride = inner;
    for (int n = 3; n >= 0; n--) {
        view.size[order[n]] = size[order[n]];
        view.stride[order[n]] = stride;
        stride = stride * (size[order[n]] > 0 ? size[order[n]] : 1) + pad;
    }
    return view;
}

clattn_tensor layout_view(layout l, int64_t batch, int64_t heads, int64_t len, int64_t dim) {
    const int64_t size[4] = {batch, heads, len, dim};
    switch (l) {
    case LAYOUT_BHLD: return clattn_tensor_bhld(CLATTN_F32, batch, heads, len, dim);
    case LAYOUT_BLHD: return clattn_tensor_blhd(CLATTN_F32, batch, heads, len, dim);
    case LAYOUT_LBDH: return strided(size, (int[]){2, 0, 3, 1}, 1, 0);
    case LAYOUT_PADDED: return strided(size, (int[]){0, 1, 2, 3}, 1, 5);
    case LAYOUT_INNER2: return strided(size, (int[]){0, 1, 2, 3}, 2, 0);
    case LAYOUT_TRANSPOSED: return strided(size, (int[]){0, 1, 3, 2}, 1, 0);
    case LAYOUT_COUNT: break;
    }
    return (clattn_tensor){0};
}

clattn_tensor layout_of(layout l, clattn_tensor packed) {
    clattn_tensor view = layout_view(l, packed.size[0], packed.size[1], packed.size[2], packed.size[3]);
    view.dtype = packed.dtype;
    for (int d = 0; d < 4 && l != LAYOUT_BHLD; d++) {
        if (view.size[d] == 1) view.stride[d] = d % 2 ? -7 : INT64_MAX;
    }
    return view;
}

clattn_tensor layout_broadcast(int64_t batch, int64_t heads, int64_t len, int64_t dim) {
    clattn_tensor view = clattn_tensor_bhld(CLATTN_F32, batch, heads, len, dim);
    view.stride[0] = view.stride[1] = 0;
    return view;
}

/* Where the elements lie, in packed order; newly allocated. */
static int64_t *offsets_of(const clattn_tensor *v) {
    int64_t *offsets = test_alloc((size_t)clattn__tensor_elements(v), sizeof *offsets), *next = offsets, stride[4];
    for (int d = 0; d < 4; d++) stride[d] = v->size[d] > 1 ? v->stride[d] : 0;
    for (int64_t b = 0; b < v->size[0]; b++) {
        for (int64_t h = 0; h < v->size[1]; h++) {
            for (int64_t l = 0; l < v->size[2]; l++) {
                const int64_t row = b * stride[0] + h * stride[1] + l * stride[2];
                for (int64_t d = 0; d < v->size[3]; d++) *next++ = row + d * stride[3];
            }
        }
    }
    return offsets;
}

void view_scatter(const clattn_tensor *view, float *data, const float *packed) {
    int64_t *offsets = offsets_of(view);
    for (int64_t n = 0; n < clattn__tensor_elements(view); n++) data[offsets[n]] = packed[n];
    free(offsets);
}

void view_gather(const clattn_tensor *view, const float *data, float *packed) {
    int64_t *offsets = offsets_of(view);
    for (int64_t n = 0; n < clattn__tensor_elements(view); n++) packed[n] = data[offsets[n]];
    free(offsets);
}

/* ---- guarded buffers ---------------------------------------------------------------------------------------------- */

/* The address sanitizer watches what lies beyond the allocation itself; margins would hide it. */
#if defined(__SANITIZE_ADDRESS__)
enum { MARGIN = 0 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
enum { MARGIN = 0 };
#else
enum { MARGIN = 77 };
#endif
#else
enum { MARGIN = 77 };
#endif

/* What an element holds that nobody wrote: a NaN that can be told from a computed one. */
static void fill(clattn_dtype dtype, void *memory, int64_t index, bool is_output) {
    switch (dtype) {
    case CLATTN_F32: ((uint32_t *)memory)[index] = is_output ? 0x7fc0deadu : 0x7fc0beefu; break;
    case CLATTN_F16: ((uint16_t *)memory)[index] = is_output ? 0x7ead : 0x7eef; break;
    case CLATTN_BF16: ((uint16_t *)memory)[index] = is_output ? 0x7fed : 0x7fef; break;
    case CLATTN_F64: ((uint64_t *)memory)[index] = is_output ? 0x7ff80000dead0000u : 0x7ff80000beef0000u; break;
    case CLATTN_BOOL: ((uint8_t *)memory)[index] = 0xa5; break;
    case CLATTN_I32: ((int32_t *)memory)[index] = -0x5a5a5a5b; break;
    case CLATTN_I64: ((int64_t *)memory)[index] = -0x5a5a5a5a5a5a5a5b; break;
    case CLATTN_ABSENT: break;
    }
}

static size_t bytes_of(const guarded *g) { return g->elements * clattn__dtype_size(g->view.dtype); }

static guarded guarded_make(clattn_tensor view, bool is_output) {
    const size_t size = clattn__dtype_size(view.dtype), span = clattn__tensor_span(&view) / size;
    guarded g = {.view = view, .is_output = is_output, .elements = span + 2 * MARGIN};
    g.count = clattn__tensor_elements(&view);
    g.offsets = offsets_of(&view);
    g.base = test_alloc(g.elements, size);
    g.before = test_alloc(g.elements, size);
    g.data = g.base + MARGIN * size;
    for (size_t n = 0; n < g.elements; n++) fill(view.dtype, g.base, (int64_t)n, false);
    return g;
}

guarded guarded_values(clattn_tensor view, const double *packed, bool is_output) {
    guarded g = guarded_make(view, is_output);
    for (int64_t n = 0; n < g.count; n++) clattn__store(view.dtype, g.data, g.offsets[n], packed[n]);
    memcpy(g.before, g.base, bytes_of(&g));
    return g;
}

guarded guarded_input(clattn_tensor view, const float *packed) {
    double *values = widened(packed, clattn__tensor_elements(&view));
    guarded g = guarded_values(view, values, false);
    free(values);
    return g;
}

guarded guarded_output(clattn_tensor view) {
    guarded g = guarded_make(view, true);
    for (int64_t n = 0; n < g.count; n++) fill(view.dtype, g.data, g.offsets[n], true);
    memcpy(g.before, g.base, bytes_of(&g));
    return g;
}

bool guarded_untouched(const guarded *g) { return memcmp(g->base, g->before, bytes_of(g)) == 0; }

bool guarded_intact(const guarded *g) {
    if (!g->is_output) return guarded_untouched(g);
    const size_t size = clattn__dtype_size(g->view.dtype);
    unsigned char *rest = test_alloc(g->elements, size);
    memcpy(rest, g->base, bytes_of(g));
    for (int64_t n = 0; n < g->count; n++) {
        const size_t offset = (MARGIN + (size_t)g->offsets[n]) * size;
        memcpy(rest + offset, g->before + offset, size);
    }
    bool intact = memcmp(rest, g->before, bytes_of(g)) == 0;
    free(rest);
    return intact;
}

double *guarded_read(const guarded *g) {
    double *packed = test_alloc((size_t)g->count, sizeof *packed);
    for (int64_t n = 0; n < g->count; n++) packed[n] = clattn__load(g->view.dtype, g->data, g->offsets[n]);
    return packed;
}

float *guarded_result(const guarded *g) {
    double *values = guarded_read(g);
    float *packed = narrowed(values, g->count);
    free(values);
    return packed;
}

void guarded_free(guarded *g) {
    free(g->base);
    free(g->before);
    free(g->offsets);
    *g = (guarded){0};
}

/* ---- bindings ----------------------------------------------------------------------------------------------------- */

static void bind_memory(bindings *b, clattn_tensor_id id, guarded memory) {
    b->memory[b->count] = memory;
    b->args[b->count++] = (clattn_arg){id, memory.data, clattn__tensor_span(&memory.view)};
}

void bind_input(bindings *b, clattn_tensor_id id, clattn_tensor view, const float *packed) {
    if (view.dtype != CLATTN_ABSENT) bind_memory(b, id, guarded_input(view, packed));
}

void bind_output(bindings *b, clattn_tensor_id id, clattn_tensor view) {
    if (view.dtype != CLATTN_ABSENT) bind_memory(b, id, guarded_output(view));
}

void bind_values(bindings *b, clattn_tensor_id id, clattn_tensor view, const double *packed, bool is_output) {
    if (view.dtype != CLATTN_ABSENT) bind_memory(b, id, guarded_values(view, packed, is_output));
}

void assert_intact(const bindings *b, const char *where) {
    for (size_t n = 0; n < b->count; n++) {
        if (guarded_intact(&b->memory[n])) continue;
        ck_abort_msg("%s: memory around %s, or the input itself, was written", where, clattn_tensor_name(b->args[n].id));
    }
}

static const guarded *bound(const bindings *b, clattn_tensor_id id) {
    for (size_t n = 0; n < b->count; n++) {
        if (b->args[n].id == id) return &b->memory[n];
    }
    return NULL;
}

float *bound_result(const bindings *b, clattn_tensor_id id) { return bound(b, id) ? guarded_result(bound(b, id)) : NULL; }

double *bound_values(const bindings *b, clattn_tensor_id id) { return bound(b, id) ? guarded_read(bound(b, id)) : NULL; }

void bindings_free(bindings *b) {
    while (b->count) guarded_free(&b->memory[--b->count]);
}

void assert_same(const float *a, const float *b, int64_t count, const char *where, const char *what) {
    ck_assert_msg((!a && !b) || memcmp(a, b, (size_t)count * sizeof *a) == 0, "%s: %s differs", where, what);
}

bool same_bits(double a, double b) { return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b)); }

/* An assertion that holds costs Check a write to a file: they are for what fails. */
void assert_same_values(const double *a, const double *b, int64_t count, const char *where, const char *what) {
    for (int64_t n = 0; n < count && a && b; n++) {
        if (same_bits(a[n], b[n])) continue;
        ck_abort_msg("%s: %s differs, first at %lld of %lld: %.17g and %.17g (seed %llu)", where, what, (long long)n,
                     (long long)count, a[n], b[n], (unsigned long long)test_seed());
    }
    if (!a != !b) ck_abort_msg("%s: one %s is missing", where, what);
}

/* ---- the error rule ----------------------------------------------------------------------------------------------- */

static double row_magnitude(const expected_values *e, int64_t row) {
    double largest = 0;
    for (int64_t n = row * e->columns; n < (row + 1) * e->columns; n++) {
        const double value = fabs(e->magnitude[n]);
        if (isfinite(value) && value > largest) largest = value;
    }
    return largest;
}

/* The error of an element relative to its row; infinite when it should be zero and is not. */
static double relative_error(const expected_values *e, double value, double oracle, double magnitude) {
    double error = fabs(value - oracle);
    if (error <= e->least) return 0;
    return magnitude > 0 ? error / magnitude : INFINITY;
}

static double naive_error(const expected_values *e) {
    double largest = 0;
    for (int64_t row = 0; row < e->rows; row++) {
        double magnitude = row_magnitude(e, row);
        for (int64_t n = row * e->columns; n < (row + 1) * e->columns; n++) {
            double error = relative_error(e, e->naive[n], e->oracle[n], magnitude);
            if (isfinite(error) && error > largest) largest = error;
        }
    }
    return largest;
}

static void fail_at(verdict *v, const expected_values *e, int64_t n, double value, const char *what) {
    if (!v->ok) return;
    v->ok = false;
    snprintf(v->text, sizeof v->text,
             "row %lld of %lld, column %lld of %lld: %.9g instead of %.9g: %s (tolerance %.3g of %.3g, seed %llu)",
             (long long)(n / e->columns), (long long)e->rows, (long long)(n % e->columns), (long long)e->columns, value,
             e->oracle[n], what, v->tolerance, row_magnitude(e, n / e->columns), (unsigned long long)test_seed());
}

verdict judge_values(const double *result, const expected_values *e) {
    verdict v = {.ok = true};
    v.tolerance = 2 * naive_error(e) + 8 * e->epsilon;
    for (int64_t row = 0; row < e->rows; row++) {
        double magnitude = row_magnitude(e, row);
        for (int64_t n = row * e->columns; n < (row + 1) * e->columns; n++) {
            double value = result[n], oracle = e->oracle[n];
            if (isnan(value) != isnan(oracle)) {
                fail_at(&v, e, n, value, isnan(value) ? "NaN" : "not NaN");
            } else if (isinf(oracle)) {
                if (value != oracle) fail_at(&v, e, n, value, "not infinite");
            } else if (!isnan(oracle)) {
                double error = relative_error(e, value, oracle, magnitude);
                if (error > v.error) v.error = error;
                if (!(error <= v.tolerance)) fail_at(&v, e, n, value, "too far");
            }
        }
    }
    return v;
}

verdict judge(const float *result, const expected *e) {
    const int64_t count = e->rows * e->columns;
    double *values = widened(result, count), *naive = widened(e->naive, count);
    const expected_values wide = {
        (double *)e->oracle, naive, (double *)(e->magnitude ? e->magnitude : e->oracle), e->rows, e->columns, FLT_EPSILON, 0};
    verdict v = judge_values(values, &wide);
    free(naive);
    free(values);
    return v;
}

/* ---- devices ------------------------------------------------------------------------------------------------------ */

static test_device devices[64];
static size_t device_count;

static bool is_wanted(const char *name) {
    const char *wanted = getenv("CLATTN_TEST_DEVICES");
    if (!wanted || !*wanted) return true;
    char *patterns = strcpy(test_alloc(strlen(wanted) + 1, 1), wanted), *rest;
    bool is_one = false;
    for (const char *p = strtok_r(patterns, ",", &rest); p; p = strtok_r(NULL, ",", &rest)) is_one |= fnmatch(p, name, 0) == 0;
    free(patterns);
    return is_one;
}

/* width: that of the CPU rows to take; 0: the device's own. */
static void add_device(const char *text, int width) {
    char name[64];
    snprintf(name, sizeof name, width ? "%s/w%d" : "%s", text, width);
    if (!is_wanted(name) || device_count == COUNT(devices)) return;
    test_device *device = &devices[device_count++];
    snprintf(device->name, sizeof device->name, "%s", name);
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    options.device = text;
    options.error = device->why;
    options.error_size = sizeof device->why;
    if (clattn_context_create(&options, &device->context) == CLATTN_OK) {
        if (width) device->context->device.vector_width = width;
        device->context->device.features |= 1u << CLATTN__FEATURE_emulated;
        printf("device %s\n", name);
    } else {
        printf("device %s: skipped: %s\n", name, device->why);
    }
}

static void add_opencl_devices(void) {
    clattn_device_info list[32] = {CLATTN_DEVICE_INFO_INIT};
    size_t count = 0;
    if (clattn_device_list(list, COUNT(list), &count) != CLATTN_OK) return;
    for (size_t n = 0; n < count && n < COUNT(list); n++) {
        bool is_cpu = list[n].kind == CLATTN_DEVICE_OPENCL_CPU;
        if (list[n].kind < CLATTN_DEVICE_OPENCL_CPU) continue;
        if (list[n].problem[0] && !getenv("CLATTN_TEST_DEVICES")) continue; /* known faults are tested where devices are named */
        char name[48];
        snprintf(name, sizeof name, "%.31s:cpu", list[n].id);
        if (is_cpu) add_device(name, 0);
        /* A compiler splits vectors that the processor has not: its CPU rows can be tested nevertheless. */
        for (int width = 16; is_cpu && width > (int)list[n].vector_width; width /= 2) add_device(name, width);
        snprintf(name, sizeof name, "%.31s:gpu", list[n].id);
        add_device(name, 0);
    }
}

const test_device *test_devices(size_t *count) {
    if (!device_count) {
#define ISA(name, width, flags, processors, test) add_device("native:" #name, 0);
#include "../host/native/isa.def"
#undef ISA
        add_device("reference", 0);
        add_opencl_devices();
    }
    *count = device_count;
    return devices;
}

size_t test_device_count(void) {
    size_t count;
    test_devices(&count);
    return count;
}

clattn_context *test_context(size_t n) {
    size_t count;
    const test_device *list = test_devices(&count);
    return n < count ? list[n].context : NULL;
}

const char *test_device_name(size_t n) { return devices[n].name; }

void test_devices_close(void) {
    while (device_count) clattn_context_destroy(devices[--device_count].context);
}

bool row_may_serve(const clattn_context *context, const clattn__row *row) {
    const clattn__device *device = &context->device;
    const bool is_width = device->vector_width == clattn__row_macro(row, "VECTOR_WIDTH", 0);
    switch (row->family) {
    case CLATTN__FAMILY_CLBLAST: return device->has_clblast;
    case CLATTN__FAMILY_GPU: return device->has_gpu_family;
    case CLATTN__FAMILY_CPU: return device->has_cpu_family && is_width;
    case CLATTN__FAMILY_NATIVE:
        return device->info.kind == CLATTN_DEVICE_NATIVE && is_width && device->features >> clattn__row_macro(row, "TILES", 0) & 1;
    }
    return false;
}

void emulate_layout(int layout) {
    for (size_t d = 0; d < test_device_count(); d++)
        if (test_context(d)) test_context(d)->device.mma = -layout;
}

void force_none(clattn_context *context) { clattn__row_bans_lift(context); }

bool force_row(clattn_context *context, const clattn__row *row, const clattn__params *params) {
    force_none(context);
    for (const clattn__row *other = clattn__rows; other < clattn__rows + clattn__row_count; other++) {
        if (other->role == row->role && other != row && !clattn__row_ban(context, other, NULL)) ck_abort_msg("out of memory");
    }
    return clattn__choose_row(context, row->role, params, NULL) == row;
}

/* Whether a device need not have a row: not all of them compute in f64, and what is split can be left whole. */
static bool may_lack(const clattn_context *context, clattn__role role, const clattn__params *params) {
    if (role == CLATTN__ROLE_ATTENTION_SPLIT) return true;
    if (role == CLATTN__ROLE_PROJECT) return params->project.dtype != DTYPE_F32; /* converted, then */
    const bool attends = role < CLATTN__ROLE_MERGE;
    return attends && params->attention.dtype == DTYPE_F64 && !context->device.has_f64;
}

/* ---- programs --------------------------------------------------------------------------------------------------------
 * An OpenCL compiler takes seconds for a large kernel, and rows times variants are hundreds. A suite builds new ones in its
 * first $CLATTN_TEST_BUILD_SECONDS (60 by default) alone; from then on rows are run in the variants that are built already, and
 * what was left out is printed. Which those are changes with the machine; the property tests draw others each time. */

typedef struct built {
    size_t device;
    const clattn__row *row;
    clattn__variant variant;
} built;

static built programs[1024];
static size_t program_count, left_out;

static double build_seconds(void) {
    const char *given = getenv("CLATTN_TEST_BUILD_SECONDS");
    return given ? strtod(given, NULL) : 60;
}

static double now_seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static bool same_macros(const clattn__variant *a, const clattn__variant *b) {
    for (int n = 0; n < CLATTN__MAX_MACROS && a->macros[n].name; n++)
        if (a->macros[n].value != b->macros[n].value) return false;
    return true;
}

static bool may_build(size_t d, const clattn__row *row, const clattn__params *params) {
    static double start;
    if (test_context(d)->device.info.kind < CLATTN_DEVICE_OPENCL_CPU) return true;
    built program = {.device = d, .row = row};
    clattn__role_variant(row->role, params, &program.variant);
    for (size_t n = 0; n < program_count; n++)
        if (programs[n].device == d && programs[n].row == row && same_macros(&programs[n].variant, &program.variant))
            return true;
    if (start == 0) start = now_seconds();
    if (program_count == COUNT(programs) || now_seconds() > start + build_seconds()) {
        left_out++;
        return false;
    }
    programs[program_count++] = program;
    return true;
}

static void print_left_out(void) {
    if (left_out)
        printf("%zu programs built; %zu runs of others left out: CLATTN_TEST_BUILD_SECONDS was over\n", program_count,
               left_out);
}

static size_t for_rows_of(size_t d, clattn__role role, const clattn__params *params, row_function function, void *data) {
    clattn_context *context = test_context(d);
    size_t served = 0;
    for (const clattn__row *row = clattn__rows; row < clattn__rows + clattn__row_count; row++) {
        if (row->role != role || !force_row(context, row, params)) continue;
        char where[128];
        snprintf(where, sizeof where, "%.40s, %.40s", test_device_name(d), row->name);
        if (may_build(d, row, params)) function(context, row, where, data);
        served++;
    }
    force_none(context);
    return served;
}

void for_every_row(uint32_t roles, const clattn__params *params, row_function function, void *data) {
    for (size_t d = 0; d < test_device_count(); d++) {
        clattn_context *context = test_context(d);
        if (context && context->backend->runs_operators) function(context, NULL, test_device_name(d), data);
        for (int role = 0; context && !context->backend->runs_operators && role < CLATTN__ROLE_COUNT; role++) {
            if (!(roles & 1u << role)) continue;
            const size_t served = for_rows_of(d, (clattn__role)role, params, function, data);
            ck_assert_msg(served || may_lack(context, (clattn__role)role, params), "%s has no row for %s", test_device_name(d),
                          clattn__roles[role].entry);
        }
    }
}

size_t row_macro_values(const char *macro, uint32_t roles, int64_t *values, size_t capacity) {
    size_t count = 0;
    for (const clattn__row *row = clattn__rows; row < clattn__rows + clattn__row_count; row++) {
        int64_t value = clattn__row_macro(row, macro, 0);
        bool known = value < 2 || !(roles & 1u << row->role);
        for (size_t n = 0; n < count; n++) known |= values[n] == value;
        if (!known && count < capacity) values[count++] = value;
    }
    return count;
}

clattn_status small_attention(clattn_context *context, const clattn_plan_options *options, clattn_plan **plan, float out[6]) {
    static const float q[] = {1, 0, 0, 1, 1, 1}, v[] = {1, 2, 3, 4, 5, 6};
    clattn_attention_desc desc = CLATTN_ATTENTION_DESC_INIT;
    desc.q = desc.k = desc.v = desc.out = clattn_tensor_bhld(CLATTN_F32, 1, 1, 3, 2);
    desc.options.causal = 1;
    const clattn_arg args[] = {{CLATTN_TENSOR_Q, (void *)q, 0},
                               {CLATTN_TENSOR_K, (void *)q, 0},
                               {CLATTN_TENSOR_V, (void *)v, 0},
                               {CLATTN_TENSOR_OUT, out, 0}};
    clattn_status status = clattn_plan_create_attention(context, &desc, options, plan);
    if (status != CLATTN_OK) return status;
    status = clattn_plan_run(*plan, args, COUNT(args));
    if (status != CLATTN_OK) clattn_plan_destroy(*plan);
    return status;
}

bool small_attention_is_right(const float out[6]) { return out[0] == 1 && out[1] == 2; }

const char *error_text(clattn_context *context) {
    static char text[16384];
    text[0] = 0;
    clattn_context_error(context, text, sizeof text);
    return text;
}

int run_suite(Suite *suite) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    test_seed();
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK); /* an OpenCL context does not survive a fork */
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    print_left_out();
    test_devices_close();
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int run_device_suite(Suite *suite) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    bool computes = false;
    for (size_t d = 0; d < test_device_count(); d++) {
        computes |= test_context(d) && !test_context(d)->backend->runs_operators;
    }
    if (!computes) fprintf(stderr, "no device beside the reference is here: nothing is tested\n");
    int status = run_suite(suite);
    return computes ? status : EXIT_FAILURE;
}
