#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each adapter compiles after a generated header on a machine without Kiln, with all warnings, and is rejected without
# the compiler flags that it needs: check_headers.sh EXECUTORS FOLDER NAME
set -eu
executors=$1 folder=$2 name=$3
# shellcheck source=tests/header_modes.sh
. "$(dirname "$0")/../header_modes.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$executors"/*.h "$folder/$name.h" "$work"

# source_of HEADER: writes a file that includes the header after the model's header, and prints its name.
source_of() {
  printf '#include "%s"\n' "$name.h" "$1" "$1" >"$work/$1.source"
  echo "$work/$1.source"
}
for header in jobs.h threads.h; do
  in_cxx 17 "$(source_of $header)"
  compiles x86_64-w64-mingw32-g++-posix -x c++ -std=c++17 $gnu_cxx_warnings "$(source_of $header)"
done
for standard in 89 99 11 17 2x; do
  compiles gcc -x c -std=c$standard $gnu_c_warnings -fopenmp "$(source_of openmp.h)"
done
for standard in 11 14 17 20 23; do
  compiles g++ -x c++ -std=c++$standard $gnu_cxx_warnings -fopenmp "$(source_of openmp.h)"
done
if [ -e /usr/include/oneapi/tbb.h ]; then
  in_cxx 17 "$(source_of tbb.h)"
else
  echo "skipped: tbb.h, since oneTBB's headers are not here"
fi
wasm="--target=wasm32-wasip1 -ffreestanding -matomics" # needs no C library
for standard in 99 11 17 23; do
  compiles clang-22 -x c -std=c$standard $gnu_c_warnings $wasm "$(source_of wasm.h)"
done
for standard in 11 14 17 20 23 26; do
  compiles clang++-22 -x c++ -std=c++$standard $gnu_cxx_warnings $wasm "$(source_of wasm.h)"
done

# refuse HEADER WORDS COMPILER FLAG ...: the header by itself does not compile, with this message.
refuse() {
  header=$1 words=$2
  shift 2
  if "$@" $gnu_c_warnings -std=c11 "$work/$header" 2>"$work/words"; then
    echo "$header compiles by $*" >&2
    exit 1
  fi
  grep -F "$words" "$work/words"
}
refuse openmp.h 'openmp.h: no OpenMP; expected -fopenmp' gcc
refuse wasm.h 'wasm.h: no atomic instructions of WebAssembly; expected -matomics' clang-22 --target=wasm32-wasip1 -ffreestanding
