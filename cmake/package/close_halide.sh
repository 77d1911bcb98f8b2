#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# close_halide.sh ARCHIVE OUTPUT [SYSROOT]: links a static Halide with LLVM 14 to one object, makes all names but Halide's
# local to it, and writes it as an archive; for aarch64 with a folder of sysroot.sh. GNU's linker is used since it can
# dissolve groups of sections: the other LLVM has groups of the same names, of which a linker keeps one.
set -eu
archive=$1 output=$2 sysroot=${3:-}
tools=
[ -z "$sysroot" ] || tools=aarch64-linux-gnu-
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
llvm=$(llvm-config-14 --link-static --libnames x86 aarch64 arm nvptx riscv webassembly mcjit bitwriter linker passes |
  sed "s|lib[^ ]*|$sysroot/usr/lib/llvm-14/lib/&|g")
${tools}ld.bfd -r --force-group-allocation -o "$work/all.o" --whole-archive "$archive" --no-whole-archive \
  --start-group $llvm --end-group
${tools}nm --defined-only --extern-only --format=posix "$work/all.o" | cut -d ' ' -f 1 |
  grep -E '6Halide|^halide_' >"$work/kept"
${tools}objcopy --strip-debug --keep-global-symbols="$work/kept" "$work/all.o" "$work/halide14.o"
rm -f "$output"
${tools}ar qcD "$output" "$work/halide14.o"
