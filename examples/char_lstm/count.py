#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Computes bits per character of held-out text with PyTorch, with the weights of this folder: expected.json.

On Debian 12 (packages python3-torch, python3-numpy), from this folder: python3 count.py. The text is read once, from
a zero state, without a break.
"""
import json
import math
import os
import re
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
GPT = os.path.join(HERE, "../char_gpt")
sys.path.append(os.path.join(HERE, "../support"))
from training import read_safetensors, write_expected  # noqa: E402

EMBEDDING, HIDDEN, LAYERS = 64, 256, 2


class CharLstm(nn.Module):
    def __init__(self, vocabulary_size):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary_size, EMBEDDING)
        self.lstm = nn.LSTM(EMBEDDING, HIDDEN, LAYERS)
        self.head = nn.Linear(HIDDEN, vocabulary_size)

    def forward(self, tokens, state=None):
        """tokens [steps, streams] -> logits, and the state to continue from."""
        outputs, state = self.lstm(self.embedding(tokens), state)
        return self.head(outputs), state


@torch.no_grad()
def main():
    with open(os.path.join(GPT, "vocabulary.h")) as header, open(os.path.join(GPT, "heldout.txt")) as text:
        vocabulary = json.loads(re.search(r'vocabulary = (".*");', header.read())[1])
        tokens = torch.tensor([vocabulary.index(c) for c in text.read()])
    model = CharLstm(len(vocabulary)).eval()
    model.load_state_dict(read_safetensors(os.path.join(HERE, "char_lstm.safetensors"))[0])
    logits, _ = model(tokens[:-1, None])
    bits = F.cross_entropy(logits[:, 0].double(), tokens[1:]).item() / math.log(2)
    write_expected(os.path.join(HERE, "expected.json"), {"bits_per_character": round(bits, 6), "characters": len(tokens) - 1})
    print(f"{bits:.6f} bits per character over {len(tokens) - 1} characters")


if __name__ == "__main__":
    main()
