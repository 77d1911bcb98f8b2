#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Links a program for macOS or iOS with all of an archive, and runs it: check.sh CLANG LD TRIPLE "PLATFORM VERSION"
# ARCHIVE [CC [EMULATOR ...]]; llvm-nm and llvm-objdump are next to CLANG's own programs.
#   - every global symbol that the archive defines begins with its name, tiny_gpt_
#   - undefined symbols are defined in the archive or listed in libSystem.tbd
#   - members state the platform; for Intel Macs kernels state none, since Halide's LLVM writes none
#   - on arm64 no instruction uses x18
#   - no section runs code before main
#   - on Linux program.c succeeds under run.c, which CC compiles; without CC it is not run
set -eu
clang=$1 ld=$2 triple=$3 platform=$4 archive=$5
shift 5
here=$(cd "$(dirname "$0")" && pwd)
tools=$("$clang" -print-prog-name=llvm-nm)
nm=$tools objdump=$(dirname "$tools")/llvm-objdump
architecture=${triple%%-*}
fail() { echo "check: $1" >&2; exit 1; }

"$here/../global_symbols.sh" "$nm" "$archive" _tiny_gpt_

name=$(echo "${platform%% *}" | tr -d -)
stated=$("$objdump" --macho --private-headers "$archive" | awk '$1 == "platform" { print $2 }')
others=$(echo "$stated" | grep -vx "$name" || true)
[ -n "$stated" ] && [ -z "$others" ] || fail "members must be for $name, got: $others"
members=$("$nm" "$archive" 2>/dev/null | grep -c ':$')
[ "$triple" = x86_64-apple-macosx11.0.0 ] || [ "$(echo "$stated" | wc -l)" -eq "$members" ] ||
  fail "each of $members members must state a platform, got $(echo "$stated" | wc -l)"

[ "$architecture" != arm64 ] || "$here/../x18.sh" "$objdump" "$archive"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
declarations=$here/../../../runtime
"$clang" "--target=$triple" -nostdlibinc -isystem "$declarations/posix" -isystem "$declarations/darwin" \
  -fno-stack-protector -I "$(dirname "$archive")" -c "$here/../program.c" -o "$work/program.o"
# Words: the platform, and its oldest version as that of the program and of the SDK. run.c reads no chained fixups.
"$ld" -arch "$architecture" -platform_version $platform "${platform#* }" -no_fixup_chains -all_load -fatal_warnings \
  "$work/program.o" "$archive" "$here/libSystem.tbd" -o "$work/program" || fail "the program is not linked"
before_main=$("$nm" -m "$work/program" | grep -c -e __mod_init_func -e __init_offsets || true)
[ "$before_main" -eq 0 ] || fail "the archive must run no code before main"

[ $# -gt 0 ] || { echo "not run: there is no compiler or emulator for $architecture on Linux"; exit 0; }
"$1" -O1 -pthread "$here/run.c" -o "$work/run"
shift
"$@" "$work/run" "$work/program" "$work/weights" || fail "the program ends with status $?: see program.c"
