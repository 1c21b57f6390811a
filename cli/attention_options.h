/* What `attend` and `mha` have in common: options that say which softmax.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_CLI_ATTENTION_OPTIONS_H
#define CLATTN_CLI_ATTENTION_OPTIONS_H

#include "cli/job.h"

typedef struct attention_options {
    job_options job;
    cli_align causal;
    cli_integer past_len;
    cli_real scale;
    cli_integer algorithm; /* as clattn_algorithm counts */
} attention_options;

/* clang-format off */
#define ATTENTION_OPTIONS                                                                                                \
    {"causal", "ALIGN", "keep keys up to the query's position: top-left, bottom-right, past, or an integer offset",      \
     CLI_ALIGN, offsetof(attention_options, causal)},                                                                    \
    {"past-len", "N", "queries come after N earlier positions; for --causal past",                                       \
     CLI_INTEGER, offsetof(attention_options, past_len), .minimum = 0, .maximum = INT64_MAX},                            \
    {"scale", "S", "factor of the scores (default: 1 / sqrt(dim of a head))",                                            \
     CLI_REAL, offsetof(attention_options, scale)},                                                                      \
    {"algorithm", "auto|staged|fused", "auto: fused, unless scores or weights are asked for",                            \
     CLI_CHOICE, offsetof(attention_options, algorithm)}
/* clang-format on */

/* Contradictions among them; says which and returns the exit code. */
int attention_options_check(const cli_command *command, const attention_options *options);
/* As the descriptors and the plan take them. */
clattn_attention_options attention_options_desc(const attention_options *options);
clattn_plan_options attention_options_plan(const attention_options *options);

#endif
