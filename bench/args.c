/* SPDX-License-Identifier: Apache-2.0 */
#include "args.h"

#include <string.h>

#include "cli/output.h"
#include "problem.h"

#define SIZE .minimum = 1, .maximum = 1 << 24

static const cli_option options[] = {
    {"device", "DEVICE", "auto, gpu, cpu, native, opencl, opencl:P:D, opencl:P:all or reference", CLI_TEXT,
     offsetof(bench_args, device)},
    {"threads", "N,...", "units to run on: native threads or OpenCL compute units", CLI_INTEGERS, offsetof(bench_args, threads),
     .minimum = 1, .maximum = 4096},
    {"len", "N,...", "lengths", CLI_INTEGERS, offsetof(bench_args, len), SIZE},
    {"kv-len", "N", "keys; as many as queries by default", CLI_INTEGER, offsetof(bench_args, kv_len), SIZE},
    {"batch", "N", "samples (1)", CLI_INTEGER, offsetof(bench_args, batch), SIZE},
    {"heads", "N", "query heads (8; for --growth 1)", CLI_INTEGER, offsetof(bench_args, heads), SIZE},
    {"kv-heads", "N", "key and value heads; as many by default", CLI_INTEGER, offsetof(bench_args, kv_heads), SIZE},
    {"head-dim", "N", "width of a head (64); d_model is heads times this", CLI_INTEGER, offsetof(bench_args, head_dim), SIZE},
    {"value-dim", "N", "width of a head's values; as wide by default", CLI_INTEGER, offsetof(bench_args, value_dim), SIZE},
    {"causal", "ALIGN", "top-left, bottom-right, past or an offset; no mask by default", CLI_ALIGN,
     offsetof(bench_args, causal)},
    {"window", "L,R", "attention: keys to the left and the right of a query's; -1: all", CLI_INTEGERS,
     offsetof(bench_args, window), .minimum = -1, .maximum = 1 << 24},
    {"dtype", "f32|f16|bf16|f64", "attention: the type of its elements (f32)", CLI_CHOICE, offsetof(bench_args, dtype)},
    {"algorithm", "auto|staged|fused|split", "of attention; each that suits by default", CLI_CHOICE,
     offsetof(bench_args, algorithm)},
    {"seed", "N", "of the random inputs (1)", CLI_INTEGER, offsetof(bench_args, seed), .minimum = 0, .maximum = 1LL << 52},
    {"peers", NULL, "OpenBLAS or CLBlast beside it", CLI_FLAG, offsetof(bench_args, peers)},
    {"torch", NULL, "attention: PyTorch's beside it, by the torch of python3, on a GPU that both see", CLI_FLAG,
     offsetof(bench_args, torch)},
    {"one-type", NULL, "attention: f16 and bf16 not beside f32", CLI_FLAG, offsetof(bench_args, one_type)},
    {"growth", NULL, "attention: time and memory as powers of the length, by default of one head on one unit, up to 32768",
     CLI_FLAG, offsetof(bench_args, growth)},
    {"isa", "LEVEL|all", "limits: the level of instructions, of those that `devices` lists (all)", CLI_TEXT,
     offsetof(bench_args, isa)},
    {"quick", NULL, "fewer lengths, at most 30 s", CLI_FLAG, offsetof(bench_args, quick)},
    {"limit", "SECONDS", "leave out what would take longer in all", CLI_INTEGER, offsetof(bench_args, limit), .minimum = 1,
     .maximum = 1 << 20},
    {"json", "FILE", "the records as JSON; - for standard output", CLI_TEXT, offsetof(bench_args, json)},
    {"csv", "FILE", "the records as CSV; - for standard output", CLI_TEXT, offsetof(bench_args, csv)},
    {"report", "FILE", "one HTML page with plots, which needs no network", CLI_TEXT, offsetof(bench_args, report)},
    {"markdown", NULL, "print a block to paste into an issue", CLI_FLAG, offsetof(bench_args, markdown)},
    {NULL},
};

static const char details[] =
    "Without a job, attention is set beside the recurrence that it replaced: core against core, layer against layer, and the "
    "LSTM, over a sweep of lengths; then the same work on 1, 2, ... all units; then a verdict computed from the figures.\n"
    "Jobs: attention, project, recurrence, limits, all. Two results: clattn bench compare A.json B.json.\n";

static const cli_command commands[] = {
    [BENCH_JOB_MAIN] = {"bench", "attention beside the recurrence, measured on this machine", options, .details = details},
    [BENCH_JOB_ATTENTION] = {"bench attention", "attention alone: full and causal, on one unit and on all", options},
    [BENCH_JOB_PROJECT] = {"bench project", "the projection of d_model by d_model, on one unit and on all", options},
    [BENCH_JOB_RECURRENCE] = {"bench recurrence", "the recurrences: loop and layer", options},
    [BENCH_JOB_LIMITS] = {"bench limits", "what the device can do at most: multiply-adds and bandwidth", options},
    [BENCH_JOB_ALL] = {"bench all", "limits, attention with peers, projections, recurrences, and the main job", options},
};

static const char *const job_names[] = {NULL, "attention", "project", "recurrence", "limits", "all"};

/* The job that argv[1] names, if it is no option. */
static bool read_job(bench_args *args, int argc, char **argv, int *exit_code) {
    args->job = BENCH_JOB_MAIN;
    if (argc < 2 || argv[1][0] == '-') return true;
    for (int job = BENCH_JOB_ATTENTION; job <= BENCH_JOB_ALL; job++)
        if (strcmp(argv[1], job_names[job]) == 0) {
            args->job = job;
            return true;
        }
    *exit_code =
        cli_fail("bench", CLI_USAGE, "%s is no job; it is attention, project, recurrence, limits, all or compare", argv[1]);
    return false;
}

clattn_dtype bench_args_dtype(const bench_args *args) {
    static const clattn_dtype types[] = {CLATTN_F32, CLATTN_F16, CLATTN_BF16, CLATTN_F64};
    return types[bench_args_or(args->dtype, 0)];
}

static bool is_all(const char *isa) {
    return strcmp(isa, "all") == 0;
}

const bench_isa *bench_args_isa(const bench_args *args) {
    return args->isa && !is_all(args->isa) ? bench_isa_named(args->isa) : NULL;
}

static const char *contradiction(const bench_args *args) {
    int64_t heads = bench_args_or(args->heads, args->growth ? 1 : 8), kv_heads = bench_args_or(args->kv_heads, heads);
    if (heads % kv_heads != 0) return "--heads must be a multiple of --kv-heads";
    if (args->window.count != 0 && args->window.count != 2) return "--window takes two numbers, L,R";
    if (args->window.count && args->window.values[0] < 0 && args->window.values[1] < 0) return "--window -1,-1 is no window";
    if (args->job != BENCH_JOB_ATTENTION && (args->window.count || args->dtype.given))
        return "--window and --dtype are of bench attention";
    if (args->job != BENCH_JOB_ATTENTION && (args->one_type || args->torch))
        return "--one-type and --torch are of bench attention";
    if (args->job != BENCH_JOB_ATTENTION && args->growth) return "--growth is of bench attention";
    if (args->growth && (args->peers || args->torch || args->kv_len.given))
        return "--growth goes without --peers, --torch and --kv-len";
    if (args->growth && (args->len.count == 1 || args->len.count == 2)) return "--growth takes three lengths or more";
    if (args->job != BENCH_JOB_LIMITS && args->isa) return "--isa is of bench limits; of attention it is --device native:LEVEL";
    if (args->isa && !is_all(args->isa) && !bench_isa_named(args->isa))
        return "--isa names no level that this processor has and this build was compiled for; `clattn devices` lists them";
    if (args->json && args->csv && strcmp(args->json, "-") == 0 && strcmp(args->csv, "-") == 0)
        return "--json - and --csv - both want standard output";
    if (args->markdown && bench_args_owns_stdout(args)) return "--markdown and a file named - both want standard output";
    const char *files[] = {args->json, args->csv, args->report};
    for (int a = 0; a < 3; a++)
        for (int b = a + 1; b < 3; b++)
            if (files[a] && files[b] && output_same_file(files[a], files[b])) return "two outputs name the same file";
    return NULL;
}

bool bench_args_owns_stdout(const bench_args *args) {
    return (args->json && strcmp(args->json, "-") == 0) || (args->csv && strcmp(args->csv, "-") == 0) ||
           (args->report && strcmp(args->report, "-") == 0);
}

bool bench_args_read(bench_args *args, int argc, char **argv, int *exit_code) {
    *args = (bench_args){0};
    if (!read_job(args, argc, argv, exit_code)) return false;
    const bench_job job = args->job;
    const int skip = job == BENCH_JOB_MAIN ? 0 : 1;
    if (cli_parse(&commands[job], argc - skip, argv + skip, args, exit_code) < 0) return false;
    const char *mistake = contradiction(args);
    if (mistake) *exit_code = cli_fail("bench", CLI_USAGE, "%s", mistake);
    return !mistake;
}
