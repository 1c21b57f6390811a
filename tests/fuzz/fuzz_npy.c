/* Fuzz the .npy reader: any bytes are a file; it is read or refused, in little time and memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
    if (!holds) abort();
}

/* What a header that was accepted says is so. */
static void check_header(const npy_header *header, size_t size) {
    size_t elements = 1;
    must(header->rank >= 0 && header->rank <= NPY_MAX_RANK);
    for (int n = 0; n < header->rank; n++) {
        must(header->shape[n] >= 0);
        elements *= (size_t)header->shape[n];
    }
    must(elements == header->count && header->data_offset <= size && header->count <= size - header->data_offset);
}

static void use(npy_array *array, size_t size) {
    size_t overflowed;
    int64_t stride[NPY_MAX_RANK];
    check_header(&array->header, size);
    npy_strides(&array->header, stride);
    if (npy_pack(array)) check_header(&array->header, size);
    must(npy_retype(array, NPY_F4, &overflowed) && overflowed <= array->header.count);
    npy_free(array);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char error[512], path[64];
    npy_header header;
    npy_array array;
    if (npy_parse_header(data, size, size, &header, error, sizeof error) == NPY_OK) check_header(&header, size);
    const int file = memfd_create("fuzz", 0);
    must(file >= 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (write(file, data, size) == (ssize_t)size && npy_read(path, &array, error, sizeof error) == NPY_OK) use(&array, size);
    close(file);
    return 0;
}
