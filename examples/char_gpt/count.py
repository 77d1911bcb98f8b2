#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Computes bits per character of held-out text with PyTorch, with the weights of this folder: expected.json.

On Debian 12 (packages python3-torch, python3-numpy), from this folder: python3 count.py. The text is cut into
windows of 256 characters; characters 1 to 255 of each are predicted from their own window.
"""
import json
import math
import os
import re
import sys
from functools import partial

import torch
import torch.nn as nn
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../support"))
from layers import EncoderBlock  # noqa: E402
from training import read_safetensors, write_expected  # noqa: E402

LAYERS, WIDTH, HEADS, CONTEXT = 4, 128, 4, 256


class CharGpt(nn.Module):
    def __init__(self, vocabulary_size):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary_size, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        gelu = partial(F.gelu, approximate="tanh")
        self.h = nn.ModuleList(EncoderBlock(WIDTH, HEADS, 4 * WIDTH, gelu) for _ in range(LAYERS))
        self.ln_f = nn.LayerNorm(WIDTH)

    def forward(self, tokens):
        causal = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool).tril()
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        for block in self.h:
            x = block(x, causal)
        return self.ln_f(x) @ self.wte.weight.t()


@torch.no_grad()
def main():
    with open(os.path.join(HERE, "vocabulary.h")) as header, open(os.path.join(HERE, "heldout.txt")) as text:
        vocabulary = json.loads(re.search(r'vocabulary = (".*");', header.read())[1])
        windows = torch.tensor([vocabulary.index(c) for c in text.read()]).view(-1, CONTEXT)
    model = CharGpt(len(vocabulary)).eval()
    model.load_state_dict(read_safetensors(os.path.join(HERE, "char_gpt.safetensors"))[0])
    logits = torch.cat([model(part)[:, :-1] for part in windows.split(16)])
    characters = windows[:, 1:].flatten()
    bits = F.cross_entropy(logits.flatten(0, 1).double(), characters).item() / math.log(2)
    figures = {"bits_per_character": round(bits, 6), "characters": len(characters)}
    write_expected(os.path.join(HERE, "expected.json"), figures)
    print(f"{bits:.6f} bits per character over {len(characters)} characters")


if __name__ == "__main__":
    main()
