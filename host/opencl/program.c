/* Kernel rows to kernels: programs built lazily, once for each context, source and set of macros.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "opencl.h"

typedef struct clattn__opencl_program {
    struct clattn__opencl_program *next;
    const char *source; /* path, of the row */
    char *options;
    cl_program program;
    bool kept; /* for other processes, or not worth it any more */
} cached_program;

/* ---- programs ------------------------------------------------------------------------------------------------------ */

static clattn_status fail_build(clattn_context *context, cl_program program, const char *source, const char *options,
                                cl_int code) {
    clattn__opencl *cl = clattn__opencl_of(context);
    size_t size = 0;
    char *log = NULL;
    if (cl->api.GetProgramBuildInfo(program, cl->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size) == CL_SUCCESS && size > 0)
        log = calloc(size + 1, 1);
    if (log && cl->api.GetProgramBuildInfo(program, cl->device, CL_PROGRAM_BUILD_LOG, size, log, NULL) != CL_SUCCESS)
        log[0] = 0;
    const clattn_status kind = code == CL_OUT_OF_HOST_MEMORY ? CLATTN_ERROR_MEMORY : CLATTN_ERROR_BUILD;
    clattn_status status = clattn__fail(context, kind, "%s does not build with %s: %s (%d)\n%s", source, options,
                                        clattn__opencl_code(code), code, log && log[0] ? log : "(the driver gives no log)");
    free(log);
    return status;
}

static clattn_status build_program(clattn_context *context, const char *path, const char *options, cl_program *program) {
    clattn__opencl *cl = clattn__opencl_of(context);
    const char *text = clattn__kernel_source(path);
    if (!text) return clattn__fail(context, CLATTN_ERROR_INTERNAL, "no kernel file %s is embedded in this library", path);
    cl_int code;
    cl_program made = cl->api.CreateProgramWithSource(cl->cl, 1, &text, NULL, &code);
    if (!made) return clattn__opencl_fail(context, "clCreateProgramWithSource", code);
    context->builds++; /* under build_lock */
    code = cl->api.BuildProgram(made, 1, &cl->device, options, NULL, NULL);
    if (code != CL_SUCCESS) {
        clattn_status status = fail_build(context, made, path, options, code);
        cl->api.ReleaseProgram(made);
        return status;
    }
    clattn__log(context, CLATTN_LOG_INFO, "built %s with %s", path, options);
    *program = made;
    return CLATTN_OK;
}

/* Find or build, under cl->build_lock: two threads that want the same program build it once. On success *options is the cache's. */
static clattn_status find_program(clattn_context *context, const char *path, char **options, cl_program *program) {
    clattn__opencl *cl = clattn__opencl_of(context);
    for (cached_program *p = cl->programs; p; p = p->next) {
        if (strcmp(p->source, path) != 0 || strcmp(p->options, *options) != 0) continue;
        *program = p->program;
        return CLATTN_OK;
    }
    cached_program *added = calloc(1, sizeof *added);
    if (!added) return clattn__fail(context, CLATTN_ERROR_MEMORY, "no memory for a program");
    added->program = clattn__opencl_program_load(context, path, *options);
    added->kept = added->program != NULL;
    clattn_status status = added->kept ? CLATTN_OK : build_program(context, path, *options, &added->program);
    if (status != CLATTN_OK) {
        free(added);
        return status;
    }
    added->source = path;
    added->options = *options;
    *options = NULL;
    added->next = cl->programs;
    cl->programs = added;
    *program = added->program;
    return CLATTN_OK;
}

/* Called when a plan is whole: by then its kernels have run in the self-check, and a driver that compiles at the first launch,
 * as PoCL does, has done so. */
void clattn__opencl_programs_keep(clattn_context *context) {
    clattn__opencl *cl = clattn__opencl_of(context);
    pthread_mutex_lock(&cl->build_lock);
    for (cached_program *p = cl->programs; p; p = p->next) {
        if (!p->kept) clattn__opencl_program_store(context, p->program, p->source, p->options);
        p->kept = true;
    }
    pthread_mutex_unlock(&cl->build_lock);
}

void clattn__opencl_programs_free(clattn__opencl *cl) {
    while (cl->programs) {
        cached_program *program = cl->programs;
        cl->programs = program->next;
        cl->api.ReleaseProgram(program->program);
        free(program->options);
        free(program);
    }
}

/* ---- kernels ------------------------------------------------------------------------------------------------------- */

/* The compiler knows how many registers and how much local memory a kernel takes; the device says what it has. */
static clattn_status check_limits(clattn_context *context, const clattn__row *row, cl_kernel kernel) {
    clattn__opencl *cl = clattn__opencl_of(context);
    const size_t wanted = (size_t)clattn__row_macro(row, "WORK_GROUP", 1);
    size_t work_group = 0;
    cl_ulong local = 0;
    cl_int code =
        cl->api.GetKernelWorkGroupInfo(kernel, cl->device, CL_KERNEL_WORK_GROUP_SIZE, sizeof work_group, &work_group, NULL);
    if (code == CL_SUCCESS)
        code = cl->api.GetKernelWorkGroupInfo(kernel, cl->device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof local, &local, NULL);
    if (code != CL_SUCCESS) return clattn__opencl_fail(context, "clGetKernelWorkGroupInfo", code);
    if (work_group < wanted && !context->device.understates_work_groups)
        return clattn__fail(context, CLATTN_ERROR_BUILD, "%s needs work-groups of %zu; this device runs it with at most %zu",
                            row->name, wanted, work_group);
    if (local > context->device.info.local_bytes)
        return clattn__fail(context, CLATTN_ERROR_BUILD, "%s needs %llu bytes of local memory; this device has %llu", row->name,
                            (unsigned long long)local, (unsigned long long)context->device.info.local_bytes);
    return CLATTN_OK;
}

clattn_status clattn__opencl_kernel(clattn_context *context, const clattn__step *step, cl_kernel *out) {
    clattn__opencl *cl = clattn__opencl_of(context);
    const clattn__row *row = step->row;
    clattn__text options = {0};
    clattn__row_options(row, &step->variant, context->device.mma, &options);
    if (options.failed) {
        clattn__text_free(&options);
        return clattn__fail(context, CLATTN_ERROR_MEMORY, "no memory for the build options of %s", row->name);
    }
    cl_program program = NULL;
    pthread_mutex_lock(&cl->build_lock);
    clattn_status status = find_program(context, row->source, &options.data, &program);
    pthread_mutex_unlock(&cl->build_lock);
    clattn__text_free(&options);
    if (status != CLATTN_OK) return status;

    cl_int code;
    cl_kernel kernel = cl->api.CreateKernel(program, clattn__roles[row->role].entry, &code);
    if (!kernel)
        return clattn__fail(context, CLATTN_ERROR_BUILD, "clCreateKernel of %s in %s: %s (%d)", clattn__roles[row->role].entry,
                            row->source, clattn__opencl_code(code), code);
    status = check_limits(context, row, kernel);
    if (status != CLATTN_OK) {
        cl->api.ReleaseKernel(kernel);
        return status;
    }
    *out = kernel;
    return CLATTN_OK;
}
