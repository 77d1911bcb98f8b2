#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# try.sh LANGUAGE FOLDER: builds and runs the program of a language with the library that
# `kiln compile spec.cpp --shared --bindings python,rust -o FOLDER` wrote. Exits with 77 if there are no tools for it.
set -eu
language=$1 folder=$(cd "$2" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
need() { command -v "$1" >/dev/null || { echo "skipped: there is no $1, of $2"; exit 77; }; }

cp "$here"/* "$work"
cp "$folder"/scorer.* "$folder/libscorer.so" "$work"
cd "$work"
LD_LIBRARY_PATH=$folder
export LD_LIBRARY_PATH
need python3 python3
python3 write_weights.py weights.safetensors
case $language in
python)
  python3 main.py weights.safetensors >out
  ;;
rust)
  need rustc rustc
  rustc --edition 2021 -D warnings -O -L "$folder" -l scorer main.rs -o main
  ./main weights.safetensors >out
  ;;
go)
  need go golang-go
  GOCACHE=$work/cache GOFLAGS=-mod=mod GO111MODULE=off CGO_CFLAGS="-I$folder" CGO_LDFLAGS="-L$folder" go build -o main main.go
  ./main weights.safetensors >out
  ;;
csharp)
  need mcs mono-mcs
  need mono mono-runtime
  mcs -out:Program.exe Program.cs
  mono Program.exe weights.safetensors >out
  ;;
java)
  need javac default-jdk-headless
  jna=/usr/share/java/jna.jar
  [ -e $jna ] || { echo "skipped: there is no $jna, of libjna-java"; exit 77; }
  javac -cp $jna Main.java
  java -cp $jna:. "-Djna.library.path=$folder" Main weights.safetensors >out
  ;;
swift)
  need swiftc "swift, which Debian 12 does not have"
  swiftc -I . -L "$folder" main.swift -o main
  ./main weights.safetensors >out
  ;;
*)
  echo "try.sh: there is no language $language"
  exit 1
  ;;
esac
printf 'refused: true\nscores: 30 70 110 1 5 9\n' >expected
tr 'T' 't' <out | diff expected - || exit 1
cat out
