#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The steps of a user who has the package of Kiln and a C++ compiler only, on a new Debian system: unpack, compile a
# spec, link, run; then with CMake find_package, and `kiln new`, `kiln tune`:
# bare_system.sh PACKAGES SOURCE SUITE g++|clang|clang-VERSION [FOLDER]
# Takes the archive that ./dev package wrote to PACKAGES. The system is installed in FOLDER/SUITE-COMPILER, or in a
# temporary folder.
set -eu
packages=$1 source=$2 suite=$3 compiler=$4 folder=${5:-}
. "$source/tests/package/new_system.sh"
case $compiler in clang-*) environment="CC=$compiler CXX=clang++-${compiler#clang-}" ;; esac
archive=$(one_file "$packages/kiln-*-linux-$(uname -m).tar.xz") || skip "no package in $packages; ./dev package makes it"

step "$suite with $compiler"
open_system "$suite" "$suite-$compiler" "$folder"
in_system "command -v $compiler >/dev/null && command -v xz >/dev/null" || install "$compiler" xz-utils
new_home "$source"
cp "$archive" "$root/home/user/kiln.tar.xz"
cp -r "$source/examples/llama/king_james" "$root/home/user"

step "unpack, compile, link, run"
begin=$(date +%s)
train_model 'cd /home/user
tar xf kiln.tar.xz
mv kiln-* "a folder"
PATH="/home/user/a folder/bin:$PATH"' kiln
echo "from the archive to a trained model: $(($(date +%s) - begin)) s"

step "other forms"
in_system 'PATH="/home/user/a folder/bin:$PATH"
cd /home/user/ring
kiln compile ring.cpp -o shared --shared
test -s shared/libring.so
for target in aarch64 riscv64-v x86-64-v3-windows aarch64-macos wasm32 cuda; do
  kiln compile ring.cpp -o "$target" --target "$target" >/dev/null
  test -s "$target/libring.a" || { echo "no library for $target"; exit 1; }
done
if kiln compile ring.cpp -o shared --shared --target aarch64 2>log; then echo "linked without a linker"; exit 1; fi
grep "expected a C compiler that links for aarch64" log
if CXX=absent kiln compile ring.cpp -o absent 2>log; then echo "compiled without a compiler"; exit 1; fi
grep "absent" log
kiln inspect ring.cpp --html page.html
kiln tune ring.cpp --budget 10s >log 2>&1 || { cat log; exit 1; }
kiln compile ring.cpp -o tuned | grep "measured in"'

step "find_package, kiln new"
in_system "command -v cmake >/dev/null && dpkg -s libicu-dev nlohmann-json3-dev >/dev/null 2>&1" || install cmake make libicu-dev nlohmann-json3-dev
in_system 'PATH="/home/user/a folder/bin:$PATH"
cd /home/user/ring
cmake -S . -B build -DCMAKE_PREFIX_PATH="/home/user/a folder" >/dev/null
cmake --build build >log || { cat log; exit 1; }
build/use ring.safetensors
cd ..
kiln new king_james --name james --build >log 2>&1 || { cat log; exit 1; }
cd james
build/james ../king_james --help >/dev/null'
