/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700
#include "cli/npy.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { CHUNK = 8192, ALIGNMENT = 64, MAX_ITEM = 8 };

static char native_order(void) {
    const uint16_t probe = 1;
    return *(const unsigned char *)&probe == 1 ? '<' : '>';
}

const char *npy_shape_text(int rank, const int64_t *shape, char *text, size_t size) {
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < rank && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", i > 0 ? ", " : "(", (long long)shape[i]);
    if (used < size) snprintf(text + used, size - used, rank == 0 ? "()" : rank == 1 ? ",)" : ")");
    return text;
}

/* ---- header: a Python dictionary --------------------------------------------------------------------------------- */

typedef struct cursor {
    const char *at, *end;
    char *error;
    size_t error_size;
} cursor;

static npy_status invalid(const cursor *text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(text->error, text->error_size, format, args);
    va_end(args);
    return NPY_INVALID;
}

static void skip_blanks(cursor *text) {
    while (text->at < text->end && strchr(" \t\r\n", *text->at) != NULL && *text->at != '\0') text->at++;
}

/* Step over blanks and then over `token`, if it is there. */
static bool take(cursor *text, const char *token) {
    size_t length = strlen(token);
    skip_blanks(text);
    if ((size_t)(text->end - text->at) < length || memcmp(text->at, token, length) != 0) return false;
    text->at += length;
    return true;
}

/* A quoted word without escapes. */
static bool take_string(cursor *text, char *word, size_t size) {
    char quote;
    if (take(text, "'"))
        quote = '\'';
    else if (take(text, "\""))
        quote = '"';
    else
        return false;
    size_t length = 0;
    while (text->at < text->end && *text->at != quote) {
        if (*text->at < ' ' || *text->at > '~' || *text->at == '\\' || length + 1 == size) return false;
        word[length++] = *text->at++;
    }
    word[length] = '\0';
    return take(text, quote == '"' ? "\"" : "'");
}

/* A decimal integer >= 0; Python 2 wrote an L behind it. */
static bool take_size(cursor *text, int64_t *value) {
    skip_blanks(text);
    const char *start = text->at;
    for (*value = 0; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++) {
        int digit = *text->at - '0';
        if (*value > (INT64_MAX - digit) / 10) return false;
        *value = *value * 10 + digit;
    }
    if (text->at == start) return false;
    if (text->at < text->end && *text->at == 'L') text->at++;
    return true;
}

static npy_status take_descr(cursor *text, npy_header *header) {
    char descr[32];
    if (!take_string(text, descr, sizeof descr))
        return invalid(text, "its header gives a 'descr' that is no plain type: fields and records are not read here");
    for (int i = 0; i < NPY_DTYPE_COUNT; i++) {
        const char *orders = npy_dtype_size((npy_dtype)i) == 1 ? "|<>=" : "<>=";
        if (strcmp(descr + (descr[0] != '\0'), npy_dtype_code((npy_dtype)i)) != 0 || strchr(orders, descr[0]) == NULL) continue;
        header->dtype = (npy_dtype)i;
        header->swapped = strchr("=|", descr[0]) == NULL && descr[0] != native_order() && npy_dtype_size((npy_dtype)i) > 1;
        return NPY_OK;
    }
    return invalid(text, "it holds elements of type '%s'; read here are f2, f4, f8, b1, u1, i4, i8, and u2 for bfloat16",
                   descr);
}

static npy_status take_order(cursor *text, npy_header *header) {
    if (take(text, "True"))
        header->fortran = true;
    else if (take(text, "False"))
        header->fortran = false;
    else
        return invalid(text, "its header gives a 'fortran_order' that is neither True nor False");
    return NPY_OK;
}

static npy_status take_shape(cursor *text, npy_header *header) {
    bool comma = true;
    if (!take(text, "(")) return invalid(text, "its header gives a 'shape' that is no tuple");
    for (header->rank = 0; !take(text, ")"); header->rank++) {
        int64_t size;
        if (!comma || !take_size(text, &size))
            return invalid(text, "its header gives a 'shape' that is no tuple of sizes, or one larger than an index holds");
        if (header->rank == NPY_MAX_RANK) return invalid(text, "it has more than %d dimensions", NPY_MAX_RANK);
        header->shape[header->rank] = size;
        comma = take(text, ",");
    }
    if (header->rank == 1 && !comma) return invalid(text, "its header gives a 'shape' that is a number and no tuple");
    return NPY_OK;
}

static npy_status take_dictionary(cursor *text, npy_header *header) {
    static const struct {
        const char *name;
        npy_status (*take)(cursor *, npy_header *);
    } keys[] = {{"descr", take_descr}, {"fortran_order", take_order}, {"shape", take_shape}};
    enum { KEYS = sizeof keys / sizeof *keys };
    bool seen[KEYS] = {false};
    bool comma = true;
    if (!take(text, "{")) return invalid(text, "its header is no dictionary");
    while (!take(text, "}")) {
        char name[32];
        if (!comma || !take_string(text, name, sizeof name) || !take(text, ":"))
            return invalid(text, "its header is a malformed dictionary");
        int key = 0;
        while (key < KEYS && strcmp(keys[key].name, name) != 0) key++;
        if (key == KEYS) return invalid(text, "its header has an unknown key '%s'", name);
        if (seen[key]) return invalid(text, "its header gives '%s' twice", name);
        seen[key] = true;
        npy_status status = keys[key].take(text, header);
        if (status != NPY_OK) return status;
        comma = take(text, ",");
    }
    for (int key = 0; key < KEYS; key++)
        if (!seen[key]) return invalid(text, "its header lacks the key '%s'", keys[key].name);
    skip_blanks(text);
    if (text->at != text->end) return invalid(text, "its header goes on after the dictionary");
    if (text->end[-1] != '\n') return invalid(text, "its header does not end with a newline");
    return NPY_OK;
}

/* ---- header: the bytes around it --------------------------------------------------------------------------------- */

/* The file is exactly as long as the header says. Sizes of empty arrays are checked too: strides are made of them. */
static npy_status check_length(const cursor *text, uint64_t file_size, npy_header *header) {
    char shape[128];
    uint64_t item = npy_dtype_size(header->dtype), data = file_size - header->data_offset;
    uint64_t product = 1, count = 1;
    npy_shape_text(header->rank, header->shape, shape, sizeof shape);
    for (int i = 0; i < header->rank; i++) {
        uint64_t size = (uint64_t)header->shape[i];
        if (size > 1 && product > INT64_MAX / item / size)
            return invalid(text, "its shape %s is larger than an index holds", shape);
        product *= size > 1 ? size : 1;
        count *= size; /* cannot wrap where the product of the non-zero sizes does not */
    }
    if (data != count * item)
        return invalid(text, "it %s: %llu bytes follow the header, and shape %s of %s takes %llu",
                       data < count * item ? "is truncated" : "goes on after its data", (unsigned long long)data, shape,
                       npy_dtype_name(header->dtype), (unsigned long long)(count * item));
    if (count > SIZE_MAX / MAX_ITEM) return invalid(text, "its shape %s is larger than this machine's memory", shape);
    header->count = (size_t)count;
    return NPY_OK;
}

npy_status npy_parse_header(const unsigned char *bytes, size_t size, uint64_t file_size, npy_header *header, char *error,
                            size_t error_size) {
    static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    cursor text = {.error = error, .error_size = error_size};
    *header = (npy_header){0};
    if (size < sizeof magic || memcmp(bytes, magic, sizeof magic) != 0) return invalid(&text, "it is not a .npy file");
    if (size < 8) return invalid(&text, "it is truncated within the header");
    if (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0)
        return invalid(&text, "it is in version %d.%d of the .npy format, and 1.0, 2.0 and 3.0 are known here", bytes[6],
                       bytes[7]);
    size_t start = bytes[6] == 1 ? 10 : 12;
    if (size < start) return invalid(&text, "it is truncated within the header");
    size_t length = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (start == 12) length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (length > NPY_MAX_HEADER - start)
        return invalid(&text, "its header of %zu bytes is larger than any array needs", length);
    if (size - start < length) return invalid(&text, "it is truncated within the header");
    text.at = (const char *)bytes + start;
    text.end = text.at + length;
    header->data_offset = start + length;
    npy_status status = take_dictionary(&text, header);
    return status == NPY_OK ? check_length(&text, file_size, header) : status;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

void npy_strides(const npy_header *header, int64_t stride[NPY_MAX_RANK]) {
    int64_t step = 1;
    for (int i = 0; i < header->rank; i++) {
        int dimension = header->fortran ? i : header->rank - 1 - i;
        stride[dimension] = step;
        step *= header->shape[dimension] > 1 ? header->shape[dimension] : 1;
    }
}

static void swap_items(unsigned char *items, size_t count, size_t size) {
    for (size_t i = 0; i < count; i++) {
        for (size_t low = 0, high = size - 1; low < high; low++, high--) {
            unsigned char byte = items[i * size + low];
            items[i * size + low] = items[i * size + high];
            items[i * size + high] = byte;
        }
    }
}

static bool read_data(FILE *file, npy_array *array) {
    size_t item = npy_dtype_size(array->header.dtype);
    if (fread(array->data, item, array->header.count, file) != array->header.count) return false;
    if (array->header.swapped) swap_items(array->data, array->header.count, item);
    return true;
}

void *npy_allocate(size_t bytes) {
    return bytes <= SIZE_MAX - ALIGNMENT ? aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT) : NULL;
}

static npy_status read_file(FILE *file, npy_array *array, char *error, size_t error_size) {
    struct stat status;
    if (fstat(fileno(file), &status) != 0 || !S_ISREG(status.st_mode)) {
        snprintf(error, error_size, "it is not a regular file");
        return NPY_INVALID;
    }
    unsigned char *bytes = malloc(NPY_MAX_HEADER);
    if (bytes == NULL) {
        snprintf(error, error_size, "out of memory");
        return NPY_FAILURE;
    }
    size_t size = fread(bytes, 1, NPY_MAX_HEADER, file);
    npy_status result = npy_parse_header(bytes, size, (uint64_t)status.st_size, &array->header, error, error_size);
    free(bytes);
    if (result != NPY_OK) return result;

    size_t data_size = array->header.count * npy_dtype_size(array->header.dtype);
    array->data = npy_allocate(data_size);
    if (array->data == NULL) {
        snprintf(error, error_size, "out of memory for %zu bytes", data_size);
        return NPY_FAILURE;
    }
    if (fseek(file, (long)array->header.data_offset, SEEK_SET) == 0 && read_data(file, array)) return NPY_OK;
    snprintf(error, error_size, "it cannot be read: %s", ferror(file) ? strerror(errno) : "it shrank meanwhile");
    return NPY_FAILURE;
}

npy_status npy_read(const char *path, npy_array *array, char *error, size_t error_size) {
    char why[256] = "";
    npy_status status = NPY_INVALID;
    *array = (npy_array){0};
    FILE *file = fopen(path, "rb");
    if (file != NULL) {
        status = read_file(file, array, why, sizeof why);
        fclose(file);
    } else {
        snprintf(why, sizeof why, "it cannot be opened: %s", strerror(errno));
    }
    if (status == NPY_OK) return status;
    npy_free(array);
    snprintf(error, error_size, "%s: %s", path, why);
    return status;
}

void npy_free(npy_array *array) {
    free(array->data);
    *array = (npy_array){0};
}

/* ---- elements in memory ------------------------------------------------------------------------------------------ */

static void replace_data(npy_array *array, void *data) {
    free(array->data);
    array->data = data;
}

bool npy_pack(npy_array *array) {
    npy_header *header = &array->header;
    int64_t stride[NPY_MAX_RANK], index[NPY_MAX_RANK] = {0};
    size_t item = npy_dtype_size(header->dtype), at = 0;
    if (!header->fortran) return true;
    char *packed = npy_allocate(header->count * item);
    if (packed == NULL) return false;
    npy_strides(header, stride);
    for (size_t n = 0; n < header->count; n++) {
        memcpy(packed + n * item, (const char *)array->data + at * item, item);
        for (int d = header->rank - 1; d >= 0; d--) {
            at += (size_t)stride[d];
            if (++index[d] < header->shape[d]) break;
            at -= (size_t)(stride[d] * header->shape[d]);
            index[d] = 0;
        }
    }
    replace_data(array, packed);
    header->fortran = false;
    return true;
}

bool npy_retype(npy_array *array, npy_dtype dtype, size_t *overflowed) {
    npy_header *header = &array->header;
    *overflowed = 0;
    if (dtype == header->dtype) return true;
    void *data = npy_allocate(header->count * npy_dtype_size(dtype));
    if (data == NULL) return false;
    *overflowed = npy_convert(dtype, data, header->dtype, array->data, header->count);
    replace_data(array, data);
    header->dtype = dtype;
    return true;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

void npy_write(FILE *file, npy_dtype to, int rank, const int64_t *shape, npy_dtype from, const void *data) {
    char header[256], shape_text[128];
    char order = npy_dtype_size(to) == 1 ? '|' : native_order();
    int length = snprintf(header, sizeof header, "{'descr': '%c%s', 'fortran_order': False, 'shape': %s, }", order,
                          npy_dtype_code(to), npy_shape_text(rank, shape, shape_text, sizeof shape_text));
    int padded = (10 + length + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT - 10;
    fwrite("\x93NUMPY\x01\x00", 1, 8, file);
    fputc(padded & 0xff, file);
    fputc(padded >> 8, file);
    fprintf(file, "%s%*s\n", header, padded - length - 1, "");

    unsigned char items[CHUNK * MAX_ITEM];
    size_t count = 1;
    for (int i = 0; i < rank; i++) count *= (size_t)shape[i];
    for (size_t done = 0; done < count && !ferror(file);) {
        size_t chunk = count - done < CHUNK ? count - done : CHUNK;
        npy_convert(to, items, from, (const char *)data + done * npy_dtype_size(from), chunk);
        fwrite(items, npy_dtype_size(to), chunk, file);
        done += chunk;
    }
}
