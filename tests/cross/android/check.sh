#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks an archive for Android, and runs a program with it: check.sh CLANG LD ARCHITECTURE ARCHIVE [CC [EMULATOR ...]];
# llvm-nm, llvm-objdump and llvm-readelf are next to CLANG's own programs.
#   - every global symbol that the archive defines begins with its name, tiny_gpt_
#   - undefined symbols are defined in the archive or listed in bionic.txt
#   - there are no thread-local variables, and nothing runs before main
#   - on aarch64 no instruction uses x18, which belongs to the system
#   - program.c succeeds on Linux with the functions of bionic.c, which CC compiles; without CC it is not run
set -eu
clang=$1 ld=$2 architecture=$3 archive=$4
shift 4
here=$(cd "$(dirname "$0")" && pwd)
nm=$("$clang" -print-prog-name=llvm-nm)
tools=$(dirname "$nm")
fail() { echo "check: $1" >&2; exit 1; }

"$here/../global_symbols.sh" "$nm" "$archive" tiny_gpt_

sections=$("$tools/llvm-readelf" -SW "$archive" | grep -oE '\.(tdata|tbss|init_array|ctors|preinit_array)[^ ]*' || true)
[ -z "$sections" ] || fail "an archive must have no thread-local data and no constructors, got: $sections"
[ "$architecture" != aarch64 ] || "$here/../x18.sh" "$tools/llvm-objdump" "$archive"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
declarations=$here/../../../runtime
"$clang" "--target=$architecture-linux-android21" -nostdlibinc -isystem "$declarations/posix" \
  -isystem "$declarations/bionic" -fPIE -I "$(dirname "$archive")" -c "$here/../program.c" -o "$work/program.o"
"$here/link.sh" "$clang" "$ld" "$architecture" -pie -Wl,-e,main -Wl,-z,max-page-size=16384 -Wl,--no-undefined \
  "$work/program.o" -Wl,--whole-archive "$archive" -Wl,--no-whole-archive -o "$work/program" ||
  fail "the program is not linked"
"$here/pages.sh" "$tools/llvm-readelf" "$work/program"

[ $# -gt 0 ] || { echo "not run: there is no compiler or emulator for $architecture on Linux"; exit 0; }
cc=$1
shift
wraps=$(sed -n 's/^.*__wrap_\([a-z_]*\)(.*/-Wl,--wrap=\1/p' "$here/bionic.c" | sort -u)
"$cc" -O1 -pthread "$here/bionic.c" "$work/program.o" "$archive" $wraps -o "$work/run"
"$@" "$work/run" "$work/weights" || fail "the program ends with status $?: see program.c"
