#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the container of cmake/package/Containerfile in a new Debian system, which takes no container engine, so installs
# the Debian package; compiles and trains a model in it, and removes the package:
# bare_container.sh PACKAGES SOURCE SUITE [FOLDER]
# Takes the files that ./dev package wrote to PACKAGES. The system is installed in FOLDER/SUITE-container, or in a temporary
# folder.
set -eu
packages=$1 source=$2 suite=$3 folder=${4:-}
. "$source/tests/package/new_system.sh"
package=$(one_file "$packages/kiln_*.deb") || skip "no Debian package in $packages; ./dev package makes it"
open_system "$suite" "$suite-container" "$folder"
copy_system

step "the container's instructions, on $suite"
command=
while read -r instruction arguments; do
  case $instruction in
  "" | "#" | ARG | FROM) ;;
  COPY)
    to=${arguments##* }
    for pattern in ${arguments% *}; do
      cp "$packages"/$pattern "$root$to"
    done
    ;;
  RUN) in_system "$arguments" >"$work/log" 2>&1 || { tail "$work/log"; fail "failed: RUN $arguments"; } ;;
  ENTRYPOINT) command=$(echo "$arguments" | tr -d '[]",') ;;
  *) fail "Containerfile: unknown instruction $instruction" ;;
  esac
done <"$packages/Containerfile"
[ "$command" = kiln ] || fail "the container must run kiln, got \"$command\""

step "compile, link, run"
new_home "$source"
train_model "" $command

step "find_package"
in_system 'cd /home/user/ring
cmake -S . -B build >/dev/null
cmake --build build >log || { cat log; exit 1; }
build/use ring.safetensors
rm -rf build
dpkg -s kiln | grep -E "^(Version|Installed-Size|Depends)"'

step "removal"
files=$(in_system 'dpkg -L kiln' | grep kiln)
in_system 'apt-get -qq purge -y kiln' >"$work/log" 2>&1 || { tail "$work/log"; fail "the package cannot be removed"; }
for file in $files; do
  [ ! -e "$root$file" ] || fail "still there when the package is removed: $file"
done
