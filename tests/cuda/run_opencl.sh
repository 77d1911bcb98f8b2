#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run_opencl.sh PROGRAM: runs it, and again if it hangs. On a busy machine PoCL does so once in a while before its first
# kernel runs; twice in five runs of all tests, never in 400 of this one.
for attempt in 1 2 3; do
  timeout 60 "$1"
  status=$?
  [ $status -eq 124 ] || exit $status
  echo "attempt $attempt hung"
done
exit 1
