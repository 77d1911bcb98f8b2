#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that compiling a large model needs little memory: compile_large.py GENERATOR NAME GIBIBYTES

Compiles without the cache and fails if a process used more than GIBIBYTES of memory, or if no library was written. The
test's TIMEOUT limits the time.
"""
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

generator, name, most = sys.argv[1], sys.argv[2], float(sys.argv[3])
with tempfile.TemporaryDirectory() as folder:
    start = time.monotonic()
    subprocess.run([generator, "compile", "--name", name, "--output-dir", folder, "--no-cache"], check=True)
    seconds = time.monotonic() - start
    archive = (pathlib.Path(folder) / f"lib{name}.a").stat().st_size
largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
print(f"{name}: {seconds:.1f} s, the largest process {largest:.2f} GiB, archive {archive / 1e6:.2f} MB")
if archive == 0 or largest > most:
    sys.exit(f"{name} took more than {most} GiB")
