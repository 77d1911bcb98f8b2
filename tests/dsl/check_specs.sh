#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# check_specs.sh ROOT: checks that figures_test.cpp, whose assertions are constant expressions, and the specs that
# dsl/SPEC.md quotes compile within every compiler's default limits; prints the milliseconds.
set -eu
. "$(dirname "$0")/compilers.sh"
root=$1 found=$(compilers)
[ -n "$found" ] || exit 77
for compiler in $found; do
  start=$(date +%s%N)
  for file in "$root/tests/dsl/figures_test.cpp" "$root"/tests/dsl/specs/*.cpp; do
    "$compiler" -std=c++20 -Wall -Wextra -Werror -pedantic -fsyntax-only -I "$root/dsl/include" \
      -I "$root" -I "$root/compiler/include" -I "$root/tests/models/specs" -I "$root/examples" "$file"
  done
  end=$(date +%s%N)
  echo "$compiler: $(((end - start) / 1000000)) ms"
done
