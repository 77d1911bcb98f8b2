#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cmake/lint.sh BUILD [--all]: checks the format of every source file, runs clang-tidy on the files that build without
# MLIR (with --all: on every file), and checks the project rules that a machine can check.
set -uo pipefail
cd "$(dirname "$0")/.."
build=$1
all=${2:-}
status=0
fail() { echo "lint: $1"; status=1; }

git ls-files -- '*.c' '*.h' '*.cpp' '*.hpp' | grep -v '^tests/compile_fail/' | xargs -r clang-format-22 --dry-run -Werror || fail "run ./dev format"

if [ "$all" = --all ]; then
  tidy=$(git ls-files -- 'compiler/*.c' 'compiler/*.cpp' 'targets/*.cpp' 'tools/*.cpp' 'models/*/Reader.cpp' 'runtime/*.c' ':!tools/fake-cuda')
else
  tidy=$(git ls-files -- 'runtime/src/*.c' 'compiler/tuner/measurement.c' 'tools/kiln/kiln.cpp')
fi
tidy=$(grep -v '_windows\.c$' <<<"$tidy") # they need Windows headers
# The compile commands are those of another compiler: remove its precompiled header, and ignore its unknown warning
# options.
database=$(mktemp -d)
trap 'rm -rf "$database"' EXIT
sed -e 's/-Winvalid-pch//; s/-include [^ ]*cmake_pch.hxx//' "$build/compile_commands.json" >"$database/compile_commands.json"
echo "$tidy" | xargs -P "$(nproc)" -n 4 clang-tidy-22 --quiet --extra-arg=-Wno-unknown-warning-option -p "$database" || fail "clang-tidy has complaints"

headers=$(git grep -lE '^\s*using namespace' -- '*.h' '*.hpp' ':!tests/compile_fail')
[ -z "$headers" ] || fail "using namespace in a header: $headers"

unmarked=$(git ls-files -- '*.c' '*.h' '*.cpp' '*.td' '*.cmake' '*CMakeLists.txt' '*.py' '*.sh' | xargs grep -L 'SPDX-License-Identifier: Apache-2.0')
[ -z "$unmarked" ] || fail "no licence line in: $unmarked"
embedded=$(git ls-files -- 'runtime/*.c' 'runtime/*.h' 'runtime/*.def' | xargs grep -L 'WITH LLVM-exception')
[ -z "$embedded" ] || fail "part of each library, and without the licence's exception: $embedded"

for path in $(grep -oE '`(dsl|compiler|runtime|targets|tools|examples|models|tests|cmake|benchmarks|docs)/[A-Za-z0-9_./-]*`' README.md | tr -d '`' | sort -u); do
  [ -e "$path" ] || fail "README.md names $path, which is not there"
done
# Blocks that quote a file (tests/docs/check.sh) may be as long as the file's lines. Counts characters, not bytes: drops
# UTF-8 continuation bytes.
long=$(git ls-files -- '*.md' | LC_ALL=C xargs awk '
  FNR == 1 { quoting = inside = 0 }
  /^<!-- quote: / { quoting = 1; next }
  quoting && /^```/ { quoting = !inside; inside = quoting; next }
  { gsub(/[\200-\277]/, "") }
  !inside && length($0) > 120 { print FILENAME ":" FNR }')
[ -z "$long" ] || fail "documents: lines of at most 120 characters: $long"

# Retired words (docs/glossary.md) in comments and documents, except in quotes, code and link targets; comments that are
# fragments; headings that are clauses.
retired='beside|behind|in front of|by lot|whole numbers?|short floats?|(is|are|was|were) told of|what is not there'
retired+='|kept moments|(lies|lie|lay) (in memory|there)|ordered (kernels?|library|libraries)|early launch(es)?'
retired+='|run-time extents?|schedule points?|few rows across|words of int8'
retired="(^|[^a-z_-])($retired)([^a-z_-]|\$)"
said=$(git ls-files -- '*.c' '*.h' '*.cpp' '*.hpp' '*.td' '*.def' '*.ll' '*.mjs' '*.py' '*.sh' '*.cmake' '*CMakeLists.txt' dev .ci/run |
  grep -v '^cmake/lint\.sh$' | LC_ALL=C xargs awk -v retired="$retired" '
  {
    gsub(/`[^`]*`/, ""); gsub(/"([^"\\]|\\.)*"/, "")
    if (!match($0, /\/\/|\/\*|^ *\* |^ *#|^ *;/)) next
    comment = substr($0, RSTART)
    if (tolower(comment) ~ retired || comment ~ /^(\/\/+[!<]*|\/\*+!?|#|;) *Of [a-z]/) print FILENAME ":" FNR
  }')
[ -z "$said" ] || fail "comments: retired words, or fragments that begin with \"Of\": $said"
said=$(git ls-files -- '*.md' ':!tests/docs' | LC_ALL=C xargs awk -v retired="$retired" '
  FNR == 1 { inside = 0 }
  /^ *```/ { inside = !inside; next }
  inside { next }
  { gsub(/`[^`]*`/, ""); gsub(/\]\([^)]*\)/, "]"); gsub(/"[^"]*"/, "") }
  tolower($0) ~ retired || /^#+ (What|How|Where|When|Why|Who) / { print FILENAME ":" FNR }')
[ -z "$said" ] || fail "documents: retired words, or headings that are clauses: $said"

# Each cited measurement must be a row of docs/measurements, and each row must have a unique ID.
rows=$(git grep -hoE '^\| M-[0-9]{4} \|' -- docs/measurements | grep -oE 'M-[0-9]{4}' | sort)
twice=$(uniq -d <<<"$rows")
[ -z "$twice" ] || fail "measurements: several rows have the ID: $twice"
cited=$(git grep -hoE '\bM-[0-9]{4}\b' -- . | sort -u | comm -23 - <(sort -u <<<"$rows"))
[ -z "$cited" ] || fail "measurements: cited without a row: $cited"

[ $status -eq 0 ] && echo "lint: clean"
exit $status
