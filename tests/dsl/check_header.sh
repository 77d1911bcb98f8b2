#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# check_header.sh INCLUDE HEADER: checks that the header compiles by itself, included twice, without a warning.
set -eu
. "$(dirname "$0")/compilers.sh"
include=$1 header=$2 found=$(compilers)
[ -n "$found" ] || exit 77
for compiler in $found; do
  printf '#include "%s"\n#include "%s"\n' "$header" "$header" |
    "$compiler" -std=c++20 -Wall -Wextra -Werror -pedantic -fsyntax-only -I "$include" -x c++ -
  echo "$compiler: $header compiles alone"
done
