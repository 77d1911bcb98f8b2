#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks what the runtime adds to a program: check_archive.sh ARCHIVE MAX_TEXT_BYTES
#   - what is linked of it into a program that binds weights and calls entries on a pool stays below the budget
#   - no writable data, so no global state, and no constructors
#   - every global symbol starts with kiln_, for the emitter to rename
#   - nothing undefined but the model's descriptor and the libc functions below
set -eu
archive=$1 limit=$2 failed=0
fail() { echo "check_archive: $1" >&2; failed=1; }

linked=$(mktemp)
trap 'rm -f "$linked"' EXIT
roots="create bind_weights bind_weights_from_memory destroy run status_text pool_create pool_executor pool_destroy malloc
free do_par_for copy_rows"
# shellcheck disable=SC2046 # a word a root
ld -shared --gc-sections $(printf -- '-u kiln_%s ' $roots) "$archive" -o "$linked"
code_bytes() { size -A "$1" | awk '$1 ~ /^\.text/ { sum += $2 } END { print sum + 0 }'; }
text=$(code_bytes "$linked")
echo "text: $text bytes of $limit linked, $(code_bytes "$archive") in all"
[ "$text" -gt 0 ] || fail "archive requires code, got none"
[ "$text" -lt "$limit" ] || fail "code requires less than $limit bytes, got $text"

sections=$(size -A "$archive" | awk '$1 ~ /^\.(data|bss|tdata|tbss|init_array|fini_array|ctors|dtors)/ &&
  $1 !~ /^\.data\.rel\.ro/ && $2 > 0 { print $1, $2 }')
[ -z "$sections" ] || fail "runtime requires no state and no constructors, got $sections"

foreign=$(nm -g --defined-only "$archive" | awk 'NF == 3 && $3 !~ /^kiln_/ { print $3 }')
[ -z "$foreign" ] || fail "global symbols require the prefix kiln_, got $foreign"

allowed="_GLOBAL_OFFSET_TABLE_ __errno_location __xpg_strerror_r aligned_alloc bcmp close free fstat madvise memchr memcmp memcpy memset mmap
munmap open snprintf strchr strlen strstr vsnprintf sigfillset pthread_sigmask pthread_create pthread_join
pthread_cond_broadcast pthread_cond_destroy pthread_cond_init pthread_cond_signal pthread_cond_wait pthread_mutex_destroy
pthread_mutex_init pthread_mutex_lock pthread_mutex_unlock clock_gettime sched_getaffinity sched_getcpu sched_setaffinity
sched_yield __sched_cpucount kiln_descriptor"
defined=$(nm -g --defined-only "$archive" | awk 'NF == 3 { print $3 }')
for symbol in $(nm -u "$archive" | awk '$1 == "U" { print $2 }' | sort -u); do
  echo "$allowed $defined" | tr ' ' '\n' | grep -qx "$symbol" || fail "undefined symbols require to be listed, got $symbol"
done
exit $failed
