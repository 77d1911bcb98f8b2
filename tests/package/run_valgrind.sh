#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a program under valgrind, which must find no errors: run_valgrind.sh PROGRAM ARGUMENTS... Skipped (status 77) if
# valgrind is not installed.
command -v valgrind >/dev/null || { echo "skipped: valgrind is not installed"; exit 77; }
exec valgrind --quiet --error-exitcode=9 --leak-check=full --show-leak-kinds=all --errors-for-leak-kinds=definite,indirect "$@"
