# SPDX-License-Identifier: Apache-2.0
#
# Read by CTest after the list of a program's cases (KilnTest.cmake): labels each case with its folder and its speed.
# CTest adds labels to those that a test has, so each case is labelled once.
set(patterns "")
foreach(name IN LISTS slow)
  string(REPLACE "." "\\." pattern "${prefix}${name}")
  string(REPLACE "*" ".*" pattern "${pattern}")
  list(APPEND patterns "^${pattern}( +#.*)?$") # CMake leaves the value of a parameter in the name
endforeach()
set(unmatched ${patterns})
foreach(test IN LISTS ${program}_TESTS)
  set(speed quick)
  foreach(pattern IN LISTS patterns)
    if(test MATCHES "${pattern}")
      set(speed slow)
      list(REMOVE_ITEM unmatched "${pattern}")
    endif()
  endforeach()
  set_tests_properties("${test}" PROPERTIES LABELS "${folder};${speed}")
endforeach()
if(${program}_TESTS AND unmatched) # without a list the program is not built
  message(FATAL_ERROR "SLOW in the tests of ${program}: no case matches ${unmatched}")
endif()
