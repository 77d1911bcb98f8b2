#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks the symbols of an archive for Windows: check_symbols.sh NM ARCHIVE NAME
#   - every global symbol that it defines begins with NAME_, except constants that are named by their value
#   - undefined symbols are defined in the archive, or in the C library and the system as listed in crt.txt and
#     kernel32.txt, or are functions of the program, NAME_custom_
#   - none of the C library is imported by name, which would need its DLL
#   - it has no directives to the linker, such as the name of a C library, except symbols not to export
set -eu
nm=$1 archive=$2 name=$3 failed=0
fail() { echo "check_symbols: $1" >&2; failed=1; }

defined=$("$nm" -g --defined-only "$archive" | awk 'NF == 3 { print $3 }' | sort -u)
here=$(dirname "$0")
"$here/../global_symbols.sh" "$nm" "$archive" "${name}_" '^__\(real\|xmm\|ymm\|zmm\)@[0-9a-f]*$' || failed=1

listed=$(sed '/^#/d' "$here/crt.txt" "$here/kernel32.txt" | tr ' ' '\n')
undefined=$("$nm" -u "$archive" | awk '$1 == "U" { print $2 }' | sort -u)
for symbol in $(echo "$undefined" | grep -v "^${name}_custom_"); do
  printf '%s\n' "$defined" "$listed" | grep -qxF "${symbol#__imp_}" ||
    fail "undefined symbol that neither the archive nor the system has: $symbol"
done
imported=$(sed '/^#/d' "$here/crt.txt" | tr ' ' '\n' | sed 's/^/__imp_/' | grep -xF "$undefined" || true)
[ -z "$imported" ] || fail "functions of the C library must not be imported, got: $imported"
directives=$("$(dirname "$(readlink -f "$nm")")/llvm-readobj" --coff-directives "$archive" | grep -oE '(^|[ "])[-/][A-Za-z-]+:' | tr -d ' "' | sort -u)
[ "$directives" = -exclude-symbols: ] || fail "the only directives must be -exclude-symbols, got: $directives"
exit $failed
