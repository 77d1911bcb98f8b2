#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The steps of a new user, each with only the files of the steps before: install, compile and make, find_package and
# build, train, use the trained model, tune, build again, inspect: journey.sh BUILD SOURCE
set -eu
build=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -r /proc/cpuinfo ] && ! grep -q -m 1 avx2 /proc/cpuinfo; then
  echo "not run: libraries for the targets that are the default take AVX2"
  exit 77
fi
step() { echo "== $1"; }
say() { echo "$1" >&2; exit 1; }

step "install"
cmake --install "$build" --prefix "$work/kiln" >/dev/null
PATH=$work/kiln/bin:$PATH
KILN_CACHE_DIR=$work/cache
export PATH KILN_CACHE_DIR
cp -r "$source/tests/package/journey" "$work/ring"
cd "$work/ring"

step "kiln compile, make"
kiln compile ring.cpp -o made
for file in libring.a ring.h ring.hpp ring.manifest.json ring.pc ring.LICENSE.txt; do
  test -s "made/$file" || say "kiln compile wrote no $file"
done
if command -v pkg-config >/dev/null; then
  PKG_CONFIG_PATH=$work/ring/made make -s use
else
  cc -std=c11 -Imade use.c made/libring.a -lm -o use
fi
if ./use absent.safetensors 2>log; then say "weights that are not there were bound"; fi
grep -q "absent.safetensors" log || say "the error does not name the file: $(cat log)"

step "find_package, build"
cmake -G Ninja -S . -B build -DCMAKE_PREFIX_PATH="$work/kiln" >/dev/null
cmake --build build >log || { cat log; exit 1; }
grep -q "none of .* kernels is measured; measure them with: " log || say "the build does not say how to tune: $(cat log)"

step "train, use"
build/train ring.safetensors
kiln check ring.cpp ring.safetensors
./use ring.safetensors
build/use ring.safetensors | grep "schedules none"

step "tune, build"
kiln tune ring.cpp --budget 10s >log 2>&1 || { cat log; exit 1; }
test -s ring.tuning || say "kiln tune left no ring.tuning next to the spec"
cmake --build build >log || { cat log; exit 1; }
grep -q "kernels are measured in" log || say "the build does not take ring.tuning: $(cat log)"
if build/use ring.safetensors | grep "schedules none"; then say "the program has no tuned schedules"; fi
build/use ring.safetensors

step "bench, inspect"
kiln bench ring.cpp --threads 1 >log 2>&1 || { cat log; exit 1; }
grep -q "forward" log || say "kiln bench does not name the entry: $(cat log)"
kiln inspect ring.cpp --html page.html >log 2>&1 || { cat log; exit 1; }
grep -q "</html>" page.html || say "kiln inspect wrote no page"
