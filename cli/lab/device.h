/* A worker's OpenCL: one device, one program, the buffers of some launches.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * All functions write what went wrong into the reply and return false then.
 */
#ifndef CLATTN_CLI_LAB_DEVICE_H
#define CLATTN_CLI_LAB_DEVICE_H

#include "host/opencl/loader.h"
#include "protocol.h"

typedef struct lab_device {
    clattn__opencl_api api;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    cl_kernel kernel;
    char *text; /* the head of the shared memory */
    struct {
        cl_mem mem[LAB_MAX_BUFFERS];
        void *data[LAB_MAX_BUFFERS];
    } slots[LAB_SLOTS];
} lab_device;

bool lab_device_open(lab_device *, const char *name, lab_reply *);
/* Build the text as a program; the compiler's words, or the kernels and their arguments, come back in it. */
bool lab_device_build(lab_device *, const lab_request *, lab_reply *);
bool lab_device_prepare(lab_device *, const lab_request *, lab_reply *);
bool lab_device_launch(lab_device *, const lab_request *, lab_reply *);
bool lab_device_collect(lab_device *, const lab_request *, lab_reply *);

bool lab_device_fail(lab_reply *, const char *call, cl_int code);

#endif
