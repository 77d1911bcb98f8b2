#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that a program that writes tokens writes the same ones on a GPU and, without a driver, on the CPU, and reports
# the device: run_cuda_demo.sh PROGRAM DRIVER. KILN_CUDA_DRIVER names another driver to run it on.
set -eu
program=$1 driver=${KILN_CUDA_DRIVER:-$2}
fail() { echo "run_cuda_demo: $1" >&2; exit 1; }

on_gpu=$(KILN_CUDA_DRIVER=$driver "$program" random 5 17 3 60)
on_cpu=$(KILN_CUDA_DRIVER=/nowhere/libcuda.so.1 "$program" random 5 17 3 60 2>&1)
printf '%s\n%s\n' "$on_gpu" "$on_cpu"
case $on_gpu in *"on the GPU: 4 tokens read"*) ;; *) fail "the GPU must be taken where there is one" ;; esac
case $on_cpu in
*"/nowhere/libcuda.so.1"*"running on the CPU"*"on the CPU: 4 tokens read"*) ;;
*) fail "a program without a driver must say so and go on" ;;
esac
text=$(echo "$on_gpu" | grep '^5 17 3 60 ')
[ "$(echo "$text" | wc -w)" = 36 ] || fail "32 tokens must be written"
[ "$text" = "$(echo "$on_cpu" | grep '^5 17 3 60 ')" ] || fail "both must write the same tokens"
