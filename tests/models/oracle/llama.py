# SPDX-License-Identifier: Apache-2.0
"""A Llama from tensor operations: PyTorch has no layer with RMS norm, rotary positions or grouped-query attention."""
import math

import numpy as np
import torch
import torch.nn.functional as F

import counter
from golden import DTYPES, Golden, Weights, causal


def llama():
    """The shape `small` of models/llama: 4 layers, width 128, 8 heads, 2 key and value heads, hidden 352."""
    vocabulary, layers, width, heads, shared, hidden, base, eps = 512, 4, 128, 8, 2, 352, 500000.0, 1e-5
    cases = [(1, 1), (3, 7), (2, 64), (1, 129), (1, 256)]
    depth = width // heads
    weights, golden = Weights(), Golden("llama")

    def rotary(x, dtype):
        """x [B, heads, T, depth] as complex numbers x[i] + j x[i + depth/2], times e^(j t base^(-2i/depth))."""
        t = torch.arange(x.shape[2], dtype=torch.float64)[:, None]
        angle = t * base ** (-torch.arange(0, depth, 2, dtype=torch.float64) / depth)
        turned = torch.complex(*x.double().chunk(2, -1)) * torch.polar(torch.ones_like(angle), angle)
        return torch.cat((turned.real, turned.imag), -1).to(dtype)

    def norm(x, weight):
        return x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps) * weight.to(x.dtype)

    def block(x, w):
        b, t, _ = x.shape
        y = norm(x, w["input_layernorm"])
        q, k, v = (F.linear(y, w[f"self_attn.{n}_proj"].to(x.dtype)).view(b, t, -1, depth).transpose(1, 2) for n in "qkv")
        q, k = rotary(q, x.dtype), rotary(k, x.dtype)
        k, v = (z.repeat_interleave(heads // shared, 1) for z in (k, v))
        scores = (q @ k.transpose(2, 3) / math.sqrt(depth)).masked_fill(causal(t), -math.inf)
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, width)
        x = x + F.linear(y, w["self_attn.o_proj"].to(x.dtype))
        y = norm(x, w["post_attention_layernorm"])
        gate, up, down = (w[f"mlp.{n}_proj"].to(x.dtype) for n in ("gate", "up", "down"))
        return x + F.linear(F.silu(F.linear(y, gate)) * F.linear(y, up), down)

    table = weights("model.embed_tokens.weight", vocabulary, width)
    x = {}
    for b, t in cases:
        tokens = torch.from_numpy(counter.tokens("tokens", (b, t), vocabulary)).long()
        x[b, t] = {d: table[tokens].to(d) for d in DTYPES}
    for i in range(layers):
        w = {}
        for part, shape in (
            ("input_layernorm", (width,)), ("post_attention_layernorm", (width,)),
            ("self_attn.q_proj", (width, width)), ("self_attn.k_proj", (shared * depth, width)),
            ("self_attn.v_proj", (shared * depth, width)), ("self_attn.o_proj", (width, width)),
            ("mlp.gate_proj", (hidden, width)), ("mlp.up_proj", (hidden, width)), ("mlp.down_proj", (width, hidden)),
        ):  # fmt: skip
            w[part] = weights(f"model.layers.{i}.{part}.weight", *shape)
        for case in cases:
            x[case] = {d: block(x[case][d], w) for d in DTYPES}
    final, head = weights("model.norm.weight", width), weights("lm_head.weight", vocabulary, width)
    for b, t in cases:
        logits = {d: F.linear(norm(x[b, t][d], final), head.to(d)).flatten(0, 1) for d in DTYPES}
        golden.add(f"B{b}T{t}", "logits", vocabulary, [logits], np.ones(b * t, bool))
    golden.metadata["parameters"] = str(weights.parameters)
    golden.write()
