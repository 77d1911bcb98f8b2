#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_index.sh ROOT [SPEC.md]: checks the index of operations in dsl/SPEC.md.
# 1. Each name in an operation's heading, which has lower-case names only, is in the index and links to that heading.
# 2. Each entry links to a section that has its name in the heading or in backticks.
# 3. The entries are in alphabetical order, and each is there once.
# 4. The other links within the document lead to headings.
set -uo pipefail
spec=${2:-$1/dsl/SPEC.md}
LC_ALL=C awk '
  function fail(text) { print text; status = 1 }
  /^ *```/ { inside = !inside; next }
  inside { next }
  /^##+ / {
    title = tolower($0); sub(/^#+ /, "", title)
    section = title; gsub(/[^a-z0-9_ -]/, "", section); gsub(/ /, "-", section)
    sections[section] = " " title " "
    if ($0 ~ /^### [a-z0-9_ ]+$/) headings[section] = title
    indexing = title == "index of operations"
    next
  }
  { line = $0
    while (match(line, /\]\(#[^)]*\)/)) {
      anchor = substr(line, RSTART + 3, RLENGTH - 4); before = substr(line, 1, RSTART - 1)
      if (indexing) {
        name = before; sub(/.*\[/, "", name)
        if (name <= last) fail(name ": not after " last " in the index")
        last = name; entries[name] = anchor; count++
      } else {
        links[anchor] = FNR
      }
      line = substr(line, RSTART + RLENGTH)
    }
    sections[section] = sections[section] $0 " "
  }
  END {
    for (anchor in headings) {
      size = split(headings[anchor], names, " ")
      for (i = 1; i <= size; i++)
        if (!(names[i] in entries)) fail(names[i] ": a heading, but not in the index")
        else if (entries[names[i]] != anchor) fail(names[i] ": its entry leads to " entries[names[i]] ", not to its heading")
    }
    for (name in entries) {
      anchor = entries[name]
      if (!(anchor in sections)) fail(name ": in the index, but there is no heading " anchor)
      else if (!(anchor in headings && index(" " headings[anchor] " ", " " name " ")) && sections[anchor] !~ "`" name "[`(<]")
        fail(name ": its entry leads to " anchor ", which does not name it")
    }
    for (anchor in links) if (!(anchor in sections)) fail("line " links[anchor] ": there is no heading " anchor)
    if (count < 50) fail("found too few entries: " count + 0)
    exit status
  }' "$spec"
