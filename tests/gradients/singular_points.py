#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes singular_points.inc: gradients from PyTorch's autograd in f64 at poles, kinks and ties of functions.

singular_points.py > singular_points.inc, with PyTorch 1.13 or later. The output is deterministic.
"""
import torch
from torch.nn import functional as F

inf, nan = float("inf"), float("nan")
GRADIENTS = (1.0, 0.0, -2.0)  # gradients of the result
EVERYWHERE = (0.0, 1.0, -1.0, 2.0, inf, -inf, nan)
POSITIVE = (0.0, 1.0, 2.0, 1e-8, 1e20, inf)
EXTREME = (1e-4, -1e-4, 1e20, -1e20, 1e38)

UNARY = {
    "exp": (torch.exp, EVERYWHERE),
    "log": (torch.log, EVERYWHERE),
    "sqrt": (torch.sqrt, EVERYWHERE),
    "rsqrt": (torch.rsqrt, EVERYWHERE),
    "abs": (torch.abs, EVERYWHERE),
    "tanh": (torch.tanh, EVERYWHERE),
    "sigmoid": (torch.sigmoid, EVERYWHERE),
    "relu": (torch.relu, EVERYWHERE),
    "gelu": (F.gelu, EVERYWHERE),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), EVERYWHERE),
    "silu": (F.silu, EVERYWHERE),
    "softplus": (F.softplus, EVERYWHERE),
    "leaky_relu": (F.leaky_relu, EVERYWHERE),
    "elu": (lambda x: F.elu(x, 2.0), (0.0, 1.0, -1.0, 2.0, inf, -inf)),
    "sin": (torch.sin, EVERYWHERE),
    "cos": (torch.cos, EVERYWHERE),
    "tan": (torch.tan, EVERYWHERE),
    "erf": (torch.erf, EVERYWHERE),
    "expm1": (torch.expm1, EVERYWHERE),
    "log1p": (torch.log1p, EVERYWHERE + (-2.0,)),
    "sinh": (torch.sinh, EVERYWHERE),
    "cosh": (torch.cosh, EVERYWHERE),
    "log2": (torch.log2, EVERYWHERE),
    "log10": (torch.log10, EVERYWHERE),
    "reciprocal": (torch.reciprocal, EVERYWHERE),
    "hardtanh": (F.hardtanh, (0.0, 1.0, -1.0, 2.0, inf, -inf)),
    "relu6": (F.relu6, (0.0, 6.0, 3.0, -1.0, 7.0, inf, -inf)),
    "hard_sigmoid": (F.hardsigmoid, (0.0, 3.0, -3.0, 2.0, inf, -inf)),
    "hard_swish": (F.hardswish, (0.0, 2.0, -2.0, 4.0, -4.0, inf, -inf)), # versions of PyTorch differ at -3 and 3
    "mish": (F.mish, (0.0, 1.0, -1.0, 2.0, 30.0, -30.0, nan)),
    "selu": (F.selu, (0.0, 1.0, -1.0, 2.0, inf, -inf)),
    "celu": (lambda x: F.celu(x, 2.0), (0.0, 1.0, -1.0, 2.0, inf, -inf)),
    "log_sigmoid": (F.logsigmoid, EVERYWHERE),
    "softsign": (F.softsign, EVERYWHERE),
    "clamp": (lambda x: torch.clamp(x, 0.0, 1.0), (0.0, 0.5, 1.0, -1.0, 2.0, inf, -inf)),
    "pow_0": (lambda x: x**0, EVERYWHERE),
    "pow_half": (lambda x: x**0.5, EVERYWHERE),
    "pow_1": (lambda x: x**1, EVERYWHERE),
    "pow_2": (lambda x: x**2, EVERYWHERE),
    "pow_3": (lambda x: x**3, EVERYWHERE),
    "pow_7": (lambda x: x**7, EVERYWHERE + (1e-20, -1e-20)),
    "pow_100": (lambda x: x**100, EVERYWHERE + (1e-20, -1e-20, -0.5)),
    "pow_101": (lambda x: x**101, EVERYWHERE + (1e-20, -1e-20, -0.5)),
    "pow_part": (lambda x: x**0.3, POSITIVE + (-1.0,)),
    "pow_more": (lambda x: x**1.5, POSITIVE + (-1.0,)),
    "pow_minus_1": (lambda x: x**-1, EVERYWHERE),
    "pow_minus_2": (lambda x: x**-2, EVERYWHERE + EXTREME),
    "pow_minus_3": (lambda x: x**-3, EVERYWHERE + EXTREME),
    "pow_minus_7": (lambda x: x**-7, EVERYWHERE + EXTREME),
    "pow_minus_101": (lambda x: x**-101, EVERYWHERE + (0.5, -0.5, 1e20, -1e20, 1e38)),
    "pow_minus_half": (lambda x: x**-0.5, POSITIVE),
    "pow_minus_part": (lambda x: x**-0.3, POSITIVE),
    "pow_minus_more": (lambda x: x**-3.5, POSITIVE),
    # An operand that is not selected must not affect the gradient.
    "where_log": (lambda x: torch.where(x > 0, torch.log(torch.where(x > 0, x, torch.ones_like(x))), x), EVERYWHERE),
}
PAIRS = ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (inf, 1.0), (1.0, inf), (nan, 1.0), (-1.0, 0.0))
POWERS = ((0.0, 0.0), (0.0, 0.5), (0.0, 1.0), (0.0, 2.0), (1.0, 0.0), (2.0, 0.0), (2.0, 3.0), (0.5, 0.5), (1e20, -3.0),
          (inf, 0.5), (inf, 2.0), (inf, 1.0), (0.0, -1.0))
BINARY = {
    "mul": (torch.mul, PAIRS),
    "div": (torch.div, PAIRS),
    "maximum": (torch.maximum, PAIRS),
    "minimum": (torch.minimum, PAIRS),
    "pow": (torch.pow, POWERS),
}


def layer_norm(x):
    return F.layer_norm(x, (4,), eps=1e-5)


def rms_norm(x):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5)


def cross_entropy(x):
    return F.cross_entropy(x, torch.tensor([1, 3, 0])).expand(3, 4)


def binary_cross_entropy(x):
    y = torch.tensor([[0.5, 1.0, 0.0, 0.0], [1.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, 0.0]], dtype=x.dtype)
    return F.binary_cross_entropy_with_logits(x, y).expand(3, 4)


EPSILON = 2.0**-7


def channels_first(x):
    """An image of three pixels and four channels."""
    return x.t()[None]


def group_norm(x):
    return F.group_norm(channels_first(x), 2, eps=EPSILON)[0].t()


def instance_norm(x):
    return F.instance_norm(channels_first(x), eps=EPSILON)[0].t()


def batch_norm(x):
    return F.batch_norm(x, None, None, training=True, eps=1e-5)


def max_pool2d(x):
    return F.max_pool2d(x[None, None], 3, 1, 1)[0, 0]


# Query 1 may attend to no key, so its weights are 0.
MASK = torch.tensor([[0.0, -3e38, 0.0], [-3e38] * 3, [-3e38, -3e38, 0.0]], dtype=torch.float64)
HAS_KEY = (MASK == 0).any(-1, keepdim=True).double()


def scores(x, heads):
    x = x.view(3, heads, 4 // heads).transpose(0, 1)
    return x @ x.transpose(1, 2) / (4 // heads) ** 0.5


def attention(x):
    weights = (scores(x, 2) + MASK).softmax(-1) * HAS_KEY
    return (weights @ x.view(3, 2, 2).transpose(0, 1)).transpose(0, 1).reshape(3, 4)


def attention_weights(x):
    """The score of a masked key is a constant (dsl/SPEC.md, attention_scores)."""
    return (scores(x, 1)[0].masked_fill(MASK < 0, -3e38).softmax(-1) * HAS_KEY) @ x


def attention_of_lengths(x):
    """Three sequences of two rows, of which 2, 0 and 1 count. The empty one is 0, and has no gradient."""
    x = x.view(3, 2, 2)
    both = (x[0] @ x[0].t() / 2**0.5).softmax(-1) @ x[0]
    return torch.stack([both, torch.zeros(2, 2, dtype=x.dtype), x[2, :1].expand(2, 2)]).view(3, 4)


DY = [[1.0, 0.5, -2.0, 0.25], [0.5, 0.0, 3.0, -1.0], [-1.0, 2.0, 0.0, 1.5]]
ROWS = {
    "l2_normalize": (F.normalize, [[0.0] * 4, [3.0, 4.0, 0.0, 0.0], [1e-14, 0.0, 0.0, -1e-14]]),
    "softmax": (lambda x: x.softmax(-1), [[0.0, -inf, 1.0, 2.0], [-inf, -inf, 0.5, -inf], [200.0, -200.0, 0.0, 1.0]]),
    "log_softmax": (lambda x: x.log_softmax(-1), [[0.0, 1.0, 1.0, 2.0], [400.0, -inf, 0.5, 3.0], [1.0] * 4]),
    "logsumexp": (lambda x: x.logsumexp(-1, keepdim=True).expand(3, 4), [[0.0, -inf, 1.0, 2.0], [-inf, -inf, 0.5, -inf], [400.0, -200.0, 0.0, 399.0]]),
    "cross_entropy": (cross_entropy, [[0.0, 1.0, -inf, 2.0], [-inf, -inf, 0.5, 1.0], [300.0, -200.0, 0.0, 1.0]]),
    "max": (lambda x: x.amax(-1, keepdim=True).expand(3, 4), [[1.0] * 4, [0.0, 2.0, 2.0, -inf], [-1.0, 3.0, inf, inf]]),
    "layer_norm": (layer_norm, [[1.0] * 4, [0.0] * 4, [1.0, -1.0, 1.0, -1.0]]),
    "rms_norm": (rms_norm, [[0.0] * 4, [1e-3] * 4, [1.0, 2.0, 0.0, -1.0]]),
    "binary_cross_entropy": (binary_cross_entropy, [[0.0, inf, -inf, inf], [-inf, 300.0, -300.0, nan], [-200.0, 1.0, 0.0, 1e-30]]),
    # Equal elements in a group, a channel, and a column.
    "group_norm": (group_norm, [[1.0, 1.0, 0.0, 2.0], [1.0, 1.0, 3.0, -1.0], [1.0, 1.0, 0.0, 5.0]]),
    "instance_norm": (instance_norm, [[0.0, 2.0, 1.0, -3.0], [0.0, 2.0, -1.0, -3.0], [0.0, 2.0, 0.5, 1.0]]),
    "batch_norm": (batch_norm, [[0.0, 2.0, 1.0, -3.0], [0.0, 2.0, -1.0, -3.0], [0.0, 2.0, 0.5, 1.0]]),
    "max_pool2d": (max_pool2d, [[1.0, 1.0, 1.0, 1.0], [0.0, 2.0, 2.0, -inf], [-1.0, 2.0, 2.0, -inf]]),
    "attention": (attention, [[1.0, 0.5, -1.0, 2.0], [0.0, 0.0, 0.25, -0.5], [-1.0, 0.5, 1.0, 0.0]]),
    "attention_weights": (attention_weights, [[1.0, 0.5, -1.0, 2.0], [0.0, 0.0, 0.25, -0.5], [-1.0, 0.5, 1.0, 0.0]]),
    "attention_of_lengths": (attention_of_lengths, [[1.0, 0.5, -1.0, 2.0], [0.0, 0.0, 0.25, -0.5], [-1.0, 0.5, 1.0, 0.0]]),
}


def text(value):
    if value != value:
        return "nan"
    return repr(value) if abs(value) != inf else "inf" if value > 0 else "-inf"


def gradients(f, dy, *operands):
    given = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in operands]
    y = f(*given)
    y.backward(torch.tensor(dy, dtype=torch.float64).expand(y.shape))
    return [x.grad for x in given]


def normalized_look_up():
    """Returns a table whose row 2 is zeros, as that of a padding token; the gradients of its elements; and the table after
    three steps of AdamW."""
    table = torch.nn.Embedding(5, 4).double()
    with torch.no_grad():
        table.weight.copy_(torch.arange(20.0).view(5, 4) / 8 - 1.3125)
        table.weight[2] = 0
    optimizer = torch.optim.AdamW(table.parameters(), lr=1e-3, weight_decay=0.01)
    values = [table.weight.detach().clone()]
    for step in range(3):
        optimizer.zero_grad()
        F.mse_loss(F.normalize(table(torch.tensor([1, 2, 4]))), torch.full((3, 4), 0.5, dtype=torch.float64)).backward()
        if step == 0:
            values.append(table.weight.grad.clone())
        optimizer.step()
    return values + [table.weight.detach()]


def row(values):
    return "{" + ", ".join(text(value) for value in values) + "}"


print("// SPDX-License-Identifier: Apache-2.0")
print("// Written by singular_points.py. Each row lists an operation, its operands, the gradient of its result, and the")
print("// gradients of its operands.")
print("// clang-format off")
for name, (f, points) in UNARY.items():
    for x in points:
        for dy in GRADIENTS:
            print(f"KILN_UNARY({name}, {text(x)}, {dy}, {text(gradients(f, dy, x)[0].item())})")
for name, (f, points) in BINARY.items():
    for a, b in points:
        for dy in GRADIENTS:
            da, db = gradients(f, dy, a, b)
            print(f"KILN_BINARY({name}, {text(a)}, {text(b)}, {dy}, {text(da.item())}, {text(db.item())})")
for name, (f, x) in ROWS.items():
    dx = gradients(f, DY, x)[0]
    rows = ", ".join(row(values) for values in (sum(x, []), sum(DY, []), dx.flatten().tolist()))
    print(f"KILN_ROWS({name}, {rows})")
print("// A table, the gradients of its elements, and the table after three steps.")
print(f"KILN_LOOK_UP({', '.join(row(values.flatten().tolist()) for values in normalized_look_up())})")
