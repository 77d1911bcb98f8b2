#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# check.sh INCLUDE CASE.cpp [FOLDER]: checks that every compiler rejects the case, and prints each text of its
# `// expect: TEXT` lines. g++ quotes a message as a string literal, so that its \' is read as '; clang before 20 prints
# characters, 'a', 'b', which are joined. FOLDER may have the DSL's precompiled header (precompile.sh). KILN_COMPILERS
# and KILN_FLAGS in the environment replace the compilers and the standard.
set -eu
include=$1 case=$2 folder=${3:-}
grep -q '^// expect: .' "$case" || { echo "$case: no expect line"; exit 1; }
for compiler in ${KILN_COMPILERS:-g++ clang++-22}; do
  command -v "$compiler" > /dev/null || { echo "$compiler is not installed, so nobody knows what it says"; exit 1; }
  set -- ${KILN_FLAGS:--std=c++20} -fno-diagnostics-color -I "$include"
  [ ! -f "$folder/$compiler/dsl.h.gch" ] || set -- "$@" -include "$folder/$compiler/dsl.h"
  if said=$("$compiler" "$@" -fsyntax-only "$case" 2>&1); then
    echo "$compiler: $case compiled, but must not"
    exit 1
  fi
  said=$(printf '%s\n' "$said" | sed "s/\\\\'/'/g; /Spelled</s/', '//g")
  sed -n "s|^// expect: ||p" "$case" | while IFS= read -r text; do
    printf '%s\n' "$said" | grep -qF -- "$text" || {
      printf '%s: %s does not say\n  %s\nbut\n%s\n' "$compiler" "$case" "$text" "$said"
      exit 1
    }
  done
  echo "$compiler: says what $(basename "$case") expects"
done
