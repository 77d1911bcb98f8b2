#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Configures a build without KILN_PARALLEL, and checks that it compiles nothing of the folders that this option adds and
# links only targets that it has: configure_without.sh SOURCE_FOLDER BUILD_FOLDER CMAKE_OPTION ...
set -eu
source=$1 build=$2
shift 2
rm -rf "$build"
mkdir -p "$build"
cmake -S "$source" -B "$build" -G Ninja -DKILN_PARALLEL=OFF -DKILN_UNITY_BUILD=OFF "$@" > "$build/log" 2>&1 ||
  { cat "$build/log" >&2; exit 1; }
wrong=$(grep -oE '[^ ]*(compiler/parallel|runtime/src/parallel|tools/scale)/[^ ]*' "$build/build.ninja" | sort -u) || true
[ -z "$wrong" ] || { echo "configure_without: optional folders; expected none, got" $wrong >&2; exit 1; }
wrong=$(grep -oE -- '-lkiln_[a-z_]*' "$build/build.ninja" | sort -u) || true # names that are no targets
[ -z "$wrong" ] || { echo "configure_without: unknown libraries; expected none, got" $wrong >&2; exit 1; }
grep -q ParallelPassesNone.cpp "$build/build.ninja" ||
  { echo "configure_without: no ParallelPassesNone.cpp; expected it in the build" >&2; exit 1; }
