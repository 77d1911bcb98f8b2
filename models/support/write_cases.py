# SPDX-License-Identifier: Apache-2.0
"""Writes models/*/cases: small checkpoints in the formats of released models, and PyTorch's results for them in f64.

A case has its config.json, the tensors of its model.safetensors (tensors.txt: name, element type, dimensions), and
golden.txt: a line for each input, then the numbers of the result. Weights are those of
tests/models/oracle/counter.py. The cases of a family are in its oracle.py. All models are implemented only with
torch's functions, from the papers and the released tensor names.
  python3 write_cases.py [CASE...]
"""
import glob
import importlib.util
import os
import sys

from cases import CASES, HERE


def folders():
    """Loads the oracle of each family; returns the folders of all cases by their names."""
    found = {}
    for path in sorted(glob.glob(os.path.join(HERE, "../*/oracle.py"))):
        family = os.path.dirname(path)
        spec = importlib.util.spec_from_file_location(f"{os.path.basename(family)}_oracle", path)
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
        found.update((name, os.path.join(family, "cases", name)) for name in CASES if name not in found)
    return found


def main():
    known = folders()
    for name in sys.argv[1:] or known:
        CASES[name](known[name])


if __name__ == "__main__":
    main()
