#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that every global symbol that an archive defines begins with PREFIX, or has the form of the regular expression
# OTHERS: global_symbols.sh NM ARCHIVE PREFIX [OTHERS]
set -eu
nm=$1 archive=$2 prefix=$3 others=${4:-^$}
fail() { echo "global_symbols: $1" >&2; exit 1; }

defined=$("$nm" -g --defined-only "$archive" | awk 'NF == 3 { print $3 }' | sort -u)
own=$(echo "$defined" | grep -c "^$prefix" || true)
echo "$own global symbols"
[ "$own" -ge 10 ] || fail "an archive defines at least 10 functions, got $own"
foreign=$(echo "$defined" | grep -v -e "^$prefix" -e "$others" || true)
[ -z "$foreign" ] || fail "global symbols must begin with $prefix, got: $foreign"
