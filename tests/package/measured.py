#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a tuning file with a measurement of every kernel of a generator at its default configuration:
measured.py GENERATOR TARGETS MICROSECONDS FILE"""
import json
import re
import subprocess
import sys

generator, targets, microseconds, path = sys.argv[1:]
manifest = json.loads(subprocess.run([generator, "inspect", "--manifest", "--target", targets], check=True, capture_output=True).stdout)
with open(path, "w") as file:
    print("kiln tuning 1", file=file)
    for target in manifest["targets"]:
        for kernel in target["kernels"]:
            extents = re.sub(r"\d+\.\.", "", kernel["bounds"])
            print(f"{kernel['strategy']} {kernel['structure']} {kernel['shape']} {kernel['bounds']} at={extents} "
                  f"{target['target']}/c2/l1:32K/l2:1M/l3:32M threads=1 | {kernel['schedule'] or '-'} | {microseconds}us n=5", file=file)
