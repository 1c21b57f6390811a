# SPDX-License-Identifier: Apache-2.0
#
# Generates, from kernels/rows.def, roles.def and variants.def, and host/native/isa.def, one C file for each row of the CPU family and
# each instruction-set level of its vector width, and a file that lists them all. The tables are read here and by the C
# preprocessor, and stand nowhere else.

include(CheckCCompilerFlag)

# The lines `NAME(...)` of a table, as a list.
function(clattn_read_table file name result)
  set(path ${PROJECT_SOURCE_DIR}/${file})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  file(STRINGS ${path} lines REGEX "^${name}\\(")
  set(${result} "${lines}" PARENT_SCOPE)
endfunction()

# Whether this processor and this compiler serve a level.
function(clattn_isa_supported isa flags processors result)
  set(${result} OFF PARENT_SCOPE)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "${processors}")
    if(flags STREQUAL "")
      set(${result} ON PARENT_SCOPE)
    else()
      check_c_compiler_flag("${flags}" CLATTN_COMPILES_${isa})
      set(${result} ${CLATTN_COMPILES_${isa}} PARENT_SCOPE)
    endif()
  endif()
endfunction()

# The contents of one kernel's C file. row: its line of rows.def; name: the suffix of its function.
function(clattn_native_source row roles variants name result)
  string(REGEX MATCH "^ROW\\([^,]*, *([A-Z_]+), *CPU, *\"([^\"]+)\"" _ "${row}")
  set(role ${CMAKE_MATCH_1})
  set(source ${CMAKE_MATCH_2})
  set(text "/* Generated from kernels/rows.def. */\n#include \"native.h\"\n")
  string(REGEX MATCHALL "M\\([A-Z_]+, *[0-9]+\\)" macros "${row}")
  foreach(macro IN LISTS macros)
    string(REGEX REPLACE "M\\(([A-Z_]+), *([0-9]+)\\)" "#define \\1 \\2\n" macro "${macro}")
    string(APPEND text "${macro}")
  endforeach()
  foreach(line IN LISTS variants)
    if(line MATCHES "^VARIANT\\(${role}, *([A-Z_]+),.*V\\(([0-9]+)\\)\\)$")
      string(APPEND text "#define ${CMAKE_MATCH_1} ${CMAKE_MATCH_2}\n")
    endif()
  endforeach()
  string(APPEND text "#include \"${source}\"\n\n")

  foreach(line IN LISTS roles)
    if(line MATCHES "^ROLE\\(${role}, *([a-z_]+), *([a-z_]+), *(.*)\\)$")
      set(entry ${CMAKE_MATCH_1})
      set(params ${CMAKE_MATCH_2})
      string(REGEX MATCHALL "B\\(" buffers "${CMAKE_MATCH_3}")
    endif()
  endforeach()
  list(LENGTH buffers count)
  set(arguments "")
  math(EXPR last "${count} - 1")
  foreach(n RANGE ${last})
    string(APPEND arguments "buffers[${n}], ")
  endforeach()
  string(APPEND text
    "clattn__native_kernel clattn__native_${name};\n"
    "void clattn__native_${name}(void *const *buffers, const void *params, i64 first, i64 stride) {\n"
    "    native_group_id = first;\n"
    "    native_num_groups = stride;\n"
    "    ${entry}(${arguments}*(const ${params} *)params);\n"
    "}\n")
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

# Write a file unless it already says so: what depends on it is then not built again.
function(clattn_write path text)
  file(GENERATE OUTPUT ${path} CONTENT "${text}")
endfunction()

# Generate everything; `result` is the list of C files, with their compile options set.
function(clattn_native_kernels result)
  clattn_read_table(kernels/rows.def ROW rows)
  clattn_read_table(kernels/roles.def ROLE roles)
  clattn_read_table(kernels/variants.def VARIANT variants)
  clattn_read_table(host/native/isa.def ISA isas)
  set(optimise $<$<NOT:$<CONFIG:Debug>>:-O3>)
  if(CLATTN_SANITIZE)
    set(optimise)
  endif()
  set(sources)
  set(declarations "")
  set(entries "")
  foreach(isa_line IN LISTS isas)
    string(REGEX MATCH "^ISA\\(([a-z0-9]+), *([0-9]+), *\"([^\"]*)\", *\"([^\"]*)\"" _ "${isa_line}")
    set(isa ${CMAKE_MATCH_1})
    set(width ${CMAKE_MATCH_2})
    set(flags "${CMAKE_MATCH_3}")
    clattn_isa_supported(${isa} "${flags}" "${CMAKE_MATCH_4}" supported)
    if(NOT supported)
      continue()
    endif()
    set_property(GLOBAL APPEND PROPERTY CLATTN_ISA_LEVELS ${isa})
    separate_arguments(flags)
    foreach(row IN LISTS rows)
      if(NOT row MATCHES "^ROW\\(([a-z0-9_]+), *[A-Z_]+, *CPU,.*M\\(VECTOR_WIDTH, *${width}\\)")
        continue()
      endif()
      set(row_name ${CMAKE_MATCH_1})
      set(name ${row_name}_${isa})
      clattn_native_source("${row}" "${roles}" "${variants}" ${name} text)
      set(path ${CMAKE_CURRENT_BINARY_DIR}/native/${name}.c)
      clattn_write(${path} "${text}")
      set_source_files_properties(${path} PROPERTIES COMPILE_OPTIONS "${optimise};-ffp-contract=fast;${flags}")
      list(APPEND sources ${path})
      string(APPEND declarations "extern clattn__native_kernel clattn__native_${name};\n")
      string(APPEND entries "    {\"${row_name}\", \"${isa}\", clattn__native_${name}},\n")
    endforeach()
  endforeach()
  set(path ${CMAKE_CURRENT_BINARY_DIR}/native/entries.c)
  clattn_write(${path} "/* Generated from kernels/rows.def and host/native/isa.def. */\n#include \"native.h\"\n\n${declarations}
const clattn__native_entry clattn__native_entries[] = {\n${entries}    {0},\n};\n")
  set(${result} ${sources} ${path} PARENT_SCOPE)
endfunction()
