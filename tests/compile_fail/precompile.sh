#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# precompile.sh INCLUDE FOLDER: precompiles the DSL's header with every installed compiler, which halves the time of a
# case. The environment is that of check.sh.
set -eu
include=$1 folder=$2
for compiler in ${KILN_COMPILERS:-g++ clang++-22}; do
  command -v "$compiler" > /dev/null || continue
  mkdir -p "$folder/$compiler"
  echo '#include "kiln/dsl.h"' > "$folder/$compiler/dsl.h"
  "$compiler" ${KILN_FLAGS:--std=c++20} -fno-diagnostics-color -I "$include" -x c++-header "$folder/$compiler/dsl.h" \
    -o "$folder/$compiler/dsl.h.gch"
done
