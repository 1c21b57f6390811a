# Write the commit that is being built, and whether files differ from it, as C macros; only when it changed.
#
# SPDX-License-Identifier: Apache-2.0
#
#   cmake -DSOURCE=directory -DOUTPUT=commit.h -P commit.cmake
set(commit "")
set(dirty 0)
find_program(GIT git)
if(GIT AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse HEAD OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND ${GIT} -C ${SOURCE} status --porcelain --untracked-files=no
    OUTPUT_VARIABLE changes OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(changes)
    set(dirty 1)
  endif()
endif()
set(text "#define CLATTN_BENCH_COMMIT \"${commit}\"\n#define CLATTN_BENCH_DIRTY ${dirty}\n")
set(before "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT text STREQUAL before)
  file(WRITE ${OUTPUT} "${text}")
endif()
