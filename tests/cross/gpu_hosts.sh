#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that all objects of a library for GPUs are for aarch64, links it into a C program and runs that by an emulator:
# without a driver on the CPU, with the fake driver on the GPU; the program compares the results itself:
# gpu_hosts.sh ARCHIVE SOURCE DRIVER COMPILER EMULATOR...
set -eu
archive=$1 source=$2 driver=$3 compiler=$4
shift 4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "gpu_hosts: $1" >&2; exit 1; }

machines=$(readelf -h "$archive" | sed -n 's/^ *Machine: *//p' | sort -u)
[ "$machines" = AArch64 ] || fail "machine of the objects: expected AArch64, got $machines"
grep -q '\.target sm_80' "$archive" || fail "device code: expected PTX for sm_80, got none"
"$compiler" -std=c89 -Wall -Wextra -Wpedantic -Werror -O1 -I "$(dirname "$archive")" "$source" "$archive" -lm -o "$work/program"

# says DRIVER PLACE EMULATOR...: the program must end with success and name that place.
says() {
  chosen=$1 place=$2
  shift 2
  said=$(KILN_CUDA_DRIVER=$chosen "$@" "$work/program") || fail "the program failed: $said"
  echo "$said"
  case $said in
  "largest error "*"$place") ;;
  *) fail "device: expected $place, got $said" ;;
  esac
}
says /nowhere/libcuda.so.1 "on the CPU" "$@"
says "$driver" "on a GPU" "$@"
