#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a program as RANKS ranks on this machine, for any number of CPUs and any user:
# run.sh MPIRUN [--recover] RANKS PROGRAM ARGUMENT ...
#   - as root, which containers use and for which Open MPI requires two confirmations
#   - more ranks than CPUs; a waiting rank yields its CPU
#   - copies between ranks go through shared memory only, since containers forbid the faster mechanisms
#   - --recover: a rank that dies, or ends without MPI_Finalize, does not end the others; the exit status is then 0
set -eu
mpirun=$1 recover=
shift
[ "$1" != --recover ] || { recover=--enable-recovery && shift; }
ranks=$1
shift
command -v "$mpirun" >/dev/null || { echo "skipped: no mpirun (package openmpi-bin)"; exit 77; }
case $("$mpirun" --version 2>&1) in
*HYDRA*)
  [ -z "$recover" ] || { echo "skipped: needs mpirun of Open MPI; with MPICH one rank that dies ends all"; exit 77; }
  exec "$mpirun" -np "$ranks" "$@"
  ;;
*)
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  exec "$mpirun" --oversubscribe --bind-to none $recover --mca mpi_yield_when_idle 1 \
    --mca btl_vader_single_copy_mechanism none -np "$ranks" "$@"
  ;;
esac
