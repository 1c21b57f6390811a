/* How drivers that are not there answer what OpenCL asks of them, in the way of all clGet...Info.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_TESTS_FAKE_ANSWERS_H
#define CLATTN_TESTS_FAKE_ANSWERS_H

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>
#include <string.h>

static cl_int answer(const void *data, size_t data_size, size_t size, void *value, size_t *size_ret) {
    if (value && size < data_size) return CL_INVALID_VALUE;
    if (value) memcpy(value, data, data_size);
    if (size_ret) *size_ret = data_size;
    return CL_SUCCESS;
}

static cl_int answer_text(const char *text, size_t size, void *value, size_t *size_ret) {
    return answer(text, strlen(text) + 1, size, value, size_ret);
}

#endif
