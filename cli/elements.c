/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/elements.h"

#include <math.h>
#include <string.h>

/* ---- one element, by way of double, which holds each of them exactly but large int64 ------------------------------- */

/* To so many significant bits, and to a multiple of 2^least: the rounding of a float with subnormal numbers. */
static double round_to(double value, int digits, int least) {
    int exponent;
    if (!isfinite(value) || value == 0) return value;
    frexp(value, &exponent);
    exponent = exponent - digits > least ? exponent - digits : least;
    return ldexp(rint(ldexp(value, -exponent)), exponent);
}

static double load_f4(const void *item) {
    float value;
    memcpy(&value, item, sizeof value);
    return value;
}

static void store_f4(double value, void *item) {
    float narrow = (float)value;
    memcpy(item, &narrow, sizeof narrow);
}

static double load_f8(const void *item) {
    double value;
    memcpy(&value, item, sizeof value);
    return value;
}

static void store_f8(double value, void *item) {
    memcpy(item, &value, sizeof value);
}

static double load_f2(const void *item) {
    uint16_t bits;
    memcpy(&bits, item, sizeof bits);
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double size = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
    if (exponent == 31) size = fraction != 0 ? (double)NAN : (double)INFINITY;
    return bits >> 15 != 0 ? -size : size;
}

static void store_f2(double value, void *item) {
    double size = fabs(round_to(value, 11, -24));
    int exponent;
    uint16_t bits;
    if (isnan(value))
        bits = 0x7e00;
    else if (size > 65504)
        bits = 0x7c00;
    else if (size < 0x1p-14)
        bits = (uint16_t)ldexp(size, 24);
    else {
        double fraction = frexp(size, &exponent);
        bits = (uint16_t)(((exponent + 14) << 10) + (int)ldexp(fraction, 11) - 1024);
    }
    if (signbit(value)) bits |= 0x8000;
    memcpy(item, &bits, sizeof bits);
}

static double load_bf16(const void *item) {
    uint16_t bits;
    memcpy(&bits, item, sizeof bits);
    uint32_t wide = (uint32_t)bits << 16;
    return load_f4(&wide);
}

static void store_bf16(double value, void *item) {
    float narrow = (float)round_to(value, 8, -133);
    uint32_t wide;
    memcpy(&wide, &narrow, sizeof wide);
    uint16_t bits = isnan(value) ? (uint16_t)(wide >> 16 | 0x40) : (uint16_t)(wide >> 16);
    memcpy(item, &bits, sizeof bits);
}

static double load_u1(const void *item) {
    return *(const unsigned char *)item;
}

static double load_i4(const void *item) {
    int32_t value;
    memcpy(&value, item, sizeof value);
    return value;
}

static double load_i8(const void *item) {
    int64_t value;
    memcpy(&value, item, sizeof value);
    return (double)value;
}

/* ---- the types ----------------------------------------------------------------------------------------------------- */

static const struct {
    const char *code, *name;
    size_t size;
    clattn_dtype element;
    int digits;
    double (*load)(const void *item);
    void (*store)(double value, void *item); /* NULL: no float */
} dtypes[NPY_DTYPE_COUNT] = {
    [NPY_F4] = {"f4", "float32", 4, CLATTN_F32, 24, load_f4, store_f4},
    [NPY_F8] = {"f8", "float64", 8, CLATTN_F64, 53, load_f8, store_f8},
    [NPY_F2] = {"f2", "float16", 2, CLATTN_F16, 11, load_f2, store_f2},
    [NPY_BF16] = {"u2", "uint16", 2, CLATTN_BF16, 8, load_bf16, store_bf16},
    [NPY_B1] = {"b1", "bool", 1, CLATTN_BOOL, 0, load_u1, NULL},
    [NPY_U1] = {"u1", "uint8", 1, CLATTN_BOOL, 0, load_u1, NULL},
    [NPY_I4] = {"i4", "int32", 4, CLATTN_I32, 0, load_i4, NULL},
    [NPY_I8] = {"i8", "int64", 8, CLATTN_I64, 0, load_i8, NULL},
};

const char *npy_dtype_name(npy_dtype dtype) {
    return dtypes[dtype].name;
}

const char *npy_dtype_code(npy_dtype dtype) {
    return dtypes[dtype].code;
}

size_t npy_dtype_size(npy_dtype dtype) {
    return dtypes[dtype].size;
}

clattn_dtype npy_dtype_element(npy_dtype dtype) {
    return dtypes[dtype].element;
}

int npy_dtype_digits(npy_dtype dtype) {
    return dtypes[dtype].digits;
}

npy_dtype npy_dtype_of(clattn_dtype dtype) {
    int i = 0;
    while (i + 1 < NPY_DTYPE_COUNT && dtypes[i].element != dtype) i++;
    return (npy_dtype)i;
}

size_t npy_convert(npy_dtype to, void *target, npy_dtype from, const void *source, size_t count) {
    size_t overflowed = 0;
    if (dtypes[to].element == dtypes[from].element) {
        memcpy(target, source, count * dtypes[to].size);
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        void *item = (char *)target + i * dtypes[to].size;
        double value = dtypes[from].load((const char *)source + i * dtypes[from].size);
        dtypes[to].store(value, item);
        overflowed += isfinite(value) && isinf(dtypes[to].load(item));
    }
    return overflowed;
}
