#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_ops_harness.sh ROOT: checks that check_ops.sh reports everything that an empty row lacks.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
table=$(mktemp)
trap 'rm -f "$table"' EXIT
{ cat "$1/dsl/include/kiln/ops.def"; echo 'KILN_UNARY(cube_root)'; echo 'KILN_UNARY(normal_cdf)'; } > "$table"
found=$("$here/check_ops.sh" "$1" "$table") && { echo "check_ops.sh found nothing"; exit 1; }
for mistake in "no heading in dsl/SPEC.md" "no op in compiler/dialect" "no test in tests/dialect" "no test in tests/ops"; do
  grep -qF "cube_root: $mistake" <<< "$found" || { echo "check_ops.sh does not say: $mistake"; exit 1; }
done
# normal_cdf is an op of the dialect with a gradient, but no operation of the DSL.
grep -qF "normal_cdf: no test in tests/gradients" <<< "$found" || { echo "check_ops.sh does not say: tests/gradients"; exit 1; }
found=$(grep cube_root <<< "$found")
[ "$(wc -l <<< "$found")" = 4 ] || { echo "check_ops.sh says more than that:"; echo "$found"; exit 1; }
