#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that packages are reproducible: makes them twice of the build of ./dev package, of which the second time in
# another folder, time zone and language. With "built" it runs ./dev package twice instead, in SOURCE and in a copy of its
# files in another folder, which compiles Halide and Kiln once more: same_packages.sh SOURCE [built]
set -eu
source=$1 built=${2:-}
build=$source/build/package
[ -e "$build/lib/libkiln_compiler.so" ] || { echo "not run: no $build; ./dev package makes it"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$source" log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

# elsewhere COMMAND ...: runs the command in another time zone and language, with other permissions of new files.
elsewhere() { (umask 077 && TZ=Asia/Tokyo LC_ALL=C "$@"); }
# logged COMMAND ...: shows the end of the command's output if it fails.
logged() { "$@" >"$work/log" 2>&1 || { tail -n 30 "$work/log"; return 1; }; }

if [ -n "$built" ]; then
  copy=$work/a/copy
  mkdir -p "$copy/build/halide14"
  (cd "$source" && git ls-files -z | tar --null --files-from=- -cf -) | tar -C "$copy" -xf -
  cp -r "$source/build/halide14/source" "$copy/build/halide14"
  logged "$source/dev" package
  logged elsewhere "$copy/dev" package
  first=$source/build/packages second=$copy/build/packages
else
  first=$work/first second=$work/second
  "$source/cmake/package/packages.sh" "$build" "$source/build/docs" "$first"
  elsewhere "$source/cmake/package/packages.sh" "$build" "$source/build/docs" "$second"
fi

# The sums are of whole packages. The folder of which they are made shows the files that differ.
if ! diff "$first/SHA256SUMS" "$second/SHA256SUMS"; then
  diff -rq "$first" "$second" || true
  exit 1
fi
(cd "$second" && sha256sum --check SHA256SUMS)
cat "$first/SHA256SUMS"
