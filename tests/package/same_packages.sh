#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that packages are reproducible: makes them twice of one build, of which the second time in another folder, time
# zone and language. With "built" the second packages are of another build of the same sources in another folder:
# same_packages.sh SOURCE BUILD [built]
# Takes the build of ./dev package.
set -eu
source=$1 build=$2 built=${3:-}
[ -e "$build/lib/libkiln_compiler.so" ] || { echo "not run: no $build; ./dev package makes it"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$source" log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
"$source/cmake/package/packages.sh" "$build" "$source/build/docs" "$work/first"

second=$source second_build=$build
if [ -n "$built" ]; then
  second=$work/a/copy second_build=$second/build/package
  mkdir -p "$second"
  (cd "$source" && git ls-files -z | tar --null -T - -cf -) | tar -C "$second" -xf -
  mkdir -p "$second/build/halide14"
  cp -r "$source/build/halide14/source" "$second/build/halide14"
  "$second/cmake/package/halide.sh" "$second/build/halide14" >"$work/log" 2>&1 || { tail "$work/log"; exit 1; }
  "$second/docs/site/build.py" "$second" "$second/build/docs" >"$work/log" 2>&1 || { tail "$work/log"; exit 1; }
  (cd "$second" && cmake --preset package && cmake --build build/package --target kiln kiln_diagnose) >"$work/log" 2>&1 ||
    { tail "$work/log"; exit 1; }
fi
(umask 077 && TZ=Asia/Tokyo LC_ALL=C "$second/cmake/package/packages.sh" "$second_build" "$second/build/docs" "$work/another")

if ! diff "$work/first/SHA256SUMS" "$work/another/SHA256SUMS"; then
  diff -rq "$work/first" "$work/another" || true
  exit 1
fi
cat "$work/first/SHA256SUMS"
