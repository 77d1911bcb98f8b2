# SPDX-License-Identifier: Apache-2.0
"""The operators of the models, in two forms: PyTorch's own, and ONNX Runtime's fused operators.

The fused form computes the same in PyTorch; when exported, each operator is one node of the domain com.microsoft.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

DOMAIN = "com.microsoft"


class Linear(nn.Module):
    """y = x W^T + b; the weight is [outputs, inputs], or [inputs, outputs] if transposed."""

    def __init__(self, inputs, outputs, transposed=False):
        super().__init__()
        self.transposed = transposed
        self.weight = nn.Parameter(torch.empty((inputs, outputs) if transposed else (outputs, inputs)))
        self.bias = nn.Parameter(torch.empty(outputs))

    def matrix(self):
        return self.weight if self.transposed else self.weight.t()

    def forward(self, x):
        return torch.matmul(x, self.matrix()) + self.bias if self.transposed else F.linear(x, self.weight, self.bias)


def causal_mask(rows):
    return torch.full((rows, rows), -math.inf).triu(1)


def attend(q, k, v, heads, causal):
    """Attention over [batch, rows, heads * width]."""

    def split(x):
        return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)

    q, k, v = split(q), split(k), split(v)
    scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
    if causal:
        scores = scores + causal_mask(q.shape[2])
    y = torch.matmul(scores.softmax(-1), v)
    return y.transpose(1, 2).reshape(y.shape[0], q.shape[2], -1)


class Plain:
    """PyTorch's own operators, as an exporter sees them."""

    @staticmethod
    def attention(query, key, value, x, memory, heads, causal=False):
        return attend(query(x), key(memory), value(memory), heads, causal)

    @staticmethod
    def joint_attention(joint, x, heads, causal=False):
        return attend(*joint(x).chunk(3, dim=-1), heads, causal)

    @staticmethod
    def cached_attention(joint, x, keys, values, heads):
        q, k, v = joint(x).chunk(3, dim=-1)
        return attend(q, torch.cat((keys, k), dim=1), torch.cat((values, v), dim=1), heads, causal=False)

    @staticmethod
    def logits(x, table):
        return F.linear(x, table)

    @staticmethod
    def add_norm(linear, x, skip, norm):
        """(norm(sum), sum) of linear(x) + skip."""
        total = linear(x) + skip
        return norm(total), total

    @staticmethod
    def gelu(linear, x, approximate="none"):
        return F.gelu(linear(x), approximate=approximate)


class SkipLayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, skip, weight, shift, bias, epsilon):
        total = x + bias + skip
        return F.layer_norm(total, weight.shape, weight, shift, epsilon), total

    @staticmethod
    def symbolic(g, x, skip, weight, shift, bias, epsilon):
        outputs = g.op(f"{DOMAIN}::SkipLayerNormalization", x, skip, weight, shift, bias, epsilon_f=epsilon, outputs=4)
        return outputs[0], outputs[3]


class BiasGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bias, approximate):
        return F.gelu(x + bias, approximate=approximate)

    @staticmethod
    def symbolic(g, x, bias, approximate):
        return g.op(f"{DOMAIN}::{'BiasGelu' if approximate == 'none' else 'FastGelu'}", x, bias)


class MultiHeadAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, bias, heads, causal):
        q_bias, k_bias, v_bias = bias.chunk(3)
        return attend(q + q_bias, k + k_bias, v + v_bias, heads, causal)

    @staticmethod
    def symbolic(g, q, k, v, bias, heads, causal):
        return g.op(f"{DOMAIN}::MultiHeadAttention", q, k, v, bias, num_heads_i=heads, unidirectional_i=int(causal))


class QuantisedProduct(torch.autograd.Function):
    """x times an int8 matrix with one scale per column; the runtime quantises x with a single scale."""

    @staticmethod
    def forward(ctx, x, matrix, scales):
        return x @ (matrix * scales)

    @staticmethod
    def symbolic(g, x, matrix, scales):
        rows, row_scale, row_zero = g.op("DynamicQuantizeLinear", x, outputs=3)
        return g.op(f"{DOMAIN}::MatMulIntegerToFloat", rows, matrix, row_scale, scales, row_zero)


class Fused(Plain):
    """Attention, linear layer + residual + norm, and linear layer + bias + GELU are one operator each."""

    @staticmethod
    def product(x, matrix):
        return x @ matrix

    @classmethod
    def logits(cls, x, table):
        return cls.product(x, table.t())

    @classmethod
    def attention(cls, query, key, value, x, memory, heads, causal=False):
        bias = torch.cat((query.bias, key.bias, value.bias))
        q, k, v = (cls.product(rows, part.matrix()) for rows, part in ((x, query), (memory, key), (memory, value)))
        return MultiHeadAttention.apply(q, k, v, bias, heads, causal)

    @classmethod
    def joint_attention(cls, joint, x, heads, causal=False):
        q, k, v = (cls.product(x, part) for part in joint.matrix().chunk(3, dim=1))
        return MultiHeadAttention.apply(q, k, v, joint.bias, heads, causal)

    @staticmethod
    def cached_attention(joint, x, keys, values, heads):
        q, k, v = joint(x).chunk(3, dim=-1)
        k, v = torch.cat((keys, k), dim=1), torch.cat((values, v), dim=1)
        return MultiHeadAttention.apply(q, k, v, torch.zeros(3 * x.shape[-1]), heads, False)

    @classmethod
    def add_norm(cls, linear, x, skip, norm):
        y = cls.product(x, linear.matrix())
        return SkipLayerNorm.apply(y, skip, norm.weight, norm.bias, linear.bias, norm.eps)

    @classmethod
    def gelu(cls, linear, x, approximate="none"):
        return BiasGelu.apply(cls.product(x, linear.matrix()), linear.bias, approximate)


class Quantised(Fused):
    """int8 matrices and dynamically quantised activations: ONNX Runtime's dynamic quantisation."""

    @staticmethod
    def product(x, matrix):
        scales = matrix.abs().amax(dim=0) / 127
        return QuantisedProduct.apply(x, (matrix / scales).round().to(torch.int8), scales)


FORMS = {"plain": Plain, "fused": Fused}
