# What `cmake --install` writes, and where the built program lies.
#
# SPDX-License-Identifier: Apache-2.0
#
# Components: runtime (shared library), development (headers, static library, pkg-config and CMake files), program (with its
# manual page). Every path in the installed files is relative to them: a prefix may be moved.

include(CMakePackageConfigHelpers)

set(clattn_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/clattn)
set(clattn_pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# ---- libraries and headers: the static library in a file of its own, since it alone has dependencies
function(clattn_install_library target export)
  install(TARGETS ${target} EXPORT ${export}
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT ${export} NAMESPACE clattn:: DESTINATION ${clattn_cmake_dir} COMPONENT development)
endfunction()

if(BUILD_SHARED_LIBS)
  clattn_install_library(clattn clattnSharedTargets)
endif()
clattn_install_library(clattn_static clattnStaticTargets)
install(DIRECTORY include/clattn DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development FILES_MATCHING PATTERN "*.h")

# ---- CMake package
configure_package_config_file(cmake/clattnConfig.cmake.in ${PROJECT_BINARY_DIR}/cmake/clattnConfig.cmake
  INSTALL_DESTINATION ${clattn_cmake_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cmake/clattnConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cmake/clattnConfig.cmake ${PROJECT_BINARY_DIR}/cmake/clattnConfigVersion.cmake
  DESTINATION ${clattn_cmake_dir} COMPONENT development)

# ---- pkg-config
function(clattn_write_pc)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set(pc_prefix ${CMAKE_INSTALL_PREFIX})
    set(pc_libdir ${CMAKE_INSTALL_LIBDIR})
  else()
    file(RELATIVE_PATH up "/${clattn_pc_dir}" "/")
    string(REGEX REPLACE "/$" "" up "${up}")
    set(pc_prefix "\${pcfiledir}/${up}")
    set(pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
  endif()
  if(IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
    set(pc_includedir ${CMAKE_INSTALL_INCLUDEDIR})
  else()
    set(pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
  endif()
  set(libraries -lm)
  foreach(library IN LISTS CMAKE_DL_LIBS)
    list(APPEND libraries -l${library})
  endforeach()
  list(APPEND libraries -lpthread)
  if(OpenMP_C_FOUND)
    string(REGEX REPLACE "=[^ ]*" "" flags "${OpenMP_C_FLAGS}") # -fopenmp=libomp is clang's alone
    list(APPEND libraries ${flags})
  endif()
  list(JOIN libraries " " pc_private_libs)
  configure_file(cmake/clattn.pc.in ${PROJECT_BINARY_DIR}/cmake/clattn.pc @ONLY)
endfunction()
clattn_write_pc()
install(FILES ${PROJECT_BINARY_DIR}/cmake/clattn.pc DESTINATION ${clattn_pc_dir} COMPONENT development)

# ---- program
if(CLATTN_PROGRAM)
  install(TARGETS clattn_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
  install(FILES docs/clattn.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
endif()
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
