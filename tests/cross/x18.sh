#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# On Android, Apple's systems and Windows the register x18 of 64-bit Arm belongs to the system: checks that no
# instruction of an archive uses it: x18.sh OBJDUMP ARCHIVE
set -eu
code=$(mktemp)
trap 'rm -f "$code"' EXIT
"$1" -d --no-show-raw-insn "$2" >"$code"
count=$(grep -c '^ *[0-9a-f]*:' "$code" || true)
[ "$count" -ge 10000 ] || { echo "x18: an archive has at least 10000 instructions, got $count" >&2; exit 1; }
used=$(grep -cwE '[xw]18' "$code" || true)
[ "$used" -eq 0 ] || { echo "x18: no instruction may use it, got $used, such as $(grep -m 3 -wE '[xw]18' "$code")" >&2; exit 1; }
