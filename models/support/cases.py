# SPDX-License-Identifier: Apache-2.0
"""Shared by the oracles of the families: weights by name, files of cases, attention, positions, a picture."""
import json
import math
import os
import sys

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../../tests/models/oracle"))
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

    def write(folder):
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


def turn(x, heads, base, turned=None, scaled=lambda frequencies: frequencies, amplitude=1):
    """Rotary positions: in the first `turned` numbers of a head, the two halves are the parts of complex numbers."""
    x = x.reshape(x.shape[0], heads, -1)
    turned = turned or x.shape[-1]
    half = turned // 2
    angles = torch.arange(x.shape[0]).double()[:, None] * scaled(base ** (-torch.arange(half).double() / half))
    cos, sin = amplitude * angles.cos()[:, None], amplitude * angles.sin()[:, None]
    a, b = x[..., :half], x[..., half:turned]
    return torch.cat((a * cos - b * sin, b * cos + a * sin, x[..., turned:]), -1).flatten(1)


SIDE, PATCH = 16, 4
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
LEVELS = torch.tensor(counter.tokens("levels", (SIDE, SIDE, 3), 256))
PICTURE = b"P6\n16 16\n255\n" + bytes(LEVELS.flatten().tolist())


def pixels(mean, deviation):
    """Returns the image as normalised [channels, rows, columns]."""
    levels = LEVELS.double() / 255
    return ((levels - torch.tensor(mean).double()) / torch.tensor(deviation).double()).permute(2, 0, 1)


PREPROCESSOR = {
    "do_normalize": True,
    "do_rescale": True,
    "do_resize": True,
    "image_mean": MEAN,
    "image_std": DEVIATION,
    "size": {"height": SIDE, "width": SIDE},
}
PICTURES = (("picture.ppm", PICTURE),)
PREPROCESSORS = (("preprocessor_config.json", json.dumps(PREPROCESSOR, indent=2) + "\n"),)
