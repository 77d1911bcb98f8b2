# SPDX-License-Identifier: Apache-2.0
#
# Warnings and sanitizers shared by every target of the project.
add_library(kiln_warnings INTERFACE)
# What g++ 12 wrongly sees inside LLVM's containers, std::function and std::string when a build inlines or instruments enough.
target_compile_options(kiln_warnings INTERFACE -Wall -Wextra
  $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-maybe-uninitialized;-Wno-restrict;-Wno-stringop-overflow;-Wno-stringop-overread>
  $<$<AND:$<BOOL:${KILN_UNITY_BUILD}>,$<CXX_COMPILER_ID:GNU>>:-Wno-subobject-linkage>
  # What clang sees inside libstdc++ 12's stable_sort.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>
  $<$<BOOL:${KILN_WERROR}>:-Werror>)
add_library(kiln::warnings ALIAS kiln_warnings)

# kiln_share_precompiled(LIBRARY PROGRAM ...): programs share what is precompiled for the library, and so its way of addressing.
function(kiln_share_precompiled library)
  foreach(program ${ARGN})
    set_target_properties(${program} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${program} PRIVATE -fPIC)
    target_precompile_headers(${program} REUSE_FROM ${library})
  endforeach()
endfunction()

# kiln_unity(TARGET ...): several of its files are compiled at a time where KILN_UNITY_BUILD says so.
function(kiln_unity)
  set_target_properties(${ARGN} PROPERTIES UNITY_BUILD "${KILN_UNITY_BUILD}")
endfunction()

# LLVM's linker, if clang has it: a program with MLIR takes it half a second, others take four.
if(PROJECT_IS_TOP_LEVEL AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -print-prog-name=ld.lld
    OUTPUT_VARIABLE linker OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(EXISTS "${linker}")
    add_link_options("$<$<LINK_LANGUAGE:CXX>:-fuse-ld=lld>")
  endif()
endif()

if(KILN_SANITIZE)
  # Not the types of functions that are called: a model's NAME_create is the run time's kiln_create, of another struct's name.
  add_compile_options(-fsanitize=${KILN_SANITIZE} -fno-sanitize=function -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${KILN_SANITIZE})
endif()
