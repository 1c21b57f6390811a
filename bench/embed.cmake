# Turn files into byte arrays of one C file.
#
# SPDX-License-Identifier: Apache-2.0
#
#   cmake -DOUTPUT=files.c -DINPUTS="a|b" -P embed.cmake
#
# defines, for each input, `const char bench_file_NAME[]`, ended by a 0, where NAME is the file's name with everything but letters
# and digits as an underscore: bench_file_report_js.
string(REPLACE "|" ";" inputs "${INPUTS}")
set(text "/* Made by bench/embed.cmake. */\n#include \"files.h\"\n")
foreach(input IN LISTS inputs)
  get_filename_component(name ${input} NAME)
  string(MAKE_C_IDENTIFIER ${name} name)
  file(READ ${input} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND text "const char bench_file_${name}[] = {${bytes}0};\n")
endforeach()
file(WRITE ${OUTPUT} "${text}")
