#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A training that is interrupted, over processes: resumed_stages.sh RUN.SH MPIRUN PROGRAM. Four stages train and save half
# way; four others go on from the file to the same bits; three go on to the same numbers.
set -eu
run=$1 mpirun=$2 program=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$run" "$mpirun" 4 "$program" begin "$folder"
"$run" "$mpirun" 4 "$program" resume "$folder"
"$run" "$mpirun" 3 "$program" resume "$folder"
