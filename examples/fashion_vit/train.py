#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the Vision Transformer of this folder on Fashion-MNIST, and measures it.

To run it again on Debian 12 (packages dataset-fashion-mnist, python3-torch, python3-numpy), from this folder:

    python3 train.py --minutes 12     # fashion_vit.safetensors, and how many of 10,000 test images are right: expected.json

Pictures are shifted by up to two pixels and mirrored; no dropout.
"""
import argparse
import os
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../support"))
from layers import EncoderBlock  # noqa: E402
from training import fashion_mnist, fit, varied, write_expected, write_safetensors  # noqa: E402

LAYERS, WIDTH, HEADS, PATCH, SIDE, CLASSES = 4, 64, 4, 4, 28, 10
PATCHES = (SIDE // PATCH) ** 2


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.projection = nn.Conv2d(1, WIDTH, PATCH, PATCH)
        self.class_token = nn.Parameter(torch.zeros(WIDTH))
        self.positions = nn.Parameter(torch.randn(PATCHES + 1, WIDTH) * 0.02)
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
def count_right(model, images, labels):
    return sum((model(x / 255.0).argmax(1) == y).sum().item() for x, y in zip(images.float().split(500), labels.split(500)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=12)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=128)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    images, labels = fashion_mnist("train")
    test_images, test_labels = fashion_mnist("t10k")
    model = Vit()

    def loss_of(_):
        at = torch.randint(len(images), (args.batch,))
        x, y = images[at].float() / 255, labels[at].long()
        return F.cross_entropy(model(varied(x)), y, label_smoothing=0.05)

    fit(model, loss_of, args.minutes, 2e-3, lambda: f"right of 1000: {count_right(model, test_images[:1000], test_labels[:1000])}")
    right = count_right(model, test_images, test_labels)
    write_safetensors(os.path.join(HERE, "fashion_vit.safetensors"), model.state_dict(), {"model": "fashion_vit"})
    write_expected(os.path.join(HERE, "expected.json"), {"right": right, "images": len(test_labels)})
    print(f"{right} of {len(test_labels)} test images right")


if __name__ == "__main__":
    main()
