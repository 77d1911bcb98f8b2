#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check.sh ROOT FILE ...: checks that documents agree with the files that they name, relative to ROOT.
# 1. A path in backticks that begins with a top-level folder, or a top-level file, exists.
# 2. A relative link outside of code leads to a file or folder.
# 3. The code block after <!-- quote: PATH --> is the file without its licence line and its first comment, in C++ or in
#    CMake and similar languages.
set -uo pipefail
root=$(cd "$1" && pwd)
shift
status=0
fail() { echo "$1"; status=1; }

# Prints the lines of the code block that follows the quote of $2 in the document $1.
quoted() {
  awk -v want="<!-- quote: $2 -->" '
    $0 == want { found = 1; next }
    found && /^```/ { if (inside) exit; inside = 1; next }
    found && inside { print }' "$1"
}
# Prints a source file from its first line that is neither comment nor empty.
body() { awk 'begun || !/^((\/\/|#( |$)).*)?$/ { begun = 1; print }' "$1"; }

for document in "$@"; do
  name=${document#"$root"/}
  for path in $(grep -oE '`(dsl|compiler|targets|tools|runtime|cmake|examples|models|tests|benchmarks|docs)/[A-Za-z0-9_./-]*`' "$document" | tr -d '`' | sort -u); do
    [ -e "$root/$path" ] || fail "$name names $path, which is not there"
  done
  for link in $(sed '/^```/,/^```/d; s/`[^`]*`//g' "$document" | grep -oE '\]\([^)#]+' | sed 's/^](//' | grep -v '^[a-z]*:' | sort -u); do
    [ -e "$(dirname "$document")/$link" ] || fail "$name links to $link, which is not there"
  done
  while read -r source; do
    [ -e "$root/$source" ] || { fail "$name quotes $source, which is not there"; continue; }
    difference=$(diff <(body "$root/$source") <(quoted "$document" "$source")) || fail "$name does not quote $source as it is:
$difference"
  done < <(sed -n 's/^<!-- quote: \(.*\) -->$/\1/p' "$document")
done
exit $status
