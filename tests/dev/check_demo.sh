#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_demo.sh FOLDER: the packages that apt would install for `FOLDER/dev demo` on a system without any package are
# none of the parts of other commands, nor what only such parts depend on. Needs no network, but the lists of packages
# that `apt-get update` fetches: skipped (status 77) without them.
set -euo pipefail
command -v apt-get >/dev/null || { echo "skipped: there is no apt-get"; exit 77; }
dev="$1/dev"
status=$(mktemp) # of no package
trap 'rm -f "$status"' EXIT
closure=$(apt-get -s -o "Dir::State::status=$status" -o Debug::NoLocking=1 --no-install-recommends install \
  $("$dev" needs demo) 2>/dev/null | sed -n 's/^Inst \([^ ]*\).*/\1/p') || closure=
[ -n "$closure" ] || { echo "skipped: there are no lists of packages; apt-get update fetches them"; exit 77; }
for wanted in cmake clang-22 libllvm22 'libhalide[0-9].*'; do # otherwise the other check means nothing
  grep -qx "$wanted" <<<"$closure" || { echo "demo: missing; expected also $wanted" >&2; exit 1; }
done
unwanted=$(grep -E 'wine|qemu|mingw|-cross|openmpi|opencl|nodejs|valgrind|wasi|wasm|gtest|dataset' <<<"$closure" || true)
[ -z "$unwanted" ] || { echo "demo: too many packages; expected none of" $unwanted >&2; exit 1; }
