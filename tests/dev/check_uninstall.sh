#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_uninstall.sh SOURCE: installs a small project with Kiln's list of installed files to a prefix with other files,
# moves the prefix, and uninstalls: only the other files are left.
set -euo pipefail
source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "check_uninstall: $*" >&2; exit 1; }
# refused WORDS ARGUMENT ...: fails with these words.
refused() {
  local words=$1 text
  shift
  text=$("$source/dev" uninstall "$@" 2>&1) && fail "$*: succeeded"
  [[ $text == *"$words"* ]] || fail "$*: expected \"$words\", got \"$text\""
}
files_of() { (cd "$1" && find . -mindepth 1 "${@:2}" | LC_ALL=C sort); }

mkdir -p "$work/project/folder/empty"
echo one >"$work/project/one.txt"
echo two >"$work/project/folder/two words.h"
cat >"$work/project/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(Small NONE)
option(MORE "Install one more file" ON)
install(FILES one.txt DESTINATION bin)
install(DIRECTORY folder/ DESTINATION include/kiln)
if(MORE)
  install(FILES one.txt DESTINATION share/kiln/models/more)
endif()
include("$source/cmake/KilnUninstall.cmake")
END
prefix="$work/a prefix"
mkdir -p "$prefix/include/kiln" "$prefix/bin" "$prefix/share/empty"
echo foreign >"$prefix/include/kiln/foreign.h"
echo foreign >"$prefix/bin/foreign"
before=$(files_of "$prefix")

# The second installation has a file less, which is still removed.
for more in ON OFF; do
  cmake -S "$work/project" -B "$work/build" -DMORE=$more >/dev/null
  cmake --install "$work/build" --prefix "$prefix" >/dev/null
done
mv "$prefix" "$work/moved 50%s"
prefix="$work/moved 50%s"
installed=$(files_of "$prefix")
listed=$("$source/dev" uninstall --list "$prefix")
[ "$listed" = "$(printf '%s\n' "$prefix/bin/one.txt" "$prefix/include/kiln/two words.h" \
  "$prefix/share/kiln/installed.txt" "$prefix/share/kiln/models/more/one.txt")" ] || fail "wrong list: $listed"
[ "$installed" = "$(files_of "$prefix")" ] || fail "--list changed files"

# A list names no folder of the machine on which it is staged.
DESTDIR="$work/staged" cmake --install "$work/build" --prefix /opt/small >/dev/null
[ "$(cat "$work/staged/opt/small/share/kiln/installed.txt")" = "$(printf '%s\n' bin/one.txt "include/kiln/two words.h" \
  share/kiln/installed.txt)" ] || fail "wrong list of a staged installation"

refused "expected [--list] [PREFIX]" "$prefix" more
refused "expected [--list] [PREFIX]" --all
refused "no Kiln that" "$work/project"
cp "$prefix/share/kiln/installed.txt" "$work/list"
for path in ../project/one.txt /etc/passwd share/../../project/one.txt; do
  echo "$path" >>"$prefix/share/kiln/installed.txt"
  refused "wrong path" "$prefix"
  cp "$work/list" "$prefix/share/kiln/installed.txt"
done
[ "$installed" = "$(files_of "$prefix")" ] || fail "a refused command changed files"

said=$("$source/dev" uninstall "$prefix")
[[ $said == "Removed 4 files of $prefix."*"~/.cache/kiln"* ]] || fail "wrong output: $said"
[ "$before" = "$(files_of "$prefix")" ] || fail "other files than before: $(diff <(echo "$before") <(files_of "$prefix"))"
refused "no Kiln that" "$prefix"
