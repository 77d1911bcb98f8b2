#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Loses one of the ranks: OTHERS ranks (including one that is cut off) must get KILN_RANK_LOST (25) in time and exit by
# themselves, and so must mpirun: lost.sh OTHERS killed|hangs|cut PROGRAM RUNNER ARGUMENT ...
set -eu
others=$1 how=$2 program=$3 deadline_ms=1000 result=0
shift 3
words=$(mktemp)
trap 'rm -f "$words"' EXIT
timeout 60 "$@" "$program" "$how" "$deadline_ms" >"$words" 2>&1 || result=$?
cat "$words"
[ "$result" -eq 0 ] || exit "$result"
line="^rank [0-9]*: status 25 after [0-9.]* s, then 25: a rank did not take part within $deadline_ms ms\$"
told=$(grep -c "$line" "$words") || :
[ "$told" -eq "$others" ] || { echo "lost.sh: too few ranks told of it in time; expected $others, got $told" >&2; exit 1; }
