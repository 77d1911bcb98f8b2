# SPDX-License-Identifier: Apache-2.0
#
# Sourced by the checks that run on every compiler: `compilers` prints the installed ones, and reports the others.
compilers() {
  for compiler in g++ clang++-22 clang++-19; do
    if command -v "$compiler" > /dev/null; then
      echo "$compiler"
    else
      echo "skipped $compiler: not installed" >&2
    fi
  done
}
