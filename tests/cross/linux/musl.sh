#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Links program.c and an archive for Linux with musl, statically and dynamically, and runs both: musl.sh MUSL_GCC ARCHIVE
set -eu
cc=$1 archive=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for form in -static -no-pie; do
  "$cc" -std=c11 -O1 -Wall -Wextra -Werror "$form" -I "$(dirname "$archive")" "$(dirname "$0")/../program.c" \
    -Wl,--whole-archive "$archive" -Wl,--no-whole-archive -lm -o "$work/program"
  "$work/program" "$work/weights" || { echo "musl: with $form the program ends with status $?: see program.c" >&2; exit 1; }
done
loader=$(readelf -lW "$work/program" | grep -o '/lib/ld-musl[^]]*' || true)
[ -n "$loader" ] || { echo "musl: the program is loaded by another C library" >&2; exit 1; }
