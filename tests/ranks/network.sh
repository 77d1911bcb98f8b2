#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a program as ranks on the nodes of a simulated slow network (network.c); RANKS_OF_NODES has the number of ranks
# of each node: network.sh NETWORK DELAYS_US LOST_OF_MILLION RANKS_OF_NODES MPIRUN [--recover] PROGRAM ARGUMENT ...
# (500,500,4500 and 2,1,1: two ranks on node 1, 1 ms from the one on node 2 and 5 ms from the one on node 3). The same
# KILN_NETWORK_SEED loses the same packets again, as far as TCP sends the same ones. None of its processes outlives it.
set -eu
network=$1 delays=$2 lost=$3 ranks=$4 mpirun=$5 recover=''
here=$(realpath "$(dirname "$0")")
shift 5
[ "${1:-}" != --recover ] || { recover=--recover && shift; }
command -v "$mpirun" >/dev/null || { echo "skipped: no mpirun (package openmpi-bin)"; exit 77; }
case $("$mpirun" --version 2>&1) in *HYDRA*) echo "skipped: needs mpirun of Open MPI"; exit 77 ;; esac
unshare --pid --mount-proc --fork nsenter --version >/dev/null ||
  { echo "skipped: namespaces are not permitted here"; exit 77; }
nodes=$(mktemp)
trap 'rm -f "$nodes"' EXIT
node=0 all=0
for count in $(echo "$ranks" | tr , ' '); do
  node=$((node + 1)) all=$((all + count))
  echo "10.77.0.$node slots=$count" >>"$nodes"
done
seed=${KILN_NETWORK_SEED:-$(date +%s)}
echo "delays $delays us, $lost of a million packets lost, KILN_NETWORK_SEED=$seed" >&2
export OMPI_MCA_orte_default_hostfile="$nodes" OMPI_MCA_plm_rsh_agent="$here/enter.sh" \
  OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=10.77.0.0/24 \
  OMPI_MCA_oob_tcp_if_include=10.77.0.0/24 OMPI_MCA_mca_base_env_list=KILN_NETWORK
# shellcheck disable=SC2086 # no word or one
timeout -k 5 110 unshare --pid --mount-proc --fork --kill-child "$network" "$delays" "$lost" "$seed" \
  "$here/run.sh" "$mpirun" $recover "$all" "$@"
