#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# uninstall.sh [--list] [PREFIX]: removes what `cmake --install` wrote to the prefix, by default /usr/local, and the
# folders of Kiln that are empty then; all other files stay. --list only prints what would be removed.
set -euo pipefail
fail() { echo "./dev uninstall: $1" >&2; exit "${2:-1}"; }
is_list=
[ "${1:-}" != --list ] || { is_list=yes && shift; }
prefix=${1:-/usr/local}
case $#:$prefix in
[01]:-* | [2-9]:*) fail "expected [--list] [PREFIX], got \"$*\"" 2 ;;
esac
prefix=${prefix%/}
list=$prefix/share/kiln/installed.txt
[ -f "$list" ] || fail "$prefix: no Kiln that \`cmake --install\` wrote; expected $list"
[ -z "$(grep -nE '^/|(^|/)\.\.?(/|$)|^$|//' "$list")" ] || fail "$list: wrong path; expected paths below the prefix"

files=()
while IFS= read -r file; do
  if [ -e "$prefix/$file" ] || [ -L "$prefix/$file" ]; then
    [ ! -d "$prefix/$file" ] || [ -L "$prefix/$file" ] || fail "$prefix/$file: expected a file, got a folder"
    files+=("$file")
  fi
done <"$list"
if [ -n "$is_list" ]; then
  printf '%s\n' "${files[@]/#/$prefix/}"
  exit
fi
for file in "${files[@]}"; do
  [ -w "$(dirname "$prefix/$file")" ] || fail "$(dirname "$prefix/$file"): may not be written; nothing was removed"
done

# The list is last, so that an interrupted run can be repeated.
for file in "${files[@]}"; do
  [ "$file" = share/kiln/installed.txt ] || rm -f "$prefix/$file"
done
rm -f "$list"
# Empty folders that are named after Kiln, and those in them. Others, such as lib/cmake, may have been there before.
printf '%s\n' "${files[@]}" | awk -F/ '{
  path = ""
  for (i = 1; i < NF; ++i) {
    path = path $i "/"
    if ($i ~ /^[Kk]iln$/) { print path; next }
  }
}' | sort -u | while IFS= read -r folder; do
  find "$prefix/$folder" -depth -type d -empty -delete
done
echo "Removed ${#files[@]} files of $prefix. These stay: the cache of kernels (KILN_CACHE_DIR or ~/.cache/kiln), generated"
echo "libraries, the build folders, and the packages that ./dev installed (./dev needs prints their names)."
