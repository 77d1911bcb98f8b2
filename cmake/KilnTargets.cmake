# SPDX-License-Identifier: Apache-2.0
#
# Warnings and sanitizers shared by every target of the project.
add_library(kiln_warnings INTERFACE)
# False positives of g++ 12 inside LLVM's containers, std::function and std::string with much inlining or
# instrumentation.
target_compile_options(kiln_warnings INTERFACE -Wall -Wextra
  $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-maybe-uninitialized;-Wno-restrict;-Wno-stringop-overflow;-Wno-stringop-overread>
  $<$<AND:$<BOOL:${KILN_UNITY_BUILD}>,$<CXX_COMPILER_ID:GNU>>:-Wno-subobject-linkage>
  # A warning of clang inside libstdc++ 12's stable_sort.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>
  $<$<BOOL:${KILN_WERROR}>:-Werror>)
add_library(kiln::warnings ALIAS kiln_warnings)

# kiln_share_precompiled(LIBRARY PROGRAM ...): programs share the library's precompiled header, and so its -fPIC
# setting.
function(kiln_share_precompiled library)
  foreach(program ${ARGN})
    set_target_properties(${program} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${program} PRIVATE -fPIC)
    target_precompile_headers(${program} REUSE_FROM ${library})
  endforeach()
endfunction()

# kiln_unity(TARGET ...): compiles several source files at a time if KILN_UNITY_BUILD is set.
function(kiln_unity)
  set_target_properties(${ARGN} PROPERTIES UNITY_BUILD "${KILN_UNITY_BUILD}")
endfunction()

# kiln_optimise(TARGET ...): compiles with -O2 where the preset has -O1, with which clang inlines hardly anything. For
# code without a shared precompiled header that computes for most of a test's time.
function(kiln_optimise)
  if(CMAKE_CXX_FLAGS MATCHES "-O1")
    foreach(target ${ARGN})
      target_compile_options(${target} PRIVATE -O2)
    endforeach()
  endif()
endfunction()

# Use LLVM's linker if clang has it: it links a program with MLIR in half a second, others take four.
if(PROJECT_IS_TOP_LEVEL AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -print-prog-name=ld.lld
    OUTPUT_VARIABLE linker OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(EXISTS "${linker}")
    add_link_options("$<$<LINK_LANGUAGE:CXX>:-fuse-ld=lld>")
  endif()
endif()

if(KILN_SANITIZE)
  # Not -fsanitize=function: a model's NAME_create is the runtime's kiln_create, with a struct type of another name.
  add_compile_options(-fsanitize=${KILN_SANITIZE} -fno-sanitize=function -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${KILN_SANITIZE})
endif()
