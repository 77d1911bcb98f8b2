#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# check_harness.sh INCLUDE: checks that check.sh detects a case that compiles, a message without the expected text, a
# case without an expected text, and a missing compiler.
set -u
here=$(dirname "$0") include=$1 failed=0
expect() {
  said=$("$here/check.sh" "$include" "$here/control/$1") && { echo "$1: check.sh passed"; failed=1; }
  printf '%s\n' "$said" | grep -qF -- "$2" || { echo "$1: check.sh said: $said"; failed=1; }
}
expect compiles.cpp "compiled, but must not"
expect other_text.cpp "does not say"
expect no_text.cpp "no expect line"
# Without a compiler nothing is checked, which must not pass.
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
for tool in sh grep sed printf basename dirname g++ cc1plus as; do
  path=$(command -v "$tool") && ln -s "$path" "$tools/$tool"
done
said=$(PATH=$tools "$here/check.sh" "$include" "$here/cases/unary_c1.cpp") && { echo "passed without clang"; failed=1; }
printf '%s\n' "$said" | grep -q "clang++-22 is not installed" || { echo "without clang: $said"; failed=1; }
exit $failed
