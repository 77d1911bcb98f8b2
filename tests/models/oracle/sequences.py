# SPDX-License-Identifier: Apache-2.0
"""Sequences written token by token: the models of examples/names, examples/captions and examples/char_lstm by the PyTorch modules that
their count.py has, with generated weights."""
import os

import torch
import torch.nn.functional as F
from torch import nn

import counter
from examples import EXAMPLES, trained
from golden import Golden, generated


def tokens(name, count, vocabulary):
    return torch.from_numpy(counter.tokens(name, (count,), vocabulary)).long()


def written(model, dtype, given, targets):
    """Returns the states after `begin`, and logits and attention weights of each step, with teacher forcing."""
    torch.set_default_dtype(dtype)
    model = model.to(dtype)
    state, logits, seen = model.begin(given), [], []
    first = state
    for token in targets:
        row, weights, state = model.step(state, token[None])
        logits.append(row[0])
        seen.append(weights[0])
    torch.set_default_dtype(torch.float32)
    return first, {"logits": torch.stack(logits), "seen": torch.stack(seen).flatten(1)}


class Fixed(nn.Module):
    """Cho et al. 2014: the last state of one GRU is the only input from the source to another GRU."""

    def __init__(self, vocabulary):
        super().__init__()
        self.embedding, self.encoder = nn.Embedding(vocabulary, 64), nn.GRU(64, 128)
        self.first, self.cell, self.head = nn.Linear(128, 192), nn.GRUCell(192, 192), nn.Linear(192, vocabulary)

    def forward(self, source, target):
        context = self.encoder(self.embedding(source))[1][0]
        h, states = torch.tanh(self.first(context)), []
        for token in target:
            h = self.cell(torch.cat((self.embedding(token[None]), context), dim=1), h)
            states.append(h[0])
        return self.head(torch.stack(states))


class Vgg(nn.Module):
    """Simonyan and Zisserman's stack of ten convolutions; its last layer goes into every step of an Elman network."""

    def __init__(self, words, hidden=256):
        super().__init__()
        widths = (1, 64, 128, 256, 512, 512)
        for number, (before, after) in enumerate(zip(widths, widths[1:]), 1):
            block = nn.Module()
            block.conv1, block.conv2 = nn.Conv2d(before, after, 3, padding=1), nn.Conv2d(after, after, 3, padding=1)
            setattr(self, f"block{number}", block)
        self.fc1, self.fc2 = nn.Linear(512, 4096), nn.Linear(4096, 4096)
        self.xh, self.hh, self.ih = nn.Embedding(words, hidden), nn.Linear(hidden, hidden), nn.Linear(4096, hidden, bias=False)
        self.head = nn.Linear(hidden, words)

    def forward(self, image, sentence):
        x = image[:, None]
        for number in range(1, 6):
            block = getattr(self, f"block{number}")
            x = F.max_pool2d(F.relu(block.conv2(F.relu(block.conv1(x)))), 2)
        v = self.ih(F.relu(self.fc2(F.relu(self.fc1(x.flatten(1))))))
        h, states = torch.zeros_like(v), []
        for word in sentence:
            h = torch.tanh(self.xh(word[None]) + self.hh(h) + v)
            states.append(h[0])
        return self.head(torch.stack(states))


def names():
    """Sequence to sequence with additive attention, and a small Transformer, of examples/names."""
    train = trained("names")
    for file, model, memory in (("names_recurrent", train.Recurrent(), 2), ("names_transformer", train.Transformer(), 0)):
        golden = Golden(file)
        model = generated(model, golden)
        for source_tokens, target_tokens in ((1, 1), (7, 5), (42, 41)):
            # Token 0 is padding in these modules.
            source = 1 + tokens("source", source_tokens, train.VOCABULARY - 1)[None]
            target = 1 + tokens("target", target_tokens, train.VOCABULARY - 1)

            def compute(dtype):
                state, outputs = written(model, dtype, source, target)
                return {"memory": state[memory][0], **outputs}

            golden.add_outputs(f"S{source_tokens}T{target_tokens}", compute)
        golden.write()
    golden, model = Golden("names_fixed"), Fixed(train.VOCABULARY)
    generated(model, golden)
    for source_tokens, target_tokens in ((1, 1), (7, 5), (42, 41)):
        source, target = 1 + tokens("source", source_tokens, 383)[:, None], 1 + tokens("target", target_tokens, 383)
        golden.add_outputs(f"S{source_tokens}T{target_tokens}", lambda dtype: {"logits": model.to(dtype)(source, target)})
    golden.write()


def glances(golden, model, image, sentence):
    """Hard attention: the position that each step draws, as a whole tensor, and its logits."""
    uniform = torch.from_numpy(counter.uniform("uniform", (len(sentence), 14 * 14))).double() / 2 + 0.5

    def compute(dtype):
        model.to(dtype)
        state, logits, places = model.begin(image.to(dtype)), [], []
        for word, numbers in zip(sentence, uniform):
            row, place, state = model.glance(state, word[None], numbers[None].to(dtype))
            logits.append(row[0])
            places.append(place[0])
        golden.tensors["glance.place"] = torch.stack(places).int().numpy()
        return {"logits": torch.stack(logits)}

    golden.add_outputs("glance", compute)


def captions():
    """The captioners of examples/captions."""
    train = trained("captions")
    models = {
        "captions_recurrent": (train.Recurrent(), 3),
        "captions_transformer": (train.Transformer(), 0),
        "captions_from_pixels": (train.Transformer(train.Patches, 3), 0),
    }
    image = torch.from_numpy(counter.uniform("image", (1, train.SIDE, train.SIDE)))
    for file, (model, memory) in models.items():
        golden = Golden(file)
        model = generated(model, golden)
        for count in (1, 4, 11):
            sentence = tokens("sentence", count, train.WORDS)

            def compute(dtype):
                state, outputs = written(model, dtype, image.to(dtype), sentence)
                return {"memory": state[memory][0], **outputs}

            golden.add_outputs(f"T{count}", compute)
        if file == "captions_recurrent":
            glances(golden, model, image, tokens("sentence", 11, train.WORDS))
        golden.write()
    golden, model = Golden("captions_vgg"), Vgg(train.WORDS)
    generated(model, golden)
    for count in (1, 11):
        sentence = tokens("sentence", count, train.WORDS)
        golden.add_outputs(f"T{count}", lambda dtype: {"logits": model.to(dtype)(image.to(dtype), sentence)})
    golden.write()


def char_lstm():
    """Two layers of LSTM over characters, of examples/char_lstm."""
    count = 300
    golden = Golden("char_lstm")
    with open(os.path.join(EXAMPLES, "char_gpt/vocabulary.h")) as f:
        vocabulary = int(f.read().split("vocabulary.size() == ")[1].split(")")[0])
    model = generated(trained("char_lstm").CharLstm(vocabulary), golden)
    text = tokens("tokens", count, vocabulary)[:, None]
    golden.add_outputs(f"T{count}", lambda dtype: {"logits": model.to(dtype)(text)[0][:, 0]})
    golden.write()
