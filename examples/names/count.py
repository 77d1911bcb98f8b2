#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts with PyTorch how many test names the weights of this folder translate correctly: expected.json.

On Debian 12 (packages iso-codes, python3-torch, python3-numpy), from this folder: python3 count.py

A token is a code point below 384. A source is a token for the kind of name, the name, and the end.
"""
import os
import struct
import sys
import zlib

import torch
import torch.nn as nn
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../support"))
from layers import AdditiveAttention, DecoderBlock, EncoderBlock, sinusoids  # noqa: E402
from training import read_safetensors, write_expected  # noqa: E402

CATALOGUES = "/usr/share/locale/fr/LC_MESSAGES"  # of Debian's iso-codes
KINDS = (("3166-1", "3166-2", "3166-3"), ("639-2", "639-3", "639-5"), ("4217",), ("15924",))
START, END, FIRST_KIND, VOCABULARY = 1, 2, 3, 384
LONGEST = 40


def catalogue(name):
    """Yields the pairs (message, translation) of a compiled catalogue of gettext."""
    with open(os.path.join(CATALOGUES, f"iso_{name}.mo"), "rb") as f:
        data = f.read()
    _, _, count, sources, targets = struct.unpack_from("<5I", data)
    for i in range(count):
        pair = []
        for table in (sources, targets):
            length, at = struct.unpack_from("<2I", data, table + 8 * i)
            pair.append(data[at : at + length].decode().split("\4")[-1])
        yield pair


def test_names():
    """Returns a list of (kind, English, French): the tenth of all names that the CRC-32 of the English one selects."""
    found = {}
    for kind, parts in enumerate(KINDS):
        for part in parts:
            for english, french in catalogue(part):
                fits = english and all(len(s) <= LONGEST and max(map(ord, s)) < VOCABULARY for s in (english, french))
                if fits and zlib.crc32(english.encode()) % 10 == 0:
                    found.setdefault((kind, english), french)
    return [(kind, english, french) for (kind, english), french in found.items()]


def padded(rows, length=0):
    """Returns [n, longest], at least `length`, padded with 0."""
    rows = nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)
    return F.pad(rows, (0, max(0, length - rows.shape[1])))


# --- models: begin(source) returns the input of step, step(state, token) returns (logits, seen, state) ---------------


class Recurrent(nn.Module):
    """Bahdanau et al. 2015: a bidirectional GRU encoder; a GRU decoder with additive attention."""

    EMBEDDING, ENCODER, HIDDEN, SCORE = 64, 128, 192, 128

    def __init__(self):
        super().__init__()
        memory = 2 * self.ENCODER
        self.embedding = nn.Embedding(VOCABULARY, self.EMBEDDING)
        self.encoder = nn.GRU(self.EMBEDDING, self.ENCODER, bidirectional=True)
        self.first = nn.Linear(self.ENCODER, self.HIDDEN)
        self.attention = AdditiveAttention(self.HIDDEN, memory, self.SCORE)
        self.cell = nn.GRUCell(self.EMBEDDING + memory, self.HIDDEN)
        self.head = nn.Linear(self.HIDDEN + memory + self.EMBEDDING, VOCABULARY)

    def begin(self, source):
        mask = source != 0
        packed = nn.utils.rnn.pack_padded_sequence(
            self.embedding(source), mask.sum(1), batch_first=True, enforce_sorted=False
        )
        outputs, last = self.encoder(packed)
        memory = nn.utils.rnn.pad_packed_sequence(outputs, batch_first=True, total_length=source.shape[1])[0]
        return torch.tanh(self.first(last[1])), self.attention.keys(memory), memory, mask

    def step(self, state, token):
        h, keys, memory, mask = state
        context, seen = self.attention(h, keys, memory, mask)
        y = self.embedding(token)
        h = self.cell(torch.cat((y, context), dim=1), h)
        return self.head(torch.cat((h, context, y), dim=1)), seen, (h, keys, memory, mask)


class Transformer(nn.Module):
    """Vaswani et al. 2017: post-norm blocks, sinusoidal positions, one table for source, target and logits."""

    LAYERS, WIDTH, HEADS, HIDDEN = 2, 128, 4, 512

    def __init__(self):
        super().__init__()
        sizes = (self.WIDTH, self.HEADS, self.HIDDEN, F.relu, False)
        self.embedding = nn.Embedding(VOCABULARY, self.WIDTH)
        self.encoder = nn.ModuleList(EncoderBlock(*sizes) for _ in range(self.LAYERS))
        self.decoder = nn.ModuleList(DecoderBlock(*sizes) for _ in range(self.LAYERS))

    def embed(self, tokens):
        return self.embedding(tokens) * self.WIDTH**0.5 + sinusoids(tokens.shape[1], self.WIDTH)

    def begin(self, source):
        mask = (source != 0)[:, None, None, :]
        x = self.embed(source)
        for block in self.encoder:
            x = block(x, mask)
        return x, mask, None

    def step(self, state, token):
        memory, mask, before = state
        target = token[:, None] if before is None else torch.cat((before, token[:, None]), dim=1)
        x = self.embed(target)
        for block in self.decoder:
            x = block(x, memory, mask)
        seen = sum(block.cross_attn.seen[:, :, -1].mean(1) for block in self.decoder) / self.LAYERS
        return x[:, -1] @ self.embedding.weight.t(), seen, (memory, mask, target)


@torch.no_grad()
def count_right(model, names):
    """Returns how many names greedy decoding spells correctly."""
    right = 0
    for first in range(0, len(names), 256):
        part = names[first : first + 256]
        source = padded([[FIRST_KIND + kind, *map(ord, english), END] for kind, english, _ in part])
        wanted = padded([[*map(ord, french), END] for _, _, french in part], LONGEST + 1)
        state, token, ended, spelt = model.begin(source), torch.full((len(source),), START), False, []
        for _ in range(LONGEST + 1):
            logits, _, state = model.step(state, token)
            token = logits.argmax(1).masked_fill(torch.as_tensor(ended), 0)
            ended = (token == END) | (token == 0)
            spelt.append(token)
        right += (torch.stack(spelt, dim=1) == wanted).all(1).sum().item()
    return right


def main():
    names = test_names()
    for name, model in (("recurrent", Recurrent()), ("transformer", Transformer())):
        model.load_state_dict(read_safetensors(os.path.join(HERE, f"{name}.safetensors"))[0])
        right = count_right(model.eval(), names)
        write_expected(os.path.join(HERE, "expected.json"), {f"{name}_right": right, "names": len(names)})
        print(f"{name}: {right} of {len(names)} test names right")


if __name__ == "__main__":
    main()
