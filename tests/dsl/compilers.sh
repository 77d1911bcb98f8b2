# SPDX-License-Identifier: Apache-2.0
#
# Sourced by the checks that run on every compiler: `compilers` prints each installed version of g++ and clang.
compilers() {
  for compiler in $(seq -f 'g++-%g' 12 16) $(seq -f 'clang++-%g' 16 22); do
    ! command -v "$compiler" > /dev/null || echo "$compiler"
  done
}
