#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each adapter compiles after a generated header on a machine without Kiln, with all warnings, and is rejected without
# the compiler flags that it needs: check_headers.sh EXECUTORS FOLDER NAME
set -eu
executors=$1 folder=$2 name=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$executors"/*.h "$folder/$name.h" "$work"
strict="-fsyntax-only -Wall -Wextra -Wpedantic -Werror -Wshadow -Wconversion"

# check HEADER COMPILER FLAG ...: compiles the header after the model's header.
check() {
  header=$1
  shift
  echo "$* $header"
  printf '#include "%s.h"\n#include "%s"\n#include "%s"\n' "$name" "$header" "$header" >"$work/source.c"
  "$@" $strict "$work/source.c"
}
for compiler in g++ clang++-22; do
  for header in jobs.h threads.h; do
    check $header $compiler -std=c++20 -x c++
  done
done
check openmp.h gcc -std=c11 -fopenmp
check openmp.h g++ -std=c++20 -x c++ -fopenmp
if [ -e /usr/include/oneapi/tbb.h ]; then
  for compiler in g++ clang++-22; do
    check tbb.h $compiler -std=c++20 -x c++
  done
else
  echo "skipped: tbb.h, since oneTBB's headers are not here"
fi
wasm="clang-22 --target=wasm32-wasip1 -ffreestanding" # needs no C library
check wasm.h $wasm -matomics -std=c11
check wasm.h $wasm -matomics -std=c++20 -x c++

# refuse HEADER WORDS COMPILER FLAG ...: the header by itself does not compile, with this message.
refuse() {
  header=$1 words=$2
  shift 2
  if "$@" $strict -std=c11 "$work/$header" 2>"$work/words"; then
    echo "$header compiles by $*" >&2
    exit 1
  fi
  grep -F "$words" "$work/words"
}
refuse openmp.h 'openmp.h: no OpenMP; expected -fopenmp' gcc
refuse wasm.h 'wasm.h: no atomic instructions of WebAssembly; expected -matomics' $wasm
