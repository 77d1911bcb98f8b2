#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Replaces ssh for mpirun: runs a command on a node of network.c: enter.sh ADDRESS COMMAND
set -eu
node=${1##*.}
shift
fds=/proc/$KILN_NETWORK/fd
exec nsenter --net="$fds/$((99 + node))" --uts="$fds/$((109 + node))" sh -c "$*"
