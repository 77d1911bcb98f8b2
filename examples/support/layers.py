# SPDX-License-Identifier: Apache-2.0
"""Kiln's layers in PyTorch, with Kiln's parameter names, for the training scripts of the examples."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class MultiHeadAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj = nn.Linear(width, width), nn.Linear(width, width)
        self.v_proj, self.out_proj = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x, memory=None, mask=None):
        """`mask`, true where a query may attend, broadcasts to [batch, heads, queries, keys]. Stores the weights in
        `seen`."""
        memory = x if memory is None else memory
        return self.apart(x, memory, memory, mask)

    def apart(self, queries, keys, values, mask=None):
        q, k, v = (
            p(t).view(t.shape[0], t.shape[1], self.heads, -1).transpose(1, 2)
            for p, t in ((self.q_proj, queries), (self.k_proj, keys), (self.v_proj, values))
        )
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        weights = scores.softmax(-1)
        self.seen = weights.detach()
        return self.out_proj((weights @ v).transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, width, hidden, activation=F.gelu):
        super().__init__()
        self.fc1, self.fc2, self.activation = nn.Linear(width, hidden), nn.Linear(hidden, width), activation

    def forward(self, x):
        return self.fc2(self.activation(self.fc1(x)))


class EncoderBlock(nn.Module):
    def __init__(self, width, heads, hidden, activation=F.gelu, pre_norm=True):
        super().__init__()
        self.pre_norm = pre_norm
        self.self_attn, self.mlp = MultiHeadAttention(width, heads), Mlp(width, hidden, activation)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def residual(self, x, norm, part):
        return x + part(norm(x)) if self.pre_norm else norm(x + part(x))

    def forward(self, x, mask=None):
        x = self.residual(x, self.norm1, lambda y: self.self_attn(y, mask=mask))
        return self.residual(x, self.norm2, self.mlp)


class DecoderBlock(EncoderBlock):
    def __init__(self, width, heads, hidden, activation=F.gelu, pre_norm=True):
        super().__init__(width, heads, hidden, activation, pre_norm)
        self.cross_attn, self.norm3 = MultiHeadAttention(width, heads), nn.LayerNorm(width)

    def forward(self, x, memory, mask=None):
        """`mask` of the memory, as for MultiHeadAttention. The block's self-attention is causal."""
        causal = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        x = self.residual(x, self.norm1, lambda y: self.self_attn(y, mask=causal))
        x = self.residual(x, self.norm2, lambda y: self.cross_attn(y, memory, mask=mask))
        return self.residual(x, self.norm3, self.mlp)


class AdditiveAttention(nn.Module):
    """v tanh(W q + U k + b) as the score of key k for query q (Bahdanau et al. 2015, A.1.2)."""

    def __init__(self, query_width, memory_width, hidden):
        super().__init__()
        self.q_proj = nn.Linear(query_width, hidden, bias=False)
        self.k_proj = nn.Linear(memory_width, hidden)
        self.score = nn.Parameter(torch.randn(hidden) * hidden**-0.5)

    def keys(self, memory):
        return self.k_proj(memory)

    def forward(self, query, keys, memory, mask=None):
        """query [batch, Q], keys [batch, N, hidden], memory [batch, N, D] -> context [batch, D], weights [batch, N]."""
        scores = torch.tanh(self.q_proj(query).unsqueeze(1) + keys) @ self.score
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        weights = scores.softmax(-1)
        return torch.bmm(weights.unsqueeze(1), memory).squeeze(1), weights


def sinusoids(count, width):
    """p(t)_{2k} = sin(t / 10000^{2k/d}), p(t)_{2k+1} = cos of the same (Vaswani et al. 2017, 3.5)."""
    rates = 10000.0 ** (-torch.arange(0, width, 2) / width)
    angles = torch.arange(count)[:, None] * rates
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)
