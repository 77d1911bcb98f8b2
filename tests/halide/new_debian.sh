#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds Kiln in a new Debian system, with that system's Halide, and runs the tests of a label there:
# new_debian.sh SOURCE SUITE LABEL [FOLDER]
# The system and the build are kept in FOLDER/SUITE-halide, where the next label goes on, or in a temporary folder.
# The caller's variables that choose tests, such as KILN_TARGETS, are passed on. ./dev installs no optional parts.
set -eu
source=$1 suite=$2 label=$3 folder=${4:-}
. "$source/tests/package/new_system.sh"
for name in FUZZ_GRAPHS JOBS SEED TARGETS TEST_TARGETS TEST_TURNS; do
  value=$(printenv "KILN_$name" || true)
  [ -z "$value" ] || environment="$environment KILN_$name=$value"
done

step "$suite"
open_system "$suite" "$suite-halide" "$folder"
kiln=$root/home/kiln
mkdir -p "$kiln"
find "$kiln" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
# tar keeps times, so that a build goes on.
(cd "$source" && tar --exclude=./.git --exclude=./build -cf - .) | tar -C "$kiln" -xf -

step "build the tests of $label"
programs=tests/$label/all
[ "$label" != models ] || programs="$programs examples/all" # whose programs are tests, too
in_system "cd /home/kiln
./dev build --without cross,mpi,node,opencl,qemu,wine $programs" >"$work/log" 2>&1 ||
  { tail -n 40 "$work/log"; fail "the build failed"; }
grep -h "Halide_DIR:PATH=" "$kiln/build/dev/CMakeCache.txt"

step "run them"
in_system "cd /home/kiln
export KILN_SEED=\${KILN_SEED:-\$(./dev seed)}
ctest --test-dir build/dev -L '^$label\$' -LE '^nightly\$' --no-tests=error --output-on-failure \
  -j \${KILN_JOBS:-\$(nproc)}"
