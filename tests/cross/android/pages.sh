#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that a system with pages of 16 KiB can load a linked file: pages.sh READELF FILE
set -eu
alignments=$("$1" -lW "$2" | awk '$1 == "LOAD" { print $NF }' | sort -u)
[ "$alignments" = 0x4000 ] || { echo "pages: segments of $2 must be aligned to 0x4000, got $alignments" >&2; exit 1; }
