#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One of the ranks is killed or hangs: each other one gets KILN_RANK_LOST (25) in time and ends by itself, and so does
# mpirun: lost.sh MPIRUN RANKS killed|hangs PROGRAM
set -eu
mpirun=$1 ranks=$2 how=$3 program=$4 deadline_ms=1000 result=0
words=$(mktemp)
trap 'rm -f "$words"' EXIT
timeout 60 "$(dirname "$0")/run.sh" "$mpirun" --recover "$ranks" "$program" "$how" "$deadline_ms" >"$words" 2>&1 ||
  result=$?
cat "$words"
[ "$result" -eq 0 ] || exit "$result"
line="^rank [0-9]*: status 25 after [0-9.]* s, then 25: a rank did not take part within $deadline_ms ms\$"
told=$(grep -c "$line" "$words") || :
[ "$told" -eq $((ranks - 1)) ] ||
  { echo "lost.sh: $((ranks - 1)) ranks require to tell of it in time, got $told" >&2; exit 1; }
