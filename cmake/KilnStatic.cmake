# SPDX-License-Identifier: Apache-2.0
#
# With KILN_STATIC the compiler's library contains LLVM and MLIR 22, Halide 14 with its LLVM 14, fmt, zlib, Zstandard
# and the C++ library, so that an installed Kiln needs only the C library (docs/decisions/0057). Defines the targets
# that find_package() defines otherwise, and kiln_static_link(TARGET ...).
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "KILN_STATIC: wrong compiler; expected clang with lld, got ${CMAKE_CXX_COMPILER_ID}")
endif()
set(KILN_HALIDE_DIR "${PROJECT_SOURCE_DIR}/build/halide14" CACHE PATH "Folder with the static Halide of cmake/package/halide.sh")
if(NOT EXISTS "${KILN_HALIDE_DIR}/libHalide14.a")
  message(FATAL_ERROR "KILN_STATIC: there is no ${KILN_HALIDE_DIR}/libHalide14.a; ./dev package makes it")
endif()

# Debian has no archive of fmt.
find_path(KILN_FMT_INCLUDE_DIR fmt/format.h REQUIRED)
add_library(fmt::fmt INTERFACE IMPORTED)
target_include_directories(fmt::fmt INTERFACE "${KILN_FMT_INCLUDE_DIR}")
target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY)

# All archives of LLVM and MLIR: lld takes members that are needed, in any order. The targets of the same names cannot
# be used, since they link the shared libraries in addition.
get_property(libraries GLOBAL PROPERTY MLIR_ALL_LIBS)
foreach(library IN LISTS libraries LLVM_AVAILABLE_LIBS)
  if(EXISTS "${LLVM_LIBRARY_DIR}/lib${library}.a")
    target_link_libraries(kiln_mlir INTERFACE "${LLVM_LIBRARY_DIR}/lib${library}.a")
  endif()
endforeach()
find_library(KILN_ZLIB libz.a REQUIRED)
find_library(KILN_ZSTD libzstd.a REQUIRED)
target_link_libraries(kiln_mlir INTERFACE "${KILN_ZLIB}" "${KILN_ZSTD}" ${CMAKE_DL_LIBS})

# One object with Halide and LLVM 14, in which only Halide's names are visible: those of LLVM 14 never meet LLVM 22's.
set(closed "${PROJECT_BINARY_DIR}/libkiln_halide14.a")
add_custom_command(OUTPUT "${closed}"
  COMMAND "${CMAKE_CURRENT_LIST_DIR}/package/close_halide.sh" "${KILN_HALIDE_DIR}/libHalide14.a" "${closed}"
    ${CMAKE_SYSROOT}
  DEPENDS "${KILN_HALIDE_DIR}/libHalide14.a" "${CMAKE_CURRENT_LIST_DIR}/package/close_halide.sh"
  COMMENT "Linking Halide and LLVM 14 to one object" VERBATIM)
add_custom_target(kiln_halide14 DEPENDS "${closed}")
set(Halide_VERSION 14.0.0)
add_library(Halide::Halide STATIC IMPORTED)
set_target_properties(Halide::Halide PROPERTIES IMPORTED_LOCATION "${closed}")
target_include_directories(Halide::Halide INTERFACE "${KILN_HALIDE_DIR}/include")
target_compile_definitions(Halide::Halide INTERFACE HALIDE_ENABLE_RTTI HALIDE_WITH_EXCEPTIONS)
add_dependencies(Halide::Halide kiln_halide14)

# Functions of shared libraries that a package does not need.
add_library(kiln_system OBJECT "${CMAKE_CURRENT_LIST_DIR}/package/no_terminal.c" "${CMAKE_CURRENT_LIST_DIR}/package/old_glibc.c")
add_compile_options(-ffunction-sections -fdata-sections "-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.")

# kiln_static_link(TARGET ...): links all but the C library statically, and drops what is not used.
function(kiln_static_link)
  foreach(target ${ARGN})
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc
      LINKER:--no-undefined LINKER:--gc-sections LINKER:--build-id=sha1)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:kiln_system>)
  endforeach()
endfunction()
