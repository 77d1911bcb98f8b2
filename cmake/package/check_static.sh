#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# check_static.sh TREE: checks that the programs and the library of an installed Kiln need only the C library, no
# version of it that is newer than 2.34, that they are stripped, and that the library exports nothing but its few
# functions.
set -eu
tree=$1
newest=2.34
fail() { echo "check_static: $1" >&2; exit 1; }
for file in "$tree/bin/kiln" "$tree/bin/kiln-diagnose" "$tree/lib/libkiln_compiler.so"; do
  [ -s "$file" ] || fail "there is no $file"
  for library in $(readelf -dW "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
    case $library in
    libc.so.6 | libm.so.6 | ld-linux-x86-64.so.2 | ld-linux-aarch64.so.1) ;;
    *) fail "$file needs $library" ;;
    esac
  done
  for version in $(readelf -VW "$file" | grep -oE 'GLIBC_[0-9A-Z_.]+' | sort -u); do
    highest=$(printf '%s\n' "${version#GLIBC_}" $newest | sort -V | tail -n 1)
    [ "$highest" = $newest ] || fail "$file needs a newer C library than $newest: $version"
  done
  ! readelf -SW "$file" | grep -qE ' \.(symtab|debug_)' || fail "$file has symbols for debuggers"
  path=$(readelf -dW "$file" | sed -n 's/.*(RUNPATH).*\[\(.*\)\]/\1/p; s/.*(RPATH).*\[\(.*\)\]/\1/p')
  case $path in
  "" | '$ORIGIN/../lib') ;;
  *) fail "$file looks for libraries in $path" ;;
  esac
done
exported=$(nm -D --defined-only --format=posix "$tree/lib/libkiln_compiler.so" | cut -d ' ' -f 1 |
  grep -vE '^(kiln_(find_spec|inspect_archive|scale_archive|tune_merge)|_ZN4kiln12runGeneratorEiPPcPKcPFNS_5GraphEvE)$') || true
[ -z "$exported" ] || fail "libkiln_compiler.so exports $exported"
echo "check_static: only the C library $newest or newer is needed"
