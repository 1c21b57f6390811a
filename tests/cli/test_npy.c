/* The .npy reader and writer: what is read back, what is refused, and with which words.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _XOPEN_SOURCE 700
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/npy.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { MAX_BYTES = 4096 };

typedef struct bytes {
    unsigned char data[MAX_BYTES];
    size_t size;
} bytes;

static char path[] = "/tmp/clattn-test-npy-XXXXXX";
static char error[512];

static void make_path(void) {
    strcpy(path + strlen(path) - 6, "XXXXXX");
    int descriptor = mkstemp(path);
    ck_assert_int_ge(descriptor, 0);
    close(descriptor);
}

static void remove_path(void) {
    unlink(path);
}

static void write_path(const void *data, size_t size) {
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

static void append(bytes *to, const void *data, size_t size) {
    ck_assert_uint_le(to->size + size, MAX_BYTES);
    memcpy(to->data + to->size, data, size);
    to->size += size;
}

/* A file of the version with this header text and so many zero bytes behind it. */
static bytes make_file(int version, const char *header, size_t data_size) {
    bytes file = {.size = 0};
    size_t length = strlen(header);
    unsigned char start[12] = {0x93, 'N', 'U', 'M', 'P', 'Y', (unsigned char)version, 0};
    start[8] = length & 0xff;
    start[9] = length >> 8 & 0xff;
    append(&file, start, version == 1 ? 10 : 12);
    append(&file, header, length);
    ck_assert_uint_le(file.size + data_size, MAX_BYTES);
    memset(file.data + file.size, 0, data_size);
    file.size += data_size;
    return file;
}

static npy_status parse(const bytes *file, npy_header *header) {
    error[0] = '\0';
    return npy_parse_header(file->data, file->size, file->size, header, error, sizeof error);
}

/* ---- what is read back --------------------------------------------------------------------------------------------- */

static const struct {
    int rank;
    int64_t shape[NPY_MAX_RANK];
} shapes[] = {
    {0, {0}},    {1, {1}},       {1, {7}},       {1, {0}},          {2, {3, 5}},       {2, {0, 5}},
    {2, {5, 0}}, {3, {2, 3, 4}}, {3, {1, 1, 1}}, {4, {2, 1, 3, 5}}, {4, {2, 0, 3, 5}}, {2, {200, 130}},
};

static size_t elements(int rank, const int64_t *shape) {
    size_t count = 1;
    for (int i = 0; i < rank; i++) count *= (size_t)shape[i];
    return count;
}

static const npy_dtype floats[] = {NPY_F2, NPY_BF16, NPY_F4, NPY_F8};

START_TEST(writes_what_it_reads) {
    int rank = shapes[_i].rank;
    size_t count = elements(rank, shapes[_i].shape);
    unsigned char *data = malloc((count + 1) * sizeof(double));
    for (size_t i = 0; i < count * sizeof(double); i++) data[i] = (unsigned char)(i * 37 % 251);
    for (int dtype = 0; dtype < NPY_DTYPE_COUNT; dtype++) {
        FILE *file = fopen(path, "wb");
        npy_write(file, (npy_dtype)dtype, rank, shapes[_i].shape, (npy_dtype)dtype, data);
        ck_assert_int_eq(fclose(file), 0);
        npy_array array;
        ck_assert_msg(npy_read(path, &array, error, sizeof error) == NPY_OK, "%s", error);
        ck_assert_int_eq(array.header.dtype, dtype);
        ck_assert_int_eq(array.header.rank, rank);
        ck_assert(!array.header.fortran && !array.header.swapped);
        ck_assert_uint_eq(array.header.data_offset % 64, 0);
        ck_assert_uint_eq(array.header.count, count);
        ck_assert_uint_eq((uintptr_t)array.data % 64, 0);
        for (int d = 0; d < rank; d++) ck_assert_int_eq(array.header.shape[d], shapes[_i].shape[d]);
        ck_assert_int_eq(memcmp(array.data, data, count * npy_dtype_size((npy_dtype)dtype)), 0);
        npy_free(&array);
    }
    free(data);
}
END_TEST

/* Written as each type and read as float32 again. */
START_TEST(special_numbers_survive) {
    const float numbers[] = {INFINITY, -INFINITY, -0.0f, 0x1p-14f, 1.5f};
    const int64_t shape[] = {COUNT(numbers)};
    size_t overflowed;
    FILE *file = fopen(path, "wb");
    npy_write(file, floats[_i], 1, shape, NPY_F4, numbers);
    fclose(file);
    npy_array array;
    ck_assert_int_eq(npy_read(path, &array, error, sizeof error), NPY_OK);
    ck_assert_int_eq(array.header.dtype, floats[_i]);
    ck_assert(npy_retype(&array, NPY_F4, &overflowed));
    ck_assert_int_eq(memcmp(array.data, numbers, sizeof numbers), 0);
    ck_assert_uint_eq(overflowed, 0);
    npy_free(&array);
}
END_TEST

/* 1.5 and -2, or 1 and -2, in both byte orders and each width. */
START_TEST(reads_either_byte_order) {
    static const struct {
        const char *descr;
        size_t size;
        unsigned char data[16];
    } cases[] = {
        {"<f4", 8, {0, 0, 0xc0, 0x3f, 0, 0, 0, 0xc0}},
        {">f4", 8, {0x3f, 0xc0, 0, 0, 0xc0, 0, 0, 0}},
        {"<f8", 16, {0, 0, 0, 0, 0, 0, 0xf8, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0xc0}},
        {">f8", 16, {0x3f, 0xf8, 0, 0, 0, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0}},
        {"<f2", 4, {0, 0x3e, 0, 0xc0}},
        {">f2", 4, {0x3e, 0, 0xc0, 0}},
        {"<u2", 4, {0xc0, 0x3f, 0, 0xc0}},
        {">u2", 4, {0x3f, 0xc0, 0xc0, 0}},
    };
    char header[128];
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (2,), }\n", cases[_i].descr);
    bytes file = make_file(1, header, 0);
    append(&file, cases[_i].data, cases[_i].size);
    write_path(file.data, file.size);
    npy_array array;
    size_t overflowed;
    ck_assert_msg(npy_read(path, &array, error, sizeof error) == NPY_OK, "%s", error);
    ck_assert(npy_retype(&array, NPY_F8, &overflowed));
    const double *numbers = array.data;
    ck_assert(numbers[0] == 1.5 && numbers[1] == -2);
    npy_free(&array);
}
END_TEST

START_TEST(reads_integers_and_booleans) {
    static const struct {
        const char *descr;
        npy_dtype dtype;
        size_t size;
        unsigned char data[16];
    } cases[] = {
        {"|b1", NPY_B1, 2, {1, 0}},
        {"|u1", NPY_U1, 2, {1, 0}},
        {"<i4", NPY_I4, 8, {1, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff}},
        {">i4", NPY_I4, 8, {0, 0, 0, 1, 0xff, 0xff, 0xff, 0xfe}},
        {"<i8", NPY_I8, 16, {1, 0, 0, 0, 0, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
    };
    char header[128];
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (2,), }\n", cases[_i].descr);
    bytes file = make_file(1, header, 0);
    append(&file, cases[_i].data, cases[_i].size);
    write_path(file.data, file.size);
    npy_array array;
    ck_assert_msg(npy_read(path, &array, error, sizeof error) == NPY_OK, "%s", error);
    ck_assert_int_eq(array.header.dtype, cases[_i].dtype);
    if (cases[_i].size == 2) ck_assert_int_eq(memcmp(array.data, cases[_i].data, 2), 0);
    if (cases[_i].dtype == NPY_I4) ck_assert(((int32_t *)array.data)[0] == 1 && ((int32_t *)array.data)[1] == -2);
    if (cases[_i].dtype == NPY_I8) ck_assert(((int64_t *)array.data)[0] == 1 && ((int64_t *)array.data)[1] == -2);
    npy_free(&array);
}
END_TEST

START_TEST(counts_numbers_too_large_for_a_type) {
    const double numbers[] = {1e300, -1e39, 65504, INFINITY, NAN};
    static const size_t expected[] = {2, 2, 2, 0};
    float narrow[COUNT(numbers)];
    double wide[COUNT(numbers)];
    ck_assert_uint_eq(npy_convert(floats[_i], wide, NPY_F8, numbers, COUNT(numbers)), expected[_i]);
    npy_convert(NPY_F4, narrow, floats[_i], wide, COUNT(numbers));
    ck_assert(narrow[0] == INFINITY && narrow[1] < -1e38f && narrow[3] == INFINITY && isnan(narrow[4]));
    ck_assert(fabsf(narrow[2] - 65504) <= 32);
}
END_TEST

/* Every half and bfloat16 is what it was after a way through float64. */
START_TEST(short_floats_are_exact_in_double) {
    static const npy_dtype types[] = {NPY_F2, NPY_BF16};
    for (unsigned bits = 0; bits < 65536; bits++) {
        uint16_t before = (uint16_t)bits, after = 0;
        double number;
        npy_convert(NPY_F8, &number, types[_i], &before, 1);
        ck_assert_uint_eq(npy_convert(types[_i], &after, NPY_F8, &number, 1), 0);
        if (isnan(number))
            ck_assert(signbit(number) == (before >> 15) && after >> 15 == before >> 15 &&
                      (after & 0x7fff) > (_i == 0 ? 0x7c00 : 0x7f80));
        else
            ck_assert_uint_eq(after, before);
    }
}
END_TEST

/* Between two neighbours to the even one, a little beside the middle to the nearer one, and not in two steps. */
START_TEST(short_floats_round_to_nearest_even) {
    static const npy_dtype types[] = {NPY_F2, NPY_BF16};
    const unsigned infinite = _i == 0 ? 0x7c00 : 0x7f80;
    for (unsigned bits = 0; bits + 1 < infinite; bits++) {
        uint16_t low = (uint16_t)bits, high = (uint16_t)(bits + 1), after;
        double a, b;
        npy_convert(NPY_F8, &a, types[_i], &low, 1);
        npy_convert(NPY_F8, &b, types[_i], &high, 1);
        const double middle = a + (b - a) / 2, below = nextafter(middle, a), above = nextafter(middle, b);
        npy_convert(types[_i], &after, NPY_F8, &middle, 1);
        ck_assert_uint_eq(after, bits % 2 == 0 ? low : high);
        npy_convert(types[_i], &after, NPY_F8, &below, 1);
        ck_assert_uint_eq(after, low);
        npy_convert(types[_i], &after, NPY_F8, &above, 1);
        ck_assert_uint_eq(after, high);
    }
}
END_TEST

START_TEST(packing_puts_the_last_index_last) {
    const int16_t fortran[] = {0, 3, 1, 4, 2, 5};
    npy_array array = {.header = {.dtype = NPY_F2, .fortran = true, .rank = 2, .shape = {2, 3}, .count = 6}};
    array.data = npy_allocate(sizeof fortran);
    memcpy(array.data, fortran, sizeof fortran);
    ck_assert(npy_pack(&array));
    for (int i = 0; i < 6; i++) ck_assert_int_eq(((int16_t *)array.data)[i], i);
    ck_assert(!array.header.fortran);
    ck_assert(npy_pack(&array));
    npy_free(&array);
}
END_TEST

START_TEST(strides_follow_the_order) {
    npy_header header = {.rank = 4, .shape = {2, 3, 4, 5}};
    int64_t stride[NPY_MAX_RANK];
    npy_strides(&header, stride);
    ck_assert(stride[0] == 60 && stride[1] == 20 && stride[2] == 5 && stride[3] == 1);
    header.fortran = true;
    npy_strides(&header, stride);
    ck_assert(stride[0] == 1 && stride[1] == 2 && stride[2] == 6 && stride[3] == 24);
    header.shape[1] = 0;
    npy_strides(&header, stride);
    ck_assert(stride[0] == 1 && stride[1] == 2 && stride[2] == 2 && stride[3] == 8);
}
END_TEST

/* ---- headers ------------------------------------------------------------------------------------------------------- */

static const struct {
    int version;
    const char *header;
    size_t data_size;
} accepted[] = {
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 24},
    {2, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 24},
    {3, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 24},
    {1, "{\"shape\":(2,3),\"fortran_order\":True,\"descr\":\"=f8\"}\n", 48},
    {1, "{'descr': '>f8', 'fortran_order': False, 'shape': (2L, 3L), }   \n", 48}, /* Python 2 */
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': ()}\n", 4},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (0,)}\n", 0},
    {1, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}\n", 3},
    {1, "{'descr': '<i8', 'fortran_order': False, 'shape': (3,)}\n", 24},
    {1, " { 'descr' : '<f4' ,\n\t'fortran_order' : False , 'shape' : ( 2 , 3 , ) , } \n", 24},
};

START_TEST(header_is_accepted) {
    npy_header header;
    bytes file = make_file(accepted[_i].version, accepted[_i].header, accepted[_i].data_size);
    ck_assert_msg(parse(&file, &header) == NPY_OK, "%s: %s", accepted[_i].header, error);
}
END_TEST

#define KEYS(descr, order, shape) "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }\n"

static const struct {
    const char *header;
    size_t data_size;
    const char *why; /* part of the sentence */
} refused[] = {
    {"", 0, "no dictionary"},
    {"\n", 0, "no dictionary"},
    {"{", 0, "malformed"},
    {"{}\n", 0, "lacks the key 'descr'"},
    {"[]\n", 0, "no dictionary"},
    {"{'descr': '<f4', 'fortran_order': False}\n", 0, "lacks the key 'shape'"},
    {"{'descr': '<f4', 'shape': (1,)}\n", 4, "lacks the key 'fortran_order'"},
    {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}\n", 4, "'descr' twice"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'extra': 1}\n", 4, "unknown key 'extra'"},
    {"{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}\n", 4, "malformed"},
    {"{'descr' '<f4', 'fortran_order': False, 'shape': (1,)}\n", 4, "malformed"},
    {"{descr: '<f4', 'fortran_order': False, 'shape': (1,)}\n", 4, "malformed"},
    {"{, 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}\n", 4, "malformed"},
    {"{'descr': '<f4',, 'fortran_order': False, 'shape': (1,)}\n", 4, "malformed"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)", 4, "malformed"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 4, "newline"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x\n", 4, "goes on after the dictionary"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}}\n", 4, "goes on after the dictionary"},
    {KEYS("'<f16'", "False", "(1,)"), 16, "type '<f16'"},
    {KEYS("'<i2'", "False", "(1,)"), 2, "type '<i2'"},
    {KEYS("'|i1'", "False", "(1,)"), 1, "type '|i1'"},
    {KEYS("'<u4'", "False", "(1,)"), 4, "type '<u4'"},
    {KEYS("'|f4'", "False", "(1,)"), 4, "type '|f4'"},
    {KEYS("'b1'", "False", "(1,)"), 1, "type 'b1'"},
    {KEYS("'<c8'", "False", "(1,)"), 8, "type '<c8'"},
    {KEYS("'|O'", "False", "(1,)"), 8, "type '|O'"},
    {KEYS("'f4'", "False", "(1,)"), 4, "type 'f4'"},
    {KEYS("'<f44'", "False", "(1,)"), 4, "type '<f44'"},
    {KEYS("'<f'", "False", "(1,)"), 4, "type '<f'"},
    {KEYS("''", "False", "(1,)"), 4, "type ''"},
    {KEYS("[('a', '<f4')]", "False", "(1,)"), 4, "fields and records"},
    {KEYS("'<f4", "False", "(1,)"), 4, "holds elements of type"},
    {KEYS("'<f4\"", "False", "(1,)"), 4, "holds elements of type"},
    {KEYS("'<f\\x34'", "False", "(1,)"), 4, "plain type"},
    {KEYS("'<f4'", "false", "(1,)"), 4, "neither True nor False"},
    {KEYS("'<f4'", "0", "(1,)"), 4, "neither True nor False"},
    {KEYS("'<f4'", "Falsehood", "(1,)"), 4, "malformed"},
    {KEYS("'<f4'", "False", "[1]"), 4, "no tuple"},
    {KEYS("'<f4'", "False", "1"), 4, "no tuple"},
    {KEYS("'<f4'", "False", "(1)"), 4, "no tuple"},
    {KEYS("'<f4'", "False", "(,)"), 4, "no tuple"},
    {KEYS("'<f4'", "False", "(1,,1)"), 4, "no tuple"},
    {KEYS("'<f4'", "False", "(1 1)"), 4, "no tuple"},
    {KEYS("'<f4'", "False", "(-1,)"), 4, "no tuple"},
    {KEYS("'<f4'", "False", "(1.0,)"), 4, "no tuple"},
    {KEYS("'<f4'", "False", "(0x1,)"), 4, "no tuple"},
    {KEYS("'<f4'", "False", "(1, 1, 1, 1, 1)"), 4, "more than 4 dimensions"},
    {KEYS("'<f4'", "False", "(9223372036854775808,)"), 4, "larger than an index"},
    {KEYS("'<f4'", "False", "(99999999999999999999999999,)"), 4, "larger than an index"},
    {KEYS("'<f4'", "False", "(9223372036854775807,)"), 4, "larger than an index"},
    {KEYS("'<f4'", "False", "(4611686018427387904, 4)"), 0, "larger than an index"}, /* 2^64 elements */
    {KEYS("'<f4'", "False", "(65536, 65536, 65536, 65536)"), 0, "larger than an index"},
    {KEYS("'<f8'", "False", "(2305843009213693952,)"), 0, "larger than an index"}, /* 2^64 bytes */
    {KEYS("'<f4'", "False", "(0, 4611686018427387904, 4)"), 0, "larger than an index"},
    {KEYS("'<f4'", "False", "(1000000000, 1000000000)"), 4, "is truncated"},
    {KEYS("'<f4'", "False", "(2, 3)"), 23, "is truncated: 23 bytes follow the header, and shape (2, 3) of float32 takes 24"},
    {KEYS("'<f4'", "False", "(2, 3)"), 25, "goes on after its data"},
    {KEYS("'<f4'", "False", "()"), 0, "is truncated"},
    {KEYS("'<f4'", "False", "(0,)"), 1, "goes on after its data"},
};

START_TEST(header_is_refused) {
    npy_header header;
    bytes file = make_file(1, refused[_i].header, refused[_i].data_size);
    ck_assert_msg(parse(&file, &header) == NPY_INVALID, "accepted: %s", refused[_i].header);
    ck_assert_msg(strstr(error, refused[_i].why) != NULL, "%s: \"%s\" does not say \"%s\"", refused[_i].header, error,
                  refused[_i].why);
}
END_TEST

START_TEST(start_is_refused) {
    static const struct {
        unsigned char start[12];
        size_t size;
        const char *why;
    } cases[] = {
        {{0}, 0, "not a .npy file"},
        {{'P', 'K', 3, 4}, 12, "not a .npy file"},
        {{0x93, 'N', 'U', 'M', 'P', 'y', 1, 0}, 12, "not a .npy file"},
        {{0x93, 'N', 'U', 'M', 'P', 'Y'}, 6, "truncated within the header"},
        {{0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 0}, 9, "truncated within the header"},
        {{0x93, 'N', 'U', 'M', 'P', 'Y', 0, 0}, 12, "version 0.0"},
        {{0x93, 'N', 'U', 'M', 'P', 'Y', 4, 0}, 12, "version 4.0"},
        {{0x93, 'N', 'U', 'M', 'P', 'Y', 1, 1}, 12, "version 1.1"},
        {{0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 0xff, 0x7f}, 12, "truncated within the header"},
        {{0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 0xff, 0xff}, 12, "larger than any array needs"},
        {{0x93, 'N', 'U', 'M', 'P', 'Y', 2, 0, 0xff, 0xff, 0xff, 0xff}, 12, "larger than any array needs"},
    };
    npy_header header;
    bytes file = {.size = 0};
    append(&file, cases[_i].start, cases[_i].size);
    ck_assert_int_eq(parse(&file, &header), NPY_INVALID);
    ck_assert_msg(strstr(error, cases[_i].why) != NULL, "\"%s\" does not say \"%s\"", error, cases[_i].why);
}
END_TEST

/* ---- files --------------------------------------------------------------------------------------------------------- */

START_TEST(any_other_length_is_refused) {
    for (int version = 1; version <= 3; version++) {
        bytes file = make_file(version, KEYS("'<f4'", "True", "(3, 5)"), 60);
        npy_array array;
        for (size_t size = 0; size < file.size; size++) {
            write_path(file.data, size);
            ck_assert_int_eq(npy_read(path, &array, error, sizeof error), NPY_INVALID);
            ck_assert_ptr_nonnull(strstr(error, path));
            ck_assert_ptr_null(array.data);
        }
        write_path(file.data, file.size);
        ck_assert_int_eq(npy_read(path, &array, error, sizeof error), NPY_OK);
        npy_free(&array);
        append(&file, "", 1);
        write_path(file.data, file.size);
        ck_assert_int_eq(npy_read(path, &array, error, sizeof error), NPY_INVALID);
    }
}
END_TEST

/* Every byte of the header, turned into every other: refused with a sentence, or a header that describes the file. */
START_TEST(damage_is_refused_or_harmless) {
    bytes whole = make_file(1, KEYS("'<f4'", "False", "(3, 5)"), 60);
    for (size_t at = 0; at < whole.size - 60; at++) {
        for (int value = 0; value < 256; value++) {
            bytes file = whole;
            npy_header header;
            file.data[at] = (unsigned char)value;
            if (parse(&file, &header) != NPY_OK) {
                ck_assert_uint_gt(strlen(error), 0);
                continue;
            }
            ck_assert_uint_eq(header.count, elements(header.rank, header.shape));
            ck_assert_uint_eq(header.data_offset + header.count * npy_dtype_size(header.dtype), file.size);
        }
    }
}
END_TEST

START_TEST(what_is_no_file_is_refused) {
    static const char *const paths[] = {"/", "/dev/null", "/nonexistent/q.npy", ""};
    npy_array array;
    ck_assert_int_eq(npy_read(paths[_i], &array, error, sizeof error), NPY_INVALID);
    ck_assert_ptr_null(array.data);
    ck_assert_uint_gt(strlen(error), 0);
}
END_TEST

START_TEST(a_full_disk_shows_in_the_stream) {
    FILE *file = fopen("/dev/full", "wb");
    if (file == NULL) return; /* only Linux has it */
    static const float data[4096];
    npy_write(file, NPY_F8, 1, (const int64_t[]){COUNT(data)}, NPY_F4, data);
    ck_assert(fflush(file) != 0 || ferror(file));
    fclose(file);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("npy");
    TCase *tests = tcase_create("npy");
    tcase_add_checked_fixture(tests, make_path, remove_path);
    tcase_add_loop_test(tests, writes_what_it_reads, 0, COUNT(shapes));
    tcase_add_loop_test(tests, special_numbers_survive, 0, COUNT(floats));
    tcase_add_loop_test(tests, reads_either_byte_order, 0, 8);
    tcase_add_loop_test(tests, reads_integers_and_booleans, 0, 5);
    tcase_add_loop_test(tests, counts_numbers_too_large_for_a_type, 0, COUNT(floats));
    tcase_add_loop_test(tests, short_floats_are_exact_in_double, 0, 2);
    tcase_add_loop_test(tests, short_floats_round_to_nearest_even, 0, 2);
    tcase_add_test(tests, packing_puts_the_last_index_last);
    tcase_add_test(tests, strides_follow_the_order);
    tcase_add_loop_test(tests, header_is_accepted, 0, COUNT(accepted));
    tcase_add_loop_test(tests, header_is_refused, 0, COUNT(refused));
    tcase_add_loop_test(tests, start_is_refused, 0, 11);
    tcase_add_test(tests, any_other_length_is_refused);
    tcase_add_test(tests, damage_is_refused_or_harmless);
    tcase_add_loop_test(tests, what_is_no_file_is_refused, 0, 4);
    tcase_add_test(tests, a_full_disk_shows_in_the_stream);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
