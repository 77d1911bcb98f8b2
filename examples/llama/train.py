#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
r"""Trains the small Llama of this folder on the King James Bible, and writes it as published checkpoints are.

To run it again on Debian 12 (packages bible-kjv, python3-torch, python3-numpy), from this folder:

    python3 ../support/train_tokenizer.py characters king_james/tokenizer.json
    python3 train.py train --minutes 20     # king_james/model.safetensors, of f16
    python3 train.py expect                 # king_james/expected.json: what PyTorch writes after some prompts

1. text     Each chapter twice: as it is, between <s> and </s>; as a conversation whose sides say verses in turn, after
            <s>: "<|im_start|>user\nverse<|im_end|>\n<|im_start|>assistant\nnext verse<|im_end|>\n".
2. model    The shape `king_james` of models/llama/shapes.h: 4 layers, width 128, 4 heads, 2 of keys and values.
3. training AdamW on random windows of 256 tokens, no dropout. The last 5 % of the chapters are held out.
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
WEIGHTS = os.path.join(FOLDER, "model.safetensors")
CONTEXT = 256


class RmsNorm(nn.Module):
    def __init__(self, width, epsilon):
        super().__init__()
        self.weight, self.epsilon = nn.Parameter(torch.ones(width)), epsilon

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.epsilon) * self.weight


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads, self.shared = c["num_attention_heads"], c["num_key_value_heads"]
        width, self.depth = c["hidden_size"], c["hidden_size"] // self.heads
        self.q_proj, self.o_proj = (nn.Linear(width, width, bias=False) for _ in "qo")
        self.k_proj, self.v_proj = (nn.Linear(width, self.shared * self.depth, bias=False) for _ in "kv")
        self.frequencies = c["rope_theta"] ** (-torch.arange(0, self.depth, 2) / self.depth)

    def rotary(self, x):
        angles = torch.arange(x.shape[2])[:, None] * self.frequencies
        a, b = x.chunk(2, -1)
        return torch.cat((a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()), -1)

    def forward(self, x):
        batch, tokens, width = x.shape
        projections = (self.q_proj, self.k_proj, self.v_proj)
        q, k, v = (p(x).view(batch, tokens, -1, self.depth).transpose(1, 2) for p in projections)
        q, k = self.rotary(q), self.rotary(k)
        k, v = (t.repeat_interleave(self.heads // self.shared, 1) for t in (k, v))
        future = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
        scores = (q @ k.transpose(2, 3) / math.sqrt(self.depth)).masked_fill(future, -math.inf)
        return self.o_proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, tokens, width))


class Mlp(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.gate_proj, self.up_proj = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down_proj = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, epsilon = c["hidden_size"], c["rms_norm_eps"]
        self.input_layernorm, self.post_attention_layernorm = RmsNorm(width, epsilon), RmsNorm(width, epsilon)
        self.self_attn, self.mlp = Attention(c), Mlp(width, c["intermediate_size"])

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed_tokens = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.layers = nn.ModuleList(Block(c) for _ in range(c["num_hidden_layers"]))
        self.norm = RmsNorm(c["hidden_size"], c["rms_norm_eps"])

    def forward(self, tokens):
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class Llama(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.model, self.lm_head = Decoder(c), nn.Linear(c["hidden_size"], c["vocab_size"], bias=False)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                is_projection = name.endswith(("o_proj.weight", "down_proj.weight"))
                nn.init.normal_(p, std=0.04 / math.sqrt(2 * c["num_hidden_layers"]) if is_projection else 0.04)

    def forward(self, tokens):
        return self.lm_head(self.model(tokens))


class Prompts:
    """Encodes texts and conversations as tokens."""

    def __init__(self):
        self.encode = Encoder(os.path.join(FOLDER, "tokenizer.json"))
        self.start, self.end, self.turn, self.turned = (
            self.encode.vocabulary[token] for token in ("<s>", "</s>", "<|im_start|>", "<|im_end|>")
        )

    def plain(self, text):
        return [self.start, *self.encode(text)]

    def said(self, who, text):
        return [self.turn, *self.encode(f"{who}\n{text}"), self.turned, *self.encode("\n")]

    def asked(self, text):
        return [self.start, *self.said("user", text), self.turn, *self.encode("assistant\n")]

    def documents(self, text):
        """Returns each chapter twice: as text, and as a conversation."""
        tokens = []
        for chapter in text.strip().split("\n\n"):
            tokens += [*self.plain(chapter), self.end, self.start]
            for i, verse in enumerate(chapter.split("\n")):
                tokens += self.said("assistant" if i % 2 else "user", verse)
        return torch.tensor(tokens)


def config():
    with open(os.path.join(FOLDER, "config.json")) as file:
        return json.load(file)


def train(args):
    torch.manual_seed(args.seed)
    model = Llama(config())
    training, held_out = map(Prompts().documents, split(read_text()))
    check = next_token_loss(model, held_out, CONTEXT, 8)
    print(f"{sum(p.numel() for p in model.parameters())} parameters, {len(training)} tokens", flush=True)
    fit(model, next_token_loss(model, training, CONTEXT, 8), args.minutes, args.rate,
        lambda: f"held out {sum(check(0).item() for _ in range(4)) / 4:.4f}")  # fmt: skip
    write_safetensors(WEIGHTS, {name: t.half() for name, t in model.state_dict().items()}, {"format": "pt"})


def expect(_):
    model = Llama(config())
    model.load_state_dict(read_safetensors(WEIGHTS)[0])
    model.eval()
    prompts, cases = Prompts(), []
    for kind, tokens_of, text in (
        ("plain", prompts.plain, "In the beginning"),
        ("plain", prompts.plain, "And the LORD said unto Moses,"),
        ("chatml", prompts.asked, "And God said, Let there be light: and there was light."),
        ("chatml", prompts.asked, "The LORD is my shepherd; I shall not want."),
    ):
        tokens = tokens_of(text)
        reply = likeliest(model, tokens, 48, (prompts.end, prompts.turned))
        cases.append({"template": kind, "text": text, "prompt": tokens, "reply": reply})
    write_cases(os.path.join(FOLDER, "expected.json"), cases)


if __name__ == "__main__":
    command_line(__doc__, 20, train=train, expect=expect)
