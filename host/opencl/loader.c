/* OpenCL found at run time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "loader.h"

#include <pthread.h>
#include <string.h>

#include "../library.h"

#if defined(__APPLE__)
static const char *const library_names[] = {"/System/Library/Frameworks/OpenCL.framework/OpenCL", NULL};
#else
static const char *const library_names[] = {"libOpenCL.so.1", "libOpenCL.so", NULL};
#endif

bool clattn__opencl_load(clattn__opencl_api *api, char *why, size_t why_size) {
    memset(api, 0, sizeof *api);
    void *library = clattn__library_open(library_names, why, why_size);
    if (!library) return false;
#define CLATTN_X(name) &&clattn__library_find(library, "cl" #name, &api->name, why, why_size)
    bool complete = true CLATTN__OPENCL_FUNCTIONS(CLATTN_X);
#undef CLATTN_X
    if (!complete) {
        clattn__library_close(library);
        memset(api, 0, sizeof *api);
        return false;
    }
    api->library = library;
    return true;
}

void clattn__opencl_unload(clattn__opencl_api *api) {
    clattn__library_close(api->library);
    memset(api, 0, sizeof *api);
}

static pthread_mutex_t discovery = PTHREAD_MUTEX_INITIALIZER;

void clattn__opencl_discovery_begin(void) { pthread_mutex_lock(&discovery); }
void clattn__opencl_discovery_end(void) { pthread_mutex_unlock(&discovery); }

#define CODES(X)                                                                                                               \
    X(CL_SUCCESS)                                                                                                              \
    X(CL_DEVICE_NOT_FOUND)                                                                                                     \
    X(CL_DEVICE_NOT_AVAILABLE)                                                                                                 \
    X(CL_COMPILER_NOT_AVAILABLE)                                                                                               \
    X(CL_MEM_OBJECT_ALLOCATION_FAILURE)                                                                                        \
    X(CL_OUT_OF_RESOURCES)                                                                                                     \
    X(CL_OUT_OF_HOST_MEMORY)                                                                                                   \
    X(CL_PROFILING_INFO_NOT_AVAILABLE)                                                                                         \
    X(CL_MEM_COPY_OVERLAP)                                                                                                     \
    X(CL_BUILD_PROGRAM_FAILURE)                                                                                                \
    X(CL_MAP_FAILURE)                                                                                                          \
    X(CL_MISALIGNED_SUB_BUFFER_OFFSET)                                                                                         \
    X(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)                                                                            \
    X(CL_COMPILE_PROGRAM_FAILURE)                                                                                              \
    X(CL_LINKER_NOT_AVAILABLE)                                                                                                 \
    X(CL_LINK_PROGRAM_FAILURE)                                                                                                 \
    X(CL_DEVICE_PARTITION_FAILED)                                                                                              \
    X(CL_KERNEL_ARG_INFO_NOT_AVAILABLE)                                                                                        \
    X(CL_INVALID_VALUE)                                                                                                        \
    X(CL_INVALID_DEVICE_TYPE)                                                                                                  \
    X(CL_INVALID_PLATFORM)                                                                                                     \
    X(CL_INVALID_DEVICE)                                                                                                       \
    X(CL_INVALID_CONTEXT)                                                                                                      \
    X(CL_INVALID_QUEUE_PROPERTIES)                                                                                             \
    X(CL_INVALID_COMMAND_QUEUE)                                                                                                \
    X(CL_INVALID_HOST_PTR)                                                                                                     \
    X(CL_INVALID_MEM_OBJECT)                                                                                                   \
    X(CL_INVALID_BINARY)                                                                                                       \
    X(CL_INVALID_BUILD_OPTIONS)                                                                                                \
    X(CL_INVALID_PROGRAM)                                                                                                      \
    X(CL_INVALID_PROGRAM_EXECUTABLE)                                                                                           \
    X(CL_INVALID_KERNEL_NAME)                                                                                                  \
    X(CL_INVALID_KERNEL_DEFINITION)                                                                                            \
    X(CL_INVALID_KERNEL)                                                                                                       \
    X(CL_INVALID_ARG_INDEX)                                                                                                    \
    X(CL_INVALID_ARG_VALUE)                                                                                                    \
    X(CL_INVALID_ARG_SIZE)                                                                                                     \
    X(CL_INVALID_KERNEL_ARGS)                                                                                                  \
    X(CL_INVALID_WORK_DIMENSION)                                                                                               \
    X(CL_INVALID_WORK_GROUP_SIZE)                                                                                              \
    X(CL_INVALID_WORK_ITEM_SIZE)                                                                                               \
    X(CL_INVALID_GLOBAL_OFFSET)                                                                                                \
    X(CL_INVALID_EVENT_WAIT_LIST)                                                                                              \
    X(CL_INVALID_EVENT)                                                                                                        \
    X(CL_INVALID_OPERATION)                                                                                                    \
    X(CL_INVALID_BUFFER_SIZE)                                                                                                  \
    X(CL_INVALID_GLOBAL_WORK_SIZE)                                                                                             \
    X(CL_INVALID_PROPERTY)                                                                                                     \
    X(CL_INVALID_COMPILER_OPTIONS)                                                                                             \
    X(CL_INVALID_LINKER_OPTIONS)                                                                                               \
    X(CL_INVALID_DEVICE_PARTITION_COUNT)

const char *clattn__opencl_code(cl_int code) {
    switch (code) {
#define CLATTN_X(name)                                                                                                         \
    case name:                                                                                                                 \
        return #name;
        CODES(CLATTN_X)
#undef CLATTN_X
    case -1001:
        return "CL_PLATFORM_NOT_FOUND_KHR";
    default:
        return "an unknown code";
    }
}
