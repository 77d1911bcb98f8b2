#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_tables.sh PROGRAM ROOT [--write]: checks that the tables of docs/scale.md between its marks, and its picture,
# are the current predictions of the cost model; with --write, updates them.
set -euo pipefail
program=$1 root=$2 document=$2/docs/scale.md picture=$2/docs/pictures/scale.svg
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$program" "$root/examples/clusters/machines" >"$work/tables"
"$program" "$root/examples/clusters/machines" --picture >"$work/scale.svg"
# A table for each mark, in order; they are separated by empty lines.
awk -v tables="$work/tables" '
  /^<!-- predicted -->$/ { print; print ""; inside = 1
    while ((getline line < tables) > 0 && line != "") print line
    print ""; next }
  /^<!-- end of predicted -->$/ { inside = 0 }
  !inside { print }' "$document" >"$work/scale.md"
[ "$(grep -c '^<!-- predicted -->$' "$document")" -eq "$(($(grep -c '^$' "$work/tables") + 1))" ] ||
  { echo "docs/scale.md has not as many marks as there are tables"; exit 1; }
if [ "${3:-}" = --write ]; then
  cp "$work/scale.md" "$document"
  cp "$work/scale.svg" "$picture"
fi
diff "$work/scale.md" "$document" || { echo "docs/scale.md is not what is predicted: $0 $* --write"; exit 1; }
cmp "$work/scale.svg" "$picture" || { echo "docs/pictures/scale.svg is not what is predicted: $0 $* --write"; exit 1; }
