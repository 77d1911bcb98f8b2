#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that Kiln would link without the folders that KILN_PARALLEL adds:
# check_seams.sh SOURCE_FOLDER WITH WITHOUT
# Only the files that a build without them replaces include their headers, and the objects that take their places
# (WITHOUT) define the same functions (WITH). Objects are separated by commas.
set -eu
source=$1 with=$2 without=$3
cd "$source"

# Prints the files of these folders that include a header whose path begins so, except those that match a pattern.
includers() {
  prefix=$1 allowed=$2
  shift 2
  grep -rlE --include='*.h' --include='*.cpp' --include='*.c' "^ *# *include \"$prefix" "$@" | grep -vE "^($allowed)" || true
}
wrong=$(
  includers compiler/parallel/ 'compiler/parallel/|compiler/pipeline/ParallelPasses\.cpp$' compiler targets tools models
  includers tools/scale/ 'tools/scale/|tools/kiln/Scale\.cpp$' compiler targets tools models
  includers '(runtime/src/)?parallel/' runtime/src/parallel/ runtime/src compiler targets tools
)
[ -z "$wrong" ] || { echo "check_seams: headers of optional folders; expected none included by" $wrong >&2; exit 1; }

functions() {
  echo "$1" | tr , '\n' | xargs nm -C -g --defined-only | awk '$2 == "T" { $1 = $2 = ""; print }' | sort -u
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
functions "$with" > "$folder/with"
functions "$without" > "$folder/without"
[ -s "$folder/with" ] || { echo "check_seams: no functions; expected some in $with" >&2; exit 1; }
diff -u "$folder/with" "$folder/without" || { echo "check_seams: functions differ; expected the same" >&2; exit 1; }
echo "$(wc -l < "$folder/with") functions have two definitions"
