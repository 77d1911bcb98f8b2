#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the two captioners of this folder with PyTorch, on mosaics of four images of Fashion-MNIST.

On Debian 12 (packages dataset-fashion-mnist, python3-torch, python3-numpy), from this folder: `python3 count.py`
writes the numbers of correct test sentences, and of words that name an image and attend to it, to expected.json, and
MODEL_sentences.txt: PyTorch's sentence for each test mosaic, one letter per word, in lines that end with "?" where
two words are nearly as likely.

A mosaic has two images above two others, 56 x 56 pixels in all; its sentence names them in reading order: "a bag and
a coat above two boots". Test mosaics are the test images, four by four in their order.
"""
import os
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../support"))
from layers import AdditiveAttention, DecoderBlock, EncoderBlock, sinusoids  # noqa: E402
from training import fashion_mnist, read_safetensors, write_expected  # noqa: E402

CLASSES = ("t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot")
START, A, AND, TWO, ABOVE, FIRST = 1, 2, 3, 4, 5, 6  # END is 0
END, WORDS, LONGEST = 0, FIRST + 2 * len(CLASSES), 11
SIDE, GRID, CHANNELS = 56, 14, 64


def row(left, right):
    if left == right:
        return [TWO, FIRST + len(CLASSES) + left]
    return [A, FIRST + left, AND, A, FIRST + right]


def sentence(labels):
    """Returns [LONGEST + 2] tokens of the four labels: start, words, end, and -100 as padding."""
    words = [START, *row(*labels[:2]), ABOVE, *row(*labels[2:]), END]
    return words + [-100] * (LONGEST + 2 - len(words))


def mosaics(pictures, labels):
    """Takes pictures [4 n, 28, 28] and labels [4 n]; returns images [n, 56, 56] and sentences."""
    images = pictures.view(-1, 2, 2, 28, 28).transpose(2, 3).reshape(-1, SIDE, SIDE)
    return images, torch.tensor([sentence(four) for four in labels.view(-1, 4).tolist()])


# --- models: begin(images) returns the input of step, step(state, word) returns (logits, seen [n, 14, 14], state) -----


class Features(nn.Module):
    """3 x 3 convolutions in the style of VGG, and a position embedding: [n, 14 * 14, 64]."""

    GRID = GRID
    PLAN = ((1, 16, False), (16, 16, True), (16, 32, False), (32, 32, True), (32, CHANNELS, False), (CHANNELS, CHANNELS, False))

    def __init__(self):
        super().__init__()
        self.conv = nn.ModuleList(nn.Conv2d(i, o, 3, padding=1, bias=False) for i, o, _ in self.PLAN)
        self.norm = nn.ModuleList(nn.BatchNorm2d(o) for _, o, _ in self.PLAN)
        self.places = nn.Parameter(torch.randn(GRID * GRID, CHANNELS) * 0.1)

    def forward(self, images):
        x = images.unsqueeze(1)
        for conv, norm, (_, _, pooled) in zip(self.conv, self.norm, self.PLAN):
            x = norm(conv(x)).relu()
            x = F.max_pool2d(x, 2) if pooled else x
        return x.flatten(2).transpose(1, 2) + self.places


class Patches(nn.Module):
    """Patches of 7 x 7 pixels, and a position embedding: [n, 8 * 8, 64]."""

    GRID = 8

    def __init__(self):
        super().__init__()
        self.projection = nn.Conv2d(1, CHANNELS, 7, 7)
        self.places = nn.Parameter(torch.randn(self.GRID**2, CHANNELS) * 0.1)

    def forward(self, images):
        return self.projection(images.unsqueeze(1)).flatten(2).transpose(1, 2) + self.places


class Recurrent(nn.Module):
    """Show, Attend and Tell (Xu et al. 2015), soft attention: an LSTM that attends to the features before each word."""

    EMBEDDING, HIDDEN, SCORE = 32, 128, 64

    def __init__(self):
        super().__init__()
        self.features = Features()
        self.first_h, self.first_c = nn.Linear(CHANNELS, self.HIDDEN), nn.Linear(CHANNELS, self.HIDDEN)
        self.attention = AdditiveAttention(self.HIDDEN, CHANNELS, self.SCORE)
        self.embedding = nn.Embedding(WORDS, self.EMBEDDING)
        self.cell = nn.LSTMCell(self.EMBEDDING + CHANNELS, self.HIDDEN)
        self.head = nn.Linear(self.HIDDEN + CHANNELS + self.EMBEDDING, WORDS)

    def begin(self, images):
        memory = self.features(images)
        mean = memory.mean(1)
        return torch.tanh(self.first_h(mean)), torch.tanh(self.first_c(mean)), self.attention.keys(memory), memory

    def step(self, state, word):
        h, _, keys, memory = state
        context, seen = self.attention(h, keys, memory)
        logits, state = self.write(state, word, context)
        return logits, seen.view(-1, GRID, GRID), state

    def glance(self, state, word, uniform):
        """Hard attention: returns (logits, the location [n] that the numbers in (0, 1) sample, state)."""
        h, _, keys, memory = state
        _, seen = self.attention(h, keys, memory)
        place = (seen.log() - (-uniform.log()).log()).argmax(1)
        logits, state = self.write(state, word, memory[torch.arange(len(memory)), place])
        return logits, place, state

    def write(self, state, word, context):
        h, c, keys, memory = state
        y = self.embedding(word)
        h, c = self.cell(torch.cat((y, context), dim=1), (h, c))
        return self.head(torch.cat((h, context, y), dim=1)), (h, c, keys, memory)

    def forward(self, images, words):
        state, logits = self.begin(images), []
        for word in words.unbind(1):
            scores, _, state = self.step(state, word)
            logits.append(scores)
        return torch.stack(logits, dim=1)


class Transformer(nn.Module):
    """Features, a Transformer encoder and a decoder, which writes the sentence; pre-norm."""

    HEADS, HIDDEN = 4, 256

    def __init__(self, features=Features, encoder_layers=1):
        super().__init__()
        sizes = (CHANNELS, self.HEADS, self.HIDDEN)
        self.features, self.grid = features(), features.GRID
        self.encoder = nn.ModuleList(EncoderBlock(*sizes) for _ in range(encoder_layers))
        self.encoder_norm = nn.LayerNorm(CHANNELS)
        self.embedding = nn.Embedding(WORDS, CHANNELS)
        self.decoder, self.decoder_norm = nn.ModuleList(DecoderBlock(*sizes) for _ in range(2)), nn.LayerNorm(CHANNELS)
        self.head = nn.Linear(CHANNELS, WORDS)

    def begin(self, images):
        x = self.features(images)
        for block in self.encoder:
            x = block(x)
        return self.encoder_norm(x), None

    def decode(self, memory, words):
        x = self.embedding(words) + sinusoids(words.shape[1], CHANNELS)
        for block in self.decoder:
            x = block(x, memory)
        return self.head(self.decoder_norm(x))

    def step(self, state, word):
        memory, before = state
        words = word[:, None] if before is None else torch.cat((before, word[:, None]), dim=1)
        logits = self.decode(memory, words)[:, -1]
        seen = sum(block.cross_attn.seen[:, :, -1].mean(1) for block in self.decoder) / len(self.decoder)
        return logits, seen.view(-1, self.grid, self.grid), (memory, words)

    def forward(self, images, words):
        return self.decode(self.begin(images)[0], words)


@torch.no_grad()
def measure(model, pictures, labels):
    """Returns (correct sentences, correct words that name an image, those that attend most to its quarter)."""
    model.eval()
    right = named = found = 0
    for x, y in zip(pictures.split(1000), labels.split(1000)):
        images, wanted = mosaics(x.float() / 255, y)
        state, word, spelt = model.begin(images), wanted[:, 0], []
        for i in range(1, wanted.shape[1]):
            logits, seen, state = model.step(state, word)
            word = logits.argmax(1).masked_fill((word == END) & (i > 1), END)
            spelt.append(word)
            quarters = F.avg_pool2d(seen.unsqueeze(1), GRID // 2).flatten(1)
            for n in range(len(images)):
                before = wanted[n, 1:i].tolist()
                if word[n] >= FIRST and word[n] == wanted[n, i]:
                    here = 2 * (ABOVE in before) + (AND in before[before.index(ABOVE) :] if ABOVE in before else AND in before)
                    most = quarters[n].argmax().item()
                    named += 1
                    found += most // 2 == here // 2 if word[n] >= FIRST + len(CLASSES) else most == here
        spelt = torch.stack(spelt, dim=1)
        right += ((spelt == wanted[:, 1:]) | (wanted[:, 1:] < 0)).all(1).sum().item()
    return right, named, found


@torch.no_grad()
def spell(model, pictures, labels, near=1e-3):
    """Yields a line for each mosaic: the most likely words up to the end; "?" if the next logit of one is closer
    than `near`."""
    model.eval()
    for x, y in zip(pictures.split(1000), labels.split(1000)):
        images, wanted = mosaics(x.float() / 255, y)
        state, word, words, margins = model.begin(images), wanted[:, 0], [], []
        for _ in range(LONGEST + 1):
            logits, _, state = model.step(state, word)
            best = logits.topk(2).values
            word = logits.argmax(1)
            words.append(word)
            margins.append(best[:, 0] - best[:, 1])
        for line, margin in zip(torch.stack(words, 1).tolist(), torch.stack(margins, 1).tolist()):
            count = line.index(END) + 1 if END in line else len(line)
            yield "".join(chr(ord("a") + word) for word in line[:count]) + ("?" if min(margin[:count]) < near else "")


def load(model, path):
    tensors, _ = read_safetensors(path)
    missing, unexpected = model.load_state_dict(tensors, strict=False)
    assert not unexpected and all(name.endswith("num_batches_tracked") for name in missing), (missing, unexpected)


def main():
    pictures, labels = fashion_mnist("t10k")
    for name, model in (("recurrent", Recurrent()), ("transformer", Transformer())):
        path = os.path.join(HERE, name)
        load(model, path + ".safetensors")
        right, named, found = measure(model, pictures, labels)
        figures = {"right": right, "named": named, "found": found}
        write_expected(os.path.join(HERE, "expected.json"), {f"{name}_{key}": value for key, value in figures.items()})
        with open(path + "_sentences.txt", "w") as f:
            f.writelines(line + "\n" for line in spell(model, pictures, labels))
        print(f"{name}: {right} of {len(labels) // 4} test sentences right; of {named} words that name a picture {found} "
              "looked at it most")  # fmt: skip
    write_expected(os.path.join(HERE, "expected.json"), {"sentences": len(labels) // 4})


if __name__ == "__main__":
    main()
