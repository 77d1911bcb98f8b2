#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# packages.sh BUILD DOCS OUT: makes the folder OUT/kiln-VERSION-linux-ARCHITECTURE of a build with KILN_STATIC and of the
# documentation site, and of that folder an archive, a Debian package and, if there is npm, a package for npm. The
# architecture is that of the build. The same files give the same bytes: SOURCE_DATE_EPOCH, the time of the last commit
# unless set, is the time of all files.
set -eu
build=$1 docs=$2 out=$3
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$source" log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
sysroot=$(sed -n 's/^KILN_SYSROOT:PATH=//p' "$build/CMakeCache.txt") # of a build by aarch64.cmake
architecture=$(uname -m) tools=
[ -z "$sysroot" ] || architecture=aarch64 tools=aarch64-linux-gnu-
case $architecture in # the filter of machine code, and Debian's name
aarch64) filter=arm64 debian=arm64 ;;
*) filter=x86 debian=$(dpkg --print-architecture) ;;
esac
name=kiln-$version-linux-$architecture
umask 022
mkdir -p "$out"
out=$(cd "$out" && pwd)
tree=$out/$name
rm -rf "$tree" "$out"/kiln*.tar.xz "$out"/kiln*.deb "$out"/kiln*.tgz # also those of other versions

cmake --install "$build" --prefix "$tree" >/dev/null
${tools}strip --strip-unneeded --remove-section=.comment "$tree"/bin/* "$tree"/lib/*.so
"$here/check_static.sh" "$tree"

documents=$tree/share/doc/kiln
mv "$documents/copyright" "$documents/LICENSE"
cp "$source/CHANGELOG.md" "$documents"
cp -r "$docs/html" "$documents/html"
rm -rf "$documents/html/.buildinfo" "$documents/html/.doctrees"
"$here/parts.py" "$version" "$documents" "$sysroot"

tar -C "$out" --sort=name --format=gnu --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
  --mtime="@$SOURCE_DATE_EPOCH" -cf - "$name" |
  # The number of threads does not change the bytes of blocks, but one thread writes no sizes of blocks.
  xz "--$filter" --lzma2=preset=9e --block-size=64MiB --threads=2 >"$out/$name.tar.xz"
"$here/deb.sh" "$tree" "$version" "$out" "$debian"
if command -v npm >/dev/null; then
  "$here/npm.sh" "$tree" "$version" "$out" "$architecture"
fi
cp "$here/Containerfile" "$out"
cd "$out"
sha256sum kiln*.tar.xz kiln*.deb $(ls kiln*.tgz 2>/dev/null) >SHA256SUMS
ls -s --block-size=kB kiln*.tar.xz kiln*.deb $(ls kiln*.tgz 2>/dev/null)
