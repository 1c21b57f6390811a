# SPDX-License-Identifier: Apache-2.0
#
# The native backend. Appends to CLATTN_SOURCES: the backend, one generated C file for each kernel row and instruction-set
# level, and the list of them; and to CLATTN_INCLUDES: where those files find what they include.

include(native_kernels)
clattn_native_kernels(generated)
list(APPEND CLATTN_SOURCES native/backend.c native/features.c native/processor.c ${generated})
list(APPEND CLATTN_INCLUDES ${CMAKE_CURRENT_SOURCE_DIR}/native ${PROJECT_SOURCE_DIR}/kernels)
