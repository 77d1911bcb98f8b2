#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# interrupt_training.sh TRAINER [ARGS]: checks that a training program that is killed again and again, and restarted
# with another number of threads, ends with the same weights, bit for bit, as an uninterrupted one; and so do the
# weights before its last ones.
set -uo pipefail
trainer=("$@")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$1"; exit 1; }

begin=$EPOCHREALTIME
"${trainer[@]}" --out "$work/whole" --threads 1 >"$work/log" 2>&1 || {
  [ $? = 77 ] && { cat "$work/log"; exit 77; }
  cat "$work/log"
  fail "the training fails"
}
seconds=$(awk "BEGIN { print $EPOCHREALTIME - $begin }")
kills=0
for run in $(seq 40); do
  "${trainer[@]}" --out "$work/parts" --threads $((run % 2 + 1)) --save 0 >"$work/log" 2>&1 &
  sleep "$(awk "BEGIN { print $seconds * $run / 8 }")" # longer each time, so that it comes to its end
  kill -KILL $! 2>/dev/null && kills=$((kills + 1))
  wait $! 2>/dev/null && break
done
"${trainer[@]}" --out "$work/parts" >"$work/log" 2>&1 # a machine may be too slow to finish in the loop
[ -f "$work/parts" ] || { cat "$work/log"; fail "the training does not come to its end"; }
[ "$kills" -ge 2 ] || fail "the training was too short to be killed"
for whole in "$work"/whole*; do
  case $whole in *.losses | *.svg) continue ;; esac # means over steps restart in each run
  cmp "$whole" "$work/parts${whole#"$work/whole"}" || fail "killed $kills times the weights are others"
done
[ -s "$work/parts.svg" ] || fail "there is no picture of the losses"
echo "killed $kills times; the same weights"
