#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The steps of a user who has the package of Kiln and a C++ compiler only, on a new Debian system: unpack, compile a
# spec, link, run; then with CMake find_package, and `kiln new`, `kiln tune`:
# bare_system.sh PACKAGES SOURCE SUITE g++|clang [FOLDER]
# Takes the archive that ./dev package wrote to PACKAGES. The system is installed in FOLDER/SUITE-COMPILER, or in a
# temporary folder.
set -eu
packages=$1 source=$2 suite=$3 compiler=$4 folder=${5:-}
skip() { echo "not run: $1"; exit 77; }
fail() { echo "bare_system: $1" >&2; exit 1; }
step() { echo "== $1"; }
[ "$(id -u)" = 0 ] || skip "a new system needs root"
command -v debootstrap >/dev/null || skip "there is no debootstrap"
archive=$(ls "$packages"/kiln-*-linux-"$(uname -m)".tar.xz 2>/dev/null) || skip "no package in $packages; ./dev package makes it"
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 2>/dev/null | head -n 1)
[ -n "$mirror" ] || skip "there is no mirror of Debian"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=${folder:-$work}/$suite-$compiler

step "$suite with $compiler"
if [ ! -e "$root/etc/debian_version" ]; then
  debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$work/log" 2>&1 || { tail "$work/log"; skip "no $suite at $mirror"; }
fi
# in_system COMMAND: runs it in the system. A mount namespace removes its mounts at the end.
in_system() {
  unshare --mount --propagation private sh -euc '
    mount -t proc proc "$1/proc"
    mount --rbind /dev "$1/dev"
    exec chroot "$1" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive sh -euc "$2"' sh "$root" "$1"
}
install() {
  cp /etc/resolv.conf /etc/hosts "$root/etc/" 2>/dev/null || true
  in_system "apt-get -qq install -y --no-install-recommends $*" >"$work/log" 2>&1 || { tail "$work/log"; fail "no packages $*"; }
}
in_system "command -v $compiler >/dev/null" || install "$compiler"
rm -rf "$root/home/user"
mkdir -p "$root/home/user"
cp "$archive" "$root/home/user/kiln.tar.xz"
cp -r "$source/tests/package/journey" "$root/home/user/ring"
cp -r "$source/examples/llama/king_james" "$root/home/user"
if ! in_system "command -v xz >/dev/null"; then
  install xz-utils
fi

step "unpack, compile, link, run"
begin=$(date +%s)
in_system 'cd /home/user
tar xf kiln.tar.xz
mv kiln-* "a folder"
PATH="/home/user/a folder/bin:$PATH"
kiln --version
cd ring
kiln compile ring.cpp -o made
kiln compile ring_train.cpp -o made
for program in train use; do cc -std=c11 -Imade $program.c made/libring*.a -lm -o $program; done
./train ring.safetensors
./use ring.safetensors'
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
