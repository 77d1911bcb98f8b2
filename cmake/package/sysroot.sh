#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# sysroot.sh ARCHITECTURE FOLDER PACKAGE ...: unpacks these packages of this machine's release of Debian, and those that
# they depend on, for another architecture (arm64) in FOLDER/root, against which Kiln is cross-built. They are not
# installed: no program of them runs. FOLDER/root/var/lib/dpkg lists them.
set -eu
architecture=$1
mkdir -p "$2"
cd "$2"
shift 2
[ "$(cat packages 2>/dev/null)" = "$*" ] && exit 0

rm -rf root apt/cache # with packages of an earlier version
mkdir -p apt/lists/partial apt/cache/archives/partial root/usr/bin root/usr/lib root/usr/sbin root/var/lib/dpkg
for name in bin lib sbin; do ln -s usr/$name root/$name; done
ln -s usr/include root/include # clang names C++ headers as lib/gcc/.../../include/c++, and ninja drops the dots
: >apt/status
# The machine's own sources of packages, but not its state.
from="-q -o APT::Architecture=$architecture -o APT::Architectures=$architecture -o Dir::State::Lists=$PWD/apt/lists
  -o Dir::State::status=$PWD/apt/status -o Dir::Cache=$PWD/apt/cache -o APT::Sandbox::User=$(id -un)
  -o APT::Keep-Downloaded-Packages=true -o DPkg::Post-Invoke= -o APT::Update::Post-Invoke="
apt-get $from update
apt-get $from install --download-only -y --no-install-recommends "$@"

for file in apt/cache/archives/*.deb; do
  dpkg-deb --fsys-tarfile "$file" | tar -C root --keep-directory-symlink -xf -
  { dpkg-deb --field "$file" && echo "Status: install ok installed" && echo; } >>root/var/lib/dpkg/status
done
# What runs during the build is the build machine's.
for version in 14 22; do
  for program in root/usr/lib/llvm-$version/bin/*; do
    own=/usr/lib/llvm-$version/bin/$(basename "$program")
    if [ -e "$own" ]; then ln -sf "$own" "$program"; fi
  done
done
rm -r apt/cache
echo "$*" >packages
