/* A libcuda.so.1 whose GPU is the host: kernels `attention` and `project` are computed from their parameters, whatever their
 * PTX says, where the problem is small; others compute nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * FAKE_CUDA is what goes wrong: "no gpu", "no ptx" (the driver does not take it), "wrong" (no kernel computes anything).
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../host/internal.h"

#define EXPORT __attribute__((visibility("default")))
enum { SUCCESS, INVALID_VALUE = 1, NO_DEVICE = 100, INVALID_PTX = 218, SMALL = 1000 };

static bool goes_wrong(const char *how) {
    const char *given = getenv("FAKE_CUDA");
    return given && strcmp(given, how) == 0;
}

/* ---- the device ---------------------------------------------------------------------------------------------------- */

EXPORT int cuInit(unsigned flags) {
    return flags ? INVALID_VALUE : goes_wrong("no gpu") ? NO_DEVICE : SUCCESS;
}
EXPORT int cuDriverGetVersion(int *version) {
    return *version = 12040, SUCCESS;
}
EXPORT int cuDeviceGet(int *device, int n) {
    return *device = 7, n ? INVALID_VALUE : SUCCESS;
}
EXPORT int cuDevicePrimaryCtxRetain(void **context, int device) {
    return *context = context, device == 7 ? SUCCESS : INVALID_VALUE;
}
EXPORT int cuCtxSetCurrent(void *context) {
    return context ? SUCCESS : INVALID_VALUE;
}
EXPORT int cuCtxSynchronize(void) {
    return SUCCESS;
}
EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device) {
    return *value = 132, attribute == 16 && device == 7 ? SUCCESS : INVALID_VALUE;
}
EXPORT int cuDeviceGetName(char *name, int size, int device) {
    snprintf(name, (size_t)size, "Fake CUDA GPU");
    return device == 7 ? SUCCESS : INVALID_VALUE;
}
EXPORT int cuGetErrorName(int code, const char **name) {
    *name = code == NO_DEVICE     ? "CUDA_ERROR_NO_DEVICE"
            : code == INVALID_PTX ? "CUDA_ERROR_INVALID_PTX"
                                  : "CUDA_ERROR_INVALID_VALUE";
    return SUCCESS;
}

/* ---- memory and events --------------------------------------------------------------------------------------------- */

static void *host_of(uint64_t pointer) {
    return (void *)(uintptr_t)pointer;
}

EXPORT int cuMemAlloc_v2(uint64_t *pointer, size_t bytes) {
    *pointer = (uint64_t)(uintptr_t)malloc(bytes);
    return *pointer && bytes ? SUCCESS : INVALID_VALUE;
}
EXPORT int cuMemFree_v2(uint64_t pointer) {
    return free(host_of(pointer)), SUCCESS;
}
EXPORT int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
    return memcpy(host_of(to), from, bytes), SUCCESS;
}
EXPORT int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
    return memcpy(to, host_of(from), bytes), SUCCESS;
}
EXPORT int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t bytes) {
    return memset(host_of(to), value, bytes), SUCCESS;
}

EXPORT int cuEventCreate(void **event, unsigned flags) {
    *event = calloc(1, sizeof(struct timespec));
    return *event && !flags ? SUCCESS : INVALID_VALUE;
}
EXPORT int cuEventDestroy_v2(void *event) {
    return free(event), SUCCESS;
}
EXPORT int cuEventRecord(void *event, void *stream) {
    return clock_gettime(CLOCK_MONOTONIC, event) || stream ? INVALID_VALUE : SUCCESS;
}
EXPORT int cuEventSynchronize(void *event) {
    return event ? SUCCESS : INVALID_VALUE;
}
EXPORT int cuEventElapsedTime(float *ms, const struct timespec *from, const struct timespec *to) {
    *ms = (float)(to->tv_sec - from->tv_sec) * 1e3f + (float)(to->tv_nsec - from->tv_nsec) * 1e-6f;
    return SUCCESS;
}

/* ---- kernels ------------------------------------------------------------------------------------------------------- */

EXPORT int cuModuleLoadDataEx(void **module, const char *text, unsigned count, const int *options, void **values) {
    if (count != 2 || options[0] != 5 || options[1] != 6 || !strstr(text, ".entry")) return INVALID_VALUE;
    if (goes_wrong("no ptx")) return snprintf(values[0], (size_t)(uintptr_t)values[1], "ptxas fatal: a log"), INVALID_PTX;
    *module = strdup(text);
    return SUCCESS;
}

EXPORT int cuModuleGetFunction(void **function, const void *module, const char *name) {
    *function = strdup(name);
    return module && *function ? SUCCESS : INVALID_VALUE;
}

static double load(void *data, i64 base, int dtype, strides s, i64 b, i64 h, i64 l, i64 d) {
    return clattn__load((clattn_dtype)dtype, data, base + b * s.b + h * s.h + l * s.l + d * s.d);
}

/* out[b, h, i, :], by Q, K, V and OUT of roles.def. */
static void attend_row(void *const *data, const attention_params *p, i64 b, i64 h, i64 i) {
    const i64 kv = h / (p->heads_q / p->heads_kv),
              position = i + p->keys.offset + (p->keys.from_end ? p->len_kv - p->len_q : 0);
    double out[512] = {0}, total = 0;
    for (i64 j = 0; j < p->len_kv && (p->keys.right < 0 || j <= position + p->keys.right); j++) {
        double score = 0;
        for (i64 d = 0; d < p->head_dim; d++)
            score +=
                load(data[0], p->base[0], p->dtype, p->q, b, h, i, d) * load(data[1], p->base[1], p->dtype, p->k, b, kv, j, d);
        const double weight = exp(score * (double)p->scale);
        total += weight;
        for (i64 d = 0; d < p->value_dim; d++) out[d] += weight * load(data[2], p->base[2], p->dtype, p->v, b, kv, j, d);
    }
    for (i64 d = 0; d < p->value_dim; d++)
        clattn__store((clattn_dtype)p->dtype, data[3], p->base[3] + b * p->out.b + h * p->out.h + i * p->out.l + d * p->out.d,
                      out[d] / total);
}

static void attend(void *const *data, const attention_params *p) {
    for (i64 b = 0; b < p->batch; b++)
        for (i64 h = 0; h < p->heads_q; h++)
            for (i64 i = 0; i < p->len_q && p->len_q < SMALL; i++) attend_row(data, p, b, h, i);
}

/* X, W, BIAS, RESIDUAL, Y; one head of all columns. */
static void project(void *const *data, const project_params *p) {
    for (i64 l = 0; l < p->len && p->len < SMALL; l++)
        for (i64 n = 0; n < p->columns; n++) {
            double sum = 0;
            for (i64 k = 0; k < p->depth; k++)
                sum += load(data[0], p->base[0], CLATTN_F32, p->x, 0, 0, l, k) *
                       load(data[1], p->base[1], CLATTN_F32, p->w, 0, 0, k, n);
            clattn__store(CLATTN_F32, data[4], p->base[4] + l * p->y.l + n * p->y.d, sum);
        }
}

EXPORT int cuLaunchKernel(const char *function, unsigned x, unsigned y, unsigned z, unsigned group_x, unsigned group_y,
                          unsigned group_z, unsigned local, void *stream, void **arguments, void **extra) {
    void *data[PARAMS_BUFFERS];
    if (!x || y != 1 || z != 1 || !group_x || group_y != 1 || group_z != 1 || local || stream || extra) return INVALID_VALUE;
    const bool attends = strcmp(function, "attention") == 0, projects = strcmp(function, "project") == 0;
    const int buffers = attends ? 12 : projects ? 5 : 0;
    for (int n = 0; n < buffers; n++) data[n] = host_of(*(const uint64_t *)arguments[n]);
    if (goes_wrong("wrong")) return SUCCESS;
    if (attends) attend(data, arguments[buffers]);
    if (projects) project(data, arguments[buffers]);
    return SUCCESS;
}
