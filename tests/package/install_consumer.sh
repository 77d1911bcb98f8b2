#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs Kiln to a separate folder, then uses only that folder: a project with find_package(Kiln), the examples by
# themselves, and the installed command: install_consumer.sh BUILD SOURCE
set -eu
build=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
step() { echo "== $1"; }
case $(uname -m) in # the targets of consumer/CMakeLists.txt
aarch64) targets=aarch64-dotprod,aarch64 ;;
*) targets=x86-64-v3,x86-64-v2 ;;
esac

step "install"
cmake --install "$build" --prefix "$work/kiln" >/dev/null
# Moves the installation, to detect absolute paths to the original folder.
mv "$work/kiln" "$work/moved"
prefix=$work/moved

step "find_package"
cmake -G Ninja -S "$source/tests/package/consumer" -B "$work/consumer" -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_CXX_COMPILER=g++ -DPAIR_SPEC="$source/tests/package/pair.cpp" >/dev/null
cmake --build "$work/consumer" >"$work/log" || { cat "$work/log"; exit 1; }
"$work/consumer/consumer"

step "the first line of a compile error"
# first_line COMPILER CHANGE LINE WORDS: builds the spec with a change (of sed) by kiln_add_library. What the build
# prints begins with the user's line, that with the text LINE, and the words.
first_line() {
  sed "$2" "$source/tests/package/pair.cpp" >"$work/mistake.cpp"
  rm -rf "$work/mistake"
  cmake -G Ninja -S "$source/tests/package/consumer" -B "$work/mistake" -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_CXX_COMPILER="$1" -DPAIR_SPEC="$work/mistake.cpp" >/dev/null
  line=$(grep -nF -- "$3" "$work/mistake.cpp" | cut -d: -f1)
  wanted="$work/mistake.cpp:$line: error: $4"
  for verbose in "" 1; do
    if VERBOSE=$verbose cmake --build "$work/mistake" --target pair_generator >"$work/log" 2>&1; then
      echo "a spec with a mistake was compiled" >&2
      exit 1
    fi
    # What the command prints follows the line "FAILED: ..." and the command.
    sed -n '/^FAILED: /,/^ninja: /p' "$work/log" | sed '1,2d;$d' >"$work/said"
    test "$(head -1 "$work/said")" = "$wanted" || { echo "the first line is not: $wanted"; cat "$work/log"; exit 1; }
    if test -n "$verbose"; then
      test "$(wc -l <"$work/said")" -gt 2 || { echo "no text of the compiler"; cat "$work/log"; exit 1; }
    else
      sed -n 2p "$work/said" | grep -q "^note: .*VERBOSE=1" || { echo "no note"; cat "$work/log"; exit 1; }
      test "$(wc -l <"$work/said")" = 2 || { echo "not two lines"; cat "$work/log"; exit 1; }
    fi
  done
}
for compiler in g++ clang++-22; do
  command -v $compiler >/dev/null || continue
  first_line $compiler 's/kiln::Linear<10, 6> down/kiln::Linear<9, 6> down/' "down(kiln::tanh" \
    "down: linear: wrong input width; expected 9, got 10 [linear_c1]"
  first_line $compiler 's|kiln/generator.h|kiln/dsl.h|' "KILN_MODEL(" \
    "KILN_MODEL: it is not declared; expected #include <kiln/generator.h>"
  first_line $compiler 's/KILN_MODEL(pair,/KILN_MODEL("pair",/' "KILN_MODEL(" \
    'KILN_MODEL: invalid name; expected an identifier in C and C++, got "pair"'
done

step "measured schedules are required"
digest() { sed -n 's/#define PAIR_TUNING_DIGEST "\(.*\)"/\1/p' "$work/${1:-tuned}/pair_kiln/pair.h"; }
cmake -G Ninja -S "$source/tests/package/consumer" -B "$work/tuned" -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_CXX_COMPILER=g++ -DPAIR_SPEC="$source/tests/package/pair.cpp" -DTUNING="$work/pair.tuning" >/dev/null
cmake --build "$work/tuned" --target pair_generator >/dev/null
if cmake --build "$work/tuned" >"$work/log"; then
  echo "a library was built without its tuning file" >&2
  exit 1
fi
grep -F "cannot read the tuning file \"$work/pair.tuning\": No such file or directory; \"$work/tuned/pair_generator tune" "$work/log"
python3 "$source/tests/package/measured.py" "$work/tuned/pair_generator" $targets 10 "$work/pair.tuning"
cmake --build "$work/tuned" >"$work/log" || { cat "$work/log"; exit 1; }
"$work/tuned/consumer"
first=$(digest)
test "$first" != none
cmake --build "$work/tuned" >"$work/log"
grep -q "no work to do" "$work/log" || { echo "built again without a reason"; cat "$work/log"; exit 1; }
sleep 0.01 # the resolution of file times
python3 "$source/tests/package/measured.py" "$work/tuned/pair_generator" $targets 11 "$work/pair.tuning"
cmake --build "$work/tuned" >/dev/null
test "$(digest)" != "$first" || { echo "the library did not follow its tuning file" >&2; exit 1; }
sed -i '$d' "$work/pair.tuning"
if cmake --build "$work/tuned" >"$work/log"; then
  echo "a kernel without a measurement was accepted" >&2
  exit 1
fi
lacking="kernels without a measured schedule; expected one for every kernel, got none for 1:"
grep -F "tuning file \"$work/pair.tuning\": $lacking" "$work/log"

step "a tuning file next to the spec"
mkdir "$work/spec"
cp "$source/tests/package/pair.cpp" "$work/spec"
cmake -G Ninja -S "$source/tests/package/consumer" -B "$work/next" -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_CXX_COMPILER=g++ -DPAIR_SPEC="$work/spec/pair.cpp" >/dev/null
cmake --build "$work/next" >"$work/log"
grep -F "measure them with: KILN_SPEC_FOLDER='$work/spec' '$work/next/pair_generator' tune" "$work/log"
test "$(digest next)" = none
python3 "$source/tests/package/measured.py" "$work/next/pair_generator" $targets 10 "$work/spec/pair.tuning"
cmake --build "$work/next" >"$work/log"
grep -E "schedules: all [0-9]+ kernels are measured in \"$work/spec/pair.tuning\"" "$work/log"
test "$(digest next)" != none

step "the examples alone"
for example in "$source"/examples/*/CMakeLists.txt; do
  name=$(basename "$(dirname "$example")")
  cmake -G Ninja -S "$(dirname "$example")" -B "$work/$name" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
done
for name in attention_layers char_gpt; do
  cmake --build "$work/$name" >"$work/log" || { cat "$work/log"; exit 1; }
  test -x "$work/$name/${name}_demo"
done

step "kiln compile"
"$prefix/bin/kiln" compile "$source/tests/package/pair.cpp" -o "$work/out/new" --target "${targets#*,}"
for file in libpair.a pair.h pair.hpp pair.manifest.json pair.pc pair.LICENSE.txt; do
  test -s "$work/out/new/$file"
done

step "nothing refers to the build tree"
for file in bin/kiln "$(cd "$prefix" && ls -d lib*/libkiln_compiler.so lib*/*/libkiln_compiler.so 2>/dev/null | head -1)"; do
  if readelf -d "$prefix/$file" | grep -E 'R(UN)?PATH' | grep -F "$build"; then
    echo "$file finds its libraries in the build tree" >&2
    exit 1
  fi
done

step "uninstall"
echo other >"$prefix/include/kiln/other.h"
"$source/dev" uninstall "$prefix"
left=$(find "$prefix" ! -type d)
test "$left" = "$prefix/include/kiln/other.h" || { echo "uninstalling left: $left" >&2; exit 1; }
