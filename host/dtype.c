/* Types of elements: names, sizes, and single values in double.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>

#include "internal.h"

static const struct {
    const char *name;
    size_t size;
} types[] = {
    [CLATTN_ABSENT] = {"absent", 0}, [CLATTN_F32] = {"f32", 4},   [CLATTN_F16] = {"f16", 2}, [CLATTN_BF16] = {"bf16", 2},
    [CLATTN_F64] = {"f64", 8},       [CLATTN_BOOL] = {"bool", 1}, [CLATTN_I32] = {"i32", 4}, [CLATTN_I64] = {"i64", 8},
};

/* Kernels name types by the same numbers. */
_Static_assert((int)CLATTN_F32 == DTYPE_F32 && (int)CLATTN_F16 == DTYPE_F16 && (int)CLATTN_BF16 == DTYPE_BF16 &&
                   (int)CLATTN_F64 == DTYPE_F64 && (int)CLATTN_BOOL == DTYPE_BOOL && (int)CLATTN_I32 == DTYPE_I32 &&
                   (int)CLATTN_I64 == DTYPE_I64,
               "kernels/params.h and clattn.h number the types alike");

static bool is_type(clattn_dtype dtype) { return (size_t)dtype < sizeof types / sizeof *types; }

const char *clattn_dtype_name(clattn_dtype dtype) { return is_type(dtype) ? types[dtype].name : "?"; }

size_t clattn__dtype_size(clattn_dtype dtype) { return is_type(dtype) ? types[dtype].size : 0; }

/* ---- 16-bit floats --------------------------------------------------------------------------------------------------
 * A sign, `exponent_bits` of exponent and `fraction_bits` of fraction; all exponent bits set are infinity and NaN. */

typedef struct format {
    int exponent_bits, fraction_bits;
} format;

static const format half = {5, 10}, bfloat = {8, 7};

static int largest_exponent(format f) { return (1 << (f.exponent_bits - 1)) - 1; }

static double decode(uint16_t bits, format f) {
    const int biased = bits >> f.fraction_bits & ((1 << f.exponent_bits) - 1), fraction = bits & ((1 << f.fraction_bits) - 1);
    const double sign = bits >> 15 ? -1 : 1;
    if (biased == (1 << f.exponent_bits) - 1) return fraction ? NAN : sign * INFINITY;
    const int least = 1 - largest_exponent(f);
    if (biased == 0) return sign * ldexp(fraction, least - f.fraction_bits);
    return sign * ldexp(fraction + (1 << f.fraction_bits), biased - largest_exponent(f) - f.fraction_bits);
}

/* Round to nearest, ties to even: what is too large becomes infinity. */
static uint16_t encode(double x, format f) {
    const uint16_t sign = signbit(x) ? 0x8000 : 0, infinity = (uint16_t)(((1 << f.exponent_bits) - 1) << f.fraction_bits);
    if (isnan(x)) return (uint16_t)(sign | infinity | 1 << (f.fraction_bits - 1));
    if (isinf(x)) return sign | infinity;
    x = fabs(x);
    const int least = 1 - largest_exponent(f);
    int exponent = x > 0 ? ilogb(x) : least;
    if (exponent < least) exponent = least;
    if (exponent > largest_exponent(f)) return sign | infinity;
    /* In units of the last place; a normal number has the hidden bit, which adds 1 to the exponent, and so does a carry. */
    const int64_t units = (int64_t)rint(ldexp(x, f.fraction_bits - exponent));
    const int64_t bits = units + ((int64_t)(exponent - least) << f.fraction_bits);
    return sign | (bits > infinity ? infinity : (uint16_t)bits);
}

/* ---- elements -------------------------------------------------------------------------------------------------------- */

double clattn__load(clattn_dtype dtype, const void *data, i64 index) {
    switch (dtype) {
    case CLATTN_F32: return ((const float *)data)[index];
    case CLATTN_F16: return decode(((const uint16_t *)data)[index], half);
    case CLATTN_BF16: return decode(((const uint16_t *)data)[index], bfloat);
    case CLATTN_F64: return ((const double *)data)[index];
    case CLATTN_BOOL: return ((const uint8_t *)data)[index] != 0;
    case CLATTN_I32: return ((const int32_t *)data)[index];
    case CLATTN_I64: return (double)((const int64_t *)data)[index];
    case CLATTN_ABSENT: break;
    }
    return NAN;
}

void clattn__store(clattn_dtype dtype, void *data, i64 index, double value) {
    switch (dtype) {
    case CLATTN_F32: ((float *)data)[index] = (float)value; break;
    case CLATTN_F16: ((uint16_t *)data)[index] = encode(value, half); break;
    case CLATTN_BF16: ((uint16_t *)data)[index] = encode(value, bfloat); break;
    case CLATTN_F64: ((double *)data)[index] = value; break;
    case CLATTN_BOOL: ((uint8_t *)data)[index] = value != 0; break;
    case CLATTN_I32: ((int32_t *)data)[index] = (int32_t)value; break;
    case CLATTN_I64: ((int64_t *)data)[index] = (int64_t)value; break;
    case CLATTN_ABSENT: break;
    }
}

double clattn__round(clattn_dtype dtype, double value) {
    double memory; /* the largest type there is */
    clattn__store(dtype, &memory, 0, value);
    return clattn__load(dtype, &memory, 0);
}
