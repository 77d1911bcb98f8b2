#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that the folders of the run time have an order in which each calls only those before it:
# check_folders.sh ARCHIVE SOURCE_FOLDER. It prints that order.
set -eu
archive=$1 sources=$2
calls=$(mktemp)
trap 'rm -f "$calls"' EXIT
# The first lines are files, such as core/run.c; the others are symbols, such as archive:run.c.o:value type name.
{ (cd "$sources" && find . -name '*.c' | sed 's|^\./||'); nm -A -g "$archive"; } | awk '
  /^[a-z]+\/[a-z0-9_]+\.c$/ { split($0, part, "/"); folder[part[2] ".o"] = part[1]; next }
  { split($1, at, ":") }
  $(NF - 1) == "U" { used[at[2], $NF]; next }
  { defined[$NF] = at[2] }
  END {
    for (use in used) {
      split(use, by, SUBSEP)
      from = folder[by[1]]; to = folder[defined[by[2]]]
      if (from != "" && to != "" && from != to) calls[to " " from]
    }
    for (call in calls) print call
  }' | sort > "$calls"
[ -s "$calls" ] || { echo "check_folders: no calls from one folder to another; expected some" >&2; exit 1; }
order=$(tsort "$calls" 2>&1 | tr '\n' ' ')
case $order in
*loop*) echo "check_folders: folders call each other; expected an order, got: $order" >&2 && exit 1 ;;
esac
echo "$order"
