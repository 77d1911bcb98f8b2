# SPDX-License-Identifier: Apache-2.0
"""amp.py FILE: writes synthetic weights for the amplifier, and prints the expected output of a program that plays
the tone."""
import json
import math
import struct
import sys

hidden = 16
shapes = {
    "gru.weight_ih_l0": (3 * hidden, 1),
    "gru.weight_hh_l0": (3 * hidden, hidden),
    "gru.bias_ih_l0": (3 * hidden,),
    "gru.bias_hh_l0": (3 * hidden,),
    "out.weight": (1, hidden),
    "out.bias": (1,),
}
weights, header, data, step = {}, {}, b"", 0
for name, shape in shapes.items():
    values = [math.sin(step + i) / 2 for i in range(math.prod(shape))]
    step += len(values)
    header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * len(values)]}
    image = struct.pack(f"<{len(values)}f", *values)
    weights[name] = struct.unpack(f"<{len(values)}f", image)
    data += image
text = json.dumps(header).encode()
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + data)


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def gates(x, h):
    """Returns W_ih x + b_ih, W_hh h + b_hh of the reset gate, the update gate and the new value."""
    of_x = [w * x + b for w, b in zip(weights["gru.weight_ih_l0"], weights["gru.bias_ih_l0"])]
    rows = [weights["gru.weight_hh_l0"][i * hidden : (i + 1) * hidden] for i in range(3 * hidden)]
    return of_x, [dot(row, h) + b for row, b in zip(rows, weights["gru.bias_hh_l0"])]


h, squares = [0.0] * hidden, 0.0
for sample in range(1024):
    x = sample % 100 / 100 - 0.5
    of_x, of_h = gates(x, h)
    for i in range(hidden):
        reset = sigmoid(of_x[i] + of_h[i])
        update = sigmoid(of_x[hidden + i] + of_h[hidden + i])
        new = math.tanh(of_x[2 * hidden + i] + reset * of_h[2 * hidden + i])
        h[i] = (1 - update) * new + update * h[i]
    squares += (x + dot(weights["out.weight"], h) + weights["out.bias"][0]) ** 2
print(f"loudness {math.sqrt(squares / 1024):.5f}")
