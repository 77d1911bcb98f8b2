#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the Elman network of spec.cpp to spell "hello": `train.py` writes hello_rnn.safetensors (a second, python3-torch)."""
import json
import os
import struct

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCABULARY = "helo"


class Hello(nn.Module):
    def __init__(self, hidden=3):
        super().__init__()
        self.xh = nn.Embedding(len(VOCABULARY), hidden)
        self.hh = nn.Linear(hidden, hidden)
        self.hy = nn.Linear(hidden, len(VOCABULARY))

    def forward(self, tokens):
        h, scores = torch.zeros(self.hh.in_features), []
        for token in tokens:
            h = torch.tanh(self.xh(token) + self.hh(h))
            scores.append(self.hy(h))
        return torch.stack(scores)


def write_safetensors(path, tensors):
    header, offset = {}, 0
    for name, t in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(t.shape), "data_offsets": [offset, offset + 4 * t.numel()]}
        offset += 4 * t.numel()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for t in tensors.values():
            f.write(t.numpy().astype("<f4").tobytes())


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Hello()
    word = torch.tensor([VOCABULARY.index(c) for c in "hello"])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(400):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(word[:-1]), word[1:])
        loss.backward()
        optimizer.step()
    spelled = "".join(VOCABULARY[i] for i in model(word[:-1]).argmax(-1))
    print(f"loss {loss:.4f}: hell -> {spelled}")
    assert spelled == "ello"
    folder = os.path.dirname(os.path.abspath(__file__))
    write_safetensors(os.path.join(folder, "hello_rnn.safetensors"), model.state_dict())


if __name__ == "__main__":
    main()
