#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# An archive for Windows is bound to no toolchain and no C library: links all of it as Visual Studio would, by LLVM's
# linker, and runs the program: ucrt.sh CLANG LLD_LINK LIBRARIES ARCHIVE COMMAND ...
#   - with the universal C library as a DLL (/MD)
#   - with a static C library (/MT), which static_crt.c stands for
set -eu
clang=$1 link=$2 libraries=$3 archive=$4
shift 4
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for source in ucrt static_crt; do
  "$clang" --target=x86_64-pc-windows-msvc -ffreestanding -nostdlibinc -O1 -I "$(dirname "$archive")" \
    -c "$here/$source.c" -o "$work/$source.obj"
done
cp "$archive" "$work/tiny_gpt.lib"
printf 'LIBRARY ntdll.dll\nEXPORTS\n_vsnprintf\n' >"$work/ntdll.def"
"$(dirname "$("$clang" -print-prog-name=llvm-nm)")/llvm-dlltool" -m i386:x86-64 -d "$work/ntdll.def" -l "$work/ntdll.lib"
for c in "$libraries/libucrt.a" "$work/static_crt.obj $work/ntdll.lib"; do
  "$link" -nodefaultlib -entry:start -subsystem:console -wx "$work/ucrt.obj" "-wholearchive:$work/tiny_gpt.lib" \
    "$libraries/libkernel32.a" $c "-out:$work/program.exe"
  "$@" "$work/program.exe"
done
