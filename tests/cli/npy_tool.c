/* Makes and shows .npy files for test_cli.sh, which has no Python to ask.
 *
 *     npy_tool make FILE TYPE C|F SEED DIMENSION ...   normal-sized numbers, the same ones in either order and each float type
 *     npy_tool put FILE TYPE SHAPE NUMBER ...          these numbers; the shape is "2,3", or "" for one number without
 * dimensions npy_tool show FILE                               type, order and shape on one line, then a number a line, last
 * index fastest
 *
 * TYPE is what follows the byte order in a file: f2, f4, f8, b1, u1, i4, i8, or u2, which is bfloat16.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/npy.h"

/* The file's position of the element that is number n when the last index runs fastest. */
static size_t position(const npy_header *header, size_t n) {
    int64_t stride[NPY_MAX_RANK];
    size_t at = 0;
    npy_strides(header, stride);
    for (int d = header->rank - 1; d >= 0; d--) {
        at += n % (size_t)header->shape[d] * (size_t)stride[d];
        n /= (size_t)header->shape[d];
    }
    return at;
}

static bool find_type(const char *code, npy_dtype *dtype) {
    for (int i = 0; i < NPY_DTYPE_COUNT; i++) {
        *dtype = (npy_dtype)i;
        if (strcmp(npy_dtype_code(*dtype), code) == 0) return true;
    }
    return false;
}

static void store(npy_dtype dtype, void *item, double number) {
    const int32_t narrow = (int32_t)number;
    const int64_t wide = (int64_t)number;
    if (npy_dtype_digits(dtype) > 0)
        npy_convert(dtype, item, NPY_F8, &number, 1);
    else if (dtype == NPY_I4)
        memcpy(item, &narrow, sizeof narrow);
    else if (dtype == NPY_I8)
        memcpy(item, &wide, sizeof wide);
    else
        *(unsigned char *)item = (unsigned char)number;
}

/* npy_write knows C order alone; `data` is in the order of the header. Little-endian machines only. */
static void write_fortran(FILE *file, const npy_header *header, const void *data) {
    char text[64];
    fprintf(file, "\x93NUMPY%c%c%c%c", 1, 0, 118, 0);
    int length = fprintf(file, "{'descr': '<%s', 'fortran_order': True, 'shape': %s, }", npy_dtype_code(header->dtype),
                         npy_shape_text(header->rank, header->shape, text, sizeof text));
    fprintf(file, "%*s\n", 117 - length, "");
    fwrite(data, npy_dtype_size(header->dtype), header->count, file);
}

static int write_file(const char *path, const npy_header *header, const void *data) {
    FILE *file = fopen(path, "wb");
    if (file == NULL) return EXIT_FAILURE;
    if (header->fortran)
        write_fortran(file, header, data);
    else
        npy_write(file, header->dtype, header->rank, header->shape, header->dtype, data);
    return fclose(file) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int make(char **argv, int dimensions) {
    npy_header header = {.fortran = argv[2][0] == 'F', .rank = dimensions, .count = 1};
    unsigned long long state = strtoull(argv[3], NULL, 10) * 2654435761u + 1;
    if (!find_type(argv[1], &header.dtype)) return EXIT_FAILURE;
    for (int d = 0; d < dimensions; d++) {
        header.shape[d] = strtoll(argv[4 + d], NULL, 10);
        header.count *= (size_t)header.shape[d];
    }
    size_t item = npy_dtype_size(header.dtype);
    char *data = malloc((header.count + 1) * item);
    if (data == NULL) return EXIT_FAILURE;
    for (size_t i = 0; i < header.count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        store(header.dtype, data + position(&header, i) * item, (double)(state >> 40) / (1 << 23) - 1);
    }
    int exit_code = write_file(argv[0], &header, data);
    free(data);
    return exit_code;
}

static int put(char **argv, int numbers) {
    npy_header header = {.count = (size_t)numbers};
    if (!find_type(argv[1], &header.dtype)) return EXIT_FAILURE;
    for (char *text = argv[2]; *text != '\0' && header.rank < NPY_MAX_RANK; text += *text == ',')
        header.shape[header.rank++] = strtoll(text, &text, 10);
    size_t item = npy_dtype_size(header.dtype), count = 1;
    for (int d = 0; d < header.rank; d++) count *= (size_t)header.shape[d];
    char *data = count == header.count ? malloc((count + 1) * item) : NULL;
    if (data == NULL) return EXIT_FAILURE;
    for (size_t i = 0; i < count; i++) store(header.dtype, data + i * item, strtod(argv[3 + i], NULL));
    int exit_code = write_file(argv[0], &header, data);
    free(data);
    return exit_code;
}

static int show(const char *path) {
    char text[256];
    npy_array array;
    if (npy_read(path, &array, text, sizeof text) != NPY_OK) {
        fprintf(stderr, "%s\n", text);
        return EXIT_FAILURE;
    }
    const npy_header *header = &array.header;
    printf("%s %s %s\n", npy_dtype_name(header->dtype), header->fortran ? "F" : "C",
           npy_shape_text(header->rank, header->shape, text, sizeof text));
    for (size_t i = 0; i < header->count; i++) {
        double number;
        npy_convert(NPY_F8, &number, header->dtype,
                    (const char *)array.data + position(header, i) * npy_dtype_size(header->dtype), 1);
        printf("%.6g\n", number);
    }
    npy_free(&array);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv) {
    if (argc >= 6 && argc <= 6 + NPY_MAX_RANK && strcmp(argv[1], "make") == 0) return make(argv + 2, argc - 6);
    if (argc >= 5 && strcmp(argv[1], "put") == 0) return put(argv + 2, argc - 5);
    if (argc == 3 && strcmp(argv[1], "show") == 0) return show(argv[2]);
    fprintf(stderr, "usage: npy_tool make FILE TYPE C|F SEED DIMENSION ... | put FILE TYPE SHAPE NUMBER ... | show FILE\n");
    return EXIT_FAILURE;
}
