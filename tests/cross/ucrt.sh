#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# An archive for Windows is bound to no toolchain: links it as Visual Studio would, with the universal C library, by
# LLVM's linker, and runs the program: ucrt.sh CLANG LLD_LINK LIBRARIES ARCHIVE COMMAND ...
set -eu
clang=$1 link=$2 libraries=$3 archive=$4
shift 4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$clang" --target=x86_64-pc-windows-msvc -ffreestanding -nostdlibinc -O1 -I "$(dirname "$archive")" \
  -c "$(dirname "$0")/ucrt.c" -o "$work/program.obj"
"$link" -nodefaultlib -entry:start -subsystem:console -wx "$work/program.obj" "$archive" "$libraries/libkernel32.a" \
  "$libraries/libucrt.a" "-out:$work/program.exe"
"$@" "$work/program.exe"
