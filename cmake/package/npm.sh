#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# npm.sh PREFIX VERSION OUT ARCHITECTURE: packages an installed Kiln as OUT/kiln-compiler-VERSION.tgz for npm. `npm
# install` of it adds the commands to node_modules/.bin.
set -eu
prefix=$1 version=$2 out=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
mkdir -p "$out"
out=$(cd "$out" && pwd)
cp -r "$prefix" "$work/package"
rm -rf "$work/package/share/doc/kiln/html" # npm shows the README only
case $4 in
aarch64) cpu=arm64 ;;
*) cpu=x64 ;;
esac
cat >"$work/package/package.json" <<END
{
  "name": "kiln-compiler",
  "version": "$version",
  "description": "Compiles transformer models, written in C++, to static libraries",
  "license": "Apache-2.0 WITH LLVM-exception",
  "os": ["linux"],
  "cpu": ["$cpu"],
  "libc": ["glibc"],
  "bin": {"kiln": "bin/kiln", "kiln-diagnose": "bin/kiln-diagnose"},
  "files": ["bin", "include", "lib", "share"]
}
END
cat >"$work/package/README.md" <<END
# Kiln $version

Kiln compiles transformer models to static libraries. It needs Linux with glibc 2.34 or newer and a C++20 compiler:

    npx kiln compile spec.cpp -o out
    npx kiln new DIRECTORY

CMake finds it with \`-DCMAKE_PREFIX_PATH=node_modules/kiln-compiler\`. The licences of its parts are in
\`share/doc/kiln/licenses\`.
END
(cd "$work/package" && npm pack --silent --pack-destination "$out" >/dev/null)
