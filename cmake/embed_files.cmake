# Turn files into byte arrays of one C file.
#
# SPDX-License-Identifier: Apache-2.0
#
#   cmake -DOUTPUT=files.c -DHEADER=files.h -DPREFIX=bench -DINPUTS="a|b" -P embed_files.cmake
#
# defines, for each input, `const char PREFIX_file_NAME[]`, ended by a 0, where NAME is the file's name with everything but letters
# and digits as an underscore: bench_file_report_js. `PREFIX_hash_NAME` is what a Content-Security-Policy names it by when it is
# the whole text of an element: 'sha256-...'. HEADER declares those that are used.
#
# Included from a CMakeLists.txt instead, it defines clattn_embed_files(<variable> <prefix> <header> <file>...): the output's path
# goes to <variable>, and a build makes the output again when a file has changed.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(CLATTN_EMBED_FILES_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
  function(clattn_embed_files variable prefix header)
    set(output ${CMAKE_CURRENT_BINARY_DIR}/generated/${prefix}_files.c)
    string(REPLACE ";" "|" inputs "${ARGN}")
    add_custom_command(OUTPUT ${output}
      COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DHEADER=${header} -DPREFIX=${prefix} "-DINPUTS=${inputs}"
        -P ${CLATTN_EMBED_FILES_SCRIPT}
      DEPENDS ${ARGN} ${CLATTN_EMBED_FILES_SCRIPT} COMMENT "Embedding the files of ${prefix}" VERBATIM)
    set(${variable} ${output} PARENT_SCOPE)
  endfunction()
  return()
endif()

# The 32 bytes of a SHA-256, in hexadecimal, as base64: 10 groups of three bytes, and two bytes with one that is filled up.
function(base64_of_sha256 hex variable)
  set(digits ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
  set(text "")
  foreach(at RANGE 0 60 6)
    string(SUBSTRING "${hex}00" ${at} 6 group)
    foreach(shift 18 12 6 0)
      math(EXPR digit "(0x${group} >> ${shift}) & 63")
      string(SUBSTRING ${digits} ${digit} 1 digit)
      string(APPEND text ${digit})
    endforeach()
  endforeach()
  string(SUBSTRING ${text} 0 43 text)
  set(${variable} "${text}=" PARENT_SCOPE)
endfunction()

string(REPLACE "|" ";" inputs "${INPUTS}")
set(text "/* Made by cmake/embed_files.cmake. */\n#include \"${HEADER}\"\n")
foreach(input IN LISTS inputs)
  get_filename_component(name ${input} NAME)
  string(MAKE_C_IDENTIFIER ${name} name)
  file(READ ${input} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  file(SHA256 ${input} hash)
  base64_of_sha256(${hash} hash)
  string(APPEND text "const char ${PREFIX}_file_${name}[] = {${bytes}0};\n"
    "const char ${PREFIX}_hash_${name}[] = \"'sha256-${hash}'\";\n")
endforeach()
file(WRITE ${OUTPUT} "${text}")
