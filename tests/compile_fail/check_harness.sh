#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# check_harness.sh INCLUDE: check.sh detects a case that compiles, a message without the expected text, and a case without one.
set -u
here=$(dirname "$0") include=$1 failed=0
expect() {
  said=$("$here/check.sh" "$include" "$here/control/$1") && { echo "$1: check.sh passed"; failed=1; }
  printf '%s\n' "$said" | grep -qF -- "$2" || { echo "$1: check.sh said: $said"; failed=1; }
}
command -v g++ > /dev/null || command -v clang++-22 > /dev/null || exit 77
expect compiles.cpp "compiled, but must not"
expect other_text.cpp "does not say"
expect no_text.cpp "no expect line"
exit $failed
