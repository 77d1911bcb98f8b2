#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that the communicator adapters compile without warnings: the MPI adapter against each installed MPI, the NCCL
# adapter against the fake NCCL and, if installed, the real one: check_headers.sh INCLUDE FAKE_NCCL
set -eu
include=$1 fake=$2 tried=0
# shellcheck source=tests/header_modes.sh
. "$(dirname "$0")/../header_modes.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The adapters call C with casts in its style, and MPI and NCCL have no const buffers.
style="-Wno-cast-qual -Wno-pre-c23-compat -Wno-switch-default"

# try NAME COMM FOLDER: checks the adapter of library NAME, whose header is in FOLDER
try() {
  header="#include \"kiln/communicators/$1.h\""
  make="kiln_communicator_t make(kiln_$1_t *storage, $2 comm)"
  printf '%s\n' "$header" "$header" "$make;" "$make { return kiln_$1_communicator(storage, comm, 1); }" >"$work/source.c"
  tried=$((tried + 1))
  in_c 11 $style -Wno-declaration-after-statement -I"$include" -isystem "$3" "$work/source.c"
  in_cxx 11 $style -Wno-old-style-cast -I"$include" -isystem "$3" "$work/source.c"
}

for mpi in /usr/lib/*/openmpi/include /usr/include/*/mpich; do
  [ ! -e "$mpi/mpi.h" ] || try mpi MPI_Comm "$mpi"
done
for nccl in "$fake" /usr/include /usr/local/cuda/include; do
  [ ! -e "$nccl/nccl.h" ] || [ ! -e "$nccl/cuda_runtime.h" ] || try nccl ncclComm_t "$nccl"
done
echo "headers of $tried libraries"
