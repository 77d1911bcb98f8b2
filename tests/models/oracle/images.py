# SPDX-License-Identifier: Apache-2.0
"""Convolutional networks by PyTorch's own layers."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import counter
from golden import DTYPES, Golden, Weights


class ResidualBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + self.downsample(x))


class SmallCnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 24, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(24)
        self.layer1 = nn.Sequential(ResidualBlock(24, 40, 2))
        self.separable = nn.Sequential(
            nn.Conv2d(40, 40, 3, 1, 1, groups=40, bias=False), nn.BatchNorm2d(40), nn.ReLU(), nn.Conv2d(40, 64, 1), nn.ReLU())  # fmt: skip
        self.features = nn.Sequential(
            nn.Conv2d(64, 72, 3, 1, 1), nn.ReLU(), nn.Conv2d(72, 72, 3, 1, 2, dilation=2), nn.ReLU(),
            nn.AvgPool2d(2), nn.Conv2d(72, 36, 3, 1, 1, groups=4), nn.ReLU())  # fmt: skip
        self.classifier = nn.Linear(36, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        features = self.features(self.separable(self.layer1(x)))
        return features, self.classifier(F.adaptive_avg_pool2d(features, 1).flatten(1))


def small_cnn():
    """A small convolutional network: stem, residual block, separable, dilated and grouped convolutions, pools."""
    weights, golden = Weights(), Golden("small_cnn")
    model = SmallCnn().eval()
    state = {}
    for name, value in model.state_dict().items():
        state[name] = value if name.endswith("num_batches_tracked") else weights(name, *value.shape)
    model.load_state_dict(state)
    for batch in (1, 3):
        image = torch.from_numpy(counter.uniform("image", (batch, 3, 90, 74)))
        out = {}
        for dtype in reversed(DTYPES):
            out[dtype] = model.to(dtype)(image.to(dtype))
        resized = {d: F.interpolate(out[d][0], (13, 4), mode="bilinear", align_corners=False) for d in DTYPES}
        for name, images in ("features", {d: out[d][0] for d in DTYPES}), ("resized", resized):
            rows = {d: images[d].flatten(0, 1).flatten(1) for d in DTYPES}
            golden.add(f"B{batch}", name, rows[torch.float64].shape[1], [rows], np.ones(36 * batch, bool))
        golden.add(f"B{batch}", "logits", 10, [{d: out[d][1] for d in DTYPES}], np.ones(batch, bool))
    golden.metadata["parameters"] = str(weights.parameters)
    golden.write()
