# SPDX-License-Identifier: Apache-2.0
#
#   kiln_cross_runtime(ARCHITECTURE TRIPLE triple HEADERS folder
#                      SOURCES file ... OPTIONS option ... FAST file ... VECTORS file ...)
#
# The runtime for another architecture, compiled by clang with the headers of that architecture's C library (Debian's
# libc6-dev-arm64-cross and similar packages): libkiln_runtime_ARCHITECTURE.a. Without them Kiln is built without that
# architecture, with a message. The global property KILN_CROSS_RUNTIMES lists the available ones, as triple,
# architecture and path.
find_program(KILN_CROSS_CLANG NAMES clang-22 clang DOC "clang, for the run time of other architectures")
find_program(KILN_CROSS_AR NAMES llvm-ar-22 llvm-ar DOC "llvm-ar, for the run time of other architectures")

function(kiln_cross_runtime architecture)
  cmake_parse_arguments(arg "" "TRIPLE;HEADERS" "SOURCES;OPTIONS;FAST;VECTORS" ${ARGN})
  if(NOT KILN_CROSS_CLANG OR NOT KILN_CROSS_AR OR NOT EXISTS "${arg_HEADERS}/stdio.h")
    message(STATUS "kiln: no runtime for ${architecture}: clang-22, llvm-22 or ${arg_HEADERS}/stdio.h not found")
    return()
  endif()
  set(position -fPIC)
  if(arg_TRIPLE MATCHES "^wasm") # -fPIC has another meaning there
    set(position "")
  elseif(arg_TRIPLE MATCHES "windows")
    # All code is position-independent. No address tables for data, whose names would lack the prefix.
    set(position -fno-auto-import)
  endif()
  set(compile "${KILN_CROSS_CLANG}" --target=${arg_TRIPLE} -isystem "${arg_HEADERS}" -std=c11 ${position} -fvisibility=hidden
    -DNDEBUG ${arg_OPTIONS} -I "${CMAKE_CURRENT_SOURCE_DIR}/src" -I "${CMAKE_CURRENT_SOURCE_DIR}/include"
    -I "${PROJECT_SOURCE_DIR}/dsl/include")
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${architecture}")
  set(objects "")
  foreach(source ${arg_SOURCES})
    get_filename_component(name "${source}" NAME)
    set(object "${folder}/${name}.o")
    set(level -Os)
    if(arg_TRIPLE MATCHES "wasm") # downloaded, so size matters most
      set(level -Oz)
    endif()
    if(source IN_LIST arg_FAST)
      set(level -O2)
    elseif(source IN_LIST arg_VECTORS)
      set(level -O3)
    endif()
    add_custom_command(OUTPUT "${object}"
      COMMAND ${compile} ${level} -MD -MF "${object}.d" -c "${CMAKE_CURRENT_SOURCE_DIR}/${source}" -o "${object}"
      DEPENDS "${source}" DEPFILE "${object}.d"
      COMMENT "Compiling ${name} for ${architecture}" VERBATIM)
    list(APPEND objects "${object}")
  endforeach()
  set(archive "${CMAKE_CURRENT_BINARY_DIR}/libkiln_runtime_${architecture}.a")
  add_custom_command(OUTPUT "${archive}"
    COMMAND ${CMAKE_COMMAND} -E rm -f "${archive}"
    COMMAND "${KILN_CROSS_AR}" qcS "${archive}" ${objects}
    DEPENDS ${objects} COMMENT "Packing the run time for ${architecture}" VERBATIM)
  file(MAKE_DIRECTORY "${folder}")
  add_custom_target(kiln_runtime_${architecture} DEPENDS "${archive}")
  set_property(GLOBAL APPEND PROPERTY KILN_CROSS_RUNTIMES "${arg_TRIPLE} ${architecture} ${archive}")
endfunction()
