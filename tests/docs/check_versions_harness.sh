#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_versions_harness.sh ROOT PYTHON: checks that check_versions.py finds each kind of mistake in a copy of the files
# that it reads, and that it takes other comments in the header.
set -euo pipefail
root=$1 python=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
header=runtime/include/kiln/runtime.h
restore() {
  for file in CMakeLists.txt CHANGELOG.md docs/abi.md docs/install.md cmake/README.md $header; do
    mkdir -p "$(dirname "$work/$file")"
    cp "$root/$file" "$work/$file"
  done
}
check() { "$python" "$root/tests/docs/check_versions.py" "$work"; }
# refused WORDS FILE EDIT: the copy whose file is edited by sed is refused with these words.
refused() {
  local said
  sed -i "$3" "$work/$2"
  said=$(check) && { echo "check_versions.py does not say: $1"; exit 1; }
  [[ $said == *"$1"* ]] || { echo "check_versions.py does not say: $1, but: $said"; exit 1; }
  restore
}
version=$(sed -n 's/^#define KILN_ABI_VERSION //p' "$root/$header")

restore
sed -i 's|/\* Element types|/* Other words about element types|' "$work/$header"
check
refused "kiln/runtime.h: its declarations changed" $header 's/  int32_t seed;/  int64_t seed;/'
refused "expected KILN_ABI_VERSION, $((version + 1)), got $version" $header \
  "s/^#define KILN_ABI_VERSION .*/#define KILN_ABI_VERSION $((version + 1))/"
refused "wrong order of binary interfaces" docs/abi.md "s/^| $version | .*/&\n&/"
refused "no table of binary interfaces" docs/abi.md '/^| [0-9]* | /d'
refused "CMakeLists.txt: no version" CMakeLists.txt 's/VERSION [0-9.]* LANGUAGES/LANGUAGES/'
refused "CHANGELOG.md: wrong first version" CMakeLists.txt 's/VERSION [0-9.]* LANGUAGES/VERSION 97.5.3 LANGUAGES/'
refused "docs/install.md: wrong version of a package" docs/install.md 's/kiln_[0-9.]*_amd64/kiln_97.5.3_amd64/'
refused "cmake/README.md: wrong version of a package" cmake/README.md 's/kiln_[0-9.]*_amd64/kiln_97.5.3_amd64/'
