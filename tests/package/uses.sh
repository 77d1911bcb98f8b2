#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that the audio plug-in, the game and the server of examples/embedding print the same as the program there:
# uses.sh SOURCE PROGRAM USES FOLDER. Also with clang's RealtimeSanitizer, which ends a program whose audio thread
# allocates, locks or waits.
set -eu
source=$1/examples/embedding program=$2 uses=$3 folder=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wanted=$(python3 "$source/amp.py" "$work/amp.safetensors")
check() {
  said=$("$@" "$work/amp.safetensors")
  echo "$said"
  [ "$(echo "$said" | sort -u)" = "$wanted" ] || { echo "$1 must say $wanted" >&2; exit 1; }
}
check "$program"
check "$uses"

echo 'int main() {}' >"$work/empty.cpp"
if ! clang++-22 -fsanitize=realtime "$work/empty.cpp" -o "$work/empty" 2>"$work/log"; then
  echo "not run with RealtimeSanitizer, which takes clang-22 and libclang-rt-22-dev"
  exit 0
fi
clang++-22 -std=c++17 -O1 -fsanitize=realtime -I"$folder" "$source/uses.cpp" "$folder/libamp.a" -o "$work/uses"
check "$work/uses"
# Checks that the sanitizer works: copying a block into a vector must end the program.
sed 's|^    while (samples > 0) {|    const std::vector<float> copied(block, block + samples);\n&|; s|^#include <algorithm>|&\n#include <vector>|' \
  "$source/effect.h" >"$work/effect.h"
cp "$source/uses.cpp" "$source/turns.h" "$source/sessions.h" "$work"
clang++-22 -std=c++17 -O1 -fsanitize=realtime -I"$folder" "$work/uses.cpp" "$folder/libamp.a" -o "$work/allocating"
if "$work/allocating" "$work/amp.safetensors" >"$work/log" 2>&1; then
  echo "an allocation on the audio thread was not seen" >&2
  exit 1
fi
grep -m1 "RealtimeSanitizer" "$work/log"
