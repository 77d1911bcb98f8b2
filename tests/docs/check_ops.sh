#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_ops.sh ROOT [OPS.DEF]: checks that every row of the table of operations follows docs/adding-an-op.md: a heading
# in the specification, an op in the dialect, a dialect test, if it computes something a test against an f64 loop, and
# if it has a gradient a test of that.
# (tests/fuzz/random_graph_test.cpp checks that random models contain it.)
set -uo pipefail
root=$1 table=${2:-$1/dsl/include/kiln/ops.def} status=0 rows=0
fail() { echo "$1"; status=1; }

# Prints the name and family of each row.
list() {
  sed -nE 's/^KILN_OP\(([a-z0-9_]+), *([a-z]+),.*/\1 \2/p
           s/^KILN_(UNARY|BINARY|COMPARISON|LOGIC)\(([a-z0-9_]+)\).*/\2 elements/p' "$table"
}
while read -r name family; do
  rows=$((rows + 1))
  grep -qE "^### (.* )?$name( |\$)" "$root/dsl/SPEC.md" || fail "$name: no heading in dsl/SPEC.md"
  case $name in
  input | stack | result) continue ;; # an argument, kiln.repeat, a result of kiln.scan
  esac
  grep -qE "\"$name\"" "$root"/compiler/dialect/KilnOps*.td || fail "$name: no op in compiler/dialect"
  grep -qE "kiln\.$name( |\$|\()" "$root"/tests/dialect/*.mlir || fail "$name: no test in tests/dialect"
  case $family:$name in
  source:* | loop:* | state:* | *:add | *:sub | *:mul | *:div) continue ;; # the last ones are written as operators
  esac
  layer=$(sed -E 's/(^|_)([a-z])/\u\2/g' <<< "$name")
  grep -qE "kiln::($name|$layer)(<|\()|F\($name," "$root"/tests/ops/{ops_*.cpp,functions.h} ||
    fail "$name: no test in tests/ops"
  rule="KILN_GRADIENT(${layer}Op)"
  case $name in # which functions have the op
  attention_scores) name=attention_weights ;;
  cast) name=cross_entropy ;;
  running_average) layer=BatchNorm2d ;;
  esac
  # A rule whose only gradient is null has no test.
  if grep -F "$rule" "$root"/compiler/dialect/gradients/*.cpp | grep -qvF "{ return {Value()}; }"; then
    grep -qE "kiln::($name|$layer)(<|\()" "$root"/tests/gradients/*.h || fail "$name: no test in tests/gradients"
  fi
done < <(list)
[ "$rows" -gt 50 ] || fail "found too few rows in $table: $rows"
exit $status
