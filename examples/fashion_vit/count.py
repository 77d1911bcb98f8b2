#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts with PyTorch how many of Fashion-MNIST's 10,000 test images the weights of this folder classify correctly.

Writes expected.json. On Debian 12 (packages dataset-fashion-mnist, python3-torch, python3-numpy), from this folder:
python3 count.py
"""
import os
import sys

import torch
import torch.nn as nn

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../support"))
from layers import EncoderBlock  # noqa: E402
from training import fashion_mnist, read_safetensors, write_expected  # noqa: E402

LAYERS, WIDTH, HEADS, PATCH, SIDE, CLASSES = 4, 64, 4, 4, 28, 10
PATCHES = (SIDE // PATCH) ** 2


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.projection = nn.Conv2d(1, WIDTH, PATCH, PATCH)
        self.class_token = nn.Parameter(torch.zeros(WIDTH))
        self.positions = nn.Parameter(torch.zeros(PATCHES + 1, WIDTH))
        *blocks, self.last = (EncoderBlock(WIDTH, HEADS, 2 * WIDTH) for _ in range(LAYERS))
        self.blocks = nn.ModuleList(blocks)
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES)

    def forward(self, images):
        x = self.projection(images.unsqueeze(1)).flatten(2).transpose(1, 2)
        x = torch.cat((self.class_token.expand(len(images), 1, WIDTH), x), dim=1) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(self.last(x)[:, 0]))


@torch.no_grad()
def main():
    model = Vit().eval()
    model.load_state_dict(read_safetensors(os.path.join(HERE, "fashion_vit.safetensors"))[0])
    images, labels = fashion_mnist("t10k")
    parts = zip(images.float().split(500), labels.split(500))
    right = sum((model(x / 255.0).argmax(1) == y).sum().item() for x, y in parts)
    write_expected(os.path.join(HERE, "expected.json"), {"right": right, "images": len(labels)})
    print(f"{right} of {len(labels)} test images right")


if __name__ == "__main__":
    main()
