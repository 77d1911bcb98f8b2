#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that the run time's headers compile without warnings: the types that every NAME.h contains as C89 and C++11, and
# the writer of traces as C11 and C++11: check_headers.sh INCLUDE
set -eu
include=$1
# shellcheck source=tests/header_modes.sh
. "$(dirname "$0")/../header_modes.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

printf '#include "kiln/runtime.h"\n#include "kiln/runtime.h"\n' >"$work/types.c"
in_c 89 "-I$include" "$work/types.c"
in_cxx 11 "-I$include" "$work/types.c"
on_windows 89 11 "-I$include" "$work/types.c"
in_bare "-I$include" "$work/types.c"

# Structs are aggregates in all standards. From C++14 on, members without initialisers have defaults, so that there is
# no warning.
cp "$work/types.c" "$work/call.cpp"
cat >>"$work/call.cpp" <<'END'
kiln_call_t call_in(void *arena, size_t bytes);
kiln_call_t call_in(void *arena, size_t bytes) {
  const kiln_call_t call = {arena, bytes, nullptr, nullptr};
  return call;
}
END
in_cxx 14 "-I$include" "$work/call.cpp"
compiles g++ -std=c++11 $gnu_cxx_warnings -Wno-missing-field-initializers "-I$include" "$work/call.cpp"

printf '#include "kiln/chrome_trace.h"\n#include "kiln/chrome_trace.h"\n' >"$work/trace.c"
in_c 11 -Wno-declaration-after-statement -Wno-pre-c23-compat "-I$include" "$work/trace.c"
in_cxx 11 "-I$include" "$work/trace.c"
