# SPDX-License-Identifier: Apache-2.0
"""The keyword spotter of ../spotter.cpp from PyTorch's layers, for a whole recording at once."""
import torch
import torch.nn.functional as F
from torch import nn

import counter
from examples import MultiHeadAttention
from golden import Golden, generated

BINS, WIDTH, HEADS, WINDOW, WORDS, FRAMES = 40, 64, 4, 50, 12, 120


class Separable(nn.Module):
    def __init__(self, kernel, dilation):
        super().__init__()
        self.past = (kernel - 1) * dilation
        self.depthwise = nn.Conv1d(WIDTH, WIDTH, kernel, dilation=dilation, groups=WIDTH, bias=False)
        self.pointwise = nn.Conv1d(WIDTH, WIDTH, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm1d(WIDTH), nn.BatchNorm1d(WIDTH)

    def forward(self, x):
        y = F.relu(self.bn1(self.depthwise(F.pad(x, (self.past, 0)))))
        return x + F.relu(self.bn2(self.pointwise(y)))


class Spotter(MultiHeadAttention):
    """The projections of the attention have no prefix."""

    def __init__(self):
        super().__init__(WIDTH, HEADS)
        self.stem = nn.Conv1d(BINS, WIDTH, 3)
        self.blocks = nn.ModuleList(Separable(5, dilation) for dilation in (1, 2, 4))
        self.gru = nn.GRU(WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, mel):
        x = F.relu(self.stem(F.pad(mel.t()[None], (2, 0))))
        for block in self.blocks:
            x = block(x)
        x = self.gru(x.permute(2, 0, 1))[0].transpose(0, 1)  # [1, frames, width]
        ages = torch.arange(len(mel))[:, None] - torch.arange(len(mel))
        mask = (ages >= 0) & (ages < WINDOW)
        return self.head(self.norm(x + super().forward(x, mask=mask)))[0]


def spotter():
    """A streaming model with convolutions, a GRU, and attention over the last 50 frames."""
    golden = Golden("spotter")
    model = generated(Spotter(), golden)
    mel = 2 * torch.from_numpy(counter.uniform("mel", (FRAMES, BINS)))
    golden.add_outputs(f"T{FRAMES}", lambda dtype: {"logits": model.to(dtype)(mel.to(dtype))})
    golden.write()
