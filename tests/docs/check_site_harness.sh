#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_site_harness.sh ROOT: checks that docs/site/build.py builds a small project, and finds each kind of mistake in
# it: links and anchors that are not there, headings that skip a level, files from the network, doc comments that
# Doxygen warns about, functions of the C interface without a comment. Exits with 77 if a program is missing.
set -uo pipefail
root=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
project=$work/project
mkdir -p "$project/compiler/library" "$project/docs/decisions" "$project/docs/measurements" "$project/examples" \
  "$project/dsl/include/kiln" "$project/runtime/include/kiln"
cp "$root/compiler/library/CFunctions.cpp" "$project/compiler/library"
cp "$root/dsl/include/kiln/losses.h" "$project/dsl/include/kiln"
cp "$root/runtime/include/kiln/runtime.h" "$project/runtime/include/kiln"
for folder in docs/decisions docs/measurements examples; do echo "# $folder" >"$project/$folder/README.md"; done
printf '%s\n' "# Project" "[pages](docs/page.md#an-anchor), [a folder](docs), [source](dsl/include/kiln/losses.h)" \
  >"$project/README.md"
printf '%s\n' "# Page" "## An anchor" "[back](../README.md)" >"$project/docs/page.md"
echo "# Library" >"$project/docs/library.md"
echo "# Specification" >"$project/dsl/SPEC.md"

built=$("$root/docs/site/build.py" "$project" "$work/out")
case $? in
0) ;;
77) echo "$built"; exit 77 ;;
*) echo "build.py rejects a correct project:"; echo "$built"; exit 1 ;;
esac
for page in index.html docs/page.html docs/files.html dsl/include/kiln/losses.h.html api/dsl/losses_8h.html api/c/NAME_8h.html; do
  [ -s "$work/out/html/$page" ] || { echo "build.py does not write $page"; exit 1; }
done

cat >>"$project/docs/page.md" <<'MARKDOWN'
#### A level is skipped
[page](nowhere.md), [anchor](library.md#nowhere), <a href="missing.html">a page</a>,
<a href="library.html#missing">an anchor</a>, <img src="https://example.org/picture.png">
MARKDOWN
echo "kiln_status_t kiln_mistake(void);" >>"$project/runtime/include/kiln/runtime.h"
cat >>"$project/dsl/include/kiln/losses.h" <<'CXX'
/// \param nothing is no parameter.
constexpr int mistake(int something) { return something; }
CXX
found=$("$root/docs/site/build.py" "$project" "$work/out") && { echo "build.py found nothing"; exit 1; }
for mistake in "Non-consecutive header level increase" "reference target not found: nowhere.md" \
  "reference target not found: library.md#nowhere" "docs/page.html: links to missing.html, which is not there" \
  "docs/page.html: links to library.html#missing, which has no such anchor" \
  "docs/page.html: loads https://example.org/picture.png from the network" \
  "kiln_mistake(void) (function) of file runtime.h is not documented" "argument 'nothing' of command @param is not found"; do
  grep -qF -- "$mistake" <<<"$found" || { echo "build.py does not say: $mistake"; echo "$found"; exit 1; }
done
