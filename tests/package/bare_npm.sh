#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the package for npm in a new Debian system, compiles and trains a model with `npx kiln`, and finds it with
# CMake: bare_npm.sh PACKAGES SOURCE SUITE [FOLDER]
# Takes the file that ./dev package wrote to PACKAGES. The system is installed in FOLDER/SUITE-npm, or in a temporary
# folder.
set -eu
packages=$1 source=$2 suite=$3 folder=${4:-}
. "$source/tests/package/new_system.sh"
package=$(one_file "$packages/kiln-compiler-*.tgz") || skip "no package for npm in $packages; ./dev package makes it"

step "$suite with npm"
open_system "$suite" "$suite-npm" "$folder"
in_system "command -v npm >/dev/null && command -v g++ >/dev/null && command -v cmake >/dev/null" || install npm g++ cmake make
new_home "$source"
cp "$package" "$root/home/user/kiln-compiler.tgz"

step "install, compile, link, run"
train_model 'cd /home/user/ring
npm install --offline --no-audit --no-fund ../kiln-compiler.tgz' "npx --no kiln"

step "find_package"
in_system 'cd /home/user/ring
cmake -S . -B build -DCMAKE_PREFIX_PATH=$PWD/node_modules/kiln-compiler >/dev/null
cmake --build build >log || { cat log; exit 1; }
build/use ring.safetensors'
