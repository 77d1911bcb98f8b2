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

# No function of NAME.hpp may be a symbol that a program or shared object exports.
g++ -std=c++20 -O0 -fkeep-inline-functions -I"$folder" -I"$other_folder" -c "$work/both.cpp" -o "$work/kept.o"
nm -C "$work/kept.o" | grep -qE "${name}::(of_[0-9a-f]+::)?Model::" || { echo "no function of $name.hpp is kept"; exit 1; }
shown=$(readelf -sW "$work/kept.o" | awk '$5 != "LOCAL" && $6 == "DEFAULT" && $7 != "UND" { print $8 }' | c++filt |
  grep -E "^(${name}|${other}|kiln)::" || true)
[ -z "$shown" ] || { echo "functions must be hidden; got: $shown"; exit 1; }
