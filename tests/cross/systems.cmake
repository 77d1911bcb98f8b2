# SPDX-License-Identifier: Apache-2.0
#
# The tests of systems for which there is no C++ library here, and of other C libraries of Linux: a C program is linked with
# all of a library, and run where that is possible: program.c. The symbols that the archive needs are compared with those
# that the system has. Each system has variables with its name and the architecture:
#
#   <name>_levels   the targets of its library
#   <name>_build    options of kiln_add_library
#   <name>_run      a C compiler for that architecture on Linux, and the command that runs its programs; empty: none
find_program(KILN_CROSS_CC_aarch64 aarch64-linux-gnu-gcc)
find_program(KILN_LD_android NAMES ld.lld-22 ld.lld)
find_program(KILN_LD_macos NAMES ld64.lld-22 ld64.lld)
find_program(KILN_LLD_LINK NAMES lld-link-22 lld-link)
find_program(KILN_MUSL_GCC musl-gcc)
set(arm_run "")
set(x86_run "")
if(KILN_CROSS_CC_aarch64 AND KILN_EMULATOR_aarch64)
  set(arm_run "${KILN_CROSS_CC_aarch64}" ${aarch64-dotprod_run}) # all features, as Apple's CPUs have
endif()
if(CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
  set(x86_run "${CMAKE_C_COMPILER}")
endif()
set(x86_build WEIGHTS int4) # kernels with vector functions, too

# kiln_system_library(SYSTEM NAME): adds tiny_gpt for a system, the target tiny_gpt_NAME, and sets `archive`, which is empty
# if there is no runtime for it.
function(kiln_system_library system name)
  set(archive "" PARENT_SCOPE)
  set(library tiny_gpt_${name})
  if(NOT TARGET kiln_runtime_${name} AND NOT system STREQUAL linux)
    kiln_test(cross.${name} COMMAND ${CMAKE_COMMAND} -E echo
      "skipped: tests for ${system} take clang-22, llvm-22 and lld-22, and those for Windows mingw-w64-x86-64-dev"
      PROPERTIES SKIP_REGULAR_EXPRESSION "skipped")
    return()
  endif()
  kiln_add_library(${library} GENERATOR tiny_gpt_generator LIBRARY tiny_gpt TARGETS ${${name}_levels} ${${name}_build} SELFTEST)
  get_target_property(made ${library} KILN_ARCHIVE)
  add_custom_target(cross_${name} ALL DEPENDS "${made}")
  kiln_test(cross.${name}.hidden COMMAND kiln_check_hidden "${made}")
  set(archive "${made}" PARENT_SCOPE)
endfunction()

# Linux: the archives of all its architectures, which link with any C library.
set(linux_x86_64_levels x86-64-v4 x86-64-v3 x86-64-v2)
set(linux_x86_64_build WEIGHTS int4)
set(linux_x86_64_glibc /lib/x86_64-linux-gnu)
set(linux_aarch64_levels aarch64-dotprod aarch64)
set(linux_aarch64_glibc /usr/aarch64-linux-gnu/lib)
find_file(KILN_MUSL_LIBRARY libc.a PATHS /usr/lib/x86_64-linux-musl NO_DEFAULT_PATH)
set(musl "")
if(KILN_MUSL_LIBRARY)
  set(musl "${KILN_MUSL_LIBRARY}")
endif()
foreach(architecture x86_64 aarch64)
  set(name linux_${architecture})
  if(NOT linux IN_LIST architectures OR NOT CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
    break()
  elseif(architecture STREQUAL x86_64 AND KILN_SANITIZE) # the run time then needs the sanitizer
    continue()
  elseif(NOT EXISTS "${${name}_glibc}/libc.so.6" OR NOT (architecture STREQUAL x86_64 OR TARGET kiln_runtime_${architecture}))
    kiln_test(cross.${name} COMMAND ${CMAKE_COMMAND} -E echo
      "skipped: there is no glibc for ${architecture} (the part cross of ./dev)"
      PROPERTIES SKIP_REGULAR_EXPRESSION "skipped")
    continue()
  endif()
  kiln_system_library(linux ${name})
  kiln_test(cross.${name}.old_glibc COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/linux/check.sh" "${KILN_NM}" "${${name}_glibc}" "${musl}"
    "${archive}")
  if(NOT architecture STREQUAL x86_64)
    continue()
  elseif(KILN_MUSL_GCC)
    kiln_test(cross.${name}.musl COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/linux/musl.sh" "${KILN_MUSL_GCC}" "${archive}")
  else()
    kiln_test(cross.${name}.musl COMMAND ${CMAKE_COMMAND} -E echo
      "skipped: programs with musl take musl-tools (the part cross of ./dev)"
      PROPERTIES SKIP_REGULAR_EXPRESSION "skipped")
  endif()
endforeach()

# Android
set(android_aarch64_levels aarch64-dotprod-android aarch64-android)
set(android_x86_64_levels x86-64-v3-android x86-64-v2-android)
set(android_aarch64_run ${arm_run})
set(android_x86_64_run ${x86_run})
set(android_aarch64_build WEIGHTS int8)
set(android_x86_64_build ${x86_build})
foreach(architecture aarch64 x86_64)
  if(NOT android IN_LIST architectures)
    break()
  endif()
  set(name android_${architecture})
  kiln_system_library(android ${name})
  if(archive)
    kiln_test(cross.${name}.program COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/android/check.sh" "${KILN_CROSS_CLANG}"
      "${KILN_LD_android}" ${architecture} "${archive}" ${${name}_run})
  endif()
endforeach()

# Windows on Arm, which is linked but not run
set(windows_aarch64_levels aarch64-dotprod-windows aarch64-windows)
set(windows_aarch64_build WEIGHTS int8)
if(windows IN_LIST architectures)
  kiln_system_library(windows windows_aarch64)
  if(archive)
    kiln_test(cross.windows_aarch64.program COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/windows/arm64.sh" "${KILN_CROSS_CLANG}"
      "${KILN_LLD_LINK}" "${archive}")
    kiln_test(cross.windows_aarch64.symbols COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/windows/check_symbols.sh" "${KILN_NM}"
      "${archive}" tiny_gpt)
  endif()
endif()

# macOS and iOS: a custom loader runs the programs.
set(macos_arm64_triple arm64-apple-macosx11.0.0)
set(macos_arm64_platform "macos 11.0")
set(macos_arm64_levels aarch64-macos)
set(macos_x86_64_triple x86_64-apple-macosx11.0.0)
set(macos_x86_64_platform "macos 11.0")
set(macos_x86_64_levels x86-64-v4-macos x86-64-v3-macos)
set(ios_arm64_triple arm64-apple-ios14.0)
set(ios_arm64_platform "ios 14.0")
set(ios_arm64_levels aarch64-dotprod-ios aarch64-ios)
set(ios_arm64_build WEIGHTS int8)
set(ios_simulator_arm64_triple arm64-apple-ios14.0-simulator)
set(ios_simulator_arm64_platform "ios-simulator 14.0")
set(ios_simulator_arm64_levels aarch64-ios-simulator)
set(ios_simulator_x86_64_triple x86_64-apple-ios14.0-simulator)
set(ios_simulator_x86_64_platform "ios-simulator 14.0")
set(ios_simulator_x86_64_levels x86-64-v3-ios-simulator x86-64-v2-ios-simulator)
set(apple "")
foreach(name macos_arm64 macos_x86_64 ios_arm64 ios_simulator_arm64 ios_simulator_x86_64)
  string(REGEX MATCH "^[a-z]*" system ${name})
  if(system IN_LIST architectures)
    list(APPEND apple ${name})
  endif()
endforeach()
set(apple_folders "")
foreach(name ${apple})
  if(name MATCHES "arm64")
    set(${name}_run ${arm_run})
  else()
    set(${name}_run ${x86_run})
    set(${name}_build ${x86_build})
  endif()
  kiln_system_library("macOS and iOS" ${name})
  if(NOT archive OR NOT KILN_LD_macos)
    continue()
  endif()
  cmake_path(GET archive PARENT_PATH folder)
  list(APPEND apple_folders "${folder}")
  kiln_test(cross.${name}.program COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/apple/check.sh" "${KILN_CROSS_CLANG}" "${KILN_LD_macos}"
    ${${name}_triple} "${${name}_platform}" "${archive}" ${${name}_run})
endforeach()
if(apple_folders)
  kiln_test(cross.apple.xcframework COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/apple/xcframework.sh" "${KILN_CROSS_CLANG}"
    "${KILN_LD_macos}" "${PROJECT_SOURCE_DIR}/tools/xcframework.py" ${apple_folders})
endif()

# Tuning for macOS
foreach(architecture arm64 x86_64)
  set(name macos_${architecture})
  if(NOT ${name} IN_LIST apple)
    continue()
  elseif(NOT ${name}_run OR NOT KILN_LD_macos)
    kiln_test(cross.${name}.tuned COMMAND ${CMAKE_COMMAND} -E echo
      "skipped: programs for ${architecture} take a C compiler, an emulator and lld-22 (the parts cross and qemu of ./dev)"
      PROPERTIES SKIP_REGULAR_EXPRESSION "skipped")
    continue()
  endif()
  set(sources "${CMAKE_CURRENT_SOURCE_DIR}/apple")
  set(emulator ${${name}_run})
  list(POP_FRONT emulator compiler)
  list(JOIN emulator " " emulator)
  set(runner "${CMAKE_CURRENT_BINARY_DIR}/${name}_runner.sh")
  kiln_write_runner("${runner}"
    "exec '${KILN_LD_macos}' -arch ${architecture} -platform_version macos 11.0 11.0 \"$@\" '${sources}/libSystem.tbd' \
  '${sources}/trial.tbd' -o \"$program\""
    "'${compiler}' -O1 -pthread '${sources}/run.c' -o \"$program.run\"
  exec ${emulator} \"$program.run\" \"$program\"")
  list(GET ${name}_levels -1 target)
  kiln_tuned_test(cross.${name}.tuned ${target} "${runner}")
endforeach()
