# SPDX-License-Identifier: Apache-2.0
"""The forecaster of examples/forecaster from PyTorch's layers: forecasts, gradients, and losses of training steps."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import counter
from examples import EncoderBlock
from golden import DTYPES, Golden, generated

HORIZON, PATCH, STRIDE = 24, 16, 8
STEPS = 5


class Forecaster(nn.Module):
    def __init__(self, width=32, heads=4, layers=2):
        super().__init__()
        self.patches = nn.Conv1d(2, width, PATCH, STRIDE)
        self.positions = nn.Embedding(32, width)
        self.blocks = nn.ModuleList(EncoderBlock(width, heads, 2 * width) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, HORIZON * 3)

    def forecast(self, values, known):
        """Returns the quantiles [B, 24, 3] and the deviation of each series, [B, 1]."""
        has = known.to(values.dtype)
        count = has.sum(1, keepdim=True).clamp(min=1)
        there = torch.where(known, values, torch.zeros_like(values))
        mean = there.sum(1, keepdim=True) / count
        away = (there - mean) * has
        deviation = torch.sqrt((away * away).sum(1, keepdim=True) / count + 1e-5)
        x = self.patches(torch.stack([away / deviation, has], 1)).transpose(1, 2)
        x = x + self.positions(torch.arange(x.shape[1]))
        mask = has.unfold(1, PATCH, STRIDE).sum(-1) > 0.5
        for block in self.blocks:
            x = block(x, mask[:, None, None])
        raw = self.head(self.norm(x)[:, -1]).view(-1, HORIZON, 3)
        steps = torch.cat([raw[..., :1], F.softplus(raw[..., 1:])], -1)
        return steps.cumsum(-1) * deviation[:, :, None] + mean[:, :, None], deviation

    def loss(self, values, known, future):
        quantiles, deviation = self.forecast(values, known)
        above = (future[:, :, None] - quantiles) / deviation[:, :, None]
        levels = torch.tensor([0.1, 0.5, 0.9], dtype=values.dtype)
        return torch.maximum(levels * above, (levels - 1) * above).mean()


def series(batch, patches):
    """Noise of size 2 about a rising line. About an eighth is unknown, and NaN; so is the older half of odd series."""
    length = STRIDE * patches + PATCH - STRIDE
    level = 4 * counter.uniform("level", (batch, 1)).astype(np.float64)

    def line(name, first, count):
        noise = 2 * counter.uniform(name, (batch, count)).astype(np.float64)
        return torch.from_numpy((noise + (first + np.arange(count)) / 32 + level).astype(np.float32))

    known = counter.tokens("known", (batch, length), 8) != 0
    known[1::2, : length // 2] = False
    known = torch.from_numpy(known)
    values = line("values", 0, length).masked_fill(~known, float("nan"))
    return values, known, line("future", length, HORIZON)


def losses(model, values, known, future):
    """The losses of steps of AdamW whose gradients are clipped; biases and norms do not decay."""
    kept = [p for name, p in model.named_parameters() if name.endswith(".bias") or "norm" in name]
    decayed = [p for name, p in model.named_parameters() if not (name.endswith(".bias") or "norm" in name)]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.01}, {"params": kept, "weight_decay": 0.0}], lr=2e-3
    )
    all_losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = model.loss(values, known, future)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        all_losses.append(loss.item())
    return torch.tensor(all_losses)


def forecaster():
    """Series with unknown values: forecasts of four shapes, and the gradients and training steps of one."""
    golden = Golden("forecaster")
    model = generated(Forecaster(), golden)
    for batch, patches in ((1, 1), (5, 7), (3, 32), (64, 2)):
        values, known, _ = series(batch, patches)
        golden.add_outputs(
            f"B{batch}P{patches}",
            lambda dtype: {"quantiles": model.to(dtype).forecast(values.to(dtype), known)[0].view(-1, 3)},
        )
    values, known, future = series(8, 15)
    gradients = {}
    for dtype in reversed(DTYPES):
        with torch.enable_grad():
            model.to(dtype).zero_grad()
            loss = model.loss(values.to(dtype), known, future.to(dtype))
            loss.backward()
        gradients[dtype] = {name: parameter.grad.reshape(1, -1).clone() for name, parameter in model.named_parameters()}
    golden.tensors["loss"] = torch.tensor([loss.item()]).float().numpy()
    for name, gradient in gradients[torch.float64].items():
        # A bias of keys adds the same number to all scores of a query, so its gradient is only rounding errors.
        if not name.endswith("k_proj.bias"):
            block = {dtype: gradients[dtype][name] for dtype in DTYPES}
            golden.add("gradient", name, gradient.shape[1], [block], np.ones(1, bool))
    with torch.enable_grad():
        golden.tensors["losses"] = losses(model.double(), values.double(), known, future.double()).float().numpy()
    print("losses", golden.tensors["losses"].tolist())
    golden.write()
