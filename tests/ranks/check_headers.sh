#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The adapter for MPI compiles with all warnings, against each MPI that is here: check_headers.sh INCLUDE
set -eu
include=$1 tried=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
strict="-fsyntax-only -Wall -Wextra -Wpedantic -Werror -Wshadow -Wconversion"
printf '#include "kiln/communicators/mpi.h"\n#include "kiln/communicators/mpi.h"\n' >"$work/source.c"
printf '%s\n' 'kiln_communicator_t make(kiln_mpi_t *storage);' \
  'kiln_communicator_t make(kiln_mpi_t *storage) { return kiln_mpi_communicator(storage, MPI_COMM_WORLD, 1); }' \
  >>"$work/source.c"
for mpi in /usr/lib/*/openmpi/include /usr/include/*/mpich; do
  [ -e "$mpi/mpi.h" ] || continue
  tried=$((tried + 1))
  for compiler in "gcc -std=c11" "clang-22 -std=c11" "g++ -std=c++17 -x c++" "clang++-22 -std=c++20 -x c++"; do
    command -v "${compiler%% *}" >/dev/null || { echo "skipped: ${compiler%% *} is not here"; continue; }
    echo "$compiler of $mpi"
    # shellcheck disable=SC2086 # a word a flag
    $compiler $strict -I"$include" -isystem "$mpi" "$work/source.c"
  done
done
echo "headers of $tried MPIs"
