#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds examples/embedding as users would, with make, Meson or Bazel, and checks the program's output: embed.sh TOOL
# SOURCE KILN
set -eu
tool=$1 source=$2 kiln=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
project="$work/a project" # paths may have spaces, except with Bazel
[ "$tool" = bazel ] && project=$work/project
cp -r "$source/examples/embedding" "$project"
cd "$project"
PATH=$(dirname "$kiln"):$PATH
need() { command -v "$1" >/dev/null || { echo "skipped: there is no $1"; exit 77; }; }

case $tool in
make)
  need pkg-config
  make program >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
  program=./program
  make -q program || { echo "made again without a reason"; exit 1; }
  ;;
meson)
  need meson
  { meson setup out && meson compile -C out; } >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
  program=out/program
  ;;
bazel)
  dpkg-query -s bazel-bootstrap >/dev/null 2>&1 || { echo "skipped: there is no bazel-bootstrap"; exit 77; }
  touch WORKSPACE
  # This Bazel has all rules that it needs, but would fetch repositories that re-export them.
  hand_on() { # REPOSITORY RULE ...
    mkdir -p "$work/$1/$1"
    touch "$work/$1/WORKSPACE" "$work/$1/$1/BUILD"
    repository=$1
    shift
    printf '%s\n' "$@" | sed 's/.*/& = native.&/' >"$work/$repository/$repository/defs.bzl"
  }
  hand_on cc cc_binary cc_library cc_toolchain cc_toolchain_suite
  hand_on java java_binary java_import java_runtime java_toolchain
  bazel --batch --output_user_root="$work/bazel" build --override_repository=rules_cc="$work/cc" \
    --override_repository=rules_java="$work/java" --symlink_prefix=out/ //:program >"$work/log" 2>&1 ||
    { cat "$work/log"; exit 1; }
  program=out/bin/program
  ;;
esac
wanted=$(python3 amp.py amp.safetensors)
said=$("$program" amp.safetensors)
echo "$said"
[ "$said" = "$wanted" ] || { echo "the program must say $wanted" >&2; exit 1; }
