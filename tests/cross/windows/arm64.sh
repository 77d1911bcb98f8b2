#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Links a program for Windows on Arm with all of an archive; nothing here runs it: arm64.sh CLANG LLD_LINK ARCHIVE;
# llvm-dlltool and llvm-readobj are next to CLANG's own programs.
#   - the import libraries have the functions of crt.txt and kernel32.txt, and no others
#   - the program is for Arm, and needs no other DLL
#   - no instruction uses x18
set -eu
clang=$1 link=$2 archive=$3
here=$(dirname "$0")
tools=$(dirname "$("$clang" -print-prog-name=llvm-nm)")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "arm64: $1" >&2; exit 1; }

# library DLL LIST FUNCTION ...: an import library with the functions of a list, and these
library() {
  list=$here/$2 output=$work/${1%.dll}
  { echo "LIBRARY $1"; echo EXPORTS; shift 2; sed '/^#/d' "$list" | tr ' ' '\n'; printf '%s\n' "$@"; } >"$output.def"
  "$tools/llvm-dlltool" -m arm64 -d "$output.def" -l "$output.lib"
}
library kernel32.dll kernel32.txt ExitProcess
library ucrtbase.dll crt.txt
"$clang" --target=aarch64-pc-windows-msvc -ffreestanding -nostdlibinc -O1 -I "$(dirname "$archive")" \
  -c "$here/ucrt.c" -o "$work/program.obj"
"$link" -nodefaultlib -entry:start -subsystem:console -wx -machine:arm64 "$work/program.obj" "-wholearchive:$archive" \
  "$work/kernel32.lib" "$work/ucrtbase.lib" "-out:$work/program.exe"
facts=$("$tools/llvm-readobj" --file-headers --coff-imports "$work/program.exe")
echo "$facts" | grep -q 'Machine: IMAGE_FILE_MACHINE_ARM64' || fail "the program is for another CPU"
needed=$(echo "$facts" | sed -n 's/^  Name: //p' | sort | tr '\n' ' ')
[ "$needed" = "kernel32.dll ucrtbase.dll " ] || fail "the program must need kernel32.dll and ucrtbase.dll, got $needed"
"$here/../x18.sh" "$tools/llvm-objdump" "$archive"
echo "linked, not run: there is no emulator for Windows on Arm"
