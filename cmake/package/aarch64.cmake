# SPDX-License-Identifier: Apache-2.0
#
# Cross-builds for Linux on aarch64 with clang and the libraries in KILN_SYSROOT, a folder of cmake/package/sysroot.sh.
# Programs of the build itself run by qemu (Debian's qemu-user).
set(KILN_SYSROOT "${CMAKE_CURRENT_LIST_DIR}/../../build/aarch64/root" CACHE PATH "Debian for arm64, against which Kiln is built")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES KILN_SYSROOT)
get_filename_component(CMAKE_SYSROOT "${KILN_SYSROOT}" ABSOLUTE)

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(default_C clang-22)
set(default_CXX clang++-22)
foreach(language C CXX)
  if(NOT DEFINED CMAKE_${language}_COMPILER)
    set(CMAKE_${language}_COMPILER ${default_${language}})
  endif()
  set(CMAKE_${language}_COMPILER_TARGET aarch64-linux-gnu)
endforeach()
set(CMAKE_EXE_LINKER_FLAGS_INIT -fuse-ld=lld) # the default is the build machine's linker
set(CMAKE_SHARED_LINKER_FLAGS_INIT -fuse-ld=lld)
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-aarch64;-L;${CMAKE_SYSROOT}")

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
