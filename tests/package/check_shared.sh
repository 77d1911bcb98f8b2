#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks a shared object: check_shared.sh FOLDER NAME CC
#   - it exports the functions that NAME.h declares, and nothing else, under its own symbol version
#   - its soname is its file's name, and it depends only on the C library and libm
#   - a C program that is linked with it runs, and functions return the same values as the macros
set -eu
folder=$1 name=$2 cc=$3 failed=0
upper=$(echo "$name" | tr a-z A-Z)
object=$folder/lib$name.so
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "check_shared: $1" >&2; failed=1; }

# The functions in the header after preprocessing by a compiler.
printf '#include "%s.h"\n' "$name" >"$work/header.c"
$cc -E -P -I"$folder" "$work/header.c" | tr '\n' ' ' | grep -oE "\b${name}_[A-Za-z0-9_]+ ?\(" | tr -d ' (' | sort -u >"$work/declared"
nm -D --defined-only "$object" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u >"$work/exported"
[ -s "$work/declared" ] || fail "$name.h declares no function"
diff "$work/declared" "$work/exported" || fail "$object must export what $name.h declares; < is declared, > is exported"

version=$(sed -n 's/^#define KILN_ABI_VERSION //p' "$folder/$name.h")
readelf -dW "$object" | grep -q "SONAME.*\[lib$name.so\]" || fail "$object: wrong soname; expected lib$name.so"
nm -D --defined-only --with-symbol-versions "$object" | grep -q "${name}_create@@${name}_$version" || fail "$object: no version ${name}_$version"
needs=$(readelf -dW "$object" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -vE '^(lib(c|m|pthread)\.so|ld-linux)' || true)
[ -z "$needs" ] || fail "$object needs $needs"
[ -x "$object" ] || fail "$object: not executable, as shared objects are"

cat >"$work/program.c" <<END
#include "$name.h"
#include <stdio.h>
#include <string.h>
int main(void) {
  ${name}_t *model = NULL;
  kiln_error_t error;
  if (${name}_create(NULL, &model, &error) != KILN_OK)
    return 1;
  for (uint32_t workers = 1; workers < 9; ++workers)
    if (${name}_forward_arena_bytes(workers) != ${upper}_FORWARD_ARENA_BYTES(workers))
      return 2;
#ifdef ${upper}_STATE_BYTES
  if (${name}_state_bytes() != ${upper}_STATE_BYTES)
    return 3;
#else
  if (${name}_state_bytes() != 0)
    return 3;
#endif
  if (${name}_abi_version() != KILN_ABI_VERSION || strlen(${name}_version()) < 5)
    return 4;
  ${name}_destroy(model);
  printf("%s, version %s\n", ${name}_status_text(KILN_OK), ${name}_version());
  return 0;
}
END
$cc -std=c11 -Wall -Wextra -Werror -I"$folder" "$work/program.c" "$object" -Wl,-rpath,"$(cd "$folder" && pwd)" -o "$work/program"
"$work/program" || fail "the program ends with status $?"
exit $failed
