# SPDX-License-Identifier: Apache-2.0
"""Shared by the training scripts of the examples: weight files, Fashion-MNIST, a training loop with a time limit."""
import argparse
import gzip
import json
import math
import os
import struct
import time

import numpy as np
import torch
import torch.nn as nn

FASHION = "/usr/share/datasets/fashion-mnist"  # Debian's dataset-fashion-mnist


def write_safetensors(path, tensors, metadata):
    """Writes tensors of f16 as f16, and all others as f32."""
    header, offset = {"__metadata__": metadata}, 0
    stored = {name: t.detach().contiguous().numpy().astype("<f2" if t.dtype == torch.float16 else "<f4")
              for name, t in tensors.items()}  # fmt: skip
    for name, t in stored.items():
        dtype = "F16" if t.itemsize == 2 else "F32"
        header[name] = {"dtype": dtype, "shape": list(t.shape), "data_offsets": [offset, offset + t.nbytes]}
        offset += t.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".tmp", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for t in stored.values():
            f.write(t.tobytes())
    os.replace(path + ".tmp", path)


def read_safetensors(path):
    with open(path, "rb") as f:
        data = f.read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        dtype = {"F16": "<f2", "F32": "<f4"}[entry["dtype"]]
        values = np.frombuffer(data[8 + size + begin : 8 + size + end], dtype).reshape(entry["shape"])
        tensors[name] = torch.from_numpy(values.astype("<f4"))
    return tensors, metadata


def write_expected(path, figures):
    """Adds the figures to those in the file."""
    expected = {}
    if os.path.exists(path):
        with open(path) as f:
            expected = json.load(f)
    with open(path, "w") as f:
        json.dump({**expected, **figures, "torch": torch.__version__}, f)
        f.write("\n")


def fashion_mnist(part):
    """Returns (images u8 [n, 28, 28], labels u8 [n]) of "train" or "t10k"."""

    def read(name, offset):
        with gzip.open(os.path.join(FASHION, f"{part}-{name}.gz")) as f:
            return np.frombuffer(f.read(), np.uint8, offset=offset)

    labels = read("labels-idx1-ubyte", 8)
    return torch.from_numpy(read("images-idx3-ubyte", 16).reshape(len(labels), 28, 28).copy()), torch.from_numpy(labels.copy())


def fit(model, loss_of, minutes, rate, report=lambda: "", every=30, decay=0.05):
    """Runs AdamW on `loss_of(step)`; the rate rises over 200 steps and decays with the elapsed time to almost zero."""
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    rest = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": decay}, {"params": rest, "weight_decay": 0.0}], betas=(0.9, 0.98)
    )
    start = said = time.monotonic()
    step, recent = 0, None
    while (used := time.monotonic() - start) < 60 * minutes:
        share = used / (60 * minutes)
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, (step + 1) / 200) * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * share)))
        loss = loss_of(step)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        recent = loss.item() if recent is None else recent + 0.02 * (loss.item() - recent)
        step += 1
        if time.monotonic() - said > every:
            said = time.monotonic()
            model.eval()
            with torch.no_grad():
                print(f"step {step} after {used / 60:.1f} min: loss {recent:.4f} {report()}", flush=True)
            model.train()
    model.eval()


def next_token_loss(model, tokens, context, batch):
    """Returns the loss for `fit`: the cross-entropy of each token after the first in random windows of `tokens`."""

    def loss_of(_):
        offsets = torch.randint(len(tokens) - context, (batch,))
        windows = tokens[offsets[:, None] + torch.arange(context + 1)]
        return nn.functional.cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())

    return loss_of


@torch.no_grad()
def likeliest(model, tokens, count, ends):
    """Returns the greedy continuation of `tokens`, up to one of `ends` or `count` tokens.

    Fails where two logits are so close that another order of summation may choose the other token.
    """
    written = []
    while len(written) < count and not (written and written[-1] in ends):
        logits = model(torch.tensor([tokens + written]))[0, -1]
        (first, second), (token, _) = logits.topk(2)
        assert first - second > 1e-3, f"token {len(written)} after {tokens} is nearly a tie"
        written.append(token.item())
    return written


def write_cases(path, cases):
    """Writes the expected output of the programs, for the tests."""
    with open(path, "w") as file:
        json.dump({"cases": cases, "torch": torch.__version__}, file, indent=1)
        file.write("\n")


def command_line(description, minutes, folder=None, **commands):
    """Runs the named command, with the options of a training run; --folder if there is one."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=tuple(commands))
    if folder:
        parser.add_argument("--folder", default=folder, help="of config.json and what is written")
    parser.add_argument("--minutes", type=float, default=minutes)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=1611)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    commands[args.command](args)
