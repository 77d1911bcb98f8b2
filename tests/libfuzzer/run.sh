#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh PROGRAM CORPUS SECONDS [OPTION ...]: every input of the corpus, then new ones made of them for so many seconds.
# What fails is shown, and kept in the current folder; PROGRAM FILE runs it again.
set -euo pipefail
program=$1 corpus=$2 seconds=$3
shift 3
# LLVM's own libraries are not instrumented: they take memory of its allocators that ours have marked as free. What is
# lost the targets count themselves.
export ASAN_OPTIONS=allow_user_poisoning=0:detect_leaks=0:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1
run=("$program" -max_len=4096 -rss_limit_mb=2048 -timeout=20 -print_final_stats=1
  -artifact_prefix="$PWD/$(basename "$program")-" "$@")
[ -f "$corpus.dict" ] && run+=(-dict="$corpus.dict")
"${run[@]}" -runs=0 "$corpus" 2>&1 | tail -n 30
[ "$seconds" -eq 0 ] && exit
found=$(mktemp -d)
trap 'rm -rf "$found"' EXIT
"${run[@]}" -max_total_time="$seconds" "$found" "$corpus" 2>&1 | tail -n 40
