# SPDX-License-Identifier: Apache-2.0
#
#   kiln_cross_runtime(ARCHITECTURE TRIPLE triple HEADERS folder
#                      SOURCES file ... OPTIONS option ... FAST file ... VECTORS file ...)
#
# The runtime for another architecture, compiled by clang with the headers of that architecture's C library (Debian's
# libc6-dev-arm64-cross and similar packages): libkiln_runtime_ARCHITECTURE.a. Without them Kiln is built without that
# architecture, with a message. The global property KILN_CROSS_RUNTIMES lists the available ones, as triple and
# architecture.
#
#   kiln_cross_library(NAME ARCHITECTURE SOURCES file ... [OPTIONS option ...] [FAST file ...] [VECTORS file ...])
#
# A library for such an architecture, compiled like its runtime: libNAME_ARCHITECTURE.a, by the target NAME_ARCHITECTURE.
#
#   kiln_embed_archives(TARGET NAME SOURCE)
#
# Writes NAME.inc for a source file of a target that embeds libNAME.a and its counterparts for the other architectures:
# a line KILN_ARCHIVE("aarch64-linux-gnu", aarch64, "/.../libNAME_aarch64.a") for each.
find_program(KILN_CROSS_CLANG NAMES clang-22 clang DOC "clang, for the run time of other architectures; OFF: for none")
find_program(KILN_CROSS_AR NAMES llvm-ar-22 llvm-ar DOC "llvm-ar, for the run time of other architectures")

function(kiln_cross_runtime architecture)
  cmake_parse_arguments(arg "" "TRIPLE;HEADERS" "SOURCES;OPTIONS;FAST;VECTORS" ${ARGN})
  if(NOT KILN_CROSS_CLANG OR NOT KILN_CROSS_AR OR NOT EXISTS "${arg_HEADERS}/stdlib.h")
    message(STATUS "kiln: no runtime for ${architecture}, which takes clang-22, llvm-22 and ${arg_HEADERS}/stdlib.h")
    return()
  endif()
  set(position -fPIC)
  if(arg_TRIPLE MATCHES "^wasm") # -fPIC has another meaning there
    set(position "")
  elseif(arg_TRIPLE MATCHES "windows")
    # All code is position-independent. No address tables for data, whose names would lack the prefix.
    set(position -fno-auto-import)
  endif()
  set(level -Os)
  if(arg_TRIPLE MATCHES "wasm") # downloaded, so size matters most
    set(level -Oz)
  endif()
  set_property(GLOBAL PROPERTY KILN_CROSS_COMPILE_${architecture}
    "${KILN_CROSS_CLANG}" --target=${arg_TRIPLE} -isystem "${arg_HEADERS}" -std=c11 ${position} -fvisibility=hidden
    -DNDEBUG ${arg_OPTIONS} -I "${CMAKE_CURRENT_SOURCE_DIR}/src" -I "${CMAKE_CURRENT_SOURCE_DIR}/include"
    -I "${PROJECT_SOURCE_DIR}/dsl/include" ${level})
  set_property(GLOBAL APPEND PROPERTY KILN_CROSS_RUNTIMES "${arg_TRIPLE} ${architecture}")
  kiln_cross_library(kiln_runtime ${architecture} SOURCES ${arg_SOURCES} FAST ${arg_FAST} VECTORS ${arg_VECTORS})
endfunction()

function(kiln_cross_library library architecture)
  cmake_parse_arguments(arg "" "" "SOURCES;OPTIONS;FAST;VECTORS" ${ARGN})
  get_property(compile GLOBAL PROPERTY KILN_CROSS_COMPILE_${architecture})
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${architecture}")
  set(objects "")
  foreach(source ${arg_SOURCES})
    get_filename_component(name "${source}" NAME)
    set(object "${folder}/${name}.o")
    set(level "") # that of `compile`
    if(source IN_LIST arg_FAST)
      set(level -O2)
    elseif(source IN_LIST arg_VECTORS)
      set(level -O3)
    endif()
    add_custom_command(OUTPUT "${object}"
      COMMAND ${compile} ${arg_OPTIONS} ${level} -MD -MF "${object}.d"
        -c "${CMAKE_CURRENT_SOURCE_DIR}/${source}" -o "${object}"
      DEPENDS "${source}" DEPFILE "${object}.d"
      COMMENT "Compiling ${name} for ${architecture}" VERBATIM)
    list(APPEND objects "${object}")
  endforeach()
  set(archive "${CMAKE_CURRENT_BINARY_DIR}/lib${library}_${architecture}.a")
  add_custom_command(OUTPUT "${archive}"
    COMMAND ${CMAKE_COMMAND} -E rm -f "${archive}"
    COMMAND "${KILN_CROSS_AR}" qcS "${archive}" ${objects}
    DEPENDS ${objects} COMMENT "Packing ${library} for ${architecture}" VERBATIM)
  file(MAKE_DIRECTORY "${folder}")
  add_custom_target(${library}_${architecture} DEPENDS "${archive}")
endfunction()

function(kiln_embed_archives target library source)
  get_target_property(folder ${library} BINARY_DIR)
  set(archives "${folder}/lib${library}.a")
  set(list "KILN_ARCHIVE(\"${CMAKE_SYSTEM_PROCESSOR}-linux-gnu\", native, \"${archives}\")\n")
  add_dependencies(${target} ${library})
  get_property(runtimes GLOBAL PROPERTY KILN_CROSS_RUNTIMES)
  foreach(runtime ${runtimes})
    separate_arguments(runtime)
    list(GET runtime 0 triple)
    list(GET runtime 1 architecture)
    set(archive "${folder}/lib${library}_${architecture}.a")
    string(APPEND list "KILN_ARCHIVE(\"${triple}\", ${architecture}, \"${archive}\")\n")
    list(APPEND archives "${archive}")
    add_dependencies(${target} ${library}_${architecture})
  endforeach()
  file(CONFIGURE OUTPUT ${library}.inc CONTENT "${list}" @ONLY)
  set_property(SOURCE ${source} APPEND PROPERTY OBJECT_DEPENDS ${archives})
  set_property(SOURCE ${source} APPEND PROPERTY INCLUDE_DIRECTORIES "${CMAKE_CURRENT_BINARY_DIR}")
  set_source_files_properties(${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
