# SPDX-License-Identifier: Apache-2.0
"""Attention from tensor operations, with its weights: the entries of examples/attention_layers."""
import math

import numpy as np
import torch
import torch.nn as nn

import counter
from examples import AdditiveAttention
from golden import DTYPES, Golden, Weights, both, causal, run, sinusoid


def worked_attention():
    """Three sentences of two-dimensional word vectors; queries, keys and values are the vectors, scaled dot product."""
    sentences = {
        "S1": ("the sheep and goat grazing", [[1, 1], [4, 0], [0, 0], [2.5, 2.5], [5, 0]]),
        "S2": ("Messi is goat not Ronaldo", [[0, 5], [1, 1], [2.5, 2.5], [0, 0], [0, 4]]),
        "S3": ("Messi is the goat , not Ronaldo", [[6, 2], [1, 1], [1, 1], [5, 3], [0, 0], [1, 0], [4, 2]]),
    }
    golden = Golden("worked_attention")
    for name, (words, rows) in sentences.items():
        x = torch.tensor(rows, dtype=torch.float64)
        scores = x @ x.t() / math.sqrt(2)
        weights = scores.softmax(-1)
        y = weights @ x
        for key, value in (("x", x), ("scores", scores), ("weights", weights), ("y", y)):
            golden.tensors[f"{name}.{key}"] = value.numpy().astype(np.float32)
        golden.metadata[f"{name}.words"] = words
        goat = words.split().index("goat")
        print(name, "goat ->", [round(v, 6) for v in y[goat].tolist()])
    golden.write()


def attention_layers():
    """Additive, dot product, keys and values, positions, masks, heads; B sequences of N inputs of width 24."""
    cases = [(1, 1, 1), (3, 7, 5), (2, 64, 48)]  # B, N, M
    weights, golden = Weights(), Golden("attention_layers")

    def linear(name, outputs, inputs):
        weight = both(weights(f"{name}.weight", outputs, inputs))
        return lambda x: {d: x[d] @ weight[d].t() for d in DTYPES}

    def projected(name, width):
        return [linear(f"{name}.{part}", out, width) for part, out in (("query", 20), ("key", 20), ("value", 28))]

    def attend(q, k, v, scale, mask=None):
        y, a = {}, {}
        for d in DTYPES:
            scores = q[d] @ k[d].transpose(-1, -2) * scale
            a[d] = (scores if mask is None else scores + mask.to(d)).softmax(-1)
            y[d] = a[d] @ v[d]
        return y, a

    def each(x, function):
        return {d: function(x[d], d) for d in DTYPES}

    additive = AdditiveAttention(20, 24, 32)
    additive.load_state_dict({n: weights(f"additive.{n}", *value.shape) for n, value in additive.state_dict().items()})
    keys_values = projected("keys_values", 24)[1:]
    layers = {name: projected(name, 24) for name in ("self", "sum")}
    layers["joined"] = projected("joined", 32)
    place = weights("place.weight", 64, 24)
    heads = nn.MultiheadAttention(24, 3, batch_first=True)
    parts = {n: weights.linear(f"heads.{n}", 24, 24) for n in ("q_proj", "k_proj", "v_proj", "out_proj")}
    heads.load_state_dict({
        "in_proj_weight": torch.cat([parts[n][0] for n in ("q_proj", "k_proj", "v_proj")]),
        "in_proj_bias": torch.cat([parts[n][1] for n in ("q_proj", "k_proj", "v_proj")]),
        "out_proj.weight": parts["out_proj"][0], "out_proj.bias": parts["out_proj"][1],
    })  # fmt: skip

    def self_attention(name, x, mask=None):
        q, k, v = (layer(x) for layer in layers[name])
        return attend(q, k, v, 1 / math.sqrt(20), mask)

    image = {n: nn.Conv2d(i, o, 1) for n, i, o in (("query", 24, 3), ("key", 24, 3), ("value", 24, 12), ("out", 12, 24))}
    for name, conv in image.items():
        shapes = {key: value.shape for key, value in conv.state_dict().items()}
        conv.load_state_dict({key: weights(f"image.{name}.{key}", *shape) for key, shape in shapes.items()})
    gamma = weights("image.gamma", 1)

    def image_attention(x, d):
        """Zhang et al. 2019 on channels first: y [B, 42, 24], weights [B, 42, 42]."""
        pixels = x.view(-1, 6, 7, 24).permute(0, 3, 1, 2)
        q, k, v = (image[n].to(d)(pixels).flatten(2) for n in ("query", "key", "value"))
        a = (q.transpose(1, 2) @ k).softmax(-1)
        seen = image["out"].to(d)((v @ a.transpose(1, 2)).view(-1, 12, 6, 7))
        return (pixels + gamma.to(d) * seen).flatten(2).transpose(1, 2), a

    for b, n, m in cases:
        x = both(torch.from_numpy(counter.uniform("x", (b, n, 24))) * 2)
        query = both(torch.from_numpy(counter.uniform("query", (b, 1, 24))))
        queries = both(torch.from_numpy(counter.uniform("queries", (b, m, 20))) * 2)
        # Every third element is masked, but never a query's first input.
        mask = torch.from_numpy(counter.uniform("mask", (n, n)))
        forbidden = (torch.arange(n * n).reshape(n, n) % 3 == 1) & (torch.arange(n)[None, :] > 0)
        mask = mask.masked_fill(forbidden, -math.inf)

        small = each(queries, lambda value, d: value[:, 0])
        seen = {d: additive.to(d)(small[d], additive.keys(x[d]), x[d]) for d in reversed(DTYPES)}
        results = {"additive": tuple({d: seen[d][i] for d in DTYPES} for i in range(2))}
        results["dot"] = attend(query, x, x, 1)
        results["scaled_dot"] = attend(query, x, x, 1 / math.sqrt(24))
        results["many_queries"] = attend(queries, *(layer(x) for layer in keys_values), 1 / math.sqrt(20))
        results["self_attention"] = self_attention("self", x)
        results["learned_positions"] = self_attention("sum", each(x, lambda value, d: value + place[:n].to(d)))
        results["sine_positions"] = self_attention("sum", each(x, lambda value, d: value + sinusoid(n, 24).to(d)))
        first = each(x, lambda value, d: torch.cat((value[0], sinusoid(n, 8).to(d)), -1))
        results["joined_positions"] = self_attention("joined", first)
        results["causal"] = self_attention("self", x, torch.zeros(n, n).masked_fill(causal(n), -math.inf))
        results["masked"] = self_attention("self", x, mask)
        y, a = {}, {}
        for d in reversed(DTYPES):
            y[d], a[d] = heads.to(d)(x[d], x[d], x[d], average_attn_weights=False)
        results["multi_head"] = y, a
        pixels = both(torch.from_numpy(counter.uniform("pixels", (b, 42, 24))) * 2)
        seen = {d: image_attention(pixels[d], d) for d in reversed(DTYPES)}
        results["image_attention"] = tuple({d: seen[d][i] for d in DTYPES} for i in range(2))
        for name, outputs in results.items():
            for output, value in zip(("y", "weights"), outputs):
                rows = each(value, lambda v, d: v.reshape(-1, v.shape[-1]))
                count, columns = rows[torch.float64].shape
                golden.add(f"{name}.B{b}N{n}", output, columns, [rows], np.ones(count, bool))
    golden.metadata["parameters"] = str(weights.parameters)
    golden.write()
