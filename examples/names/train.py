#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the two translators of this folder, English names of places, languages, currencies and scripts to French ones, and
measures them.

To run it again on Debian 12 (packages iso-codes, python3-torch, python3-numpy), from this folder:

    python3 train.py recurrent --minutes 15     # recurrent.safetensors; how many test names come out right: expected.json
    python3 train.py transformer --minutes 15   # transformer.safetensors

A token is a code point below 384. A source is a token for the kind of name, the name, and the end.
"""
import argparse
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
from training import fit, write_expected, write_safetensors  # noqa: E402

CATALOGUES = "/usr/share/locale/fr/LC_MESSAGES"  # of Debian's iso-codes
KINDS = {"place": ("3166-1", "3166-2", "3166-3"), "language": ("639-2", "639-3", "639-5"), "currency": ("4217",), "script": ("15924",)}
START, END, FIRST_KIND, VOCABULARY = 1, 2, 3, 384
LONGEST = 40


def catalogue(name):
    """The pairs (message, translation) of a compiled catalogue of gettext."""
    with open(os.path.join(CATALOGUES, f"iso_{name}.mo"), "rb") as f:
        data = f.read()
    _, _, count, sources, targets = struct.unpack_from("<5I", data)
    for i in range(count):
        pair = []
        for table in (sources, targets):
            length, at = struct.unpack_from("<2I", data, table + 8 * i)
            pair.append(data[at : at + length].decode().split("\4")[-1])
        yield pair


def names():
    """(training, test), lists of (kind, English, French); a tenth is for the test, by the CRC-32 of the English name."""
    found = {}
    for number, parts in enumerate(KINDS.values()):
        for part in parts:
            for english, french in catalogue(part):
                fits = english and all(len(s) <= LONGEST and max(map(ord, s)) < VOCABULARY for s in (english, french))
                if fits:
                    found.setdefault((number, english), french)
    lists = ([], [])
    for (kind, english), french in found.items():
        lists[zlib.crc32(english.encode()) % 10 == 0].append((kind, english, french))
    return lists


def tokens(pairs):
    """Sources [n, s] and targets [n, t] with start and end, padded with 0 to the longest."""

    def padded(rows):
        return nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)

    sources = padded([[FIRST_KIND + kind, *map(ord, english), END] for kind, english, _ in pairs])
    return sources, padded([[START, *map(ord, french), END] for _, _, french in pairs])


# --- models: begin(source) gives what step needs, step(state, token) gives (logits, seen, state); forward is taught ----


class Recurrent(nn.Module):
    """Bahdanau et al. 2015: a GRU in both directions; a GRU that looks back at it with additive attention."""

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
        self.dropout = nn.Dropout(0.2)

    def begin(self, source):
        mask = source != 0
        packed = nn.utils.rnn.pack_padded_sequence(
            self.dropout(self.embedding(source)), mask.sum(1), batch_first=True, enforce_sorted=False
        )
        outputs, last = self.encoder(packed)
        memory = nn.utils.rnn.pad_packed_sequence(outputs, batch_first=True, total_length=source.shape[1])[0]
        return torch.tanh(self.first(last[1])), self.attention.keys(memory), memory, mask

    def step(self, state, token):
        h, keys, memory, mask = state
        context, seen = self.attention(h, keys, memory, mask)
        y = self.dropout(self.embedding(token))
        h = self.cell(torch.cat((y, context), dim=1), h)
        return self.head(self.dropout(torch.cat((h, context, y), dim=1))), seen, (h, keys, memory, mask)

    def forward(self, source, target):
        state, logits = self.begin(source), []
        for token in target.unbind(1):
            row, _, state = self.step(state, token)
            logits.append(row)
        return torch.stack(logits, dim=1)


class Transformer(nn.Module):
    """Vaswani et al. 2017: post-norm blocks, sinusoidal positions, one table for source, target and logits."""

    LAYERS, WIDTH, HEADS, HIDDEN = 2, 128, 4, 512

    def __init__(self):
        super().__init__()
        sizes = (self.WIDTH, self.HEADS, self.HIDDEN, F.relu, False)
        self.embedding = nn.Embedding(VOCABULARY, self.WIDTH)
        self.encoder = nn.ModuleList(EncoderBlock(*sizes) for _ in range(self.LAYERS))
        self.decoder = nn.ModuleList(DecoderBlock(*sizes) for _ in range(self.LAYERS))
        self.dropout = nn.Dropout(0.1)
        nn.init.normal_(self.embedding.weight, std=self.WIDTH**-0.5)

    def embed(self, tokens):
        x = self.embedding(tokens) * self.WIDTH**0.5 + sinusoids(tokens.shape[1], self.WIDTH)
        return self.dropout(x)

    def begin(self, source):
        mask = (source != 0)[:, None, None, :]
        x = self.embed(source)
        for block in self.encoder:
            x = block(x, mask)
        return x, mask, None

    def decode(self, memory, mask, target):
        x = self.embed(target)
        for block in self.decoder:
            x = block(x, memory, mask)
        return x @ self.embedding.weight.t()

    def step(self, state, token):
        memory, mask, before = state
        target = token[:, None] if before is None else torch.cat((before, token[:, None]), dim=1)
        logits = self.decode(memory, mask, target)[:, -1]
        seen = sum(block.cross_attn.seen[:, :, -1].mean(1) for block in self.decoder) / self.LAYERS
        return logits, seen, (memory, mask, target)

    def forward(self, source, target):
        memory, mask, _ = self.begin(source)
        return self.decode(memory, mask, target)


@torch.no_grad()
def count_right(model, pairs):
    """How many names the likeliest next token, taken again and again, spells right."""
    model.eval()
    right = 0
    for first in range(0, len(pairs), 256):
        source, target = tokens(pairs[first : first + 256])
        wanted = F.pad(target[:, 1:], (0, LONGEST + 1 - (target.shape[1] - 1)))
        state, token, ended, spelt = model.begin(source), torch.full((len(source),), START), False, []
        for _ in range(LONGEST + 1):
            logits, _, state = model.step(state, token)
            token = logits.argmax(1).masked_fill(torch.as_tensor(ended), 0)
            ended = (token == END) | (token == 0)
            spelt.append(token)
        right += (torch.stack(spelt, dim=1) == wanted).all(1).sum().item()
    return right


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=["recurrent", "transformer"])
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=128)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    training, test = names()
    sources, targets = tokens(training)
    longest = ((sources != 0).sum(1) + (targets != 0).sum(1)).argsort()
    model = Recurrent() if args.model == "recurrent" else Transformer()
    size = sum(p.numel() for p in model.parameters())
    print(f"{size} parameters, {len(training)} names to train on, {len(test)} for the test", flush=True)

    def loss_of(_):
        # Names of like lengths, so that little is padding.
        first = torch.randint(len(training) - 4 * args.batch, ()).item()
        at = longest[first + torch.randperm(4 * args.batch)[: args.batch]]
        source, target = sources[at], targets[at]
        source, target = source[:, : (source != 0).sum(1).max()], target[:, : (target != 0).sum(1).max()]
        logits = model(source, target[:, :-1]).flatten(0, 1)
        return F.cross_entropy(logits, target[:, 1:].flatten(), ignore_index=0, label_smoothing=0.05)

    rate = 2e-3 if args.model == "recurrent" else 1.5e-3
    fit(model, loss_of, args.minutes, rate, lambda: f"right of 500: {count_right(model, test[:500])}")
    right = count_right(model, test)
    write_safetensors(os.path.join(HERE, f"{args.model}.safetensors"), model.state_dict(), {"model": args.model})
    write_expected(os.path.join(HERE, "expected.json"), {f"{args.model}_right": right, "names": len(test)})
    print(f"{right} of {len(test)} test names right")


if __name__ == "__main__":
    main()
