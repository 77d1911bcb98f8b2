#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Links for Android as the NDK's compiler does, but against stubs of libc.so and libm.so, which have the functions of
# bionic.txt: link.sh CLANG LD ARCHITECTURE OPTION ...
set -eu
clang=$1 ld=$2 architecture=$3
shift 3
stubs=$(mktemp -d)
trap 'rm -rf "$stubs"' EXIT
compiler="$clang --target=$architecture-linux-android21 --ld-path=$ld -nostdlib"
sed '/^#/d' "$(dirname "$0")/bionic.txt" | tr ' ' '\n' | sed -n 's/.\+/void &(void) {}/p' >"$stubs/libc.c"
$compiler -w -ffreestanding -shared -Wl,-soname,libc.so "$stubs/libc.c" -o "$stubs/libc.so"
$compiler -shared -Wl,-soname,libm.so -x c /dev/null -o "$stubs/libm.so"
$compiler "$@" -L "$stubs" -lc
