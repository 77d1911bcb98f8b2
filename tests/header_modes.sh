# SPDX-License-Identifier: Apache-2.0
# Compiles headers as users do: with each compiler, each standard and the warnings that each has. To be sourced by sh:
#
#   in_c FIRST FLAG ... SOURCE     C from the standard FIRST on (89, 99 or 11)
#   in_cxx FIRST FLAG ... SOURCE   C++ from the standard FIRST on (11 or 17)
#   on_windows FIRST_C FIRST_CXX FLAG ... SOURCE
#                                  C and C++ with mingw, and C++ as MSVC understands it; FIRST_C may be empty
#   in_bare FLAG ... SOURCE        C with tcc; C and C++ of MSVC and of other machines, for sources that include no more
#                                  than <stdbool.h>, <stddef.h> and <stdint.h>, since only the compiler's headers are here
#
# A compiler that is not here is skipped, which is printed. FLAG ... are for all compilers, such as -Ifolder.
# shellcheck shell=sh disable=SC2086 # a word a flag

gnu_warnings="-fsyntax-only -Werror -pedantic-errors -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wundef
  -Wcast-qual -Wcast-align -Wredundant-decls -Wdouble-promotion -Wnull-dereference"
gnu_c_warnings="$gnu_warnings -Wc++-compat -Wstrict-prototypes -Wmissing-prototypes"
gnu_cxx_warnings="$gnu_warnings -Wextra-semi -Wnon-virtual-dtor -Woverloaded-virtual -Wzero-as-null-pointer-constant"
# All of clang's, except those that reject the standard itself, padding, and each pointer with an index.
all_warnings="-fsyntax-only -Werror -Weverything -Wno-padded -Wno-unsafe-buffer-usage -Wno-c++98-compat
  -Wno-c++98-compat-pedantic -Wno-pre-c++14-compat -Wno-pre-c++17-compat -Wno-pre-c++20-compat"
# The language of MSVC, with the library of this machine.
like_msvc="-fms-extensions -fms-compatibility -fms-compatibility-version=19.40 -fdelayed-template-parsing
  -Wno-delayed-template-parsing-in-cxx20 -D__STRICT_ANSI__"
clang_cl="--driver-mode=cl --target=x86_64-pc-windows-msvc /Zs /W4 /WX -Xclang -ffreestanding"

# compiles COMMAND ...: runs the compiler, unless it is not here.
compiles() {
  if command -v "$1" >/dev/null; then
    echo "$*"
    "$@"
  else
    echo "skipped: $1 is not here"
  fi
}

# standards FIRST ALL ...: those of ALL from FIRST on.
standards() {
  first=$1
  shift
  for standard in "$@"; do
    [ "$standard" != "$first" ] || first=
    [ -n "$first" ] || echo "$standard"
  done
}

in_c() {
  first=$1
  shift
  for standard in $(standards "$first" 89 99 11 17 2x); do
    compiles gcc -x c "-std=c$standard" $gnu_c_warnings "$@"
    compiles gcc -x c "-std=gnu$standard" $gnu_c_warnings "$@"
    compiles clang-22 -x c "-std=c$standard" $all_warnings "$@"
  done
}

in_cxx() {
  first=$1
  shift
  for standard in $(standards "$first" 11 14 17 20 23); do
    compiles g++ -x c++ "-std=c++$standard" $gnu_cxx_warnings "$@"
  done
  for standard in $(standards "$first" 11 14 17 20 23 26); do
    compiles clang++-22 -x c++ "-std=c++$standard" $all_warnings "$@"
  done
  if [ -e /usr/lib/llvm-22/include/c++/v1/array ]; then
    compiles clang++-22 -x c++ -stdlib=libc++ "-std=c++$first" $all_warnings "$@"
  else
    echo "skipped: libc++ is not here"
  fi
}

on_windows() {
  first_c=$1 first=$2
  shift 2
  [ -z "$first_c" ] || compiles x86_64-w64-mingw32-gcc-posix -x c "-std=c$first_c" $gnu_c_warnings "$@"
  compiles x86_64-w64-mingw32-g++-posix -x c++ "-std=c++$first" $gnu_cxx_warnings "$@"
  for standard in $(standards "$first" 11 14 17 20); do
    compiles clang++-22 -x c++ "-std=c++$standard" $gnu_cxx_warnings $like_msvc "$@"
  done
}

in_bare() {
  object=$(mktemp) # not /dev/null, which tcc would replace by a file
  compiles tcc -Wall -Werror -c "$@" -o "$object" && status=0 || status=$?
  rm -f "$object"
  [ $status -eq 0 ] || return $status
  for standard in "" c11 c17; do
    compiles clang-22 $clang_cl /TC ${standard:+"/std:$standard"} "$@"
  done
  for standard in 14 17 20 latest; do
    compiles clang-22 $clang_cl /TP "/std:c++$standard" "$@"
  done
  for machine in i386-linux-gnu x86_64-windows-msvc wasm32-wasip1 aarch64-apple-macos13; do
    compiles clang-22 "--target=$machine" -x c -std=c89 -ffreestanding $all_warnings "$@"
    compiles clang-22 "--target=$machine" -x c++ -std=c++11 -ffreestanding $all_warnings "$@"
  done
}
