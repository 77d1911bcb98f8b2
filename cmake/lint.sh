#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cmake/lint.sh BUILD [--all]: the format of every source file, clang-tidy on the files that build without MLIR (with --all: on
# every file), and the house rules that a machine can check.
set -uo pipefail
cd "$(dirname "$0")/.."
build=$1
all=${2:-}
status=0
fail() { echo "lint: $1"; status=1; }

git ls-files -- '*.c' '*.h' '*.cpp' '*.hpp' | grep -v '^tests/compile_fail/' | xargs -r clang-format-22 --dry-run -Werror || fail "run ./dev format"

if [ "$all" = --all ]; then
  tidy=$(git ls-files -- 'compiler/*.cpp' 'targets/*.cpp' 'runtime/*.c')
else
  tidy=$(git ls-files -- 'runtime/src/*.c' 'compiler/tools/kiln.cpp')
fi
# The commands are those of another compiler: take out its precompiled header, and let warnings pass that only it knows.
database=$(mktemp -d)
trap 'rm -rf "$database"' EXIT
sed -e 's/-Winvalid-pch//; s/-include [^ ]*cmake_pch.hxx//' "$build/compile_commands.json" >"$database/compile_commands.json"
echo "$tidy" | xargs -P "$(nproc)" -n 4 clang-tidy-22 --quiet --extra-arg=-Wno-unknown-warning-option -p "$database" || fail "clang-tidy has complaints"

headers=$(git grep -lE '^\s*using namespace' -- '*.h' '*.hpp' ':!tests/compile_fail')
[ -z "$headers" ] || fail "using namespace in a header: $headers"

unmarked=$(git ls-files -- '*.c' '*.h' '*.cpp' '*.td' '*.cmake' '*CMakeLists.txt' '*.py' | xargs grep -L 'SPDX-License-Identifier: Apache-2.0')
[ -z "$unmarked" ] || fail "no licence line in: $unmarked"

for path in $(grep -oE '`(dsl|compiler|runtime|targets|examples|tests|cmake|benchmarks|docs)/[A-Za-z0-9_./-]*`' README.md | tr -d '`' | sort -u); do
  [ -e "$path" ] || fail "README.md names $path, which is not there"
done
[ $status -eq 0 ] && echo "lint: clean"
exit $status
