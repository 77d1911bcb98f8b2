#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_index_harness.sh ROOT: checks that check_index.sh finds each kind of mistake in a copy of dsl/SPEC.md.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
spec=$(mktemp)
trap 'rm -f "$spec"' EXIT
{
  sed -e 's/^\[abs\](#[^)]*)/[abs](#linear)/; s/\[cumsum\](#cumsum), //; s/\[matmul\](#matmul)/[matmul](#nowhere)/
          s/\[tanh\](#[^)]*)/[cube](#linear), [tanh](#linear)/' "$1/dsl/SPEC.md"
  printf '\n### cube_root\nA link [elsewhere](#elsewhere).\n'
} > "$spec"
found=$("$here/check_index.sh" "$1" "$spec") && { echo "check_index.sh found nothing"; exit 1; }
mistakes=("abs: its entry leads to linear, not to its heading" "cumsum: a heading, but not in the index"
  "cube_root: a heading, but not in the index" "matmul: in the index, but there is no heading nowhere"
  "matmul: its entry leads to nowhere, not to its heading" "there is no heading elsewhere"
  "cube: not after sum in the index" "cube: its entry leads to linear, which does not name it")
for mistake in "${mistakes[@]}"; do
  grep -qF "$mistake" <<< "$found" || { echo "check_index.sh does not say: $mistake"; exit 1; }
done
