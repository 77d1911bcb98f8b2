#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# halide.sh FOLDER [SYSROOT]: builds Halide 14 as a static library, FOLDER/libHalide14.a and FOLDER/include, from the source
# of Debian's package and with the code generators that Kiln uses. Debian has the shared library only. With a folder of
# sysroot.sh it is built for aarch64.
set -eu
version=14.0.0-3
cross=
if [ -n "${2:-}" ]; then
  cross="--toolchain $(cd "$(dirname "$0")" && pwd)/aarch64.cmake -DKILN_SYSROOT=$2"
fi
llvm=${2:-}/usr/lib/llvm-14
mkdir -p "$1"
cd "$1"
[ "$(cat version 2>/dev/null)" = "$version" ] && exit 0

if [ ! -d source ]; then
  # The machine's own sources of packages, as sources of source packages.
  mkdir -p apt/lists/partial apt/cache/archives/partial apt/sources
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
    [ -e "$file" ] && sed 's/^Types: deb$/Types: deb-src/; s/^deb /deb-src /' "$file" >"apt/sources/$(basename "$file")"
  done
  from="-q -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts=$PWD/apt/sources -o Dir::State::Lists=$PWD/apt/lists
    -o Dir::Cache=$PWD/apt/cache -o APT::Sandbox::User=$(id -un)"
  apt-get $from update
  apt-get $from source --download-only halide=$version
  dpkg-source --no-check -x halide_$version.dsc source
fi

# The bitcode of the run time names its source files, and the folder in which it was compiled. Relative names make Halide
# the same in each folder.
sed -i 's|"$<SHELL_PATH:${SOURCE}>"|-ffile-compilation-dir=. "../../../source/src/runtime/${i}.cpp"|' \
  source/src/runtime/CMakeLists.txt

# The settings of Debian's package, but for what Kiln does not use. TARGET_WEBASSEMBLY would bring an interpreter;
# WITH_WEBASSEMBLY is the code generator.
[ -f build/build.ninja ] || cmake -G Ninja -S source -B build $cross -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
  -DCMAKE_CXX_FLAGS_RELEASE="-O2 -DNDEBUG" \
  -DCMAKE_C_COMPILER=clang-14 -DCMAKE_CXX_COMPILER=clang++-14 -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
  -DCMAKE_CXX_FLAGS="-w -ffunction-sections -fdata-sections -DWITH_WEBASSEMBLY -ffile-prefix-map=$PWD=halide14" \
  -DHalide_REQUIRE_LLVM_VERSION=14 -DLLVM_DIR="$llvm/lib/cmake/llvm" -DHalide_SHARED_LLVM=OFF \
  -DHalide_ENABLE_RTTI=ON -DHalide_ENABLE_EXCEPTIONS=ON -DHalide_WITH_INTROSPECTION=OFF \
  -DTARGET_AMDGPU=OFF -DTARGET_HEXAGON=OFF -DTARGET_MIPS=OFF -DTARGET_POWERPC=OFF -DTARGET_WEBASSEMBLY=OFF \
  -DTARGET_OPENCL=OFF -DTARGET_METAL=OFF -DTARGET_D3D12COMPUTE=OFF -DTARGET_OPENGLCOMPUTE=OFF \
  -DWITH_TESTS=OFF -DWITH_PYTHON_BINDINGS=OFF -DWITH_TUTORIALS=OFF -DWITH_DOCS=OFF -DWITH_UTILS=OFF
cmake --build build -j "${KILN_JOBS:-$(nproc)}" --target Halide
cp build/src/libHalide14.a .
cp -r build/include .
echo "$version" >version
