#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# check_refused.sh INCLUDE: checks that kiln/compilers.h has one error for C++17 and for compilers that are too old.
set -eu
. "$(dirname "$0")/compilers.sh"
include=$1 found=$(compilers)
[ -n "$found" ] || exit 77

# Fails unless the compiler $1 with the flags $2 prints the text $3, in one error.
expect() {
  if said=$(echo '#include "kiln/compilers.h"' | "$1" $2 -fsyntax-only -I "$include" -x c++ - 2>&1); then
    echo "$1 $2: compiled, but must not"
    exit 1
  fi
  errors=$(printf '%s\n' "$said" | grep 'error:' || true)
  case $errors in
    *error:*error:*) ;;
    *"\"kiln: $3\"") echo "$1 $2: $3" && return ;;
  esac
  printf '%s %s: expected the error "kiln: %s", got\n%s\n' "$1" "$2" "$3" "$said"
  exit 1
}
for compiler in $found; do
  expect "$compiler" -std=c++17 "standard: too old; expected -std=c++20 or later"
done
for compiler in clang++-14 clang++-15; do
  ! command -v "$compiler" > /dev/null ||
    expect "$compiler" -std=c++20 "compiler: too old; expected clang 16 or later, or g++ 12 or later"
done
! command -v g++-11 > /dev/null ||
  expect g++-11 -std=c++20 "compiler: too old; expected g++ 12 or later, or clang 16 or later"
