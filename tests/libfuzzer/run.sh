#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh PROGRAM CORPUS RUNS [OPTION ...]: tries every input of the corpus, then RUNS inputs in all, new ones mutated from
# them. KILN_SEED chooses the new ones, so that a run can be repeated; -max_total_time=SECONDS bounds a long run. An input
# that fails is shown, and kept in the current folder; PROGRAM FILE runs it again.
set -euo pipefail
program=$1 corpus=$2 runs=$3
shift 3
# LLVM's own libraries are not instrumented: they use memory of LLVM's allocators that instrumented code has poisoned.
# The targets count leaks themselves.
export ASAN_OPTIONS=allow_user_poisoning=0:detect_leaks=0:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1
run=("$program" -max_len=4096 -rss_limit_mb=2048 -timeout=20 -print_final_stats=1
  -artifact_prefix="$PWD/$(basename "$program")-" "$@")
[ -f "$corpus.dict" ] && run+=(-dict="$corpus.dict")
"${run[@]}" -runs=0 "$corpus" 2>&1 | tail -n 30
[ "$runs" -eq 0 ] && exit
seed=$((${KILN_SEED:-1} % 4294967295 + 1)) # libFuzzer uses a random seed for 0
echo "KILN_SEED=${KILN_SEED:-1}"
found=$(mktemp -d)
trap 'rm -rf "$found"' EXIT
"${run[@]}" -seed="$seed" -runs="$runs" "$found" "$corpus" 2>&1 | tail -n 40
