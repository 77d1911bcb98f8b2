# SPDX-License-Identifier: Apache-2.0
"""Shared by the cases: their weights by name, their output files, attention."""
import json
import math
import os
import sys

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../../models/oracle"))
import counter  # noqa: E402

IDS = ([5], [3, 17, 60, 2, 41, 9, 33], [(7 * i + 11) % 67 for i in range(19)])
CASES = {}


class Weights:
    """Returns a tensor by its name and dimensions, and records it for tensors.txt."""

    def __init__(self, prefix="", element="f32"):
        self.prefix, self.element, self.known = prefix, element, {}

    def __call__(self, name, *shape):
        name = self.prefix + name
        self.known[name] = shape
        values = torch.from_numpy(counter.weight(name, shape))
        if self.element == "bf16":
            values = values.bfloat16()
        return values.double()

    def linear(self, name, out, inputs, bias=True):
        return self(name + ".weight", out, inputs), self(name + ".bias", out) if bias else None

    def norm(self, name, width):
        return self(name + ".weight", width), self(name + ".bias", width)


def case(name, config, weights, inputs, run, files=()):
    """Registers a case; `run(weights, input)` returns the result for an input."""

    def write():
        folder = os.path.join(HERE, "../cases", name)
        os.makedirs(folder, exist_ok=True)
        lines = []
        for each in inputs:
            numbers = run(weights, each).flatten().tolist()
            lines.append(each if isinstance(each, str) else " ".join(map(str, each)))
            lines.append(" ".join(f"{number:.9g}" for number in numbers))
        shapes = [f"{key} {weights.element} {' '.join(map(str, shape))}" for key, shape in weights.known.items()]
        for file, content in (
            ("config.json", json.dumps(config, indent=2) + "\n"),
            ("tensors.txt", "\n".join(shapes) + "\n"),
            ("golden.txt", "\n".join(lines) + "\n"),
            *files,
        ):
            with open(os.path.join(folder, file), "wb" if isinstance(content, bytes) else "w") as f:
                f.write(content)

    CASES[name] = write


def attend(q, k, v, heads, shared=None, causal=False):
    """Softmax attention of [tokens, heads * width]; each key and value head serves heads / shared query heads."""
    tokens, shared = q.shape[0], shared or heads
    q, k, v = (x.reshape(x.shape[0], n, -1).transpose(0, 1) for x, n in ((q, heads), (k, shared), (v, shared)))
    k, v = (x.repeat_interleave(heads // shared, 0) for x in (k, v))
    scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])
    if causal:
        scores = scores.masked_fill(torch.ones(tokens, tokens).triu(1).bool(), -math.inf)
    return (scores.softmax(-1) @ v).transpose(0, 1).reshape(tokens, -1)
