# A digest of all that a row computes with: what measurements and caches of kernels are known by.
#
# SPDX-License-Identifier: Apache-2.0
#
#   cmake -DROOT=<the project> -DOUTPUT=kernels_digest.c -P kernels_digest.cmake
#
# Covered are the sources that kernels/rows.def names, below kernels/ or host/, all that they include, and the tables that say with
# which macros and flags they are compiled: of these the entries, not the comments. The output defines
#   const char clattn__kernels_hash[];
#
# Included from a CMakeLists.txt instead, it defines clattn_kernels_digest(<variable>): the output's path goes to <variable>.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(CLATTN_DIGEST_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
  function(clattn_kernels_digest variable)
    set(output ${PROJECT_BINARY_DIR}/generated/kernels_digest.c)
    file(GLOB_RECURSE inputs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/* ${PROJECT_SOURCE_DIR}/host/native/*.h
      ${PROJECT_SOURCE_DIR}/host/native/*.def)
    add_custom_command(
      OUTPUT ${output}
      COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DOUTPUT=${output} -P ${CLATTN_DIGEST_SCRIPT}
      DEPENDS ${inputs} ${CLATTN_DIGEST_SCRIPT}
      COMMENT "Taking a digest of the kernels"
      VERBATIM)
    set(${variable} ${output} PARENT_SCOPE)
  endfunction()
  return()
endif()
cmake_minimum_required(VERSION 3.22)

# The file below ROOT that is included as `named` from one in `folder`: beside it, below kernels/ or below host/.
function(find_included folder named variable)
  foreach(base ${folder} kernels host)
    cmake_path(SET path NORMALIZE ${base}/${named})
    if(EXISTS ${ROOT}/${path})
      set(${variable} ${path} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "\"${named}\", which a file in ${folder} or a row names, is not there")
endfunction()

# Add a file and all that it includes to `files`, of the caller.
function(add_file path)
  if(path IN_LIST files)
    return()
  endif()
  list(APPEND files ${path})
  get_filename_component(folder ${path} DIRECTORY)
  file(STRINGS ${ROOT}/${path} includes REGEX "^[ \t]*#[ \t]*include[ \t]*\"")
  foreach(line IN LISTS includes)
    string(REGEX MATCH "\"([^\"]+)\"" _ "${line}")
    find_included(${folder} ${CMAKE_MATCH_1} included)
    add_file(${included})
  endforeach()
  set(files ${files} PARENT_SCOPE)
endfunction()

set(files "")
file(STRINGS ${ROOT}/kernels/rows.def rows REGEX "^ROW\\(")
foreach(row IN LISTS rows)
  string(REGEX MATCH "\"([^\"]+)\"" _ "${row}")
  if(CMAKE_MATCH_1 STREQUAL "CLBlast")
    continue()
  endif()
  find_included(kernels ${CMAKE_MATCH_1} source)
  add_file(${source})
endforeach()
list(SORT files)
set(all "")
foreach(path IN LISTS files)
  file(SHA256 ${ROOT}/${path} hash)
  string(APPEND all "${path} ${hash}\n")
endforeach()
foreach(table kernels/rows.def kernels/variants.def kernels/roles.def host/native/isa.def host/native/features.def)
  file(STRINGS ${ROOT}/${table} lines REGEX "^[A-Z]+\\(")
  string(APPEND all "${lines}\n")
endforeach()
string(SHA256 hash "${all}")
string(SUBSTRING ${hash} 0 16 hash)
file(WRITE ${OUTPUT} "/* Made by cmake/kernels_digest.cmake. */
extern const char clattn__kernels_hash[];
const char clattn__kernels_hash[] = \"${hash}\";
")
