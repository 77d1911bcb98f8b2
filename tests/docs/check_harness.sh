#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_harness.sh ROOT: checks that check.sh finds the three errors of broken/page.md.
set -uo pipefail
here=$1/tests/docs
found=$("$here/check.sh" "$1" "$here/broken/page.md") && { echo "check.sh found nothing"; exit 1; }
for mistake in "names docs/nowhere.md" "links to nowhere.md" "does not quote tests/docs/broken/source.h"; do
  grep -q "$mistake" <<<"$found" || { echo "check.sh did not find: $mistake"; exit 1; }
done
found=$("$here/check_statuses.sh" "$1" "$here/broken/page.md") && { echo "check_statuses.sh found nothing"; exit 1; }
grep -q "< KILN_NOT_FINITE" <<<"$found" || { echo "check_statuses.sh did not find: KILN_NOT_FINITE"; exit 1; }
