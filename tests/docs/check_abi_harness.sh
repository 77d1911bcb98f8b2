#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_abi_harness.sh ROOT PYTHON: checks that check_abi.py finds each kind of mistake in copies of the header and of
# docs/abi.md, and that it takes other comments.
set -euo pipefail
root=$1 python=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
check() { "$python" "$root/tests/docs/check_abi.py" "$root" "$work/runtime.h" "$work/abi.md"; }
# refused WORDS: the copies are refused with these words; then they are as before.
refused() {
  local said
  said=$(check) && { echo "check_abi.py does not say: $1"; exit 1; }
  [[ $said == *"$1"* ]] || { echo "check_abi.py does not say: $1, but: $said"; exit 1; }
  restore
}
restore() { cp "$root/runtime/include/kiln/runtime.h" "$root/docs/abi.md" "$work"; }
version=$(sed -n 's/^#define KILN_ABI_VERSION //p' "$root/runtime/include/kiln/runtime.h")

restore
sed -i 's|/\* Element types|/* Other words about element types|' "$work/runtime.h"
check
sed -i 's/  int32_t seed;/  int64_t seed;/' "$work/runtime.h"
refused "kiln/runtime.h: its declarations changed"
sed -i "s/^#define KILN_ABI_VERSION .*/#define KILN_ABI_VERSION $((version + 1))/" "$work/runtime.h"
refused "expected KILN_ABI_VERSION, $((version + 1)), got $version"
sed -i "s/^| $version | .*/&\n&/" "$work/abi.md"
refused "wrong order of binary interfaces"
sed -i "/^| [0-9]* | /d" "$work/abi.md"
refused "no table of binary interfaces"
