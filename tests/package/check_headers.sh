#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that each generated header compiles by itself, twice, and together with another model's, with all warnings, in
# C and C++: check_headers.sh FOLDER NAME OTHER_FOLDER OTHER
set -eu
folder=$1 name=$2 other_folder=$3 other=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags="-fsyntax-only -Wall -Wextra -Wpedantic -Werror -Wshadow -Wconversion -I$folder -I$other_folder"

printf '#include "%s.h"\n' "$name" >"$work/alone.c"
printf '#include "%s.h"\n#include "%s.h"\n#include "%s.h"\n' "$name" "$other" "$name" >"$work/both.c"
printf '#include "%s.hpp"\n' "$name" >"$work/alone.cpp"
printf '#include "%s.hpp"\n#include "%s.hpp"\n#include "%s.h"\n' "$name" "$other" "$name" >"$work/both.cpp"
for source in alone both; do
  for compiler in gcc clang-22; do
    echo "$compiler -std=c11 $source.c"
    $compiler -std=c11 $flags "$work/$source.c"
  done
  for compiler in g++ clang++-22; do
    for file in c cpp; do
      echo "$compiler -std=c++20 $source.$file"
      $compiler -std=c++20 -x c++ $flags "$work/$source.$file"
    done
  done
done

# No function of NAME.hpp may be a symbol that a program or shared object exports. Templates are kept only where they are
# instantiated.
cp "$work/both.cpp" "$work/kept.cpp"
cat >>"$work/kept.cpp" <<'END'
using Rows = kiln::View<const float, kiln::dynamic, 8>;
template class kiln::View<const float, kiln::dynamic, 8>;
template void kiln::Check::whole(const char *, const char *, const Rows &);
template void kiln::Check::extents(const char *, const char *, const Rows &, std::initializer_list<std::int64_t>);
Rows of_pointer(const float *data) { return Rows(data, 2); }
Rows of_range(std::span<const float> range) { return range; }
const std::int64_t *address_of_dynamic() { return &kiln::dynamic; }
const std::size_t *address_of_rank(int which) { return which ? &Rows::rank : &Rows::dynamicRank; }
END
for compiler in "g++ -fkeep-inline-functions" clang++-22; do
  $compiler -std=c++20 -O0 -I"$folder" -I"$other_folder" -c "$work/kept.cpp" -o "$work/kept.o"
  nm -C "$work/kept.o" | grep -qE "kiln::(of_[0-9a-f]+::)?Check::whole<" || { echo "$compiler: no template is kept"; exit 1; }
  shown=$(readelf -sW "$work/kept.o" | awk '$5 != "LOCAL" && $6 == "DEFAULT" && $7 != "UND" { print $8 }' | c++filt |
    grep -E "^([a-z]+ )?(${name}|${other}|kiln)::" || true)
  [ -z "$shown" ] || { echo "$compiler: functions must be hidden; got: $shown"; exit 1; }
  case $compiler in
  g++*) nm -C "$work/kept.o" | grep -qE "${name}::(of_[0-9a-f]+::)?Model::" || { echo "no function of $name.hpp is kept"; exit 1; } ;;
  esac
done
