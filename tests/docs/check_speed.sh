#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_speed.sh ROOT: checks that benchmarks/speed.svg is what benchmarks/draw.py draws from the table in
# benchmarks/README.md, and that draw.py rejects invalid input with one line and without a picture.
set -uo pipefail
benchmarks=$1/benchmarks
python3 -c '' 2>/dev/null || { echo "skipped: no python3"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
fail() { echo "$1"; status=1; }
draw() { python3 "$benchmarks/draw.py" "$@"; }

draw "$benchmarks/README.md" "$work/speed.svg" || fail "draw.py does not draw benchmarks/README.md"
cmp "$work/speed.svg" "$benchmarks/speed.svg" ||
  fail "benchmarks/speed.svg is not of the table: python3 benchmarks/draw.py benchmarks/README.md benchmarks/speed.svg"

# refused MESSAGE: checks that the table on standard input is rejected with this message.
refused() {
  local said
  cat >"$work/table.md"
  said=$(draw "$work/table.md" "$work/refused.svg" 2>&1)
  [ $? -eq 1 ] || fail "exit status is not 1: $1"
  [ "$said" = "draw.py: $work/table.md: $1" ] || fail "expected \"$1\", got \"$said\""
  [ ! -e "$work/refused.svg" ] || fail "a picture in spite of: $1"
}
table() { printf '%s\n' "A machine" "" "| benchmark | T | unit | ours | peer | ratio |" "|---|---|---|---:|---:|---:|" "$@"; }
refused "there is no table of benchmarks" <<<"Nothing."
refused "the table has no row to draw" < <(table)
refused "the table has no row to draw" < <(table "| limit/fma avx2 | 1 | GFLOP/s | 102 | - | - |")
refused 'the row "model/vit b/16" of 2 threads has no ratio: "-"' < <(table "| model/vit b/16 | 2 | ms | 188 | skipped | - |")
refused '5 cells under 6 headings: | model/vit b/16 | 2 | ms | 188 | 1.5 |' < <(table "| model/vit b/16 | 2 | ms | 188 | 1.5 |")
table "| model/vit b/16 | 2 | ms | 188 | 376 | 2.00 |" >"$work/table.md"
draw "$work/table.md" "$work/one.svg" && grep -q '>2.00<' "$work/one.svg" || fail "a table of one row is not drawn"
exit $status
