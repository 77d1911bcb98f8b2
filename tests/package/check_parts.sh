#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes the list of the parts of a package, and checks it: check_parts.sh SOURCE VERSION
set -eu
source=$1 version=$2
for package in $(sed -n 's/^    ("[^"]*", "\([^"]*\)", .*/\1/p' "$source/cmake/package/parts.py"); do
  [ -e "/usr/share/doc/$package/copyright" ] || { echo "not run: the package $package is not installed"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
SOURCE_DATE_EPOCH=1000000000 "$source/cmake/package/parts.py" "$version" "$work"
"$source/tests/package/check_spdx.py" "$work/sbom.spdx.json" "$version"
grep -q '"2001-09-09T01:46:40Z"' "$work/sbom.spdx.json" || { echo "the time must be SOURCE_DATE_EPOCH" >&2; exit 1; }
[ "$(find "$work/licenses" -name '*.txt' -size +0 | wc -l)" = 12 ] || { echo "there must be 12 licences" >&2; exit 1; }
