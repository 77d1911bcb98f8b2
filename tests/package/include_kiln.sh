#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Projects that include Kiln's source and have other settings than Kiln: they are configured, and ninja's commands are
# inspected; with "built" one of them is built and run: include_kiln.sh SOURCE CC CXX [built]
set -eu
source=$1 c=$2 cxx=$3 built=${4:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "include_kiln: $1" >&2; exit 1; }

configure() { # PROJECT OPTION ...
  project=$1
  shift
  cmake -G Ninja -S "$source/examples/embedding/$project" -B "$work/$project" "$@" -DKILN_UNITY_BUILD=ON \
    -DCMAKE_C_COMPILER="$c" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
    -DBUILD_SHARED_LIBS=ON -DCMAKE_UNITY_BUILD=ON -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 \
    -DCMAKE_CXX_VISIBILITY_PRESET=hidden -DCMAKE_VISIBILITY_INLINES_HIDDEN=ON \
    -DCMAKE_DEBUG_POSTFIX=_debug -DCMAKE_ARCHIVE_OUTPUT_DIRECTORY=archives >"$work/log" 2>&1 ||
    { cat "$work/log"; fail "$project cannot be configured"; }
  ! grep -A5 "CMake.*Warning" "$work/log" || fail "$project is configured with warnings"
}

check() { # FOLDER is Kiln's folder in the project's build
  steps=$work/steps
  # Not -n, which stops at steps that look for tuning files.
  ninja -C "$work/$1" -t commands >"$steps" || { cat "$steps"; fail "ninja does not know how to build $1"; }
  for step in " $2/runtime/libkiln_runtime.a" "compile --name amp" "-o $2/lib/libkiln_compiler.so" "-o program"; do
    grep -qF -e "$step" "$steps" || { cat "$steps"; fail "$1 lacks the step: $step"; }
  done
  ! grep -E -e "-o ([^ ]*kiln-opt |$2/(tests|examples|benchmarks)/)" "$steps" || fail "$1 builds what is for those who work on Kiln"
  kept=$(grep '"command"' "$work/$1/compile_commands.json" | grep -F -e "-o $2/")
  echo "$kept" | grep -qF -e "-c $source/runtime/src/weights/bind.c" || fail "$1 joins files of the run time"
  ! echo "$kept" | grep -F -e -fvisibility-inlines-hidden || fail "$1 hides what generators call"
  ! echo "$kept" | grep -F -e -flto || fail "$1 leaves code of the run time to the linker"
  ! grep -r --include=cmake_install.cmake -F "file(INSTALL" "$work/$1" || fail "$1 would install what is Kiln's"
}

configure from_source -DKILN_SOURCE="$source"
check from_source kiln
if [ -n "$built" ]; then
  ninja -C "$work/from_source" program >"$work/log" || { tail -50 "$work/log"; fail "from_source cannot be built"; }
  wanted=$(python3 "$source/examples/embedding/amp.py" "$work/amp.safetensors")
  said=$("$work/from_source/program" "$work/amp.safetensors")
  echo "$said"
  [ "$said" = "$wanted" ] || fail "the program must say $wanted"
else
  configure fetched -DFETCHCONTENT_SOURCE_DIR_KILN="$source" -DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON
  check fetched _deps/kiln-build
fi
