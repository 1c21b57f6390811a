/* Strided views: construction, validation, and whether two of them share an element.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "internal.h"

const char *const clattn__dim_names[4] = {"batch", "heads", "len", "dim"};

/* Sizes, strides and offsets in bytes stay below this, so that sums of two never overflow 64 bits. */
#define LARGEST ((int64_t)1 << 61)

static clattn_tensor tensor_make(clattn_dtype dtype, const int64_t size[4], const int order[4]) {
    clattn_tensor tensor = {.dtype = dtype};
    int64_t stride = 1;
    for (int n = 3; n >= 0; n--) {
        int d = order[n];
        tensor.size[d] = size[d];
        tensor.stride[d] = stride;
        int64_t count = size[d] > 0 ? size[d] : 1; /* a later check refuses negative sizes; keep the product defined */
        stride = stride > LARGEST / count ? LARGEST : stride * count;
    }
    return tensor;
}

clattn_tensor clattn_tensor_bhld(clattn_dtype dtype, int64_t batch, int64_t heads, int64_t len, int64_t dim) {
    return tensor_make(dtype, (int64_t[]){batch, heads, len, dim}, (int[]){0, 1, 2, 3});
}

clattn_tensor clattn_tensor_blhd(clattn_dtype dtype, int64_t batch, int64_t heads, int64_t len, int64_t dim) {
    return tensor_make(dtype, (int64_t[]){batch, heads, len, dim}, (int[]){0, 2, 1, 3});
}

clattn_tensor clattn_tensor_matrix(clattn_dtype dtype, int64_t rows, int64_t cols) {
    return clattn_tensor_bhld(dtype, 1, 1, rows, cols);
}

clattn_tensor clattn_tensor_transposed(clattn_tensor tensor) {
    clattn_tensor out = tensor;
    out.size[2] = tensor.size[3];
    out.size[3] = tensor.size[2];
    out.stride[2] = tensor.stride[3];
    out.stride[3] = tensor.stride[2];
    return out;
}

static bool tensor_empty(const clattn_tensor *tensor) {
    for (int d = 0; d < 4; d++)
        if (tensor->size[d] == 0) return true;
    return false;
}

i64 clattn__tensor_elements(const clattn_tensor *tensor) {
    return tensor->size[0] * tensor->size[1] * tensor->size[2] * tensor->size[3];
}

strides clattn__strides(const clattn_tensor *tensor) {
    i64 s[4];
    for (int d = 0; d < 4; d++) s[d] = tensor->size[d] > 1 ? tensor->stride[d] : 0;
    return (strides){s[0], s[1], s[2], s[3]};
}

size_t clattn__tensor_span(const clattn_tensor *tensor) {
    if (tensor_empty(tensor)) return 0;
    int64_t last = 0;
    for (int d = 0; d < 4; d++)
        if (tensor->size[d] > 1) last += (tensor->size[d] - 1) * tensor->stride[d];
    return (size_t)(last + 1) * clattn__dtype_size(tensor->dtype);
}

clattn_status clattn__tensor_check(clattn_context *context, const char *name, const clattn_tensor *tensor) {
    if (clattn__dtype_size(tensor->dtype) == 0)
        return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "%s: dtype is %d; this version knows %d to %d", name,
                            (int)tensor->dtype, (int)CLATTN_F32, (int)CLATTN_I64);
    if (tensor->reserved)
        return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "%s: reserved is %#x; it must be 0", name,
                            (unsigned)tensor->reserved);
    const int64_t bytes = (int64_t)clattn__dtype_size(tensor->dtype);
    int64_t last = 0, elements = 1;
    for (int d = 0; d < 4; d++) {
        const int64_t size = tensor->size[d], stride = tensor->stride[d];
        if (size < 0)
            return clattn__fail(context, CLATTN_ERROR_OVERFLOW, "%s: %s is %lld; sizes are not negative", name, clattn__dim_names[d],
                                (long long)size);
        if (size > 1 && stride < 0)
            return clattn__fail(context, CLATTN_ERROR_OVERFLOW, "%s: the stride of %s is %lld; strides are not negative", name,
                                clattn__dim_names[d], (long long)stride);
        if (size > 1 && (elements > LARGEST / bytes / size || (stride > 0 && size - 1 > (LARGEST / bytes - last) / stride)))
            return clattn__fail(context, CLATTN_ERROR_OVERFLOW,
                                "%s: %s of %lld with stride %lld reaches past the %lld bytes that an index holds", name,
                                clattn__dim_names[d], (long long)size, (long long)stride, (long long)LARGEST);
        if (size > 1) {
            last += (size - 1) * stride;
            elements *= size;
        }
    }
    return CLATTN_OK;
}

/* ---- sharing ------------------------------------------------------------------------------------------------------
 * Byte offsets in two views differ by a sum of t_k * stride_k with bounded t_k. They share a byte exactly when such a sum
 * equals the distance of their pointers. Solved from the largest stride down: what the smaller strides can
 * still add bounds each t_k to a few values. Real layouts need a handful of steps; a view made to defeat this runs into
 * the limit and counts as sharing. */

typedef struct term {
    int64_t stride, low, high; /* t in [low, high] */
} term;

typedef struct search {
    term terms[9]; /* four dimensions of each view, and the bytes of an element */
    int count;
    int64_t low[10], high[10]; /* the least and greatest sum of terms k.. */
    int work;
    bool nonzero; /* look for a solution other than all zero */
} search;

static void search_add(search *s, int64_t stride, int64_t low, int64_t high) {
    if (low == 0 && high == 0) return;
    int k = 0;
    while (k < s->count && s->terms[k].stride != stride) k++;
    if (k < s->count) {
        s->terms[k].low += low;
        s->terms[k].high += high;
        return;
    }
    for (k = s->count++; k > 0 && s->terms[k - 1].stride < stride; k--) s->terms[k] = s->terms[k - 1];
    s->terms[k] = (term){stride, low, high};
}

static void search_bounds(search *s) {
    s->low[s->count] = s->high[s->count] = 0;
    for (int k = s->count - 1; k >= 0; k--) {
        s->low[k] = s->low[k + 1] + s->terms[k].low * s->terms[k].stride;
        s->high[k] = s->high[k + 1] + s->terms[k].high * s->terms[k].stride;
    }
}

static int64_t divide_down(int64_t a, int64_t b) { return a / b - (a % b != 0 && a < 0); }

static bool search_solve(search *s, int k, int64_t rest, bool any) {
    if (rest < s->low[k] || rest > s->high[k]) return false;
    if (k == s->count) return rest == 0 && (any || !s->nonzero);
    if (++s->work > 20000) return true;
    const term t = s->terms[k];
    /* rest - v * stride must lie in [low[k + 1], high[k + 1]] */
    int64_t from = -divide_down(-(rest - s->high[k + 1]), t.stride), to = divide_down(rest - s->low[k + 1], t.stride);
    if (from < t.low) from = t.low;
    if (to > t.high) to = t.high;
    for (int64_t v = from; v <= to; v++)
        if (search_solve(s, k + 1, rest - v * t.stride, any || v != 0)) return true;
    return false;
}

bool clattn__tensors_share(const clattn_tensor *a, const void *a_data, const clattn_tensor *b, const void *b_data) {
    if (tensor_empty(a) || tensor_empty(b)) return false;
    const uintptr_t a0 = (uintptr_t)a_data, b0 = (uintptr_t)b_data;
    if (a0 + clattn__tensor_span(a) <= b0 || b0 + clattn__tensor_span(b) <= a0) return false;
    const int64_t a_bytes = (int64_t)clattn__dtype_size(a->dtype), b_bytes = (int64_t)clattn__dtype_size(b->dtype);
    search s = {.nonzero = false};
    for (int d = 0; d < 4; d++) {
        if (a->size[d] > 1 && a->stride[d] > 0) search_add(&s, a->stride[d] * a_bytes, 0, a->size[d] - 1);
        if (b->size[d] > 1 && b->stride[d] > 0) search_add(&s, b->stride[d] * b_bytes, 1 - b->size[d], 0);
    }
    search_add(&s, 1, 1 - b_bytes, a_bytes - 1);
    search_bounds(&s);
    return search_solve(&s, 0, (int64_t)b0 - (int64_t)a0, false);
}

clattn_status clattn__tensor_check_injective(clattn_context *context, const char *name, const clattn_tensor *tensor) {
    if (tensor_empty(tensor)) return CLATTN_OK;
    search s = {.nonzero = true};
    bool shares = false;
    for (int d = 0; d < 4; d++) {
        if (tensor->size[d] < 2) continue;
        for (int e = 0; e < d; e++) shares |= tensor->size[e] > 1 && tensor->stride[e] == tensor->stride[d];
        shares |= tensor->stride[d] == 0;
        if (tensor->stride[d] > 0) search_add(&s, tensor->stride[d], 1 - tensor->size[d], tensor->size[d] - 1);
    }
    search_bounds(&s);
    if (shares || search_solve(&s, 0, 0, false))
        return clattn__fail(context, CLATTN_ERROR_ALIAS,
                            "%s overlaps itself: sizes %lld,%lld,%lld,%lld with strides %lld,%lld,%lld,%lld put two elements "
                            "at one address",
                            name, (long long)tensor->size[0], (long long)tensor->size[1], (long long)tensor->size[2],
                            (long long)tensor->size[3], (long long)tensor->stride[0], (long long)tensor->stride[1],
                            (long long)tensor->stride[2], (long long)tensor->stride[3]);
    return CLATTN_OK;
}
