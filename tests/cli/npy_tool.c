/* Makes and shows .npy files for test_cli.sh, which has no Python to ask.
 *
 *     npy_tool make FILE f4|f8 C|F SEED DIMENSION ...   normal-sized numbers, the same ones in either order and type
 *     npy_tool show FILE                                type, order and shape on one line, then a number a line, last index
 *                                                       fastest
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

/* npy_write knows C order alone; `data` is in the order of the header. Little-endian machines only. */
static void write_fortran(FILE *file, npy_dtype dtype, const npy_header *header, const float *data) {
    char text[64];
    fprintf(file, "\x93NUMPY%c%c%c%c", 1, 0, 118, 0);
    int length = fprintf(file, "{'descr': '<%s', 'fortran_order': True, 'shape': %s, }", dtype == NPY_F8 ? "f8" : "f4",
                         npy_shape_text(header->rank, header->shape, text, sizeof text));
    fprintf(file, "%*s\n", 117 - length, "");
    for (size_t i = 0; i < header->count; i++) {
        double wide = data[i];
        if (dtype == NPY_F8)
            fwrite(&wide, sizeof wide, 1, file);
        else
            fwrite(&data[i], sizeof *data, 1, file);
    }
}

static int make(char **argv, int dimensions) {
    npy_dtype dtype = strcmp(argv[1], "f8") == 0 ? NPY_F8 : NPY_F4;
    npy_header header = {.fortran = argv[2][0] == 'F', .rank = dimensions, .count = 1};
    unsigned long long state = strtoull(argv[3], NULL, 10) * 2654435761u + 1;
    for (int d = 0; d < dimensions; d++) {
        header.shape[d] = strtoll(argv[4 + d], NULL, 10);
        header.count *= (size_t)header.shape[d];
    }
    float *data = malloc((header.count + 1) * sizeof *data);
    FILE *file = fopen(argv[0], "wb");
    if (data == NULL || file == NULL) return EXIT_FAILURE;
    for (size_t i = 0; i < header.count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        data[position(&header, i)] = (float)(state >> 40) / (1 << 23) - 1;
    }
    if (header.fortran)
        write_fortran(file, dtype, &header, data);
    else
        npy_write(file, dtype, header.rank, header.shape, data);
    free(data);
    return fclose(file) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int show(const char *path) {
    char text[256];
    npy_array array;
    if (npy_read(path, &array, text, sizeof text) != NPY_OK) {
        fprintf(stderr, "%s\n", text);
        return EXIT_FAILURE;
    }
    printf("%s %s %s\n", npy_dtype_name(array.header.dtype), array.header.fortran ? "F" : "C",
           npy_shape_text(array.header.rank, array.header.shape, text, sizeof text));
    for (size_t i = 0; i < array.header.count; i++) printf("%.6g\n", array.data[position(&array.header, i)]);
    npy_free(&array);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv) {
    if (argc >= 6 && argc <= 6 + NPY_MAX_RANK && strcmp(argv[1], "make") == 0) return make(argv + 2, argc - 6);
    if (argc == 3 && strcmp(argv[1], "show") == 0) return show(argv[2]);
    fprintf(stderr, "usage: npy_tool make FILE f4|f8 C|F SEED DIMENSION ... | npy_tool show FILE\n");
    return EXIT_FAILURE;
}
