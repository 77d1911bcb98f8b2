#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_layout_harness.sh ROOT: checks that check_layout.sh finds a folder and a pass that documents do not name, and
# passes in another order.
set -uo pipefail
root=$1 work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed '/^compiler\/object\//d; s/^\(runtime\/src\/ .*\) core,/\1/' "$root/docs/architecture.md" >"$work/architecture.md"
sed '/^| `kiln-record-work`/d; s/`kiln-shard-rows`/`kiln-shard`/; t; s/^| `kiln-shard`/| `kiln-shard-rows`/' \
  "$root/docs/ir.md" >"$work/ir.md"
found=$("$root/tests/docs/check_layout.sh" "$root" "$work/architecture.md" "$work/ir.md") &&
  { echo "check_layout.sh found nothing"; exit 1; }
for mistake in "docs/architecture.md does not name compiler/object" "docs/architecture.md does not name runtime/src/core" \
  "docs/ir.md does not list kiln-record-work" "docs/ir.md has another order of passes" "< kiln-shard"; do
  grep -qF "$mistake" <<<"$found" || { echo "check_layout.sh does not say: $mistake"; echo "$found"; exit 1; }
done
