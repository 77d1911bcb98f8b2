#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks the licence of a generated library: check_license.sh FOLDER NAME LICENSE RUNTIME_FOLDER [BINDING ...]
#   - each text file names the licence near its beginning; NAME.BINDING, too
#   - NAME.LICENSE.txt contains all of LICENSE, with the exception
#   - so do the sources of the embedded runtime
set -eu
folder=$1 name=$2 license=$3 runtime=$4 failed=0
shift 4
fail() { echo "check_license: $1" >&2; failed=1; }
expression="Apache-2.0 WITH LLVM-exception"

for ending in h hpp pc "$@"; do
  file=$name.$ending
  test -f "$folder/$file" || { fail "$file: not written"; continue; }
  head -2 "$folder/$file" | grep -qF "SPDX-License-Identifier: $expression" || fail "$file: no licence in its first lines"
done
grep -qF "\"license\": \"$expression\"" "$folder/$name.manifest.json" || fail "$name.manifest.json: no licence"

text=$folder/$name.LICENSE.txt
head -3 "$text" | tr '\n' ' ' | grep -q "Copyright The Kiln Authors.*$expression" || fail "$text: its first lines do not name the licence"
lines=$(wc -l <"$license")
tail -n "$lines" "$text" | cmp - "$license" || fail "$text: does not end with the text of $license"
grep -q "^---- LLVM Exceptions to the Apache 2.0 License ----" "$license" || fail "$license: no exception"

without=$(find "$runtime" -name '*.[ch]' -o -name '*.def' | xargs grep -LF "SPDX-License-Identifier: $expression" || true)
[ -z "$without" ] || fail "sources of the run time without \"$expression\": $without"
exit $failed
