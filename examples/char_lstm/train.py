#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the character LSTM of this folder on the King James Bible, and measures it.

To run it again on Debian 12 (packages bible-kjv, python3-torch, python3-numpy), from this folder:

    python3 train.py --minutes 30     # char_lstm.safetensors, and bits per character: expected.json

Text, characters and the held-out part are those of `../char_gpt`. The text is read in parallel streams, each from where it was left at the
step before, and gradients end at a piece's beginning. The held-out part is read once, from a state of zeros, without a break.
"""
import argparse
import importlib.util
import math
import os
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
GPT = os.path.join(HERE, "../char_gpt")
sys.path.append(os.path.join(HERE, "../support"))
from training import fit, read_safetensors, write_expected, write_safetensors  # noqa: E402

EMBEDDING, HIDDEN, LAYERS, PIECE, STREAMS = 64, 256, 2, 96, 48


def char_gpt():
    spec = importlib.util.spec_from_file_location("char_gpt_train", os.path.join(GPT, "train.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class CharLstm(nn.Module):
    def __init__(self, vocabulary_size):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary_size, EMBEDDING)
        self.lstm = nn.LSTM(EMBEDDING, HIDDEN, LAYERS)
        self.head = nn.Linear(HIDDEN, vocabulary_size)

    def forward(self, tokens, state=None):
        """tokens [steps, streams]: logits, and the state to go on from."""
        outputs, state = self.lstm(self.embedding(tokens), state)
        return self.head(outputs), state


@torch.no_grad()
def bits_per_character(model, tokens):
    logits, _ = model(tokens[:-1, None])
    return F.cross_entropy(logits[:, 0].double(), tokens[1:]).item() / math.log(2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    gpt = char_gpt()
    vocabulary = read_safetensors(os.path.join(GPT, "char_gpt.safetensors"))[1]["vocabulary"]
    training = gpt.encode(gpt.split(gpt.read_text())[0], vocabulary)
    with open(os.path.join(GPT, "heldout.txt")) as f:
        held_out = gpt.encode(f.read(), vocabulary)
    streams = training[: len(training) // STREAMS * STREAMS].view(STREAMS, -1).t()
    model = CharLstm(len(vocabulary))
    print(f"{sum(p.numel() for p in model.parameters())} parameters", flush=True)
    state, at = None, 0

    def loss_of(_):
        nonlocal state, at
        if at + PIECE >= len(streams):
            state, at = None, 0
        logits, state = model(streams[at : at + PIECE], state)
        state = tuple(part.detach() for part in state)
        at += PIECE
        return F.cross_entropy(logits.flatten(0, 1), streams[at - PIECE + 1 : at + 1].flatten())

    fit(model, loss_of, args.minutes, 4e-3, lambda: f"{bits_per_character(model, held_out[:4096]):.4f} bits", decay=0.01)
    bits = bits_per_character(model, held_out)
    write_safetensors(os.path.join(HERE, "char_lstm.safetensors"), model.state_dict(), {"model": "char_lstm"})
    write_expected(os.path.join(HERE, "expected.json"), {"bits_per_character": round(bits, 6), "characters": len(held_out) - 1})
    print(f"{bits:.6f} bits per character over {len(held_out) - 1} characters")


if __name__ == "__main__":
    main()
