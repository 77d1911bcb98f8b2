#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_exports.sh LIBRARY PROGRAM: libkiln_compiler.so exports what generators call and MLIR's type identities, and
# nothing that another library in the process may define too, such as a function of LLVM's headers in a different
# version. Nor does a program that contains the compiler export functions of LLVM's headers.
set -euo pipefail
library=$1 program=$2

exported_by() { nm --dynamic --defined-only --format=posix "$1" | cut -d ' ' -f 1 | sed 's/@.*//'; }
exported=$(exported_by "$library")
mlir='_Z(N|NK|ZN|ZNK|GVN|GVZN|TIN|TSN|TVN)4mlir'

others=$(grep -Ev "^($mlir|kiln_)" <<<"$exported" || true)
expected=_ZN4kiln12runGeneratorEiPPcPKcPFNS_5GraphEvE
[ "$others" = "$expected" ] || {
  echo "$library: wrong exported symbols; expected $expected, got:" >&2
  head -20 <<<"$others" >&2
  exit 1
}
for symbol in kiln_find_spec kiln_inspect_archive kiln_tune_merge; do
  grep -qx "$symbol" <<<"$exported" || { echo "$library: does not export $symbol" >&2; exit 1; }
done
grep -q '^_ZZN4mlir6detail14TypeIDResolver' <<<"$exported" || { echo "$library: exports no type identities of MLIR" >&2; exit 1; }
llvm=$(exported_by "$program" | grep -E '^_Z(N|NK|ZN|ZNK|GVZN|TIN|TSN|TVN|NSt.*|NKSt.*|St.*)4llvm' || true)
[ -z "$llvm" ] || { echo "$program: exports names of LLVM:" >&2; head -20 <<<"$llvm" >&2; exit 1; }
