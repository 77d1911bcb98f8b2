#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# close_halide.sh ARCHIVE OUTPUT: links a static Halide with LLVM 14 to one object, makes all names but Halide's local
# to it, and writes it as an archive. GNU's linker is used since it can dissolve groups of sections: the other LLVM has
# groups of the same names, of which a linker keeps one.
set -eu
archive=$1 output=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
llvm=$(llvm-config-14 --link-static --libfiles x86 aarch64 arm nvptx riscv webassembly mcjit bitwriter linker passes)
ld.bfd -r --force-group-allocation -o "$work/all.o" --whole-archive "$archive" --no-whole-archive \
  --start-group $llvm --end-group
nm --defined-only --extern-only --format=posix "$work/all.o" | cut -d ' ' -f 1 |
  grep -E '6Halide|^halide_' >"$work/kept"
objcopy --strip-debug --keep-global-symbols="$work/kept" "$work/all.o" "$work/halide14.o"
rm -f "$output"
ar qcD "$output" "$work/halide14.o"
