#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_compile_times.sh ROOT: checks what benchmarks/compile_times.py reports of programs that print what generators
# do, its status, and that it passes options on.
set -uo pipefail
root=$1 folder=$(mktemp -d) status=0
trap 'rm -r "$folder"' EXIT
mkdir "$folder/examples"

# write NAME TEXT STATUS: a generator.
write() {
  printf '#!/bin/sh\nprintf "%s"\nfor word; do [ "$word" != --fail ] || { echo "no such type" >&2; exit 3; }; done\nexit %d\n' \
    "$2" "$3" > "$folder/examples/$1_generator"
  chmod +x "$folder/examples/$1_generator"
}
# expect STATUS TEXT ARGUMENT ...
expect() {
  local wanted=$1 text=$2 said actual
  shift 2
  said=$("$root/benchmarks/compile_times.py" "$folder/examples" "$@" 2>&1)
  actual=$?
  [ $actual = "$wanted" ] || { echo "$*: status $actual, expected $wanted: $said"; status=1; }
  [[ $said == *"$text"* ]] || { echo "$* does not say '$text' but: $said"; status=1; }
}

expect 1 "no generators"
write one '   1.500 s  kernels\n   0.250 s  archive\n   1.750 s  total\n   1.250 s  kernel linear_3 of x86-64-v4\n   0.250 s  kernel add_0 of x86-64-v3\n' 0
expect 0 $'one: 1.8 s\n    1.25 s  linear_3 of x86-64-v4\n    0.25 s  add_0 of x86-64-v3'
expect 0 "linear_3" --limit 2
expect 1 "1.25 s  linear_3 of x86-64-v4  above the limit" --limit 1
expect 2 "one: error: no such type" -- --fail
write two '   0.500 s  total\n' 0
expect 1 $'above the limit\n    0.25 s  add_0 of x86-64-v3\ntwo: 0.5 s' --limit 1
exit $status
