/* OpenCL found at run time: a table of its functions, loaded for one context and closed with it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Nothing here is global, so that two contexts may load and unload in any order, and a machine without OpenCL costs a
 * sentence.
 */
#ifndef CLATTN_OPENCL_LOADER_H
#define CLATTN_OPENCL_LOADER_H

#include <stdbool.h>
#include <stddef.h>

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#if defined(__APPLE__)
#include <OpenCL/cl.h>
#else
#include <CL/cl.h>
#endif

/* The functions of OpenCL 1.2 that clattn calls, without their prefix. */
#define CLATTN__OPENCL_FUNCTIONS(X)                                                                                            \
    X(GetPlatformIDs)                                                                                                          \
    X(GetPlatformInfo)                                                                                                         \
    X(GetDeviceIDs)                                                                                                            \
    X(GetDeviceInfo)                                                                                                           \
    X(CreateSubDevices)                                                                                                        \
    X(ReleaseDevice)                                                                                                           \
    X(CreateContext)                                                                                                           \
    X(RetainContext)                                                                                                           \
    X(ReleaseContext)                                                                                                          \
    X(GetContextInfo)                                                                                                          \
    X(CreateCommandQueue)                                                                                                      \
    X(ReleaseCommandQueue)                                                                                                     \
    X(GetCommandQueueInfo)                                                                                                     \
    X(CreateBuffer)                                                                                                            \
    X(ReleaseMemObject)                                                                                                        \
    X(GetMemObjectInfo)                                                                                                        \
    X(CreateProgramWithSource)                                                                                                 \
    X(CreateProgramWithBinary)                                                                                                 \
    X(BuildProgram)                                                                                                            \
    X(ReleaseProgram)                                                                                                          \
    X(GetProgramBuildInfo)                                                                                                     \
    X(GetProgramInfo)                                                                                                          \
    X(CreateKernel)                                                                                                            \
    X(GetKernelInfo)                                                                                                           \
    X(GetKernelArgInfo)                                                                                                        \
    X(ReleaseKernel)                                                                                                           \
    X(SetKernelArg)                                                                                                            \
    X(GetKernelWorkGroupInfo)                                                                                                  \
    X(EnqueueNDRangeKernel)                                                                                                    \
    X(EnqueueReadBuffer)                                                                                                       \
    X(EnqueueWriteBuffer)                                                                                                      \
    X(EnqueueMapBuffer)                                                                                                        \
    X(EnqueueUnmapMemObject)                                                                                                   \
    X(EnqueueMarkerWithWaitList)                                                                                               \
    X(EnqueueBarrierWithWaitList)                                                                                              \
    X(GetEventInfo)                                                                                                            \
    X(WaitForEvents)                                                                                                           \
    X(RetainEvent)                                                                                                             \
    X(ReleaseEvent)                                                                                                            \
    X(GetEventProfilingInfo)                                                                                                   \
    X(Flush)                                                                                                                   \
    X(Finish)

typedef struct clattn__opencl_api {
    void *library;
#define CLATTN_X(name) __typeof__(cl##name) *name;
    CLATTN__OPENCL_FUNCTIONS(CLATTN_X)
#undef CLATTN_X
} clattn__opencl_api;

/* Load the table. On failure the table is empty and `why` holds a sentence. */
bool clattn__opencl_load(clattn__opencl_api *api, char *why, size_t why_size);
void clattn__opencl_unload(clattn__opencl_api *api);

/* Between these two one thread of the process at a time: drivers set themselves up at the first question about their devices,
 * and threads that ask together crash some of them (PoCL 3). What is shared is the driver, so the lock is, too. */
void clattn__opencl_discovery_begin(void);
void clattn__opencl_discovery_end(void);

/* "CL_OUT_OF_RESOURCES"; "an unknown code" for what OpenCL 1.2 does not name. */
const char *clattn__opencl_code(cl_int code);

#endif
