#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two versions of LLVM in one static program, as in packages: check.sh CLOSE_HALIDE
set -eu
close=$1
here=$(cd "$(dirname "$0")" && pwd)
for name in clang++-14 clang++-22 llvm-config-14 llvm-config-22 ld.bfd; do
  command -v $name >/dev/null || { echo "not run: there is no $name"; exit 77; }
done
[ -e "$(llvm-config-14 --libdir)/libLLVMX86CodeGen.a" ] || { echo "not run: LLVM 14 has no archives"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

for version in 14 22; do
  name=compileOld
  [ $version = 14 ] || name=compileNew
  clang++-$version -std=c++17 -O1 -w -fPIC -isystem "$(llvm-config-$version --includedir)" -DCOMPILE=$name \
    -c "$here/compile.cpp" -o $version.o
done
clang++-14 -std=c++17 -fPIC -c "$here/fail.cpp" -o fail.o
ar qc halide.a 14.o fail.o
"$close" halide.a closed.a
visible=$(nm --defined-only --extern-only --format=posix closed.a | cut -d ' ' -f 1 | grep -vE '6Halide|^halide_|^closed\.a') || true
[ -z "$visible" ] || { echo "visible in the closed object: $visible" >&2; exit 1; }

for file in no_terminal old_glibc; do
  clang-22 -O2 -fPIC -c "$(dirname "$close")/$file.c" -o $file.o
done
clang++-22 -std=c++20 -Wall -Wextra -Werror "-DOLD=\"$(llvm-config-14 --version)\"" "-DNEW=\"$(llvm-config-22 --version)\"" \
  "$here/program.cpp" 22.o no_terminal.o old_glibc.o closed.a $(llvm-config-22 --link-static --libfiles x86) \
  -fuse-ld=lld -static-libstdc++ -static-libgcc -Wl,--gc-sections -Wl,--no-undefined -Wl,-Bstatic -lz -lzstd \
  -Wl,-Bdynamic -o program
./program
needed=$(readelf -dW program | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc\.so\.6|libm\.so\.6|ld-linux.*)$') || true
[ -z "$needed" ] || { echo "the program needs $needed" >&2; exit 1; }
