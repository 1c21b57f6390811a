/* SPDX-License-Identifier: Apache-2.0 */
#include "patched_kernel.h"

#include <stdlib.h>
#include <string.h>

#include "../host/opencl/opencl.h"

static struct {
    const clattn__row *row;
    char *text;
} patch;

static void add_macros(clattn__text *options, const clattn__macro *macros) {
    for (const clattn__macro *m = macros; m < macros + CLATTN__MAX_MACROS && m->name; m++)
        clattn__text_add(options, " -D %s=%d", m->name, m->value);
}

static cl_kernel build_patched(clattn__opencl *cl, const clattn__step *step) {
    clattn__text options = {0};
    clattn__text_add(&options, "-cl-std=CL1.2 -cl-mad-enable");
    add_macros(&options, step->row->macros);
    add_macros(&options, step->variant.macros);
    cl_int code;
    cl_program program = cl->api.CreateProgramWithSource(cl->cl, 1, (const char *[]){patch.text}, NULL, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    ck_assert_int_eq(cl->api.BuildProgram(program, 1, &cl->device, options.data, NULL, NULL), CL_SUCCESS);
    clattn__text_free(&options);
    cl_kernel kernel = cl->api.CreateKernel(program, clattn__roles[step->row->role].entry, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    cl->api.ReleaseProgram(program);
    return kernel;
}

static clattn_status prepare(clattn_plan *plan, clattn__step *step) {
    if (step->row != patch.row) return clattn__backend_opencl.prepare(plan, step);
    step->prepared = build_patched(clattn__opencl_of(plan->context), step);
    return CLATTN_OK;
}

void patch_kernel(clattn_context *context, const clattn__row *row, const char *from, const char *to) {
    static clattn__backend backend;
    const char *text = clattn__kernel_source(row->source);
    const char *at = text ? strstr(text, from) : NULL;
    ck_assert_msg(at != NULL, "%s: there is no \"%s\" in %s", row->name, from, row->source);
    free(patch.text);
    patch.row = row;
    patch.text = test_alloc(strlen(text) + strlen(to) + 1, 1);
    memcpy(patch.text, text, (size_t)(at - text));
    strcpy(patch.text + (at - text), to);
    strcat(patch.text, at + strlen(from));
    backend = clattn__backend_opencl;
    backend.prepare = prepare;
    context->backend = &backend;
}
