# Embed the kernels: turn every kernels/**/*.cl into a byte array of one C file.
#
# SPDX-License-Identifier: Apache-2.0
#
#   cmake -DROOT=kernels -DOUTPUT=kernel_sources.c -P embed.cmake
#
# `#include "..."` is resolved, relative to the file it stands in, once each, so that an OpenCL compiler needs no search path;
# #line directives keep its messages pointing at the files as written. The output defines
#   const char *clattn__kernel_source(const char *path);
# whose path is the one that kernels/rows.def names ("cpu/attention.cl").
#
# Included from a CMakeLists.txt instead, it defines clattn_embed_kernels(<variable>): the output's path goes to <variable>, and
# it is made again whenever a kernel or a header changes.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(CLATTN_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
  function(clattn_embed_kernels variable)
    set(root ${PROJECT_SOURCE_DIR}/kernels)
    set(output ${PROJECT_BINARY_DIR}/generated/kernel_sources.c)
    file(GLOB_RECURSE inputs CONFIGURE_DEPENDS ${root}/*.cl ${root}/*.h)
    add_custom_command(
      OUTPUT ${output}
      COMMAND ${CMAKE_COMMAND} -DROOT=${root} -DOUTPUT=${output} -P ${CLATTN_EMBED_SCRIPT}
      DEPENDS ${inputs} ${CLATTN_EMBED_SCRIPT}
      COMMENT "Embedding the kernels"
      VERBATIM)
    set(${variable} ${output} PARENT_SCOPE)
  endfunction()
  return()
endif()
cmake_minimum_required(VERSION 3.22)

# The text of a file below ROOT with its includes in place; `seen` (of the caller) lists the files already taken.
function(flatten path variable)
  list(APPEND seen ${path})
  file(READ ${ROOT}/${path} rest)
  get_filename_component(folder ${path} DIRECTORY)
  set(text "#line 1 \"${path}\"\n")
  set(line 1)
  while(rest MATCHES "(^|\n)[ \t]*#[ \t]*include[ \t]*\"([^\"\n]+)\"[^\n]*")
    set(directive "${CMAKE_MATCH_0}")
    set(break "${CMAKE_MATCH_1}")
    set(named "${CMAKE_MATCH_2}")
    string(FIND "${rest}" "${directive}" position)
    string(LENGTH "${directive}" length)
    string(SUBSTRING "${rest}" 0 ${position} before)
    math(EXPR position "${position} + ${length}")
    string(SUBSTRING "${rest}" ${position} -1 rest)
    string(APPEND before "${break}")
    string(REGEX MATCHALL "\n" breaks "${before}")
    list(LENGTH breaks breaks)
    math(EXPR line "${line} + ${breaks}")

    cmake_path(SET included NORMALIZE "${folder}/${named}")
    string(REGEX REPLACE "^/" "" included "${included}")
    string(APPEND text "${before}")
    if(NOT included IN_LIST seen)
      if(NOT EXISTS ${ROOT}/${included})
        message(FATAL_ERROR "${path}:${line} includes \"${named}\", and there is no ${ROOT}/${included}")
      endif()
      flatten(${included} inner)
      string(APPEND text "${inner}\n#line ${line} \"${path}\"")
    endif()
  endwhile()
  set(${variable} "${text}${rest}" PARENT_SCOPE)
  set(seen ${seen} PARENT_SCOPE)
endfunction()

file(GLOB_RECURSE paths RELATIVE ${ROOT} ${ROOT}/*.cl)
list(SORT paths)
set(arrays "")
set(entries "")
set(index 0)
foreach(path IN LISTS paths)
  set(seen "")
  flatten(${path} text)
  string(HEX "${text}" hex)
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND arrays "static const unsigned char text_${index}[] = { /* ${path} */\n${bytes}0x00 };\n\n")
  string(APPEND entries "    { \"${path}\", text_${index} },\n")
  math(EXPR index "${index} + 1")
endforeach()

file(WRITE ${OUTPUT} "/* Made by cmake/embed.cmake from kernels/. */
#include <stddef.h>
#include <string.h>

const char *clattn__kernel_source(const char *path);

${arrays}static const struct {
    const char *path;
    const unsigned char *text;
} kernels[] = {
${entries}    { NULL, NULL },
};

const char *clattn__kernel_source(const char *path) {
    for (size_t i = 0; kernels[i].path != NULL; i++) {
        if (strcmp(kernels[i].path, path) == 0) return (const char *)kernels[i].text;
    }
    return NULL;
}
")
