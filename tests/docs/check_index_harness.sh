#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_index_harness.sh ROOT PYTHON: checks that check_index.py finds each kind of mistake in a copy of dsl/SPEC.md,
# and that --write repairs the table.
set -uo pipefail
root=$1 check=("$2" "$1/tests/docs/check_index.py" "$1")
spec=$(mktemp)
trap 'rm -f "$spec"' EXIT
{
  sed -e 's/^\[abs\]: .*/[abs]: #linear/; /^\[cumsum\]: /d; /^\[rsqrt\]: /d; s/^\[matmul\]: .*/[matmul]: #nowhere/
          s/^\[tanh\]: .*/[cube]: #linear\n&/; s/^### softmax log_softmax$/### Softmax/' "$root/dsl/SPEC.md"
  printf '\n### cube_root\nA link [elsewhere](#elsewhere).\n'
} >"$spec"
found=$("${check[@]}" "$spec") && { echo "check_index.py found nothing"; exit 1; }
mistakes=("abs: its entry leads to linear, not to its heading" "cumsum: a heading, but not in the index"
  "cube_root: a heading, but not in the index" "matmul: in the index, but there is no heading nowhere"
  "matmul: its entry leads to nowhere, not to its heading" "there is no heading elsewhere"
  "cube: not after tan in the index" "cube: its entry leads to linear, which does not name it"
  "rsqrt: a function of the DSL, but not in the index" "log_softmax: a row of ops.def, but there is no heading"
  "the table of the index is not that of its entries")
for mistake in "${mistakes[@]}"; do
  grep -qF "$mistake" <<<"$found" || { echo "check_index.py does not say: $mistake"; exit 1; }
done

sed 's/^| \[Contractions\].*/| wrong | [matmul] |/' "$root/dsl/SPEC.md" >"$spec"
"${check[@]}" "$spec" >/dev/null && { echo "check_index.py accepts a wrong table"; exit 1; }
"${check[@]}" "$spec" --write
cmp "$spec" "$root/dsl/SPEC.md"
