#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# older_cpus.sh PROGRAM: on emulated CPUs of several generations, the program runs the best available target, with
# correct results; below the lowest level it reports an error.
set -uo pipefail
program=$1
emulator=qemu-$(uname -m)
command -v "$emulator" >/dev/null || { echo "skipped: $emulator is not installed (package qemu-user)"; exit 77; }
status=0
# expect CPU PATTERN
expect() {
  local words
  words=$("$emulator" -cpu "$1" "$program" 2> >(grep -v "TCG doesn't support" >&2)) || status=1
  echo "$1: $words"
  [[ $words == $2 ]] || { echo "  expected: $2"; status=1; }
}
if [ "$emulator" = qemu-aarch64 ]; then # each CPU of it has the lowest level
  expect cortex-a53 "aarch64, right"
  expect max "aarch64-dotprod, right"
  exit $status
fi
unsupported='unsupported: model "pair": unsupported CPU; expected level x86-64-v2, got an older CPU'
expect qemu64 "$unsupported"
expect core2duo "$unsupported"
expect Penryn "$unsupported"
expect Nehalem "x86-64-v2, right"
expect SandyBridge "x86-64-v2, right"
expect Haswell "x86-64-v3, right"
expect EPYC "x86-64-v3, right"
expect Skylake-Server "x86-64-v[34], right" # if the emulator supports AVX-512
exit $status
