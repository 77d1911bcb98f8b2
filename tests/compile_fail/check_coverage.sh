#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# check_coverage.sh DSL: checks that every label [..._cN] of the headers is in SPEC.md and has a case here; that every
# operation of ops.def has a heading; and that every case is in the list of CMakeLists.txt.
set -eu
dsl=$1 here=$(dirname "$0") failed=0
labels=$(grep -ohE '\[[a-z0-9_]+_c[0-9]+\]' "$dsl"/include/kiln/*.h | tr -d '[]' | sort -u)
[ "$(printf '%s\n' "$labels" | wc -l)" -gt 60 ] || { echo "found too few labels"; exit 1; }
for label in $labels; do
  grep -qE "(^|[^a-z_0-9])$label([^0-9]|\$)" "$dsl/SPEC.md" || { echo "$label: not in SPEC.md"; failed=1; }
  [ -f "$here/cases/$label.cpp" ] || { echo "$label: no case"; failed=1; }
done
operations=$(sed -nE 's/^KILN_[A-Z]+\(([a-z0-9_]+).*/\1/p' "$dsl/include/kiln/ops.def")
[ "$(printf '%s\n' "$operations" | wc -l)" -gt 35 ] || { echo "found too few operations"; exit 1; }
for operation in $operations; do
  grep -qE "^### (.* )?$operation( |\$)" "$dsl/SPEC.md" || { echo "$operation: no heading in SPEC.md"; failed=1; }
done
for case in "$here"/cases/*.cpp; do
  name=$(basename "$case" .cpp)
  grep -qE "(^| )$name([ )]|\$)" "$here/CMakeLists.txt" || { echo "$name: not in CMakeLists.txt"; failed=1; }
done
exit $failed
