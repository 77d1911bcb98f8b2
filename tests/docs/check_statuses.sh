#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_statuses.sh ROOT [DOCUMENT]: checks that the table of statuses in docs/embedding.md has a row for each status of
# runtime.h, in its order, and no other; each with its meaning and the action to take.
set -euo pipefail
root=$1 document=${2:-$1/docs/embedding.md}
statuses=$(sed -n '/^typedef enum kiln_status_t/,/^}/s/^  \(KILN_[A-Z_]*\) = .*/\1/p' "$root/runtime/include/kiln/runtime.h")
[ "$(wc -l <<<"$statuses")" -gt 20 ] || { echo "no statuses were found in runtime.h"; exit 1; }
rows=$(sed -n 's/^| `\(KILN_[A-Z_]*\)` | ..* | ..* |$/\1/p' "$document")
diff <(echo "$statuses") <(echo "$rows") || { echo "$document must explain the statuses of runtime.h"; exit 1; }
