#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that each generated header compiles by itself, twice, and together with another model's, with all warnings of
# each compiler and standard that users may have: check_headers.sh FOLDER NAME OTHER_FOLDER OTHER
set -eu
folder=$1 name=$2 other_folder=$3 other=$4
# shellcheck source=tests/header_modes.sh
. "$(dirname "$0")/../header_modes.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
macro=$(echo "$name" | tr '[:lower:]' '[:upper:]')

printf '#include "%s.h"\n' "$name" >"$work/alone.c"
printf '#include "%s.h"\n' "$name" "$other" "$name" >"$work/both.c"
printf 'size_t use(void);\nsize_t use(void) { return %s_WEIGHT_BYTES; }\n' "$macro" >>"$work/both.c"
printf '#include "%s.hpp"\n' "$name" >"$work/alone.cpp"
printf '#include "%s"\n' "$name.hpp" "$other.hpp" "$name.h" >"$work/both.cpp"
for source in alone both; do
  in_c 89 "-I$folder" "-I$other_folder" "$work/$source.c"
  in_cxx 11 "-I$folder" "-I$other_folder" "$work/$source.c"
  on_windows 89 11 "-I$folder" "-I$other_folder" "$work/$source.c"
  in_bare "-I$folder" "-I$other_folder" "$work/$source.c"
done
in_cxx 17 "-I$folder" "$work/alone.cpp"
in_cxx 17 "-I$folder" "-I$other_folder" "$work/both.cpp"
on_windows "" 17 "-I$folder" "-I$other_folder" "$work/both.cpp"

# Unreal Engine and macOS define check as a macro, Windows max, Qt emit, X11 None; games have no exceptions.
cat >"$work/macros.cpp" <<'END'
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <type_traits>
#include <utility>
#if __cplusplus >= 202002L
#include <span>
#endif
#define check(condition) static_assert(false, "check")
#define verify(condition) static_assert(false, "verify")
#define ensure(condition) static_assert(false, "ensure")
#define require(condition, label) static_assert(false, "require")
#define max(a, b) static_assert(false, "max")
#define min(a, b) static_assert(false, "min")
#define foreach(variable, container) static_assert(false, "foreach")
#define emit
#define signals public
#define slots
#define None 0L
#define Status int
#define Success 0
#define Bool int
#define TEXT(text) L##text
#define near
#define far
#define interface struct
END
cat "$work/both.cpp" >>"$work/macros.cpp"
for standard in 17 20; do
  compiles g++ -std=c++$standard -fno-exceptions -fno-rtti $gnu_warnings "-I$folder" "-I$other_folder" "$work/macros.cpp"
done

# No function of NAME.hpp may be a symbol that a program or shared object exports. Templates are kept only where they are
# instantiated.
cp "$work/both.cpp" "$work/kept.cpp"
cat >>"$work/kept.cpp" <<'END'
using Rows = kiln::View<const float, kiln::dynamic, 8>;
template class kiln::View<const float, kiln::dynamic, 8>;
template class kiln::Span<const float>;
kiln::Span<const float> span_of_array(const float (&array)[8]) { return array; }
template void kiln::Check::whole(const char *, const char *, const Rows &);
template void kiln::Check::extents(const char *, const char *, const Rows &, std::initializer_list<std::int64_t>);
Rows of_pointer(const float *data) { return Rows(data, 2); }
Rows of_range(kiln::Span<const float> range) { return range; }
const std::int64_t *address_of_dynamic() { return &kiln::dynamic; }
const std::size_t *address_of_rank(int which) { return which ? &Rows::rank : &Rows::dynamicRank; }
END
for compiler in "g++ -fkeep-inline-functions" clang++-22; do
  for standard in 17 20; do
    $compiler -std=c++$standard -O0 -I"$folder" -I"$other_folder" -c "$work/kept.cpp" -o "$work/kept.o"
    nm -C "$work/kept.o" | grep -qE "kiln::(of_[0-9a-f]+::)?Check::whole<" || { echo "$compiler: no template is kept"; exit 1; }
    shown=$(readelf -sW "$work/kept.o" | awk '$5 != "LOCAL" && $6 == "DEFAULT" && $7 != "UND" { print $8 }' | c++filt |
      grep -E "^([a-z]+ )?(${name}|${other}|kiln)::" || true)
    [ -z "$shown" ] || { echo "$compiler -std=c++$standard: functions must be hidden; got: $shown"; exit 1; }
    case $compiler in
    g++*) nm -C "$work/kept.o" | grep -qE "${name}::(of_[0-9a-f]+::)?Model::" || { echo "no function of $name.hpp is kept"; exit 1; } ;;
    esac
  done
done

# A file that includes headers of two versions of the binary interface.
version=$(sed -n 's/^#define KILN_ABI_VERSION //p' "$folder/$name.h")
mkdir "$work/older"
sed 's/^#define KILN_ABI_VERSION .*/#define KILN_ABI_VERSION 1/; s/^#if KILN_ABI_VERSION != .*/#if 0/' "$other_folder/$other.h" \
  >"$work/older/$other.h"
printf '#include "%s.h"\n' "$other" "$name" >"$work/versions.c"
if gcc -fsyntax-only "-I$work/older" "-I$folder" "$work/versions.c" 2>"$work/said"; then
  echo "headers of two versions compile" && exit 1
fi
grep -F "$name.h was written for version $version of Kiln's binary interface" "$work/said" || { cat "$work/said" && exit 1; }
