#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Links the archive into a C program with all warnings and with libm only, and runs it; --gc-sections keeps the program
# working and removes unused functions; a shared library of the whole archive has no relocations in its code:
# link_alone.sh SOURCE FOLDER NAME [SAYS [DRIVER]]
#
# SAYS: a shell pattern for the program's output; for an archive with code for GPUs, without a driver. With DRIVER, the
# program also runs on a GPU.
set -eu
source=$1 folder=$2 name=$3 says=${4:-"*on the CPU"} driver=${5:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "link_alone: $1" >&2; exit 1; }
flags="-std=c11 -Wall -Wextra -Wpedantic -Werror -O1 -I$folder"
gcc $flags -std=c89 "$source" "$folder/lib$name.a" -lm -o "$work/plain"
gcc $flags "$source" "$folder/lib$name.a" -lm -Wl,--gc-sections -o "$work/collected"
gcc $flags -static "$source" "$folder/lib$name.a" -lm -o "$work/static"
gcc $flags -Wl,--whole-archive "$source" "$folder/lib$name.a" -Wl,--no-whole-archive -lm -o "$work/whole"
gcc -shared -Wl,-z,text -Wl,--whole-archive "$folder/lib$name.a" -Wl,--no-whole-archive -lm -o "$work/shared.so"
programs="plain collected static whole"
if command -v tcc >/dev/null; then # another compiler's structs and calls
  tcc -Wall -Werror -I"$folder" -c "$source" -o "$work/tcc.o"
  gcc -Wl,-z,noexecstack "$work/tcc.o" "$folder/lib$name.a" -lm -o "$work/tcc"
  programs="$programs tcc"
else
  echo "skipped: tcc is not here"
fi
for program in $programs; do
  said=$(KILN_CUDA_DRIVER=/nowhere/libcuda.so.1 "$work/$program") && status=0 || status=$?
  echo "$program: $said"
  case $said in
  $says) ;;
  *) fail "the program must say $says" ;;
  esac
  case $said in
  "largest error "*) [ "$status" = 0 ] || fail "the program ended with $status" ;;
  *) [ "$status" = 1 ] || fail "a refused program ended with $status" ;;
  esac
done
if [ -n "$driver" ]; then # a static program cannot load a shared library of another libc
  for program in plain collected whole; do
    said=$(KILN_CUDA_DRIVER=$driver "$work/$program") || fail "$program on a GPU: $said"
    echo "$program: $said"
    case $said in
    *"on a GPU") ;;
    *) fail "a program must take the GPU where there is one" ;;
    esac
  done
fi
size() { stat -c %s "$work/$1"; }
strip "$work/collected" "$work/whole"
[ "$(size collected)" -lt "$(size whole)" ] || fail "--gc-sections must drop what is not called"
for program in collected shared.so; do
  needed=$(readelf -d "$work/$program" | awk '/NEEDED/ { print $NF }' | grep -vE '^\[lib(c|m)\.so\.6\]$' || true)
  [ -z "$needed" ] || fail "$program needs more than libc and libm: $needed"
done
readelf -d "$work/shared.so" | grep -q TEXTREL && fail "code must be position independent"
exit 0
