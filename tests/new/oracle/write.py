# SPDX-License-Identifier: Apache-2.0
"""Writes ../cases: small checkpoints in the formats of released models, and PyTorch's results for them in f64.

A case has its config.json, the tensors of its model.safetensors (tensors.txt: name, element type, dimensions), and
golden.txt: a line for each input, then the numbers of the result. Weights are those of
tests/models/oracle/counter.py. All models here are implemented only with torch's functions, from the papers and the
released tensor names.
  python3 write.py [CASE...]
"""
import sys

import decoders  # noqa: F401
import encoders  # noqa: F401
import pictures  # noqa: F401
import speech  # noqa: F401
import translators  # noqa: F401
from common import CASES


def main():
    for name in sys.argv[1:] or CASES:
        CASES[name]()


if __name__ == "__main__":
    main()
