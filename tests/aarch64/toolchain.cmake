# Build for aarch64 on another machine and run what was built under QEMU. CLATTN_AARCH64_ROOT is where check_for_aarch64.sh
# unpacked Check.
#
# SPDX-License-Identifier: Apache-2.0
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# The build machine's libraries are none of this one's.
set(ENV{PKG_CONFIG_LIBDIR} ${CLATTN_AARCH64_ROOT}/usr/lib/aarch64-linux-gnu/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CLATTN_AARCH64_ROOT})
set(CMAKE_EXE_LINKER_FLAGS_INIT -L${CLATTN_AARCH64_ROOT}/usr/lib/aarch64-linux-gnu)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CLATTN_AARCH64_ROOT)
