#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The steps of a user with the package of Kiln for aarch64, on a system for aarch64 that qemu emulates on this machine:
# unpack, compile specs, link, train, use; then libraries for other machines, and find_package:
# bare_aarch64.sh PACKAGES SOURCE [FOLDER]
# Takes the archive that ./dev package aarch64 wrote to PACKAGES. The system has the release of this machine's, and is in
# FOLDER/aarch64-g++ or in a temporary folder. Its packages are unpacked, not installed.
set -eu
packages=$1 source=$2 folder=${3:-}
. "$source/tests/package/new_system.sh"
archive=$(one_file "$packages/kiln-*-linux-aarch64.tar.xz") || skip "no package in $packages; ./dev package aarch64 makes it"
[ "$(uname -m)" != aarch64 ] || skip "this machine is for aarch64; bare_system.sh tests the package here"
[ "$(id -u)" = 0 ] || skip "a new system needs root"
command -v qemu-aarch64-static >/dev/null || skip "there is no qemu-aarch64-static; it is in qemu-user-static"
emulate="$source/tests/package/emulate.sh"
"$emulate" true 2>"$work/log" || skip "no emulation in a namespace, which Linux has since 6.7: $(head -n 1 "$work/log")"

step "a system"
system=${folder:-$work}/aarch64-g++
"$source/cmake/package/sysroot.sh" arm64 "$system" base-files bash cmake coreutils dash diffutils findutils g++ grep gzip \
  make mawk sed tar util-linux xz-utils >"$work/log" 2>&1 || { tail "$work/log"; skip "no packages for arm64"; }
root=$system/root
mkdir -p "$root/tmp" "$root/proc" "$root/dev"
# Names that packages make when they are installed.
for link in sh=dash awk=mawk cc=gcc c++=g++; do
  [ -e "$root/usr/bin/${link%=*}" ] || ln -s "${link#*=}" "$root/usr/bin/${link%=*}"
done

# in_system COMMANDS: runs them in the system.
in_system() {
  "$emulate" sh -euc '
    mount -t proc proc "$1/proc"
    mount --rbind /dev "$1/dev"
    exec chroot "$1" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -euc "$2"' sh "$root" "$1"
}
new_home "$source"
cp "$archive" "$root/home/user/kiln.tar.xz"

step "unpack, compile, link, run"
begin=$(date +%s)
train_model 'cd /home/user
tar xf kiln.tar.xz
mv kiln-* "a folder"
PATH="/home/user/a folder/bin:$PATH"' kiln
echo "from the archive to a trained model: $(($(date +%s) - begin)) s"
grep -q '"aarch64"' "$root/home/user/ring/out/mlp.manifest.json" || fail "the default target is not aarch64"

step "other machines"
in_system 'PATH="/home/user/a folder/bin:$PATH"
cd /home/user/ring
for target in aarch64-dotprod riscv64-v x86-64-v3 x86-64-v3-windows aarch64-macos wasm32 cuda; do
  kiln compile ring.cpp -o "$target" --target "$target" >/dev/null
  test -s "$target/libring.a" || { echo "no library for $target"; exit 1; }
done'

step "find_package"
in_system 'PATH="/home/user/a folder/bin:$PATH"
cd /home/user/ring
cmake -S . -B build -DCMAKE_PREFIX_PATH="/home/user/a folder" >/dev/null
cmake --build build >log || { cat log; exit 1; }
build/use ring.safetensors'
