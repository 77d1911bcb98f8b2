#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks the Debian package of an installed build: its fields, its files, and its use: deb.sh BUILD SOURCE VERSION
set -eu
build=$1 source=$2 version=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
step() { echo "== $1"; }
fail() { echo "deb: $1" >&2; exit 1; }
command -v dpkg-shlibdeps >/dev/null || { echo "skipped: there is no dpkg-shlibdeps"; exit 77; }

step "package"
cmake --install "$build" --prefix "$work/tree" --strip >/dev/null
"$source/cmake/package/deb.sh" "$work/tree" "$version" "$work"
package=$work/kiln_${version}_$(dpkg --print-architecture).deb
ls -s --block-size=KiB "$package"

step "fields"
field() { dpkg-deb -f "$package" "$1"; }
for name in Package Version Architecture Maintainer Section Description Depends Recommends Suggests; do
  [ -n "$(field $name)" ] || fail "the field $name is missing"
done
depends=" $(field Depends | sed 's/([^)]*)//g; s/[,|]//g; s/  */ /g') "
echo "Depends:$depends"
for name in libc6 "libfmt[0-9]*" libgcc-s1 "libhalide[0-9]*" libllvm22 libmlir-22 libstdc++6 g++ c++-compiler; do
  case $depends in
  *" "$name" "*) ;; # a pattern, since the version depends on the distribution
  *) fail "the package must depend on $name" ;;
  esac
done

step "files"
dpkg-deb -x "$package" "$work/root"
prefix=$work/root/usr
library=$(cd "$prefix" && find lib* -name libkiln_compiler.so)
folder=$(dirname "$library")
for file in bin/kiln bin/kiln-diagnose include/kiln/dsl.h include/kiln/ops.def include/kiln/generator.h include/kiln/runtime.h \
  "$folder/cmake/Kiln/KilnConfig.cmake" "$folder/cmake/Kiln/KilnAddLibrary.cmake" "$folder/pkgconfig/kiln.pc" \
  share/doc/kiln/copyright share/kiln/tools/new/templates/CMakeLists.txt.in share/kiln/models/llama/llama.h; do
  [ -s "$prefix/$file" ] || fail "the package must have usr/$file"
done
stray=$(cd "$work/root" && find . -type f | grep -vE "^\./usr/(bin/kiln(-diagnose)?|include/kiln/.*|share/doc/kiln/.*|share/kiln/.*|$folder/(libkiln_compiler\.so|(cmake/Kiln|pkgconfig)/.*))$") &&
  fail "the package must not have $stray"
wrong=$(dpkg-deb -c "$package" | grep -vE '^(drwxr-xr-x|-rw-r--r--|-rwxr-xr-x) root/root ') &&
  fail "all must be root's, and for everyone to read: $wrong"
if readelf -d "$prefix/bin/kiln" "$prefix/$library" | grep -E 'R(UN)?PATH' | grep -F "$build"; then
  fail "libraries are looked for in the build tree"
fi

step "find_package"
cmake -G Ninja -S "$source/tests/package/consumer" -B "$work/consumer" -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_CXX_COMPILER=g++ -DPAIR_SPEC="$source/tests/package/pair.cpp" >/dev/null
cmake --build "$work/consumer" >"$work/log" || { cat "$work/log"; exit 1; }
grep -qF "Kiln_DIR:PATH=$prefix/" "$work/consumer/CMakeCache.txt" || fail "another Kiln was found"
"$work/consumer/consumer"

step "pkg-config"
command -v pkg-config >/dev/null || { echo "skipped: there is no pkg-config"; exit 0; }
export PKG_CONFIG_PATH="$prefix/$folder/pkgconfig"
found=$(pkg-config --modversion kiln)
[ "$found" = "$version" ] || fail "kiln.pc must be of version $version, got $found"
g++ -std=c++20 $(pkg-config --cflags kiln) "$source/tests/package/pair.cpp" $(pkg-config --libs kiln) -o "$work/generator"
export LD_LIBRARY_PATH="$prefix/$folder"
"$work/generator" inspect --interface
[ -x "$(pkg-config --variable=command kiln)" ] || fail "kiln.pc must name the command"
