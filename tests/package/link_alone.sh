#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A C11 program with all warnings links the archive with libm and nothing else, and runs; --gc-sections keeps it running
# and drops what it does not call: link_alone.sh SOURCE FOLDER NAME
set -eu
source=$1 folder=$2 name=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags="-std=c11 -Wall -Wextra -Wpedantic -Werror -O1 -I$folder"
gcc $flags "$source" "$folder/lib$name.a" -lm -o "$work/plain"
gcc $flags "$source" "$folder/lib$name.a" -lm -Wl,--gc-sections -o "$work/collected"
gcc $flags -static "$source" "$folder/lib$name.a" -lm -o "$work/static"
gcc $flags -Wl,--whole-archive "$source" "$folder/lib$name.a" -Wl,--no-whole-archive -lm -o "$work/whole"
for program in plain collected static whole; do
  echo "$program: $("$work/$program")"
done
size() { stat -c %s "$work/$1"; }
strip "$work/collected" "$work/whole"
[ "$(size collected)" -lt "$(size whole)" ] || { echo "--gc-sections must drop what is not called" >&2; exit 1; }
needed=$(readelf -d "$work/collected" | awk '/NEEDED/ { print $NF }' | grep -vE '^\[lib(c|m)\.so\.6\]$' || true)
[ -z "$needed" ] || { echo "the program needs more than libc and libm: $needed" >&2; exit 1; }
