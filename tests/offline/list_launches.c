/* list_launches FOLDER: launches of the main kernels for NVIDIA's GPUs, so that they can run where there is CUDA and no OpenCL.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A plan is made for a GPU that is not here: the host's own, with its choice of rows and its parameters. FOLDER receives the
 * kernels' sources, the inputs of small problems and what the reference makes of them, and launches.json, an array of
 *
 *   case    what it is; two or more entries of one case are built alike
 *   check   whether it is the small problem, whose inputs and expected output are files
 *   shape   fields of a record of `clattn bench`
 *   flops, tolerance, dtype, dim   of the whole output; dim is the length of its rows
 *   tensors  [{id, bytes, file, output}], workspace in bytes
 *   steps   [{row, entry, source, options, work_group, groups, params (in hexadecimal), buffers [id or "workspace"]}]
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../bench/problem.h"
#include "../../host/internal.h"

typedef struct launch_case {
    const char *name;
    bench_op op;
    clattn_dtype dtype;
    clattn_algorithm algorithm;
    int64_t heads_q, heads_kv, head_dim, len_q, len_kv, hidden;
    int causal, check;
} launch_case;

enum { TO_BE_TIMED = 8192, WIDTH = 4096 };

/* The small problem of a case stands first. Its lengths are no multiples of tiles. */
#define ATTENTION(name, dtype, dim)                                                                                            \
    {name, BENCH_OP_ATTENTION, dtype, CLATTN_ALGORITHM_FUSED, 2, 2, dim, 70, 70, 0, 1, 1},                                     \
        {name, BENCH_OP_ATTENTION, dtype, CLATTN_ALGORITHM_FUSED, 8, 8, dim, TO_BE_TIMED, TO_BE_TIMED, 0, 1, 0}, {             \
        name, BENCH_OP_ATTENTION, dtype, CLATTN_ALGORITHM_FUSED, 8, 8, dim, TO_BE_TIMED, TO_BE_TIMED, 0, 0, 0                  \
    }

static const launch_case cases[] = {
    ATTENTION("attention f16 d128", CLATTN_F16, 128),
    ATTENTION("attention f16 d64", CLATTN_F16, 64),
    ATTENTION("attention bf16 d128", CLATTN_BF16, 128),
    ATTENTION("attention f32 d128", CLATTN_F32, 128),
    ATTENTION("attention f32 d64", CLATTN_F32, 64),
    {"decode f16 d128", BENCH_OP_ATTENTION, CLATTN_F16, CLATTN_ALGORITHM_SPLIT, 4, 1, 128, 1, 700, 0, 0, 1},
    {"decode f16 d128", BENCH_OP_ATTENTION, CLATTN_F16, CLATTN_ALGORITHM_SPLIT, 32, 8, 128, 1, 4 * TO_BE_TIMED, 0, 0, 0},
    {"project f32", BENCH_OP_PROJECT, CLATTN_F32, CLATTN_ALGORITHM_AUTO, 1, 1, 72, 70, 70, 72, 0, 1},
    {"project f32", BENCH_OP_PROJECT, CLATTN_F32, CLATTN_ALGORITHM_AUTO, 1, 1, WIDTH, TO_BE_TIMED, TO_BE_TIMED, WIDTH, 0, 0},
};

/* ---- a GPU that is not here ---------------------------------------------------------------------------------------------- */

static clattn_status prepare_nothing(clattn_plan *plan, clattn__step *step) {
    (void)plan, (void)step;
    return CLATTN_OK;
}

static void release_nothing(clattn_context *context, clattn__step *step) {
    (void)context, (void)step;
}

static const clattn__backend absent = {.name = "absent", .prepare = prepare_nothing, .release = release_nothing};

/* What every NVIDIA GPU since compute capability 8.0 has. */
static const clattn__device nvidia = {
    .info = {.struct_size = sizeof(clattn_device_info), .id = "nvidia", .kind = CLATTN_DEVICE_OPENCL_GPU},
    .has_gpu_family = true,
    .gpu = CLATTN__NVIDIA,
    .mma = MMA_NVIDIA,
    .max_work_group = 1024,
    .local_bytes = 48 << 10,
    .max_params_bytes = 4096,
};

/* ---- output -------------------------------------------------------------------------------------------------------------- */

static bool write_file(const char *folder, const char *name, const void *data, size_t bytes) {
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return false;
    char *slash = strrchr(path, '/');
    *slash = 0;
    if (mkdir(path, 0777) != 0 && errno != EEXIST) return false;
    *slash = '/';
    FILE *file = fopen(path, "wb");
    if (!file) return false;
    const bool written = fwrite(data, 1, bytes, file) == bytes;
    return fclose(file) == 0 && written;
}

/* Tolerances are those of `clattn bench` (bench/verify.c), of the largest element of a row. */
static double tolerance_of(clattn_dtype dtype) {
    return dtype == CLATTN_F16 ? 1e-3 : dtype == CLATTN_BF16 ? 8e-3 : 5e-5;
}

static void print_shape(FILE *json, const launch_case *c, const bench_shape *s) {
    fprintf(json, "\"op\": \"%s\", \"batch\": 1, \"len_q\": %" PRId64 ", ", bench_op_name(s->op), s->len_q);
    if (c->op == BENCH_OP_PROJECT)
        fprintf(json, "\"d_in\": %" PRId64 ", \"hidden\": %" PRId64, s->d_in, s->hidden);
    else
        fprintf(json,
                "\"heads_q\": %" PRId64 ", \"heads_kv\": %" PRId64 ", \"len_kv\": %" PRId64 ", \"head_dim\": %" PRId64
                ", \"value_dim\": %" PRId64 ", \"causal\": \"%s\", \"window\": \"none\"",
                s->heads_q, s->heads_kv, s->len_kv, s->head_dim, s->value_dim, s->causal ? "bottom-right" : "none");
}

static bool print_tensors(FILE *json, const char *folder, const launch_case *c, int number, const bench_problem *problem) {
    bool written = true;
    for (size_t i = 0; i < problem->arg_count && written; i++) {
        const clattn_arg *arg = &problem->args[i];
        char name[64] = "";
        if (c->check) {
            snprintf(name, sizeof name, "data/%d.%s", number, clattn_tensor_name(arg->id));
            written = write_file(folder, name, arg->data, arg->bytes);
        }
        fprintf(json, "%s{\"id\": %d, \"bytes\": %zu, \"file\": \"%s\", \"output\": %s}", i ? ", " : "", (int)arg->id,
                arg->bytes, name, i + 1 == problem->arg_count ? "true" : "false");
    }
    return written;
}

static bool print_step(FILE *json, const char *folder, const clattn__step *step) {
    const clattn__role_info *role = &clattn__roles[step->row->role];
    const char *source = clattn__kernel_source(step->row->source);
    clattn__text options = {0};
    clattn__params params = step->params;
    clattn__row_options(step->row, &step->variant, nvidia.mma, &options);
    if (!source || !options.data || options.failed || step->repeat != 1) return false;
    fprintf(
        json,
        "{\"row\": \"%s\", \"entry\": \"%s\", \"source\": \"%s\", \"options\": \"%s\", \"work_group\": %d, \"groups\": %" PRId64
        ", \"buffers\": [",
        step->row->name, role->entry, step->row->source, options.data, clattn__row_macro(step->row, "WORK_GROUP", 1),
        step->params.groups);
    clattn__text_free(&options);
    for (int n = 0; n < role->buffers; n++) {
        const clattn__place *place = &step->buffers[n];
        params.base[n] = (i64)(place->offset / place->element);
        if (place->where == CLATTN__IN_WORKSPACE)
            fprintf(json, "%s\"workspace\"", n ? ", " : "");
        else
            fprintf(json, "%s%d", n ? ", " : "", (int)place->tensor);
    }
    fprintf(json, "], \"params\": \"");
    for (size_t n = 0; n < role->params_size; n++) fprintf(json, "%02x", ((const unsigned char *)&params)[n]);
    fprintf(json, "\"}");
    return write_file(folder, step->row->source, source, strlen(source));
}

static bool print_plan(FILE *json, const char *folder, const launch_case *c, int number, const bench_problem *problem,
                       const clattn_plan *plan) {
    const clattn_tensor out = bench_problem_output(problem);
    fprintf(json,
            "{\"case\": \"%s\", \"check\": %s, \"dtype\": \"%s\", \"dim\": %" PRId64 ", \"flops\": %.17g, \"tolerance\": %g, ",
            c->name, c->check ? "true" : "false", clattn_dtype_name(c->dtype), out.size[3], plan->flops,
            tolerance_of(c->dtype));
    fprintf(json, "\"workspace\": %zu, \"shape\": {", plan->workspace_bytes);
    print_shape(json, c, &problem->shape);
    fprintf(json, "}, \"tensors\": [");
    bool written = print_tensors(json, folder, c, number, problem);
    fprintf(json, "], \"steps\": [");
    for (size_t n = 0; n < plan->step_count && written; n++) {
        if (n) fprintf(json, ", ");
        written = print_step(json, folder, &plan->steps[n]);
    }
    fprintf(json, "]}");
    return written;
}

/* ---- cases --------------------------------------------------------------------------------------------------------------- */

static bool compute_expected(clattn_context *reference, bench_problem *problem) {
    clattn_plan *plan = NULL;
    clattn_status status = bench_plan_create(reference, problem->shape.op, &problem->desc, (bench_variant){0}, &plan);
    if (status == CLATTN_OK) status = clattn_plan_run(plan, problem->args, problem->arg_count);
    clattn_plan_destroy(plan);
    return status == CLATTN_OK;
}

static bool list_case(FILE *json, const char *folder, clattn_context *gpu, clattn_context *reference, int number) {
    const launch_case *c = &cases[number];
    const bench_shape shape = {.op = c->op,
                               .batch = 1,
                               .heads_q = c->heads_q,
                               .heads_kv = c->heads_kv,
                               .len_q = c->len_q,
                               .len_kv = c->len_kv,
                               .head_dim = c->head_dim,
                               .value_dim = c->head_dim,
                               .d_in = c->hidden,
                               .hidden = c->hidden,
                               .causal = c->causal,
                               .align = c->causal ? CLATTN_ALIGN_BOTTOM_RIGHT : CLATTN_ALIGN_TOP_LEFT,
                               .dtype = c->dtype};
    bench_problem problem;
    bench_error error;
    clattn_plan *plan = NULL;
    if (!c->check)
        bench_problem_describe(&problem, &shape);
    else if (!bench_problem_create(&problem, &shape, 1, &error)) {
        fprintf(stderr, "list_launches: %s: %s\n", c->name, error.text);
        return false;
    }
    const bench_variant variant = {.algorithm = c->algorithm};
    bool right = bench_plan_create(gpu, c->op, &problem.desc, variant, &plan) == CLATTN_OK;
    if (!right) fprintf(stderr, "list_launches: %s: %s\n", c->name, clattn__last_error(gpu));
    right =
        right && (!c->check || compute_expected(reference, &problem)) && print_plan(json, folder, c, number, &problem, plan);
    clattn_plan_destroy(plan);
    bench_problem_free(&problem);
    return right;
}

static clattn_context *open_reference(void) {
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    clattn_context *context = NULL;
    options.device = "reference";
    return clattn_context_create(&options, &context) == CLATTN_OK ? context : NULL;
}

static bool list_all(FILE *json, const char *folder) {
    clattn_context *reference = open_reference(), *gpu = open_reference();
    bool right = reference && gpu;
    const clattn__backend *own = right ? gpu->backend : NULL;
    if (right) gpu->backend = &absent, gpu->device = nvidia;
    fprintf(json, "[\n");
    for (int n = 0; n < (int)(sizeof cases / sizeof *cases) && right; n++) {
        if (n) fprintf(json, ",\n");
        right = list_case(json, folder, gpu, reference, n);
    }
    fprintf(json, "\n]\n");
    if (own) gpu->backend = own;
    clattn_context_destroy(gpu);
    clattn_context_destroy(reference);
    return right;
}

int main(int argc, char **argv) {
    char path[4096];
    if (argc != 2 || snprintf(path, sizeof path, "%s/launches.json", argv[1]) >= (int)sizeof path) {
        fprintf(stderr, "usage: list_launches FOLDER\n");
        return 2;
    }
    FILE *json = fopen(path, "w");
    if (!json) {
        fprintf(stderr, "list_launches: cannot write %s: %s\n", path, strerror(errno));
        return 1;
    }
    const bool right = list_all(json, argv[1]);
    if (fclose(json) == 0 && right) return 0;
    fprintf(stderr, "list_launches: %s is not whole\n", path);
    return 1;
}
