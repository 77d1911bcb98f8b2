# SPDX-License-Identifier: Apache-2.0
#
# LLVM/MLIR 22 and Halide (14, 19 or 21), and the helpers with which the compiler's libraries use them.
#
#   kiln_compiler_library(NAME SOURCES... [HALIDE])
#     A static library that includes MLIR (and Halide) headers and is linked to MLIR and LLVM.
#
# They are shared libraries, or with KILN_STATIC archives (KilnStatic.cmake).
find_package(MLIR REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
if(NOT LLVM_VERSION_MAJOR EQUAL 22)
  message(FATAL_ERROR "LLVM/MLIR: wrong version; expected 22, got ${LLVM_PACKAGE_VERSION} in ${LLVM_DIR}")
endif()
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)

add_library(kiln_mlir INTERFACE)
add_library(kiln::mlir ALIAS kiln_mlir)
# After the system's folders: libc++ of the same version installs headers such as cxxabi.h in LLVM's folder.
set(llvm_folders ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
list(REMOVE_DUPLICATES llvm_folders)
foreach(folder ${llvm_folders})
  target_compile_options(kiln_mlir INTERFACE "SHELL:-idirafter \"${folder}\"")
endforeach()

set(KILN_LLVM_LIBRARY_DIR "${LLVM_LIBRARY_DIR}")
if(KILN_STATIC)
  include(KilnStatic)
else()
  target_link_libraries(kiln_mlir INTERFACE MLIR LLVM)
  # Halide brings another version of LLVM into the process.
  set(is_program "$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>")
  target_link_options(kiln_mlir INTERFACE
    "$<${is_program}:LINKER:--version-script=${CMAKE_CURRENT_LIST_DIR}/program.map>")
  find_package(fmt REQUIRED)
  # After MLIR: it looks for its own LLVM and overwrites the variables of LLVM 22.
  find_package(Halide REQUIRED COMPONENTS Halide)
endif()

# One precompiled header for all of them: 2 s per file instead of 15.
add_library(kiln_mlir_pch STATIC "${CMAKE_CURRENT_LIST_DIR}/mlir_pch.cpp")
target_compile_features(kiln_mlir_pch PUBLIC cxx_std_20)
target_link_libraries(kiln_mlir_pch PUBLIC kiln::mlir)
target_precompile_headers(kiln_mlir_pch PRIVATE "${CMAKE_CURRENT_LIST_DIR}/mlir_pch.h")

function(kiln_compiler_library name)
  cmake_parse_arguments(arg "HALIDE" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}>)
  target_link_libraries(${name} PUBLIC kiln::mlir kiln::dsl PRIVATE kiln::warnings fmt::fmt)
  target_precompile_headers(${name} REUSE_FROM kiln_mlir_pch)
  kiln_unity(${name})
  if(arg_HALIDE)
    target_link_libraries(${name} PRIVATE Halide::Halide)
  endif()
  if(arg_DEPENDS)
    add_dependencies(${name} ${arg_DEPENDS})
  endif()
endfunction()

# kiln_precompile_mlir(PROGRAM ...): for programs that include MLIR's headers.
function(kiln_precompile_mlir)
  kiln_share_precompiled(kiln_mlir_pch ${ARGN})
  kiln_unity(${ARGN})
endfunction()
