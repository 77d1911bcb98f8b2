# SPDX-License-Identifier: Apache-2.0
"""Convolutional networks by PyTorch's own layers."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import counter
from examples import Mlp, MultiHeadAttention
from golden import DTYPES, Golden, Weights, generated, sinusoid


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


class WindowAttention(nn.Module):
    """By the authors' formulas: windows of a rolled image, -100 between pixels that only rolling brings together."""

    def __init__(self, width, heads, window, shift):
        super().__init__()
        self.heads, self.window, self.shift = heads, window, shift
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.relative_position_bias_table = nn.Parameter(torch.empty((2 * window - 1) ** 2, heads))
        place = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
        apart = place[:, :, None] - place[:, None, :] + window - 1
        self.index = apart[0] * (2 * window - 1) + apart[1]
        self.masks = {}  # by the image's height and width

    def cut(self, x):
        b, h, w, c = x.shape
        s = self.window
        return x.view(b, h // s, s, w // s, s, c).permute(0, 1, 3, 2, 4, 5).reshape(b, -1, s * s, c)

    def mask(self, h, w):
        s, t = self.window, self.shift
        if (h, w) not in self.masks:
            parts = torch.zeros(1, h, w, 1)
            for i, rows in enumerate((slice(0, -s), slice(-s, -t), slice(-t, None))):
                for j, columns in enumerate((slice(0, -s), slice(-s, -t), slice(-t, None))):
                    parts[:, rows, columns] = 3 * i + j
            of = self.cut(parts)[0, :, :, 0]
            self.masks[h, w] = -100 * (of[:, None] != of[:, :, None]).float()[:, None]
        return self.masks[h, w]

    def forward(self, x):
        b, h, w, c = x.shape
        s, t = self.window, self.shift
        windows = self.cut(torch.roll(x, (-t, -t), (1, 2)))
        q, k, v = self.qkv(windows).view(b, -1, s * s, 3, self.heads, c // self.heads).permute(3, 0, 1, 4, 2, 5)
        scores = q @ k.transpose(-1, -2) * (c // self.heads) ** -0.5
        scores = scores + self.relative_position_bias_table[self.index].permute(2, 0, 1)
        if t:
            scores = scores + self.mask(h, w)
        y = self.proj((scores.softmax(-1) @ v).transpose(2, 3).reshape(b, -1, s * s, c))
        y = y.view(b, h // s, w // s, s, s, c).permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)
        return torch.roll(y, (t, t), (1, 2))


class SwinBlock(nn.Module):
    def __init__(self, width, heads, window, shift):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = WindowAttention(width, heads, window, shift)
        self.mlp = nn.Module()
        self.mlp.fc1, self.mlp.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp.fc2(F.gelu(self.mlp.fc1(self.norm2(x))))


class SwinStage(nn.Module):
    def __init__(self, width, heads, depth, window, side, is_last):
        super().__init__()

        def pair():
            parts = nn.Module()
            parts.even = SwinBlock(width, heads, window, 0)
            parts.odd = SwinBlock(width, heads, window, window // 2 if side > window else 0)
            return parts

        self.pairs = nn.ModuleList(pair() for _ in range(depth // 2))
        if not is_last:
            self.downsample = nn.Module()
            self.downsample.norm = nn.LayerNorm(4 * width)
            self.downsample.reduction = nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x):
        for pair in self.pairs:
            x = pair.odd(pair.even(x))
        if hasattr(self, "downsample"):
            x = torch.cat([x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)], -1)
            x = self.downsample.reduction(self.downsample.norm(x))
        return x


class Swin(nn.Module):
    def __init__(self, width=24, depths=(4, 2), heads=(3, 6), image=56, window=7, patch=4, classes=10):
        super().__init__()
        self.patch_embed = nn.Module()
        self.patch_embed.proj, self.patch_embed.norm = nn.Conv2d(3, width, patch, patch), nn.LayerNorm(width)
        last = len(depths) - 1
        self.layers = nn.ModuleList(
            SwinStage(width << i, heads[i], depths[i], window, image // patch >> i, i == last) for i in range(last + 1))  # fmt: skip
        self.norm, self.head = nn.LayerNorm(width << last), nn.Linear(width << last, classes)

    def forward(self, images):
        x = self.patch_embed.norm(self.patch_embed.proj(images).permute(0, 2, 3, 1))
        for layer in self.layers:
            x = layer(x)
        features = self.norm(x)
        return features, self.head(features.mean((1, 2)))


def swin():
    """Two stages of Swin: four blocks of 14 x 14 positions, every second one shifted, then two of one window."""
    weights, golden = Weights(), Golden("swin")
    model = Swin().eval()
    model.load_state_dict({name: weights(name, *value.shape) for name, value in model.state_dict().items()})
    for batch in (1, 3):
        images = torch.from_numpy(counter.uniform("images", (batch, 3, 56, 56)))
        out = {dtype: model.to(dtype)(images.to(dtype)) for dtype in reversed(DTYPES)}
        golden.add(f"B{batch}", "features", 48, [{d: out[d][0].flatten(0, 2) for d in DTYPES}], np.ones(49 * batch, bool))
        golden.add(f"B{batch}", "logits", 10, [{d: out[d][1] for d in DTYPES}], np.ones(batch, bool))
    golden.metadata["parameters"] = str(weights.parameters)
    golden.write()


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


# --- DETR -------------------------------------------------------------------------------------------------------------


class DetrEncoderBlock(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.self_attn, self.mlp = MultiHeadAttention(width, heads), Mlp(width, hidden, F.relu)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x, places):
        x = self.norm1(x + self.self_attn.apart(x + places, x + places, x))
        return self.norm2(x + self.mlp(x))


class DetrDecoderBlock(DetrEncoderBlock):
    def __init__(self, width, heads, hidden):
        super().__init__(width, heads, hidden)
        self.cross_attn, self.norm3 = MultiHeadAttention(width, heads), nn.LayerNorm(width)

    def forward(self, x, memory, places, queries):
        x = self.norm1(x + self.self_attn.apart(x + queries, x + queries, x))
        x = self.norm2(x + self.cross_attn.apart(x + queries, memory + places, memory))
        return self.norm3(x + self.mlp(x))


class Detr(nn.Module):
    WIDTH, HEADS, HIDDEN, QUERIES, CLASSES = 64, 4, 128, 10, 5

    def __init__(self):
        super().__init__()
        sizes = (self.WIDTH, self.HEADS, self.HIDDEN)
        plan = ((3, 16), (16, 32), (32, 64))
        self.backbone = nn.Module()
        self.backbone.conv = nn.ModuleList(nn.Conv2d(i, o, 3, 2, 1, bias=False) for i, o in plan)
        self.backbone.norm = nn.ModuleList(nn.BatchNorm2d(o) for _, o in plan)
        self.projection = nn.Conv2d(64, self.WIDTH, 1)
        self.encoder = nn.ModuleList(DetrEncoderBlock(*sizes) for _ in range(2))
        self.decoder = nn.ModuleList(DetrDecoderBlock(*sizes) for _ in range(2))
        self.decoder_norm = nn.LayerNorm(self.WIDTH)
        self.queries = nn.Parameter(torch.empty(self.QUERIES, self.WIDTH))
        self.class_head = nn.Linear(self.WIDTH, self.CLASSES + 1)
        self.box_head = nn.ModuleList(nn.Linear(self.WIDTH, o) for o in (self.WIDTH, self.WIDTH, 4))

    def forward(self, images):
        x = images.permute(0, 3, 1, 2)
        for conv, norm in zip(self.backbone.conv, self.backbone.norm):
            x = norm(conv(x)).relu()
        x = self.projection(x)
        batch, _, height, width = x.shape
        half = self.WIDTH // 2
        places = torch.cat((sinusoid(height, half)[:, None].expand(-1, width, -1),
                            sinusoid(width, half)[None].expand(height, -1, -1)), dim=-1).flatten(0, 1).to(x.dtype)  # fmt: skip
        memory = x.flatten(2).transpose(1, 2)
        for block in self.encoder:
            memory = block(memory, places)
        y = torch.zeros(batch, self.QUERIES, self.WIDTH, dtype=x.dtype)
        for block in self.decoder:
            y = block(y, memory, places, self.queries)
        seen = self.decoder[-1].cross_attn.seen.mean(1)
        y = self.decoder_norm(y)
        box = self.box_head[2](F.relu(self.box_head[1](F.relu(self.box_head[0](y))))).sigmoid()
        return {"logits": self.class_head(y), "boxes": box, "seen": seen}


# --- MViT -------------------------------------------------------------------------------------------------------------


class PoolOfHeads(nn.Module):
    def __init__(self, depth, stride):
        super().__init__()
        self.conv = nn.Conv2d(depth, depth, 3, stride, 1, groups=depth, bias=False)
        self.norm = nn.LayerNorm(depth)

    def forward(self, x, heads):
        """Maps [B, H, W, C] to [B, heads, remaining pixels, C / heads]."""
        b, h, w, c = x.shape
        images = x.view(b, h, w, heads, c // heads).permute(0, 3, 4, 1, 2).flatten(0, 1)
        pooled = self.conv(images).flatten(2).transpose(1, 2)
        return self.norm(pooled.view(b, heads, -1, c // heads))


class MvitBlock(nn.Module):
    def __init__(self, width, out, heads, query_stride, key_stride):
        super().__init__()
        self.heads, self.stride = heads, query_stride
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = nn.Module()
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            setattr(self.attn, name, nn.Linear(width, width))
        for name, stride in (("pool_q", query_stride), ("pool_k", key_stride), ("pool_v", key_stride)):
            setattr(self.attn, name, PoolOfHeads(width // heads, stride))
        self.mlp = nn.Module()
        self.mlp.fc1, self.mlp.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, out)
        if out != width:
            self.proj = nn.Linear(width, out)

    def forward(self, x):
        y, a = self.norm1(x), self.attn
        q, k, v = (pool(project(y), self.heads) for project, pool in
                   ((a.q_proj, a.pool_q), (a.k_proj, a.pool_k), (a.v_proj, a.pool_v)))  # fmt: skip
        seen = (q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5).softmax(-1) @ v
        if self.stride > 1:
            x = F.max_pool2d(x.permute(0, 3, 1, 2), 3, self.stride, 1).permute(0, 2, 3, 1)
        x = x + a.out_proj(seen.transpose(1, 2).reshape(x.shape))
        y = self.norm2(x)
        thought = self.mlp.fc2(F.gelu(self.mlp.fc1(y)))
        return thought + (self.proj(y) if hasattr(self, "proj") else x)


class Mvit(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 32, 7, 4, 3)
        self.places = nn.Parameter(torch.empty(14, 14, 32))
        self.blocks = nn.ModuleList((MvitBlock(32, 64, 1, 1, 2), MvitBlock(64, 64, 2, 2, 2), MvitBlock(64, 64, 2, 1, 1)))
        self.norm, self.head = nn.LayerNorm(64), nn.Linear(64, 10)

    def forward(self, images):
        x = self.patches(images.permute(0, 3, 1, 2)).permute(0, 2, 3, 1) + self.places
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return {"logits": self.head(x.flatten(1, 2).mean(1)), "features": x}


def whole_model(name, model, shape):
    """Samples the outputs of a model with generated weights on images of the shape, with batches of one and three."""
    golden = Golden(name)
    generated(model, golden)
    for batch in (1, 3):
        images = torch.from_numpy(counter.uniform("images", (batch, *shape)))

        def compute(dtype):
            return {key: value.flatten(0, -2) for key, value in model.to(dtype)(images.to(dtype)).items()}

        golden.add_outputs(f"B{batch}", compute)
    golden.write()


def detr():
    """Carion et al. 2020: positions are added to queries and keys of every attention, not to values."""
    whole_model("detr", Detr(), (64, 96, 3))


def mvit():
    """Fan et al. 2021: queries, keys and values are pooled by convolutions."""
    whole_model("mvit", Mvit(), (56, 56, 3))
