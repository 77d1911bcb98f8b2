# SPDX-License-Identifier: Apache-2.0
"""write_weights.py FILE: writes weights of the model, a safetensors file, with which the rows (1, 2, 3, 4) and (1,
0, 0, 0) have the scores (30, 70, 110) and (1, 5, 9)."""

import json
import struct
import sys

weight, bias = struct.pack("<12f", *range(1, 13)), struct.pack("<3f", 0, 0, 0)
head = json.dumps({
    "fc.weight": {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, len(weight)]},
    "fc.bias": {"dtype": "F32", "shape": [3], "data_offsets": [len(weight), len(weight) + len(bias)]},
}).encode()
head += b" " * (-len(head) % 8)
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<Q", len(head)) + head + weight + bias)
