# SPDX-License-Identifier: Apache-2.0
#
#   kiln_add_lit_tests(LABEL [TOOLS target...])
#     One test, LABEL.lit, that runs all .mlir and .test files of the calling folder with lit and FileCheck. The tools
# and
#     kiln-opt are on its PATH.
find_program(KILN_LIT NAMES lit HINTS "${LLVM_TOOLS_BINARY_DIR}" /usr/lib/llvm-22/bin NO_DEFAULT_PATH)
get_filename_component(KILN_LIT_TOOLS "${KILN_LIT}" DIRECTORY)

function(kiln_add_lit_tests label)
  cmake_parse_arguments(arg "" "" "TOOLS" ${ARGN})
  set(path "$<TARGET_FILE_DIR:kiln-opt>")
  foreach(tool ${arg_TOOLS})
    string(APPEND path ":$<TARGET_FILE_DIR:${tool}>")
  endforeach()
  kiln_test(${label}.lit
    COMMAND "${KILN_LIT}" -sv "${CMAKE_CURRENT_SOURCE_DIR}"
      --param "output=${CMAKE_CURRENT_BINARY_DIR}/lit" --param "path=${path}:${KILN_LIT_TOOLS}"
      --param "source=${PROJECT_SOURCE_DIR}")
endfunction()
