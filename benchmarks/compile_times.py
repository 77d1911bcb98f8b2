#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reports the kernels that take longest to compile, for each generator below a folder.

  benchmarks/compile_times.py build/dev/examples
  benchmarks/compile_times.py build/dev/examples/llama --limit 2 -- --weights "int4<32>" --activations int8

Each generator compiles its library for its default targets without the cache, one kernel at a time, so that kernels do
not wait for each other. Arguments after -- are the generator's. The status is 1 if a kernel takes longer than --limit
seconds, and 2 if a library is not compiled."""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

STAGE = re.compile(r" *([0-9.]+) s  (.+)")


def compiled(generator, options):
    """Returns the seconds of all stages and those of the slowest kernels, by "KERNEL of TARGET", or an error."""
    with tempfile.TemporaryDirectory() as folder:
        command = [generator, "compile", "--time", "--no-cache", "-j1", "-o", folder, *options]
        run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        return None, run.stderr.strip() or f"status {run.returncode}"
    times = [(float(match[1]), match[2]) for match in map(STAGE.fullmatch, run.stdout.splitlines()) if match]
    total = sum(seconds for seconds, stage in times if stage == "total")
    kernels = [(seconds, stage.removeprefix("kernel ")) for seconds, stage in times if stage.startswith("kernel ")]
    return (total, kernels), None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="folder with generators, also in folders below it")
    parser.add_argument("--limit", type=float, help="fail if a kernel takes longer, in seconds")
    parser.add_argument("--kernels", type=int, default=3, help="kernels to show for each generator, at most 5")
    parser.add_argument("options", nargs="*", help="options of the generators, after --")
    arguments = parser.parse_args()
    generators = sorted(path for path in arguments.folder.rglob("*_generator") if path.is_file())
    if not generators:
        sys.exit(f'error: {arguments.folder}: no generators; expected files with names that end with "_generator"')
    status = 0
    for generator in generators:
        result, error = compiled(generator, arguments.options)
        name = generator.name.removesuffix("_generator")
        if error:
            print(f"{name}: error: {error}", flush=True)
            status = 2
            continue
        total, kernels = result
        print(f"{name}: {total:.1f} s", flush=True)
        for seconds, kernel in kernels[: arguments.kernels]:
            is_slow = arguments.limit is not None and seconds > arguments.limit
            print(f"  {seconds:6.2f} s  {kernel}{'  above the limit' if is_slow else ''}", flush=True)
            status = status or int(is_slow)
    sys.exit(status)


if __name__ == "__main__":
    main()
