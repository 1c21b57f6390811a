/* The types of elements in .npy files, and conversions between them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * NumPy knows no bfloat16: such elements lie in files of uint16, and whoever reads one has to be told.
 */
#ifndef CLATTN_CLI_ELEMENTS_H
#define CLATTN_CLI_ELEMENTS_H

#include <stddef.h>
#include <stdint.h>

#include "clattn/clattn.h"

typedef enum npy_dtype { NPY_F4, NPY_F8, NPY_F2, NPY_BF16, NPY_B1, NPY_U1, NPY_I4, NPY_I8, NPY_DTYPE_COUNT } npy_dtype;

/* "float32", "uint16", ...: as NumPy calls it. */
const char *npy_dtype_name(npy_dtype dtype);
/* What follows the byte order in a file's 'descr': "f4", ... */
const char *npy_dtype_code(npy_dtype dtype);
size_t npy_dtype_size(npy_dtype dtype);
/* The library's type of the same elements; a byte is BOOL. */
clattn_dtype npy_dtype_element(npy_dtype dtype);
/* The significant bits of a float; 0 for what is no float. */
int npy_dtype_digits(npy_dtype dtype);

/* The file's type of the library's elements. */
npy_dtype npy_dtype_of(clattn_dtype dtype);

/* Copy `count` elements, converted where the types differ; `to` is then a float, and numbers go to the nearest, ties to even.
 * Returns how many finite numbers became infinite. */
size_t npy_convert(npy_dtype to, void *target, npy_dtype from, const void *source, size_t count);

#endif
