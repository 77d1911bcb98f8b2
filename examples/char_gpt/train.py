#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the character GPT of this folder on the King James Bible, and measures it.

To run it again on Debian 12 (packages bible-kjv, python3-torch, python3-numpy), from this folder:

    python3 train.py train --minutes 60     # saves every two minutes; run again to go on
    python3 train.py export                 # char_gpt.safetensors, vocabulary.h, heldout.txt
    python3 train.py evaluate               # bits per character of heldout.txt, written to expected.json
    python3 train.py sample --prompt "And it came to pass"

The learning rate follows the time used, so a run fits its minutes on any machine. Two threads are enough; with Debian's
OpenBLAS, LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu/openblas-openmp makes it faster.

1. text     `bible` prints a line a verse, "Ge1:1 In the beginning ...". The reference is dropped; a verse stays a line,
            and an empty line separates chapters. The last 5 % (from a chapter's start) is held out.
2. model    4 pre-norm blocks, width 128, 4 heads, context 256, learned positions, tanh-form GELU, tied output weights.
3. training AdamW on random windows, no dropout: the text is seen about seven times, so it does not overfit.
4. measure  heldout.txt is cut into windows of 256 characters; characters 1..255 of each window are predicted from that
            window alone; bits per character is the mean of -log2 p over them, in f32.
"""
import argparse
import json
import math
import os
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../support"))
from king_james import read_text, split  # noqa: E402
from training import read_safetensors, write_safetensors  # noqa: E402

WEIGHTS = os.path.join(HERE, "char_gpt.safetensors")
WORK = os.path.join(HERE, "..", "..", "build", "char_gpt")
LAYERS, WIDTH, HEADS, CONTEXT = 4, 128, 4, 256
HELD_OUT_WINDOWS = 64  # windows of CONTEXT characters in heldout.txt
SEED = 1611


# --- text -------------------------------------------------------------------------------------------------------------


def encode(text, vocabulary):
    index = {c: i for i, c in enumerate(vocabulary)}
    return torch.tensor([index[c] for c in text], dtype=torch.int64)


# --- model ------------------------------------------------------------------------------------------------------------


class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj = nn.Linear(WIDTH, WIDTH)
        self.k_proj = nn.Linear(WIDTH, WIDTH)
        self.v_proj = nn.Linear(WIDTH, WIDTH)
        self.out_proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, mask):
        batch, tokens, _ = x.shape
        q, k, v = (
            p(x).view(batch, tokens, HEADS, WIDTH // HEADS).transpose(1, 2).reshape(batch * HEADS, tokens, -1)
            for p in (self.q_proj, self.k_proj, self.v_proj)
        )
        scores = torch.baddbmm(mask, q, k.transpose(1, 2), alpha=(WIDTH // HEADS) ** -0.5)
        y = torch.bmm(scores.softmax(-1), v)
        y = y.view(batch, HEADS, tokens, -1).transpose(1, 2).reshape(batch, tokens, WIDTH)
        return self.out_proj(y)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(WIDTH, 4 * WIDTH)
        self.fc2 = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH, eps=1e-5)
        self.self_attn = SelfAttention()
        self.norm2 = nn.LayerNorm(WIDTH, eps=1e-5)
        self.mlp = Mlp()

    def forward(self, x, mask):
        x = x + self.self_attn(self.norm1(x), mask)
        return x + self.mlp(self.norm2(x))


class CharGpt(nn.Module):
    def __init__(self, vocabulary_size):
        super().__init__()
        self.wte = nn.Embedding(vocabulary_size, WIDTH)
        self.wpe = nn.Embedding(CONTEXT, WIDTH)
        self.h = nn.ModuleList(Block() for _ in range(LAYERS))
        self.ln_f = nn.LayerNorm(WIDTH, eps=1e-5)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                residual = name.endswith(("out_proj.weight", "fc2.weight"))
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * LAYERS) if residual else 0.04)
            elif name.endswith("bias"):
                nn.init.zeros_(p)

    def forward(self, tokens):
        count = tokens.shape[1]
        mask = torch.full((count, count), -math.inf).triu(1)
        x = self.wte(tokens) + self.wpe.weight[:count]
        for block in self.h:
            x = block(x, mask)
        return self.ln_f(x) @ self.wte.weight.t()


# --- files ------------------------------------------------------------------------------------------------------------


def load_model(path):
    tensors, metadata = read_safetensors(path)
    model = CharGpt(len(metadata["vocabulary"]))
    model.load_state_dict(tensors)
    return model.eval(), metadata["vocabulary"]


def write_vocabulary_header(path, vocabulary):
    literal = "".join({"\n": "\\n", '"': '\\"', "\\": "\\\\"}.get(c, c) for c in vocabulary)
    with open(path, "w") as f:
        f.write(
            "// SPDX-License-Identifier: Apache-2.0\n"
            "// The characters of the King James Bible; a character's position is its token. By train.py export.\n"
            "#pragma once\n\n#include <string_view>\n\nnamespace char_gpt {\n\n"
            f'inline constexpr std::string_view vocabulary = "{literal}";\n'
            f"static_assert(vocabulary.size() == {len(vocabulary)});\n\n"
            "} // namespace char_gpt\n"
        )


# --- measuring --------------------------------------------------------------------------------------------------------


@torch.no_grad()
def bits_per_character(model, tokens):
    """(bits per character, characters predicted) over the whole windows of `tokens`."""
    windows = tokens[: len(tokens) // CONTEXT * CONTEXT].view(-1, CONTEXT)
    bits = 0.0
    for batch in windows.split(16):
        log_p = model(batch)[:, :-1].log_softmax(-1).gather(2, batch[:, 1:, None])
        bits -= log_p.double().sum().item() / math.log(2)
    count = windows.shape[0] * (CONTEXT - 1)
    return bits / count, count


@torch.no_grad()
def generate(model, vocabulary, prompt, count, temperature, seed):
    torch.manual_seed(seed)
    tokens = encode(prompt, vocabulary).tolist()
    for _ in range(count):
        logits = model(torch.tensor([tokens[-CONTEXT:]]))[0, -1]
        tokens.append(torch.multinomial((logits / temperature).softmax(-1), 1).item())
    return "".join(vocabulary[t] for t in tokens)


# --- commands ---------------------------------------------------------------------------------------------------------


def train(args):
    text = read_text()
    vocabulary = "".join(sorted(set(text)))
    training, held_out = (encode(part, vocabulary) for part in split(text))
    checkpoint = os.path.join(args.work, "checkpoint.pt")
    os.makedirs(args.work, exist_ok=True)

    torch.manual_seed(SEED)
    model = CharGpt(len(vocabulary))
    decayed = [p for p in model.parameters() if p.dim() == 2]
    rest = [p for p in model.parameters() if p.dim() != 2]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.05}, {"params": rest, "weight_decay": 0.0}], betas=(0.9, 0.98)
    )
    step, used = 0, 0.0
    if os.path.exists(checkpoint):
        state = torch.load(checkpoint)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step, used = state["step"], state["used"]
    generator = torch.Generator().manual_seed(SEED + step)
    print(f"{sum(p.numel() for p in model.parameters())} parameters, {len(vocabulary)} characters, "
          f"{len(training)} to train on, {len(held_out)} held out; from step {step}", flush=True)

    def save():
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step, "used": used}
        torch.save(state, checkpoint + ".tmp")
        os.replace(checkpoint + ".tmp", checkpoint)
        metadata = {"model": "char_gpt", "vocabulary": vocabulary, "steps": str(step), "torch": torch.__version__}
        write_safetensors(os.path.join(args.work, "char_gpt.safetensors"), model.state_dict(), metadata)
        model.eval()
        bits, _ = bits_per_character(model, held_out[: HELD_OUT_WINDOWS * CONTEXT])
        model.train()
        print(f"step {step} after {used / 60:.1f} min: train {recent / math.log(2):.4f}, "
              f"held out {bits:.4f} bits per character", flush=True)

    budget, last_save, recent = args.minutes * 60.0, used, math.log(len(vocabulary))
    while used < budget:
        start = time.monotonic()
        warm_up = min(1.0, (step + 1) / 200)
        rate = args.rate * warm_up * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * used / budget)))
        for group in optimizer.param_groups:
            group["lr"] = rate
        offsets = torch.randint(len(training) - CONTEXT, (args.batch,), generator=generator)
        windows = training[offsets[:, None] + torch.arange(CONTEXT + 1)]
        loss = F.cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        recent += 0.02 * (loss.item() - recent)
        step += 1
        used += time.monotonic() - start
        if used - last_save > 120 or used >= budget:
            save()
            last_save = used


def export(args):
    model, vocabulary = load_model(os.path.join(args.work, "char_gpt.safetensors"))
    _, metadata = read_safetensors(os.path.join(args.work, "char_gpt.safetensors"))
    _, held_out = split(read_text())
    write_safetensors(WEIGHTS, model.state_dict(), metadata)
    write_vocabulary_header(os.path.join(HERE, "vocabulary.h"), vocabulary)
    with open(os.path.join(HERE, "heldout.txt"), "w") as f:
        f.write(held_out[: HELD_OUT_WINDOWS * CONTEXT])
    bits, count = bits_per_character(model, encode(held_out, vocabulary))
    print(f"{os.path.getsize(WEIGHTS)} bytes; {bits:.4f} bits per character on all {count} held-out characters")


def evaluate(args):
    model, vocabulary = load_model(args.weights)
    with open(os.path.join(HERE, "heldout.txt")) as f:
        bits, count = bits_per_character(model, encode(f.read(), vocabulary))
    with open(os.path.join(HERE, "expected.json"), "w") as f:
        json.dump({"bits_per_character": round(bits, 6), "characters": count, "torch": torch.__version__}, f)
        f.write("\n")
    print(f"{bits:.6f} bits per character over {count} characters")


def sample(args):
    model, vocabulary = load_model(args.weights)
    print(generate(model, vocabulary, args.prompt, args.count, args.temperature, args.seed))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, function in (("train", train), ("export", export), ("evaluate", evaluate), ("sample", sample)):
        command = commands.add_parser(name)
        command.set_defaults(function=function)
        if name in ("train", "export"):
            command.add_argument("--work", default=WORK, help="where a run keeps its checkpoint")
        else:
            command.add_argument("--weights", default=WEIGHTS)
        if name == "train":
            command.add_argument("--minutes", type=float, default=60)
            command.add_argument("--batch", type=int, default=8)
            command.add_argument("--rate", type=float, default=2.5e-3)
        if name == "sample":
            command.add_argument("--prompt", default="And it came to pass")
            command.add_argument("--count", type=int, default=600)
            command.add_argument("--temperature", type=float, default=0.8)
            command.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    args.function(args)


if __name__ == "__main__":
    main()
