#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that the driver finds the mistakes of a faulty library: check_driver.sh PROGRAM WATCHED
set -u
program=$1 watched=$2
words=$(mktemp)
trap 'rm -f "$words"' EXIT
if "$program" --seed 1 >"$words" 2>&1; then
  echo "a library of mistakes has passed"
  exit 1
fi
cat "$words"
set -- 'forgets(): byte 24 of ' 'spoils(): input is an input and was written to' \
  'oversteps(): something was written outside of output'
if [ "$watched" = true ]; then
  set -- "$@" 'unsafe function `malloc` in real-time context'
else
  echo "allocations are not looked for: RealtimeSanitizer requires clang 20 or later, and no other sanitizer"
fi
for wanted in "$@"; do
  grep -qF "$wanted" "$words" || { echo "not found: $wanted"; exit 1; }
done
if grep -F 'obeys()' "$words"; then
  echo "an entry without a mistake has failed"
  exit 1
fi
