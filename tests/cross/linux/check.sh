#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that an archive for Linux needs no recent C library: check.sh NM GLIBC MUSL ARCHIVE. GLIBC: a folder with libc.so.6;
# MUSL: the file libc.a of any architecture, or nothing.
#   - undefined symbols are defined in the archive, or exist since glibc 2.17, by the versions that libc.so.6 states
#   - musl has them
set -eu
nm=$1 glibc=$2 musl=$3 archive=$4
fail() { echo "check: $1" >&2; exit 1; }

defined=$("$nm" -g --defined-only "$archive" | awk 'NF == 3 { print $3 }' | sort -u)
undefined=$("$nm" -u "$archive" | awk '$1 == "U" { print $2 }' | sort -u)
needed=$(echo "$undefined" | grep -vxF "$defined")
# Before 2.33 these two are in libc_nonshared.a, which each program links. Compilers make calls of the third of them on
# Arm for atomic operations: GCC 10 and later, and LLVM's compiler-rt, have its functions.
others="_GLOBAL_OFFSET_TABLE_ fstat stat"
needed=$(echo "$needed" | grep -vxF "$(echo "$others" | tr ' ' '\n')" | grep -v '^__aarch64_\(cas\|ldadd\|ldclr\|ldset\|swp\)[1248]_')
[ "$(echo "$needed" | wc -l)" -ge 20 ] || fail "an archive needs at least 20 functions of the C library, got: $needed"

old=$("$nm" -D --defined-only "$glibc/libc.so.6" "$glibc/libm.so.6" | awk '
  { split($3, parts, "@+"); version = parts[2]; if (sub(/^GLIBC_2\./, "", version)) {
    split(version, numbers, "."); if (numbers[1] + 0 <= 17) print parts[1] } }' | sort -u)
[ "$(echo "$old" | wc -l)" -ge 1000 ] || fail "$glibc/libc.so.6 has no versions of symbols"
newer=$(echo "$needed" | grep -vxF "$old" || true)
[ -z "$newer" ] || fail "functions that glibc 2.17 lacks: $newer"
echo "$(echo "$needed" | wc -l) functions, which glibc 2.17 has"

[ -n "$musl" ] || { echo "musl is not here: musl-tools"; exit 0; }
lacking=$(echo "$needed" | grep -vxF "$("$nm" -g --defined-only "$musl" 2>/dev/null | awk 'NF == 3 { print $3 }' | sort -u)" || true)
[ -z "$lacking" ] || fail "functions that musl lacks: $lacking"
