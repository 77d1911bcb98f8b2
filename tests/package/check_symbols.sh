#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks what a generated archive adds to a program: check_symbols.sh ARCHIVE NAME [FUNCTION ...]
#   - every global symbol that it defines begins with NAME_
#   - its undefined symbols are in libc, libm and pthread, and all of the FUNCTIONs, which the program defines
#   - no section runs code before main, and it has no writable data
set -eu
archive=$1 name=$2 failed=0
shift 2
fail() { echo "check_symbols: $1" >&2; failed=1; }

defined=$(nm -g --defined-only "$archive" | awk 'NF == 3 { print $3 }' | sort -u)
count=$(echo "$defined" | wc -l)
echo "$count global symbols"
[ "$count" -ge 10 ] || fail "an archive defines at least 10 functions, got $count"
foreign=$(echo "$defined" | grep -v "^${name}_" || true)
[ -z "$foreign" ] || fail "global symbols must begin with ${name}_, got: $foreign"

libc=$(for library in libc.so.6 libm.so.6; do
  nm -D --defined-only "$(cc -print-file-name=$library)" | awk 'NF == 3 { sub(/@.*/, "", $3); print $3 }'
done)
undefined=$(nm -u "$archive" | awk '$1 == "U" { print $2 }' | sort -u)
for symbol in "$@"; do
  echo "$undefined" | grep -qxF "$symbol" || fail "$symbol is not among the undefined symbols"
done
for symbol in $undefined; do
  [ "$symbol" = _GLOBAL_OFFSET_TABLE_ ] && continue
  printf '%s\n%s\n%s\n' "$defined" "$libc" "$*" | tr ' ' '\n' | grep -qxF "$symbol" || fail "undefined symbol that neither the archive nor libc has: $symbol"
done
for symbol in abort exit printf puts fprintf fputs fwrite; do
  nm -u "$archive" | awk '$1 == "U" { print $2 }' | grep -qx "$symbol" && fail "the archive must not print nor end the program, it uses $symbol"
done

sections=$(objdump -h "$archive" | awk '$2 ~ /^\.(init_array|fini_array|ctors|dtors|init|fini|preinit_array)/ { print $2 }')
[ -z "$sections" ] || fail "sections that run code outside main: $sections"
writable=$(size -A "$archive" | awk '$1 ~ /^\.(data|bss|tdata|tbss)/ && $1 !~ /^\.data\.rel\.ro/ && $2 > 0 { print $1, $2 }')
[ -z "$writable" ] || fail "state that is shared by all models: $writable"
exit $failed
