#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# compile_examples.sh DOCUMENT FOLDER CC CXX: checks that the C and C++ blocks of a document that include a generated
# header compile with the headers of FOLDER.
set -euo pipefail
document=$1 folder=$2 c=$3 cxx=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Writes each fenced block of the language $1 that includes a header of FOLDER to $work/N.$2; fails if there is none.
extract() {
  awk -v language="$1" -v ending="$2" -v work="$work" -v header="$(basename "$folder"/*.h .h)" '
    $0 == "```" language { inside = 1; text = ""; next }
    /^```/ && inside { if (index(text, "#include \"" header ".h")) printf "%s", text > (work "/" ++n "." ending); inside = 0 }
    inside { text = text $0 "\n" }
    END { exit n == 0 }' "$document" || { echo "$document has no example in $1"; exit 1; }
}
extract c c
extract cpp cpp
for file in "$work"/*.c; do "$c" -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I"$folder" "$file"; done
for file in "$work"/*.cpp; do # some of them are headers
  "$cxx" -std=c++20 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I"$folder" -x c++ - <<<"#include \"$file\""
done
