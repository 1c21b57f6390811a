/* A problem as files and a command.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention_problem.h"

/* How the program names a tensor's file, and which of its dimensions the file has: a letter each of b, h, l, d. */
static const struct {
    clattn_tensor_id id;
    const char *flag, *dims, *dims_of_batch; /* the latter where the batch is not 1 */
    int want;
} files[] = {
    {CLATTN_TENSOR_Q, "q", "bhld", "bhld"},
    {CLATTN_TENSOR_K, "k", "bhld", "bhld"},
    {CLATTN_TENSOR_V, "v", "bhld", "bhld"},
    {CLATTN_TENSOR_OUT, "out", "bhld", "bhld"},
    {CLATTN_TENSOR_LSE, "lse", "bhl", "bhl", WANT_LSE},
    {CLATTN_TENSOR_SCORES, "scores", "bhld", "bhld", WANT_SCORES},
    {CLATTN_TENSOR_WEIGHTS, "weights", "bhld", "bhld", WANT_WEIGHTS},
    {CLATTN_TENSOR_MASK, "mask", "bhld", "bhld"},
    {CLATTN_TENSOR_BIAS, "bias", "bhld", "bhld"},
    {CLATTN_TENSOR_ALIBI_SLOPES, "alibi", "h", "bh"},
    {CLATTN_TENSOR_SINKS, "sinks", "h", "bh"},
    {CLATTN_TENSOR_KV_LENGTHS, "kv-lengths", "b", "b"},
    {CLATTN_TENSOR_PAST_K, "past-k", "bhld", "bhld"},
    {CLATTN_TENSOR_PAST_V, "past-v", "bhld", "bhld"},
    {CLATTN_TENSOR_PAST_LENGTHS, "past-lengths", "b", "b"},
    {CLATTN_TENSOR_PRESENT_K, "present-k", "bhld", "bhld"},
    {CLATTN_TENSOR_PRESENT_V, "present-v", "bhld", "bhld"},
    {CLATTN_TENSOR_ROTARY_COS, "rotary-cos", "ld", "bld"},
    {CLATTN_TENSOR_ROTARY_SIN, "rotary-sin", "ld", "bld"},
    {CLATTN_TENSOR_Q_OFFSETS, "q-offsets", "d", "d"},
    {CLATTN_TENSOR_KV_OFFSETS, "kv-offsets", "d", "d"},
};

static const char *const npy_types[] = {
    [CLATTN_F32] = "<f4", [CLATTN_F16] = "<f2", [CLATTN_BF16] = "<u2", [CLATTN_F64] = "<f8",
    [CLATTN_BOOL] = "|b1", [CLATTN_I32] = "<i4", [CLATTN_I64] = "<i8",
};

/* Version 1.0 of NumPy's format. */
static bool write_npy(const char *path, const clattn_tensor *t, const char *dims, const double *values) {
    FILE *file = fopen(path, "wb");
    if (!file) return false;
    char shape[128] = "", header[256];
    for (const char *d = dims; *d; d++) {
        const int64_t size = t->size[strchr("bhld", *d) - "bhld"];
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%lld,", (long long)size);
    }
    int length =
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", npy_types[t->dtype], shape);
    while ((10 + length + 1) % 64) header[length++] = ' ';
    header[length++] = '\n';
    fwrite("\x93NUMPY\x01\x00", 1, 8, file);
    fputc(length & 0xff, file);
    fputc(length >> 8, file);
    fwrite(header, 1, (size_t)length, file);
    for (int64_t n = 0; n < clattn__tensor_elements(t); n++) {
        unsigned char element[8];
        clattn__store(t->dtype, element, 0, values[n]);
        fwrite(element, clattn__dtype_size(t->dtype), 1, file);
    }
    const bool failed = ferror(file) != 0;
    return fclose(file) == 0 && !failed;
}

static void add_options(clattn__text *command, const attention_problem *p, clattn_algorithm algorithm, int want) {
    static const char *const algorithms[] = {"auto", "staged", "fused", "split"};
    static const char *const aligns[] = {"top-left", "bottom-right", "past"};
    static const char *const forms[] = {"raw", "softcap", "bias"};
    const clattn_attention_options *o = &p->desc.options;
    char align[32];
    snprintf(align, sizeof align, "%lld", (long long)o->offset);
    if (o->align != CLATTN_ALIGN_OFFSET) snprintf(align, sizeof align, "%s", aligns[o->align]);
    if (o->causal || o->align) clattn__text_add(command, " --%s %s", o->causal ? "causal" : "align", align);
    if (o->past_len) clattn__text_add(command, " --past-len %lld", (long long)o->past_len);
    if (o->has_window) clattn__text_add(command, " --window=%lld,%lld", (long long)o->window_left, (long long)o->window_right);
    if (p->c.has_scale) clattn__text_add(command, " --scale=%.17g", o->scale);
    if (o->softcap != 0) clattn__text_add(command, " --softcap %.17g", o->softcap);
    if (o->alibi) clattn__text_add(command, " --alibi standard");
    if (want & WANT_SCORES) clattn__text_add(command, " --scores-mode %s", forms[o->scores_form]);
    if (p->desc.rotary)
        clattn__text_add(command, " --rotary %s", p->desc.rotary == CLATTN_ROTARY_HALF ? "half" : "interleaved");
    if (p->c.dtype == CLATTN_BF16) clattn__text_add(command, " --bf16");
    clattn__text_add(command, " --algorithm %s", algorithms[algorithm]);
}

void attention_reproduce(const attention_problem *p, const char *device, clattn_algorithm algorithm, int want) {
    char folder[] = "/tmp/clattn-failure-XXXXXX";
    clattn__text command = {0};
    bool written = mkdtemp(folder) != NULL;
    clattn__text_add(&command, "clattn attend --device %.*s", (int)strcspn(device, "/,"), device);
    for (size_t n = 0; n < COUNT(files); n++) {
        const clattn_tensor t = *attention_tensor((clattn_attention_desc *)&p->desc, files[n].id);
        if (t.dtype == CLATTN_ABSENT || (files[n].want && !(want & files[n].want))) continue;
        char path[128];
        const double *data = p->data[files[n].id];
        const bool cache = data && (files[n].id == CLATTN_TENSOR_PRESENT_K || files[n].id == CLATTN_TENSOR_PRESENT_V);
        snprintf(path, sizeof path, "%s/%s.npy", folder, files[n].flag);
        clattn__text_add(&command, " --%s %s", files[n].flag, path);
        if (cache) {
            const char *name = files[n].id == CLATTN_TENSOR_PRESENT_K ? "cache-k" : "cache-v";
            snprintf(path, sizeof path, "%s/%s.npy", folder, name);
            clattn__text_add(&command, " --%s %s", name, path);
        }
        if (data) written &= write_npy(path, &t, t.size[0] == 1 ? files[n].dims : files[n].dims_of_batch, data);
    }
    add_options(&command, p, algorithm, want);
    printf("%s (beside it: --device reference)\n  %s\n", written ? "this shows it" : "the files could not be written",
           command.data ? command.data : "");
    clattn__text_free(&command);
}
