# The OpenCL backend, for host/CMakeLists.txt: appends to CLATTN_SOURCES, CLATTN_DEFINITIONS and CLATTN_INCLUDES.
#
# SPDX-License-Identifier: Apache-2.0
#
# OpenCL and CLBlast are loaded at run time, so that a build needs their headers alone (CLATTN_OPENCL_INCLUDE and
# CLATTN_CLBLAST_INCLUDE, found by the top CMakeLists.txt). Without CL/cl.h the backend is opencl/absent.c, which says "this
# build has no OpenCL"; without clblast_c.h the CLBLAST rows say the same of CLBlast.
if(CLATTN_OPENCL_INCLUDE)
  include(embed)
  clattn_embed_kernels(kernel_sources)
  list(APPEND CLATTN_SOURCES
    opencl/backend.c opencl/binary.c opencl/clblast.c opencl/context.c opencl/devices.c opencl/enqueue.c opencl/host_run.c opencl/launch.c
    opencl/loader.c opencl/program.c opencl/split.c ${kernel_sources})
  list(APPEND CLATTN_DEFINITIONS CLATTN_HAVE_OPENCL)
  list(APPEND CLATTN_INCLUDES ${CLATTN_OPENCL_INCLUDE})
  if(CLATTN_CLBLAST_INCLUDE)
    list(APPEND CLATTN_DEFINITIONS CLATTN_HAVE_CLBLAST)
    list(APPEND CLATTN_INCLUDES ${CLATTN_CLBLAST_INCLUDE})
  endif()
else()
  list(APPEND CLATTN_SOURCES opencl/absent.c)
endif()
list(REMOVE_DUPLICATES CLATTN_INCLUDES)
