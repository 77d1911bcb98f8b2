#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that the communicator adapters compile without warnings: the MPI adapter against each installed MPI, the NCCL
# adapter against the fake NCCL and, if installed, the real one: check_headers.sh INCLUDE FAKE_NCCL
set -eu
include=$1 fake=$2 tried=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
strict="-fsyntax-only -Wall -Wextra -Wpedantic -Werror -Wshadow -Wconversion"

# try NAME COMM FOLDER: checks the adapter of library NAME, whose header is in FOLDER
try() {
  header="#include \"kiln/communicators/$1.h\""
  make="kiln_communicator_t make(kiln_$1_t *storage, $2 comm)"
  printf '%s\n' "$header" "$header" "$make;" "$make { return kiln_$1_communicator(storage, comm, 1); }" >"$work/source.c"
  tried=$((tried + 1))
  for compiler in "gcc -std=c11" "clang-22 -std=c11" "g++ -std=c++17 -x c++" "clang++-22 -std=c++20 -x c++"; do
    command -v "${compiler%% *}" >/dev/null || { echo "skipped: ${compiler%% *} is not here"; continue; }
    echo "$compiler of $3"
    # shellcheck disable=SC2086 # a word a flag
    $compiler $strict -I"$include" -isystem "$3" "$work/source.c"
  done
}

for mpi in /usr/lib/*/openmpi/include /usr/include/*/mpich; do
  [ ! -e "$mpi/mpi.h" ] || try mpi MPI_Comm "$mpi"
done
for nccl in "$fake" /usr/include /usr/local/cuda/include; do
  [ ! -e "$nccl/nccl.h" ] || [ ! -e "$nccl/cuda_runtime.h" ] || try nccl ncclComm_t "$nccl"
done
echo "headers of $tried libraries"
