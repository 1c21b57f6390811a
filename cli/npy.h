/* NumPy's .npy files: reader and writer of plain arrays of up to four dimensions.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Format: "numpy.lib.format" in NumPy's documentation, versions 1.0, 2.0 and 3.0. Read strictly: a file is accepted when every
 * byte of it is accounted for, so a truncated file, trailing bytes and a header that says more than it should are refused. No
 * more memory is taken than the file's own size justifies.
 */
#ifndef CLATTN_CLI_NPY_H
#define CLATTN_CLI_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/elements.h"

enum { NPY_MAX_RANK = 4, NPY_MAX_HEADER = 65536 /* bytes before the data */ };

typedef enum npy_status {
    NPY_OK,
    NPY_INVALID, /* not there, or not a file that is read here */
    NPY_FAILURE, /* out of memory, or the disk failed */
} npy_status;

typedef struct npy_header {
    npy_dtype dtype;
    bool swapped; /* bytes in the other order than this machine's */
    bool fortran; /* first index fastest */
    int rank;
    int64_t shape[NPY_MAX_RANK];
    size_t data_offset; /* of the first element, in bytes */
    size_t count;       /* elements */
} npy_header;

typedef struct npy_array {
    npy_header header;
    void *data; /* the elements in this machine's byte order, in the file's order of indices; aligned to 64 */
} npy_array;

/* "(2, 3)", as Python writes a shape; returns text. */
const char *npy_shape_text(int rank, const int64_t *shape, char *text, size_t size);

/* Parse what precedes the data. bytes: the first `size` of the file's `file_size` bytes, all or at least NPY_MAX_HEADER of
 * them. On failure `error` is a sentence without the file's name. */
npy_status npy_parse_header(const unsigned char *bytes, size_t size, uint64_t file_size, npy_header *header, char *error,
                            size_t error_size);

/* Read a whole file; npy_free it then. On failure nothing is to be freed and `error` is a sentence that names the file. */
npy_status npy_read(const char *path, npy_array *array, char *error, size_t error_size);
/* A zeroed array is accepted. */
void npy_free(npy_array *array);
/* In elements, for each dimension. */
void npy_strides(const npy_header *header, int64_t stride[NPY_MAX_RANK]);
/* Rearrange the elements so that the last index runs fastest. False: out of memory, and nothing has changed. */
bool npy_pack(npy_array *array);
/* The elements as a type of float; *overflowed is how many finite numbers became infinite. False: out of memory. */
bool npy_retype(npy_array *array, npy_dtype dtype, size_t *overflowed);
/* Memory for elements, aligned as npy_array's; NULL when there is none. */
void *npy_allocate(size_t bytes);

/* Write packed elements of the type `from`, last index fastest, as version 1.0 with elements of the type `to`. What goes wrong
 * shows in ferror(file). */
void npy_write(FILE *file, npy_dtype to, int rank, const int64_t *shape, npy_dtype from, const void *data);

#endif
