#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# build_demo.sh FOLDER BUILD TARGETS: builds the demo of FOLDER as `./dev demo` does, elsewhere, and runs it. Its library
# must be that of the complete compiler in BUILD, which was compiled for the same TARGETS (empty: the default), and its
# compiler must say that it has no target cuda.
set -euo pipefail
source=$1 build=$2 targets=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "build_demo: $*" >&2 && exit 1; }
export KILN_CACHE_DIR=$work/cache

cd "$source"
{ cmake --preset demo -B "$work" "-DKILN_TARGETS=$targets" && cmake --build "$work" -j2 --target char_gpt_demo; } \
  >"$work/log" 2>&1 || { tail -50 "$work/log"; fail "the demo cannot be built"; }
"$work/examples/char_gpt/char_gpt_demo" --characters 50

library=examples/char_gpt/char_gpt_kiln
tools/compare_archives.py "$build/examples/char_gpt" "$work/examples/char_gpt"
diff <(ar t "$build/$library/libchar_gpt.a") <(ar t "$work/$library/libchar_gpt.a") || fail "the archive has other members"
# The digest of the archive in char_gpt.hpp differs, since the run time's debug information has the build's folder.
without_digest() { sed 's/namespace of_[0-9a-f]*/namespace of/' "$1"; }
for file in char_gpt.h char_gpt.hpp char_gpt.manifest.json; do
  diff <(without_digest "$build/$library/$file") <(without_digest "$work/$library/$file") || fail "$file is another one"
done

text=$("$work/examples/char_gpt/char_gpt_generator" compile --target cuda --output-dir "$work/gpu" 2>&1) &&
  fail "compile --target cuda: expected an error, got success"
[[ $text == *'"cuda": built without KILN_CUDA; expected a build with it'* ]] || fail "compile --target cuda: got $text"
