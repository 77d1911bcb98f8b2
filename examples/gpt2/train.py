#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small GPT-2 on the King James Bible, and writes it in the format of released checkpoints.

To run it again on Debian 12 (packages bible-kjv, python3-torch, python3-numpy), from this folder:

    python3 ../support/train_tokenizer.py bytes king_james/tokenizer.json
    python3 train.py train --minutes 15     # king_james/model.safetensors, in f16
    python3 train.py expect                 # king_james/expected.json: PyTorch's continuations of prompts
    python3 train.py train --folder king_james/draft --minutes 6   # the draft model of speculative.cpp

1. text     Chapters with <|endoftext|> between them; the last 5 % are held out.
2. model    The shape of the folder's config.json: 3 layers, width 128, 4 heads, learned positions, tied
            output; of the draft one layer, width 64, 2 heads.
3. training AdamW on random windows of 256 tokens, no dropout.
"""
import json
import math
import os
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../support"))
from king_james import read_text, split  # noqa: E402
from train_tokenizer import Encoder  # noqa: E402
from training import (  # noqa: E402
    command_line,
    fit,
    likeliest,
    next_token_loss,
    read_safetensors,
    write_cases,
    write_safetensors,
)

FOLDER = os.path.join(HERE, "king_james")


class Conv1D(nn.Module):
    """A linear layer whose matrix is [in, out]."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.empty(inputs, outputs)), nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return x @ self.weight + self.bias


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.c_attn, self.c_proj = heads, Conv1D(width, 3 * width), Conv1D(width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        q, k, v = (t.view(batch, tokens, self.heads, -1).transpose(1, 2) for t in self.c_attn(x).chunk(3, -1))
        future = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
        scores = (q @ k.transpose(2, 3) / math.sqrt(width // self.heads)).masked_fill(future, -math.inf)
        return self.c_proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, tokens, width))


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc, self.c_proj = Conv1D(width, 4 * width), Conv1D(4 * width, width)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, epsilon = c["n_embd"], c["layer_norm_epsilon"]
        self.ln_1, self.ln_2 = nn.LayerNorm(width, epsilon), nn.LayerNorm(width, epsilon)
        self.attn, self.mlp = Attention(width, c["n_head"]), Mlp(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt2(nn.Module):
    def __init__(self, c):
        super().__init__()
        width = c["n_embd"]
        self.wte, self.wpe = nn.Embedding(c["vocab_size"], width), nn.Embedding(c["n_positions"], width)
        self.h = nn.ModuleList(Block(c) for _ in range(c["n_layer"]))
        self.ln_f = nn.LayerNorm(width, c["layer_norm_epsilon"])
        for name, p in self.named_parameters():
            if p.dim() == 2:
                is_projection = name.endswith("c_proj.weight")
                nn.init.normal_(p, std=0.04 / math.sqrt(2 * c["n_layer"]) if is_projection else 0.04)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        for block in self.h:
            x = block(x)
        return self.ln_f(x) @ self.wte.weight.t()


def config(folder):
    with open(os.path.join(folder, "config.json")) as file:
        return json.load(file)


def encoder():
    return Encoder(os.path.join(FOLDER, "tokenizer.json"))


def train(args):
    torch.manual_seed(args.seed)
    c = config(args.folder)
    model, encode, context, end = Gpt2(c), encoder(), c["n_positions"], c["eos_token_id"]
    training, held_out = (
        torch.tensor([token for chapter in text.strip().split("\n\n") for token in (end, *encode(chapter))])
        for text in split(read_text())
    )
    check = next_token_loss(model, held_out, context, 8)
    print(f"{sum(p.numel() for p in model.parameters())} parameters, {len(training)} tokens", flush=True)
    fit(model, next_token_loss(model, training, context, 8), args.minutes, args.rate,
        lambda: f"held out {sum(check(0).item() for _ in range(4)) / 4:.4f}")  # fmt: skip
    weights = os.path.join(args.folder, "model.safetensors")
    write_safetensors(weights, {name: t.half() for name, t in model.state_dict().items()}, {"format": "pt"})


def expect(args):
    c = config(args.folder)
    model, encode = Gpt2(c), encoder()
    model.load_state_dict(read_safetensors(os.path.join(args.folder, "model.safetensors"))[0])
    model.eval()
    cases = []
    for text in ("In the beginning", "And the LORD said unto Moses,"):
        tokens = encode(text)
        reply = likeliest(model, tokens, 48, (c["eos_token_id"],))
        cases.append({"template": "plain", "text": text, "prompt": tokens, "reply": reply})
    write_cases(os.path.join(args.folder, "expected.json"), cases)


if __name__ == "__main__":
    command_line(__doc__, 15, FOLDER, train=train, expect=expect)
