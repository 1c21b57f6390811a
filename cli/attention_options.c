/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/attention_options.h"

#include <math.h>
#include <string.h>

/* ---- alignment --------------------------------------------------------------------------------------------------- */

/* top-left is the offset 0. */
static bool same_align(const cli_align *a, const cli_align *b) {
    bool offset_a = a->align == CLATTN_ALIGN_TOP_LEFT || a->align == CLATTN_ALIGN_OFFSET;
    bool offset_b = b->align == CLATTN_ALIGN_TOP_LEFT || b->align == CLATTN_ALIGN_OFFSET;
    return offset_a && offset_b ? a->offset == b->offset : a->align == b->align;
}

/* --causal-offset is --causal, and --causal and --align are one alignment: `align` holds it afterwards. */
static int resolve_align(const cli_command *command, attention_options *options) {
    const cli_align offset = {true, CLATTN_ALIGN_OFFSET, options->causal_offset.value};
    if (options->causal_offset.given && options->causal.given && !same_align(&offset, &options->causal))
        return cli_fail(command->name, CLI_USAGE, "--causal-offset and --causal name different alignments");
    if (options->causal_offset.given && !options->causal.given) options->causal = offset;
    if (options->causal.given && options->align.given && !same_align(&options->causal, &options->align))
        return cli_fail(command->name, CLI_USAGE, "--%s and --align name different alignments",
                        options->causal_offset.given ? "causal-offset" : "causal");
    if (options->causal.given) options->align = options->causal;
    return CLI_SUCCESS;
}

/* Numbers left and right; -1,-1 is every key, which is no window. */
static bool has_window(const attention_options *options) {
    return options->window.count > 0 && (options->window.values[0] >= 0 || options->window.values[1] >= 0);
}

/* A past moves rotary embedding too, with or without a mask. */
static bool past_rotates(const attention_options *options) {
    return options->job.paths[CLATTN_TENSOR_ROTARY_COS] != NULL && options->align.align == CLATTN_ALIGN_PAST;
}

static int check_window(const cli_command *command, const attention_options *options) {
    bool alibi = options->standard_alibi || options->job.paths[CLATTN_TENSOR_ALIBI_SLOPES] != NULL;
    if (options->window.count != 0 && options->window.count != 2)
        return cli_fail(command->name, CLI_USAGE, "--window wants two numbers, left and right, such as 128,0");
    if (options->align.given && !options->causal.given && options->window.count == 0 && !alibi && !past_rotates(options))
        return cli_fail(command->name, CLI_USAGE, "--align is for --causal, --window and --alibi, and none of them is given");
    return CLI_SUCCESS;
}

/* How many positions came before is said by a cache, where there is one. */
static int check_past_len(const cli_command *command, const attention_options *options) {
    const char *const *paths = options->job.paths;
    bool past = options->align.given && options->align.align == CLATTN_ALIGN_PAST;
    bool cache = paths[CLATTN_TENSOR_PAST_K] != NULL || paths[CLATTN_TENSOR_PAST_LENGTHS] != NULL;
    if (options->past_len.given && cache)
        return cli_fail(command->name, CLI_USAGE, "--past-len is for where there is no cache, and --%s is given",
                        paths[CLATTN_TENSOR_PAST_K] != NULL ? "past-k" : "past-lengths");
    if (past && !cache && !options->past_len.given)
        return cli_fail(command->name, CLI_USAGE, "--%s past needs --past-len N, or a cache",
                        options->causal.given ? "causal" : "align");
    if (options->past_len.given && !past)
        return cli_fail(command->name, CLI_USAGE, "--past-len is for --causal past and --align past, and neither is given");
    return CLI_SUCCESS;
}

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

static int check_scale(const cli_command *command, const attention_options *options) {
    if (!options->scale.given || isfinite((float)options->scale.value)) return CLI_SUCCESS;
    return cli_fail(command->name, CLI_USAGE, "--scale %g is too large for float32", options->scale.value);
}

/* What is a matrix of scores cannot be had without one. */
static int check_matrix(const cli_command *command, const attention_options *options) {
    static const char *const without[] = {"what --require asks for", NULL, "--algorithm fused", "--algorithm split"};
    const char *const *paths = options->job.paths;
    int64_t algorithm = options->algorithm.value;
    if (options->require && algorithm == CLATTN_ALGORITHM_STAGED)
        return cli_fail(command->name, CLI_USAGE, "--algorithm staged holds a matrix of scores, and --require forbids it");
    if (paths[CLATTN_TENSOR_WEIGHTS] == NULL && paths[CLATTN_TENSOR_SCORES] == NULL) return CLI_SUCCESS;
    if (without[algorithm] == NULL || (algorithm == CLATTN_ALGORITHM_AUTO && !options->require)) return CLI_SUCCESS;
    return cli_fail(command->name, CLI_USAGE, "%s never has --%s in memory; use --algorithm staged or auto", without[algorithm],
                    paths[CLATTN_TENSOR_WEIGHTS] != NULL ? "weights" : "scores");
}

int attention_options_resolve(const cli_command *command, attention_options *options) {
    const char **alibi = &options->job.paths[CLATTN_TENSOR_ALIBI_SLOPES];
    options->standard_alibi = *alibi != NULL && strcmp(*alibi, "standard") == 0;
    if (options->standard_alibi) *alibi = NULL;
    int exit_code = resolve_align(command, options);
    if (exit_code == CLI_SUCCESS) exit_code = check_past_len(command, options);
    if (exit_code == CLI_SUCCESS) exit_code = check_window(command, options);
    if (exit_code == CLI_SUCCESS) exit_code = check_scale(command, options);
    return exit_code == CLI_SUCCESS ? check_matrix(command, options) : exit_code;
}

/* A file of one number and no dimension holds for every key; one of shape (1,) for the first key alone. */
static void spread(job *job, clattn_tensor_id id, int64_t len_kv) {
    const npy_array *array = &job->inputs[id];
    if (array->data == NULL || array->header.rank > 0) return;
    job->tensors[id].size[3] = len_kv;
    job->tensors[id].stride[3] = 0;
}

/* Whether it matters where queries stand. */
static bool stands(const clattn_attention_options *desc) {
    return desc->causal || desc->has_window || desc->alibi || desc->alibi_slopes.dtype != CLATTN_ABSENT;
}

void attention_options_note(const job *job, const attention_options *options, const clattn_attention_options *desc,
                            int64_t len_q, int64_t len_kv) {
    if (options->align.given || !stands(desc) || (len_q == len_kv && desc->kv_lengths.dtype == CLATTN_ABSENT)) return;
    cli_note(job->command->name,
             "query 0 stands at key 0 (--align top-left), since %lld queries and %lld keys were given without --align; "
             "FlashAttention aligns bottom-right",
             (long long)len_q, (long long)len_kv);
}

clattn_attention_options attention_options_desc(job *job, const attention_options *options, int64_t len_kv) {
    const clattn_tensor *tensors = job->tensors;
    spread(job, CLATTN_TENSOR_MASK, len_kv);
    spread(job, CLATTN_TENSOR_BIAS, len_kv);
    clattn_attention_options desc = {
        .has_scale = options->scale.given,
        .causal = options->causal.given,
        .scale = options->scale.value,
        .softcap = options->softcap.value,
        .alibi = options->standard_alibi,
        .mask = tensors[CLATTN_TENSOR_MASK],
        .bias = tensors[CLATTN_TENSOR_BIAS],
        .alibi_slopes = tensors[CLATTN_TENSOR_ALIBI_SLOPES],
        .sinks = tensors[CLATTN_TENSOR_SINKS],
        .kv_lengths = tensors[CLATTN_TENSOR_KV_LENGTHS],
    };
    if (has_window(options)) {
        desc.has_window = 1;
        desc.window_left = options->window.values[0];
        desc.window_right = options->window.values[1];
    }
    /* Nothing stands anywhere where nothing depends on it: an --align beside a window of every key. */
    if (stands(&desc) || past_rotates(options)) {
        desc.align = options->align.align;
        desc.offset = options->align.offset;
        desc.past_len = options->past_len.value;
    }
    return desc;
}

clattn_plan_options attention_options_plan(const attention_options *options) {
    clattn_plan_options plan = job_plan_options(&options->job);
    plan.algorithm = (clattn_algorithm)options->algorithm.value;
    plan.require_fused = options->require;
    return plan;
}
