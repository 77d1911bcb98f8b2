#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_layout.sh ROOT [ARCHITECTURE.md IR.md]: checks that the documents of the design follow the tree.
# 1. docs/architecture.md and the README.md of the parent name each folder of compiler, targets, tools and runtime/src.
# 2. docs/ir.md has each pass in its table; the passes of the pipeline are in the order of Pipeline.cpp.
# 3. tests/README.md has a row for each folder of tests.
set -uo pipefail
root=$1 architecture=${2:-$1/docs/architecture.md} ir=${3:-$1/docs/ir.md} status=0
fail() { echo "$1"; status=1; }

for folder in "$root"/{compiler,targets,tools,runtime/src}/*/; do
  folder=${folder#"$root"/} folder=${folder%/}
  name=${folder##*/} parent=${folder%/*}
  grep -qE "^$folder/ |^$parent/ .*\b$name\b" "$architecture" || fail "docs/architecture.md does not name $folder"
  grep -qE "\b$name/" "$root/${parent%/src}/README.md" || fail "${parent%/src}/README.md does not name $name/"
done

# kiln-form-kernels is FormKernels in its definition and createFormKernels in the pipeline.
passes=$(sed -nE 's/^def (\w+) : Pass<"(kiln-[a-z0-9-]+)".*/\1 \2/p' "$root"/{compiler,targets}/*/Passes.td)
[ "$(wc -l <<<"$passes")" -gt 25 ] || fail "found too few passes"
table=$(grep -oE '^\| [^|]*`kiln-[a-z0-9-]+' "$ir" | grep -oE 'kiln-[a-z0-9-]+')
while read -r _ name; do
  grep -qx "$name" <<<"$table" || fail "docs/ir.md does not list $name"
done <<<"$passes"
# Functions that add several passes are replaced by their bodies.
pipeline=$(sed -n '/^void buildImportPhase/,$ s/buildRecognition(/createRecognizeAttention(/; /^void buildImportPhase/,$p' \
  "$root/compiler/pipeline/Pipeline.cpp")
while read -r part; do
  body=$(sed -n "/^void $part(/,/^}/p" "$root/compiler/pipeline/ParallelPasses.cpp" | sed 1d)
  pipeline=${pipeline/"$part(passes"/"$body("}
done < <(sed -nE 's/^void (add[A-Za-z]+)\(.*/\1/p' "$root/compiler/pipeline/ParallelPasses.cpp")
ordered=$(echo "$pipeline" | grep -oE 'create[A-Z]\w+\(' | sed 's/create//; s/(//' |
  while read -r pass; do sed -n "s/^$pass //p" <<<"$passes"; done)
difference=$(diff <(echo "$ordered") <(grep -xF "$ordered" <<<"$table")) || fail "docs/ir.md has another order of passes:
$difference"

for folder in "$root"/tests/*/; do
  name=$(basename "$folder")
  [ "$name" = __pycache__ ] || grep -qF "| \`$name/\` |" "$root/tests/README.md" || fail "tests/README.md has no row for $name"
done
exit $status
