#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Links a program for macOS with all of an archive, and runs it: check.sh CLANG LD NM ARCHITECTURE ARCHIVE [CC [EMULATOR
# ...]]
#   - every global symbol that the archive defines begins with its name, tiny_gpt_
#   - undefined symbols are defined in the archive or listed in libSystem.tbd
#   - no section runs code before main
#   - on Linux program.c succeeds under run.c, which CC compiles; without CC it is not run
set -eu
clang=$1 ld=$2 nm=$3 architecture=$4 archive=$5
shift 5
here=$(cd "$(dirname "$0")" && pwd)
fail() { echo "check: $1" >&2; exit 1; }

defined=$("$nm" -g --defined-only "$archive" | awk 'NF == 3 { print $3 }' | sort -u)
own=$(echo "$defined" | grep -c "^_tiny_gpt_" || true)
echo "$own global symbols"
[ "$own" -ge 10 ] || fail "an archive defines at least 10 functions, got $own"
foreign=$(echo "$defined" | grep -v "^_tiny_gpt_" || true)
[ -z "$foreign" ] || fail "global symbols must begin with _tiny_gpt_, got: $foreign"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$clang" --target="$architecture-apple-macosx11.0.0" -nostdlibinc -isystem "$here/../../../runtime/darwin" \
  -fno-stack-protector -I "$(dirname "$archive")" -c "$here/program.c" -o "$work/program.o"
"$ld" -arch "$architecture" -platform_version macos 11.0 11.0 -all_load -fatal_warnings "$work/program.o" "$archive" \
  "$here/libSystem.tbd" -o "$work/program" || fail "the program is not linked"
before_main=$("$nm" -m "$work/program" | grep -c -e __mod_init_func -e __init_offsets || true)
[ "$before_main" -eq 0 ] || fail "the archive must run no code before main"

[ $# -gt 0 ] || { echo "not run: there is no compiler or emulator for $architecture on Linux"; exit 0; }
"$1" -O1 -pthread "$here/run.c" -o "$work/run"
shift
"$@" "$work/run" "$work/program" "$work/weights" || fail "the program ends with status $?: see program.c"
