#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks what the runtime adds to a program: check_archive.sh ARCHIVE MAX_TEXT_BYTES MAX_CUDA_TEXT_BYTES
#   MAX_PACKED_TEXT_BYTES MAX_QUANTIZED_TEXT_BYTES MAX_BATCH_TEXT_BYTES MAX_SELFTEST_TEXT_BYTES MAX_RANKS_TEXT_BYTES
#   MAX_RANKS_TEXT_BYTES is 0 in a build without KILN_PARALLEL, whose archive has no such code.
#   - the code linked into a program that binds weights and calls entries on a pool stays below its budget, and so does
#     the additional code of a model on a GPU, of packed files, of readers of quantised checkpoints, of batches, of
#     self-tests and of several ranks
#   - no writable data, so no global state, and no constructors
#   - every global symbol starts with kiln_, for the emitter to rename
#   - the members for the CPU refer to none of those for CUDA, so these are linked only if a variant refers to them
#   - no undefined symbols except the model's tables and the libc functions below
set -eu
archive=$1 limit=$2 cuda_limit=$3 packed_limit=$4 quantized_limit=$5 batch_limit=$6 selftest_limit=$7 ranks_limit=$8
failed=0
fail() { echo "check_archive: $1" >&2; failed=1; }

linked=$(mktemp)
trap 'rm -f "$linked"' EXIT
roots="create bind_weights bind_weights_from_memory destroy run status_text pool_create pool_executor pool_destroy malloc
free do_par_for copy_rows"
cuda_roots="cuda_backend cuda_launch cuda_launch_tma cuda_copy_rows"
code_bytes() { size -A "$1" | awk '$1 ~ /^\.text/ { sum += $2 } END { print sum + 0 }'; }
# Prints the size of the code that is linked for these root symbols, without the code of storage formats with groups, of
# small floats, and of what keeps the numbers of checkpoints: libraries without such weights have small_floats_none.c,
# block_formats_none.c, pack_groups_none.c and kept_numbers_none.c in its place.
no_rare_formats=""
for symbol in quantize_to_f8 quantize_to_f4 quantize_blocks decode_block pack_groups pack_groups_fit gguf_has_groups \
  gguf_read_groups int4_has_groups int4_read_groups f8_has_groups f8_read_groups nvfp4_has_groups nvfp4_read_groups; do
  no_rare_formats="$no_rare_formats --defsym kiln_$symbol=0"
done
linked_bytes() {
  # shellcheck disable=SC2046,SC2086 # a word a root or an option
  ld -shared --gc-sections $no_rare_formats $(printf -- '-u kiln_%s ' "$@") "$archive" -o "$linked"
  code_bytes "$linked"
}
# shellcheck disable=SC2086 # a word a root
text=$(linked_bytes $roots) all=$(linked_bytes $roots $cuda_roots) packed=$(linked_bytes $roots bind_packed save_packed)
# shellcheck disable=SC2086
quantized=$(linked_bytes $roots bind_gguf bind_quantized) batch=$(linked_bytes $roots run_batch)
cuda_text=$((all - text)) packed_text=$((packed - text)) quantized_text=$((quantized - text))
batch_text=$((batch - text))
# shellcheck disable=SC2086
selftest_text=$(($(linked_bytes $roots selftest) - text))
# shellcheck disable=SC2086
ranks_text=$(($(linked_bytes $roots sharding collect) - text))
# shellcheck disable=SC2086
rare_text=$(($(no_rare_formats="" && linked_bytes $roots) - text))
echo "text: $text bytes of $limit linked, $cuda_text of $cuda_limit more for CUDA, $packed_text of $packed_limit for packed" \
  "files, $quantized_text of $quantized_limit for quantised checkpoints, $batch_text of $batch_limit for batches," \
  "$selftest_text of $selftest_limit for self-tests, $ranks_text of $ranks_limit for several ranks," \
  "$rare_text for rare storage formats, $(code_bytes "$archive") in all"
[ "$text" -gt 0 ] || fail "archive: no code; expected some"
[ "$text" -lt "$limit" ] || fail "code: too large; expected less than $limit bytes, got $text"
[ "$rare_text" -gt 0 ] || fail "archive: no code for rare storage formats; expected some"
[ "$packed_text" -gt 0 ] || fail "archive: no code for packed files; expected some"
[ "$packed_text" -lt "$packed_limit" ] || fail "code for packed files: too large; expected less than $packed_limit bytes, got $packed_text"
[ "$quantized_text" -gt 0 ] || fail "archive: no code for quantised checkpoints; expected some"
[ "$quantized_text" -lt "$quantized_limit" ] ||
  fail "code for quantised checkpoints: too large; expected less than $quantized_limit bytes, got $quantized_text"
[ "$batch_text" -gt 0 ] || fail "archive: no code for batches; expected some"
[ "$batch_text" -lt "$batch_limit" ] || fail "code for batches: too large; expected less than $batch_limit bytes, got $batch_text"
[ "$selftest_text" -gt 0 ] || fail "archive: no code for self-tests; expected some"
[ "$selftest_text" -lt "$selftest_limit" ] ||
  fail "code for self-tests: too large; expected less than $selftest_limit bytes, got $selftest_text"
[ "$ranks_text" -gt 0 ] || [ "$ranks_limit" -eq 0 ] || fail "archive: no code for several ranks; expected some"
[ "$ranks_text" -lt "$ranks_limit" ] || [ "$ranks_text" -eq 0 ] || fail "code for several ranks: too large; expected less than $ranks_limit bytes, got $ranks_text"
[ "$cuda_text" -gt 0 ] || fail "archive: no code for CUDA; expected some"
[ "$cuda_text" -lt "$cuda_limit" ] || fail "code for CUDA: too large; expected less than $cuda_limit bytes, got $cuda_text"

sections=$(size -A "$archive" | awk '$1 ~ /^\.(data|bss|tdata|tbss|init_array|fini_array|ctors|dtors)/ &&
  $1 !~ /^\.data\.rel\.ro/ && $2 > 0 { print $1, $2 }')
[ -z "$sections" ] || fail "runtime: state or constructors; expected none, got $sections"

foreign=$(nm -g --defined-only "$archive" | awk 'NF == 3 && $3 !~ /^kiln_/ { print $3 }')
[ -z "$foreign" ] || fail "global symbols: wrong prefix; expected kiln_, got $foreign"

# Prints the symbols of the members whose names begin with "cuda", or of the others, from lines archive:member:value
# type name.
symbols() { # DEFINED_OR_UNDEFINED IS_CUDA
  nm -A -g "--$1-only" "$archive" |
    awk -v cuda="$2" '{ split($1, at, ":"); if ((at[2] ~ /^cuda[._]/) == cuda) print $NF }' | sort -u
}
allowed="_GLOBAL_OFFSET_TABLE_ __errno_location __xpg_strerror_r aligned_alloc bcmp close fchmod fchown flock free fstat fsync getpid madvise memchr memcmp memcpy memset mmap
munmap open pread readlink rename snprintf stat strchr strcmp strlen strncmp strrchr strstr unlink vsnprintf write sigfillset pthread_sigmask pthread_create pthread_join
pthread_cond_broadcast pthread_cond_destroy pthread_cond_init pthread_cond_signal pthread_cond_wait pthread_mutex_destroy
pthread_mutex_init pthread_mutex_lock pthread_mutex_unlock clock_gettime sched_getaffinity sched_getcpu sched_setaffinity
sched_yield __sched_cpucount sysconf kiln_descriptor kiln_embedded_weights kiln_selftest_table $(symbols defined 0)"
allowed_for_cuda="$allowed dlclose dlerror dlopen dlsym secure_getenv strcspn $(symbols defined 1)"
check_undefined() { # IS_CUDA ALLOWED...
  is_cuda=$1
  shift
  for symbol in $(symbols undefined "$is_cuda"); do
    printf '%s\n' "$@" | grep -qx "$symbol" || fail "undefined symbols: not listed; expected listed ones, got $symbol"
  done
}
# shellcheck disable=SC2086 # a word a symbol
check_undefined 0 $allowed
# shellcheck disable=SC2086
check_undefined 1 $allowed_for_cuda
exit $failed
