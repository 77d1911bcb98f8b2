# SPDX-License-Identifier: Apache-2.0
#
# Declares tests. Each test has two labels: the folder that declares it, and its speed.
#
#   quick    runs with ./dev test
#   slow     runs with ./dev test --all, and with --shard K/N one of N parts
#   nightly  runs only with --all: takes longer than all other tests together
#
#   kiln_test(NAME [SLOW | NIGHTLY] COMMAND ... [PROPERTIES ...])
#     Declares one test, with the label quick by default.
#   kiln_discover_tests(PROGRAM [TEST_PREFIX prefix] [SLOW case...] [TOGETHER suite...] [PROPERTIES ...])
#     Declares one test for each case of a GoogleTest program. SLOW names the slow ones: Suite.Case, or Suite.* for an
#     entire suite; a name that matches no case is an error. The cases of a suite that is named by TOGETHER are one
#     test: they run in one process, which compiles what they share once.
include(GoogleTest)

function(kiln_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SLOW;NIGHTLY" "" "COMMAND;PROPERTIES")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "kiln_test(${name}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  set(speed quick)
  if(arg_SLOW)
    set(speed slow)
  elseif(arg_NIGHTLY)
    set(speed nightly)
  endif()
  add_test(NAME ${name} COMMAND ${arg_COMMAND})
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME folder)
  set_tests_properties(${name} PROPERTIES LABELS "${folder};${speed}" ${arg_PROPERTIES})
endfunction()

function(kiln_discover_tests program)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TEST_PREFIX" "SLOW;TOGETHER;PROPERTIES")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "kiln_discover_tests(${program}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  set(separate "")
  foreach(suite ${arg_TOGETHER})
    set(filter "${suite}.*")
    set(speed "")
    if(filter IN_LIST arg_SLOW)
      list(REMOVE_ITEM arg_SLOW "${filter}")
      set(speed SLOW)
    endif()
    kiln_test(${arg_TEST_PREFIX}${suite} ${speed} COMMAND ${program} "--gtest_filter=${filter}"
      PROPERTIES FAIL_REGULAR_EXPRESSION "Running 0 tests" ${arg_PROPERTIES})
    string(APPEND separate ":${filter}")
  endforeach()
  if(separate)
    string(REGEX REPLACE "^:" "TEST_FILTER;-" separate "${separate}")
  endif()
  if(arg_PROPERTIES)
    list(PREPEND arg_PROPERTIES PROPERTIES)
  endif()
  if(arg_TEST_PREFIX)
    list(PREPEND separate TEST_PREFIX "${arg_TEST_PREFIX}")
  endif()
  gtest_discover_tests(${program} ${separate} ${arg_PROPERTIES})
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME folder)
  # The cases are known only when the program is built, and gtest_discover_tests sets at most one label: CTest sets both
  # labels when it reads the list of cases.
  set(labels "${CMAKE_CURRENT_BINARY_DIR}/${program}_labels.cmake")
  file(CONFIGURE OUTPUT "${labels}" @ONLY CONTENT [=[
set(program @program@)
set(folder @folder@)
set(prefix "@arg_TEST_PREFIX@")
set(slow "@arg_SLOW@")
include("@PROJECT_SOURCE_DIR@/cmake/KilnTestLabels.cmake")
]=])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${labels}")
endfunction()
