/* What `attend` and `mha` have in common: options that say which softmax.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_CLI_ATTENTION_OPTIONS_H
#define CLATTN_CLI_ATTENTION_OPTIONS_H

#include "cli/job.h"

typedef struct attention_options {
    job_options job;
    cli_align causal, align;
    cli_integer causal_offset;
    cli_integer past_len;
    cli_integers window; /* left, right */
    cli_real scale, softcap;
    bool standard_alibi;   /* --alibi standard: no file */
    cli_integer algorithm; /* as clattn_algorithm counts */
    bool require;
} attention_options;

/* clang-format off */
#define ATTENTION_OPTIONS                                                                                                \
    JOB_FILE("mask", MASK, "*|k|lk|hlk|bhlk", "true: attend; broadcasts to (batch, heads, len, keys) as in NumPy, but "  \
             "keys past a shorter last dimension are masked", JOB_ELEMENTS(BOOLEANS)),                                   \
    JOB_FILE("bias", BIAS, "*|k|lk|hlk|bhlk", "added to the scores, -inf masks; shapes as of --mask", JOB_ELEMENTS(BIAS)), \
    {"causal", "ALIGN", "keep keys up to the query's position: top-left, bottom-right, past, or an integer offset",      \
     CLI_ALIGN, offsetof(attention_options, causal)},                                                                    \
    {"causal-offset", "N", "the same as --causal N",                                                                     \
     CLI_INTEGER, offsetof(attention_options, causal_offset)},                                                           \
    {"align", "ALIGN", "where queries stand, for --window and --alibi without --causal: top-left, unless said",          \
     CLI_ALIGN, offsetof(attention_options, align)},                                                                     \
    {"past-len", "N", "queries come after N earlier positions; for past where there is no cache",                        \
     CLI_INTEGER, offsetof(attention_options, past_len), .minimum = 0, .maximum = INT64_MAX},                            \
    {"window", "L,R", "keep L keys before the query's position to R after it, both included; -1: all",                   \
     CLI_INTEGERS, offsetof(attention_options, window), .minimum = -1, .maximum = INT64_MAX},                            \
    {"scale", "S", "factor of the scores (default: 1 / sqrt(dim of a head))",                                            \
     CLI_REAL, offsetof(attention_options, scale)},                                                                      \
    {"softcap", "C", "C * tanh(score / C) before bias and mask; 0: none",                                                \
     CLI_REAL, offsetof(attention_options, softcap)},                                                                    \
    {"alibi", "standard|FILE", "subtract slope * |key - position|; slopes: (heads,) or (batch, heads)",                  \
     CLI_TEXT, offsetof(job_options, paths) + CLATTN_TENSOR_ALIBI_SLOPES * sizeof(const char *),                         \
     .tensor = CLATTN_TENSOR_ALIBI_SLOPES, .axes = "*h|bh", JOB_ELEMENTS(SINGLE)},                                       \
    JOB_FILE("sinks", SINKS, "*h|bh", "one more logit in each row's softmax: (heads,) or (batch, heads)",                \
             JOB_ELEMENTS(SINGLE)),                                                                                      \
    JOB_FILE("kv-lengths", KV_LENGTHS, "b", "(batch,), integers: how many keys each member has", JOB_ELEMENTS(COUNTS)),  \
    {"algorithm", "auto|staged|fused|split", "auto: fused or split, unless scores or weights are asked for",             \
     CLI_CHOICE, offsetof(attention_options, algorithm)},                                                                \
    {"require", NULL, "fail rather than hold a matrix of scores",                                                        \
     CLI_FLAG, offsetof(attention_options, require)}
/* clang-format on */

/* Contradictions among them; says which and returns the exit code. What one option says in place of another is then said by
 * the other alone. */
int attention_options_resolve(const cli_command *command, attention_options *options);
/* As the descriptors and the plan take them, once the files are loaded. len_kv: what a mask of one number broadcasts to. */
clattn_attention_options attention_options_desc(job *job, const attention_options *options, int64_t len_kv);
/* Say where queries stand when the lengths leave that in doubt and nobody said it. */
void attention_options_note(const job *job, const attention_options *options, const clattn_attention_options *desc,
                            int64_t len_q, int64_t len_kv);
clattn_plan_options attention_options_plan(const attention_options *options);

#endif
