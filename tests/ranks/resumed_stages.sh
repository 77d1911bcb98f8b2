#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# An interrupted pipeline-parallel training: resumed_stages.sh RUN.SH MPIRUN PROGRAM. Four stages train and save
# halfway; four stages resume from the file and get the same bits; three stages resume and get the same numbers.
set -eu
run=$1 mpirun=$2 program=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$run" "$mpirun" 4 "$program" begin "$folder"
"$run" "$mpirun" 4 "$program" resume "$folder"
"$run" "$mpirun" 3 "$program" resume "$folder"
