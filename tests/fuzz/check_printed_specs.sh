#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_printed_specs.sh ROOT PRINTER [FIRST COUNT]: checks that the specs of some random graphs compile without a
# warning and trace to these graphs, with every installed compiler. The graph sources are compiled too, so that the
# compiler that built PRINTER does not matter.
set -euo pipefail
root=$1 printer=$2 first=${3:-0} count=${4:-14}
. "$root/tests/dsl/compilers.sh"
found=$(compilers)
[ -n "$found" ] || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$printer" "$first" "$count" > "$work/specs.cpp"
sources=$(sed -n '/add_library(kiln_random_graphs/,/)/p' "$root/tests/fuzz/CMakeLists.txt" | grep -o '[A-Za-z]*\.cpp')
for compiler in $found; do
  limit=
  case $compiler in *clang*) limit=-fconstexpr-steps=100000000 ;; esac
  "$compiler" -std=c++20 -Wall -Wextra -Werror $limit -I"$root" -I"$root/dsl/include" -c "$work/specs.cpp" -o "$work/specs.o"
  for source in $sources; do echo "#include \"tests/fuzz/$source\""; done > "$work/graphs.cpp"
  "$compiler" -std=c++20 -ffp-contract=off -I"$root" -I"$root/dsl/include" "$work/specs.o" "$work/graphs.cpp" -o "$work/specs"
  "$work/specs" || { echo "$compiler: other graphs"; exit 1; }
done
