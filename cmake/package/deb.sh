#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# deb.sh PREFIX VERSION OUT [ARCHITECTURE]: packages an installed Kiln as OUT/kiln_VERSION_ARCHITECTURE.deb, in /usr. The
# package depends on the shared libraries that it needs, and on a C++ compiler, which compiles specs and links programs.
# For another architecture than this machine's, the C library must be the only one.
set -eu
prefix=$1 version=$2 out=$3
own=$(dpkg --print-architecture)
architecture=${4:-$own}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
mkdir -p "$work/root/DEBIAN" "$work/debian" "$out"
out=$(cd "$out" && pwd)
cp -r "$prefix" "$work/root/usr"
chmod -R u=rwX,go=rX "$work/root"
documents=$work/root/usr/share/doc/kiln
[ -e "$documents/copyright" ] || mv "$documents/LICENSE" "$documents/copyright" # the name in Debian

library=$(find "$work/root/usr/lib" -name libkiln_compiler.so)
[ -n "$library" ] || { echo "deb: there is no libkiln_compiler.so in $prefix" >&2; exit 1; }
printf 'Source: kiln\n\nPackage: kiln\nArchitecture: any\n' >"$work/debian/control"
if [ "$architecture" = "$own" ]; then
  libraries=$(cd "$work" && dpkg-shlibdeps -O --ignore-missing-info root/usr/bin/* "${library#"$work"/}" 2>/dev/null |
    sed -n 's/^shlibs:Depends=//p')
else
  newest=$(readelf -VW "$work"/root/usr/bin/* "$library" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1)
  libraries="libc6 (>= ${newest#GLIBC_})"
fi
# dpkg-shlibdeps does not reliably find LLVM's library, which has a symbolic link in llvm-22-dev.
if readelf -d "$library" | grep -q 'NEEDED.*libLLVM\.so\.22'; then
  libraries="$libraries, libllvm22"
fi
cat >"$work/root/DEBIAN/control" <<END
Package: kiln
Version: $version
Architecture: $architecture
Maintainer: The authors of Kiln
Section: devel
Priority: optional
Installed-Size: $(du -sk --apparent-size "$work/root/usr" | cut -f 1)
Depends: $libraries, g++ (>= 4:12) | c++-compiler
Recommends: cmake (>= 3.25), ninja-build | make, pkgconf
Suggests: g++-aarch64-linux-gnu, g++-riscv64-linux-gnu, clang-22, lld-22, wasi-libc, libclang-rt-22-dev-wasm32
Description: compiles transformer models to static libraries
 A model, written as a small C++20 program, becomes a static library and a
 header that any C or C++ program links and calls. This package has the
 language, the compiler, the command kiln, and kiln_add_library() for CMake.
END
dpkg-deb --root-owner-group -Zxz --build "$work/root" "$out" >/dev/null
