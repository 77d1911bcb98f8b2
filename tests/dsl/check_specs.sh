#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# check_specs.sh ROOT: checks that figures_test.cpp, whose assertions are constant expressions, compiles within every
# compiler's default limits; prints the seconds.
set -eu
. "$(dirname "$0")/compilers.sh"
root=$1 found=$(compilers)
[ -n "$found" ] || exit 77
for compiler in $found; do
  start=$(date +%s%N)
  "$compiler" -std=c++20 -Wall -Wextra -Werror -pedantic -fsyntax-only -I "$root/dsl/include" -I "$root/tests/models/specs" -I "$root/examples" \
    "$root/tests/dsl/figures_test.cpp"
  end=$(date +%s%N)
  echo "$compiler: $(((end - start) / 1000000)) ms"
done
