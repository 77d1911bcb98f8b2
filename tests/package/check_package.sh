#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks the package that ./dev package made: the libraries that it needs, its size, its files, the list of its parts:
# check_package.sh PACKAGES SOURCE VERSION [ARCHITECTURE]
set -eu
packages=$1 source=$2 version=$3 own=$(uname -m)
architecture=${4:-$own}
fail() { echo "check_package: $1" >&2; exit 1; }
name=kiln-$version-linux-$architecture
archive=$packages/$name.tar.xz
[ -e "$archive" ] || { echo "not run: no $archive; ./dev package $architecture makes it"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar -C "$work" -xf "$archive"
[ "$(ls "$work")" = "$name" ] || fail "the archive must have the folder $name, got $(ls "$work")"
tree=$work/$name
"$source/cmake/package/check_static.sh" "$tree"

bytes=$(stat -c %s "$archive")
[ "$bytes" -le 80000000 ] || fail "the archive must have 80 MB at most, got $bytes bytes"
for file in bin/kiln bin/kiln-diagnose include/kiln/dsl.h include/kiln/generator.h lib/libkiln_compiler.so \
  lib/cmake/Kiln/KilnConfig.cmake lib/pkgconfig/kiln.pc share/kiln/models/llama/llama.h share/doc/kiln/LICENSE \
  share/doc/kiln/NOTICE share/doc/kiln/html/index.html share/doc/kiln/licenses/llvm-14-dev.txt \
  share/doc/kiln/licenses/libmlir-22-dev.txt share/doc/kiln/licenses/libhalide14-0-dev.txt; do
  [ -s "$tree/$file" ] || fail "the package must have $file"
done
machine=$(readelf -h "$tree/bin/kiln" "$tree/lib/libkiln_compiler.so" | sed -n 's/^ *Machine: *//p' | sort -u)
case $architecture:$machine in
"aarch64:AArch64" | "x86_64:Advanced Micro Devices X86-64") ;;
*) fail "the programs must be for $architecture, got $machine" ;;
esac
if [ "$architecture" = "$own" ]; then
  [ "$("$tree/bin/kiln" --version | head -n 1)" = "kiln $version" ] || fail "kiln --version must be $version"
fi
[ -z "$(tar -tvf "$archive" | grep -v ' 0/0 ')" ] || fail "all files must be root's"
times=$(find "$tree" -type f -printf '%Ts\n' | sort -u | wc -l)
[ "$times" = 1 ] || fail "all files must have one time, got $times"
names=$(grep -rlF "$source/" "$tree" || true)
[ -z "$names" ] || fail "the folder in which Kiln was built is named in $names"
"$source/tests/package/check_spdx.py" "$tree/share/doc/kiln/sbom.spdx.json" "$version"
