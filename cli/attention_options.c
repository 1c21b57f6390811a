/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/attention_options.h"

#include <math.h>

int attention_options_check(const cli_command *command, const attention_options *options) {
    bool past = options->causal.given && options->causal.align == CLATTN_ALIGN_PAST;
    if (past && !options->past_len.given) return cli_fail(command->name, CLI_USAGE, "--causal past needs --past-len N");
    if (!past && options->past_len.given)
        return cli_fail(command->name, CLI_USAGE, "--past-len is for --causal past, which is not given");
    if (options->scale.given && !isfinite((float)options->scale.value))
        return cli_fail(command->name, CLI_USAGE, "--scale %g is too large for float32", options->scale.value);
    if (options->algorithm.value != CLATTN_ALGORITHM_FUSED) return CLI_SUCCESS;
    const char *const *paths = options->job.paths;
    if (paths[CLATTN_TENSOR_WEIGHTS] == NULL && paths[CLATTN_TENSOR_SCORES] == NULL) return CLI_SUCCESS;
    return cli_fail(command->name, CLI_USAGE, "--algorithm fused never has --%s in memory; use staged or auto",
                    paths[CLATTN_TENSOR_WEIGHTS] != NULL ? "weights" : "scores");
}

clattn_attention_options attention_options_desc(const attention_options *options) {
    return (clattn_attention_options){
        .has_scale = options->scale.given,
        .scale = options->scale.value,
        .causal = options->causal.given,
        .align = options->causal.align,
        .past_len = options->past_len.value,
        .offset = options->causal.offset,
    };
}

clattn_plan_options attention_options_plan(const attention_options *options) {
    clattn_plan_options plan = CLATTN_PLAN_OPTIONS_INIT;
    plan.algorithm = (clattn_algorithm)options->algorithm.value;
    return plan;
}
