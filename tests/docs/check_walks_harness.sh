#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_walks_harness.sh ROOT PYTHON: checks that check_walks.py finds each kind of mistake in broken/walk.md.
set -uo pipefail
found=$("$2" "$1/tests/docs/check_walks.py" "$1" "$1/tests/docs/broken/walk.md") && { echo "check_walks.py found nothing"; exit 1; }
for mistake in "line 5: the block is no excerpt, quote or command" "line 10: the block is not in dsl/include/kiln/ops.def" \
  "line 15: excerpt of dsl/nowhere.h, which is not there" "there is no file or folder nowhere.cpp" \
  "there is no file or folder compiler/nowhere/" "there is no option --nowhere" "no source has NowhereOp, of" \
  "does not name compiler/dialect/lowering/Pointwise.cpp, which has" "dsl/SPEC.md is listed as a user, but does not have" \
  "does not name hasTf32 of TargetInfo" "targets/target.h has no Nowhere with members"; do
  grep -qF -- "$mistake" <<<"$found" || { echo "check_walks.py does not say: $mistake"; exit 1; }
done
