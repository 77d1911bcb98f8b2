# SPDX-License-Identifier: Apache-2.0
"""The models of the benchmarks in PyTorch: the same computations as their specs, and the same parameter names."""
import math
import os
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

from operators import Linear, Plain

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../tests/models/oracle"))
import counter  # noqa: E402
import images  # noqa: E402


class Scope(nn.Module):
    """Submodules under the components of a dotted name: Scope(a=..., b=...)."""

    def __init__(self, /, **parts):
        super().__init__()
        for name, part in parts.items():
            self.add_module(name, part)


def stack(count, make):
    return nn.ModuleList([make() for _ in range(count)])


class BertLayer(nn.Module):
    def __init__(self, width, heads, epsilon=1e-12):
        super().__init__()
        self.heads = heads
        parts = {name: Linear(width, width) for name in ("query", "key", "value")}
        output = Scope(dense=Linear(width, width), LayerNorm=nn.LayerNorm(width, epsilon))
        self.attention = Scope(self=Scope(**parts), output=output)
        self.intermediate = Scope(dense=Linear(width, 4 * width))
        self.output = Scope(dense=Linear(4 * width, width), LayerNorm=nn.LayerNorm(width, epsilon))

    def forward(self, x, ops):
        own = self.attention.get_submodule("self")
        y = ops.attention(own.query, own.key, own.value, x, x, self.heads)
        x, _ = ops.add_norm(self.attention.output.dense, y, x, self.attention.output.LayerNorm)
        y = ops.gelu(self.intermediate.dense, x)
        return ops.add_norm(self.output.dense, y, x, self.output.LayerNorm)[0]


class Bert(nn.Module):
    def __init__(self, ops, layers=12, width=768, heads=12, epsilon=1e-12):
        super().__init__()
        self.ops = ops
        self.embeddings = Scope(
            word_embeddings=nn.Embedding(30522, width),
            position_embeddings=nn.Embedding(512, width),
            token_type_embeddings=nn.Embedding(2, width),
            LayerNorm=nn.LayerNorm(width, epsilon),
        )
        self.encoder = Scope(layer=stack(layers, lambda: BertLayer(width, heads)))
        self.pooler = Scope(dense=Linear(width, width))

    def forward(self, tokens, segments):
        e = self.embeddings
        positions = e.position_embeddings.weight[: tokens.shape[1]]
        x = e.LayerNorm(e.word_embeddings(tokens) + positions + e.token_type_embeddings(segments))
        for layer in self.encoder.layer:
            x = layer(x, self.ops)
        return x, self.pooler.dense(x[:, 0]).tanh()


class Vit(nn.Module):
    """With the parameter names of Hugging Face's checkpoints."""

    def __init__(self, ops, layers=12, width=768, heads=12, image=224, patch=16, classes=1000):
        super().__init__()
        self.ops, self.heads = ops, heads
        patches = (image // patch) ** 2
        projection = nn.Conv2d(3, width, patch, patch)
        self.vit = Scope(embeddings=Scope(patch_embeddings=Scope(projection=projection)))
        self.vit.embeddings.cls_token = nn.Parameter(torch.empty(1, 1, width))
        self.vit.embeddings.position_embeddings = nn.Parameter(torch.empty(1, patches + 1, width))

        def block():
            parts = {name: Linear(width, width) for name in ("query", "key", "value")}
            return Scope(
                attention=Scope(attention=Scope(**parts), output=Scope(dense=Linear(width, width))),
                intermediate=Scope(dense=Linear(width, 4 * width)),
                output=Scope(dense=Linear(4 * width, width)),
                layernorm_before=nn.LayerNorm(width, 1e-12),
                layernorm_after=nn.LayerNorm(width, 1e-12),
            )

        self.vit.encoder = Scope(layer=stack(layers, block))
        self.vit.layernorm = nn.LayerNorm(width, 1e-12)
        self.classifier = Linear(width, classes)

    def forward(self, image):
        return (self.classify(image.unsqueeze(0)),)

    def classify(self, images):
        e, layers, ops = self.vit.embeddings, self.vit.encoder.layer, self.ops
        x = e.patch_embeddings.projection(images).flatten(2).transpose(1, 2)
        x = torch.cat((e.cls_token.expand(len(images), -1, -1), x), dim=1) + e.position_embeddings
        norms = [layer.layernorm_before for layer in layers] + [self.vit.layernorm]
        n = norms[0](x)
        for layer, next_norm in zip(layers, norms[1:]):
            own = layer.attention.attention
            y = ops.attention(own.query, own.key, own.value, n, n, self.heads)
            n, x = ops.add_norm(layer.attention.output.dense, y, x, layer.layernorm_after)
            n, x = ops.add_norm(layer.output.dense, ops.gelu(layer.intermediate.dense, n), x, next_norm)
        return self.classifier(n[:, 0])


class VggFeatures(nn.Module):
    """The convolutions and pooling layers of VGG-13."""

    def __init__(self, ops):
        super().__init__()
        layers, inputs = [], 3
        for outputs in (64, 128, 256, 512, 512):
            for count in (inputs, outputs):
                layers += [nn.Conv2d(count, outputs, 3, padding=1), nn.ReLU()]
            layers.append(nn.MaxPool2d(2))
            inputs = outputs
        self.features = nn.Sequential(*layers)

    def forward(self, image):
        return (self.features(image),)


class TransformerPart(nn.Module):
    """A layer of the encoder, or with `cross` one of the decoder."""

    def __init__(self, width, heads, hidden, cross):
        super().__init__()
        self.heads, self.cross = heads, cross

        def attention():
            return Scope(**{name: Linear(width, width) for name in ("q_proj", "k_proj", "v_proj", "out_proj")})

        self.self_attn = attention()
        if cross:
            self.cross_attn = attention()
        self.mlp = Scope(fc1=Linear(width, hidden), fc2=Linear(hidden, width))
        for i in range(3 if cross else 2):
            self.add_module(f"norm{i + 1}", nn.LayerNorm(width))

    def attend(self, attn, x, memory, norm, ops, causal=False):
        y = ops.attention(attn.q_proj, attn.k_proj, attn.v_proj, x, memory, self.heads, causal)
        return ops.add_norm(attn.out_proj, y, x, norm)[0]

    def forward(self, x, memory, ops):
        x = self.attend(self.self_attn, x, x, self.norm1, ops, causal=self.cross)
        if self.cross:
            x = self.attend(self.cross_attn, x, memory, self.norm2, ops)
        return ops.add_norm(self.mlp.fc2, F.relu(self.mlp.fc1(x)), x, self.norm3 if self.cross else self.norm2)[0]


class Transformer(nn.Module):
    def __init__(self, ops, layers=6, width=512, heads=8, hidden=2048, vocabulary=37000):
        super().__init__()
        self.ops, self.width = ops, width
        self.embedding = nn.Embedding(vocabulary, width)
        self.encoder = stack(layers, lambda: TransformerPart(width, heads, hidden, cross=False))
        self.decoder = stack(layers, lambda: TransformerPart(width, heads, hidden, cross=True))

    def embed(self, tokens):
        t = torch.arange(tokens.shape[1], dtype=torch.float64)[:, None]
        angle = t / 10000.0 ** (torch.arange(0, self.width, 2, dtype=torch.float64) / self.width)
        positions = torch.stack((angle.sin(), angle.cos()), dim=2).flatten(1).float()
        return self.embedding(tokens) * math.sqrt(self.width) + positions

    def forward(self, source, target):
        memory, y = self.embed(source), self.embed(target)
        for layer in self.encoder:
            memory = layer(memory, None, self.ops)
        for layer in self.decoder:
            y = layer(y, memory, self.ops)
        return F.linear(y, self.embedding.weight), memory


class Gpt2(nn.Module):
    """Prefill: logits of the last position."""

    def __init__(self, ops, layers=12, width=768, heads=12, vocabulary=50257, context=1024):
        super().__init__()
        self.ops, self.heads = ops, heads
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(context, width)

        def conv1d(inputs, outputs):
            return Linear(inputs, outputs, transposed=True)

        def block():
            return Scope(
                ln_1=nn.LayerNorm(width),
                attn=Scope(c_attn=conv1d(width, 3 * width), c_proj=conv1d(width, width)),
                ln_2=nn.LayerNorm(width),
                mlp=Scope(c_fc=conv1d(width, 4 * width), c_proj=conv1d(4 * width, width)),
            )

        self.h = stack(layers, block)
        self.ln_f = nn.LayerNorm(width)

    def forward(self, tokens):
        return (self.ops.logits(self.rows(tokens)[:, -1], self.wte.weight),)

    def rows(self, tokens):
        ops = self.ops
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        norms = [layer.ln_1 for layer in self.h] + [self.ln_f]
        n = norms[0](x)
        for layer, next_norm in zip(self.h, norms[1:]):
            y = ops.joint_attention(layer.attn.c_attn, n, self.heads, causal=True)
            n, x = ops.add_norm(layer.attn.c_proj, y, x, layer.ln_2)
            n, x = ops.add_norm(layer.mlp.c_proj, ops.gelu(layer.mlp.c_fc, n, "tanh"), x, next_norm)
        return n


class Gpt2Decode(Gpt2):
    """Logits of one token after a past. `past` has the keys and values of each layer; they are not returned."""

    def forward(self, token, *past):
        ops = self.ops
        place = past[0].shape[1]
        x = self.wte(token) + self.wpe.weight[place : place + 1]
        norms = [layer.ln_1 for layer in self.h] + [self.ln_f]
        n = norms[0](x)
        for i, (layer, next_norm) in enumerate(zip(self.h, norms[1:])):
            y = ops.cached_attention(layer.attn.c_attn, n, past[2 * i], past[2 * i + 1], self.heads)
            n, x = ops.add_norm(layer.attn.c_proj, y, x, layer.ln_2)
            n, x = ops.add_norm(layer.mlp.c_proj, ops.gelu(layer.mlp.c_fc, n, "tanh"), x, next_norm)
        return (ops.logits(n[:, -1], self.wte.weight),)


class Matrix(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs, dtype=torch.bfloat16))

    def forward(self, x):
        return F.linear(x, self.weight)


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, dtype=torch.bfloat16))

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight, 1e-5)


class LlamaDecode(nn.Module):
    """Logits of one token after a past, in bf16. Its keys and values are written to the last rows of the KV caches."""

    def __init__(self, ops, layers=22, width=2048, heads=32, shared=4, hidden=5632, vocabulary=32000, context=512):
        super().__init__()
        depth = width // heads
        self.shape = (heads, shared, depth)

        def block():
            widths = {"q_proj": width, "k_proj": shared * depth, "v_proj": shared * depth, "o_proj": width}
            return Scope(
                input_layernorm=RmsNorm(width),
                self_attn=Scope(**{name: Matrix(width, outputs) for name, outputs in widths.items()}),
                post_attention_layernorm=RmsNorm(width),
                mlp=Scope(
                    gate_proj=Matrix(width, hidden), up_proj=Matrix(width, hidden), down_proj=Matrix(hidden, width)
                ),
            )

        self.model = Scope(
            embed_tokens=nn.Embedding(vocabulary, width, dtype=torch.bfloat16),
            layers=stack(layers, block),
            norm=RmsNorm(width),
        )
        self.lm_head = Matrix(width, vocabulary)
        self.register_buffer("caches", torch.empty(2 * layers, 1, shared, context, depth, dtype=torch.bfloat16))
        rows = torch.from_numpy(counter.uniform("past", (2 * layers, 1, context - 1, shared, depth)))
        self.caches[:, :, :, :-1] = rows.transpose(2, 3).to(self.caches)
        angle = (context - 1) * 10000.0 ** (-torch.arange(0, depth, 2, dtype=torch.float64) / depth)
        self.register_buffer("turns", torch.stack((angle.cos(), angle.sin())).bfloat16())

    def rotary(self, x):
        """Rotates x [1, heads, 1, depth] as complex numbers x[i] + j x[i + depth/2]."""
        (a, b), (cos, sin) = x.float().chunk(2, -1), self.turns.float()
        return torch.cat((a * cos - b * sin, a * sin + b * cos), -1).to(x.dtype)

    def attend(self, own, x, keys, values):
        heads, shared, depth = self.shape
        q, k, v = (
            project(x).view(1, 1, count, depth).transpose(1, 2)
            for project, count in ((own.q_proj, heads), (own.k_proj, shared), (own.v_proj, shared))
        )
        keys[:, :, -1:], values[:, :, -1:] = self.rotary(k), v
        y = F.scaled_dot_product_attention(self.rotary(q), keys, values, enable_gqa=True)
        return own.o_proj(y.transpose(1, 2).reshape(1, 1, heads * depth))

    def forward(self, token):
        x = self.model.embed_tokens(token)
        for i, layer in enumerate(self.model.layers):
            y = layer.input_layernorm(x)
            x = x + self.attend(layer.self_attn, y, self.caches[2 * i], self.caches[2 * i + 1])
            y = layer.post_attention_layernorm(x)
            x = x + layer.mlp.down_proj(F.silu(layer.mlp.gate_proj(y)) * layer.mlp.up_proj(y))
        return (self.lm_head(self.model.norm(x))[:, -1],)


class Lstm(nn.Module):
    def __init__(self, ops, width=256):
        super().__init__()
        self.lstm = nn.LSTM(width, width)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        return y, h, c


class SwinBlock(nn.Module):
    """A block of the first stage of Swin-T, shifted."""

    def __init__(self, ops):
        super().__init__()
        self.block = images.SwinBlock(96, 3, 7, 3)
        self.block.attn.mask(56, 56)  # a constant of the exported model

    def forward(self, image):
        return (self.block(image),)


class Gpt2Train(Gpt2):
    """For training, as the classes below: returns the loss."""

    def forward(self, tokens, targets):
        logits = self.ops.logits(self.rows(tokens), self.wte.weight)
        return (F.cross_entropy(logits.flatten(0, 1), targets.flatten().long()),)


class BertTrain(Bert):
    def forward(self, tokens, segments):
        return (super().forward(tokens, segments)[0].square().mean(),)


class VitTrain(Vit):
    def forward(self, images, labels):
        return (F.cross_entropy(self.classify(images), labels.long()),)


class LstmTrain(Lstm):
    def forward(self, x):
        return (super().forward(x)[0].square().mean(),)


class TrainingStep:
    """Computes the loss and its gradients and an AdamW step with learning rate 0: every step is the same."""

    def __init__(self, module, loss):
        self.optimizer = torch.optim.AdamW(module.parameters(), lr=0.0)
        self.loss = loss

    def __call__(self, *inputs):
        with torch.enable_grad():
            self.optimizer.zero_grad()
            loss = self.loss(*inputs)[0]
            loss.backward()
            self.optimizer.step()
        return (loss.detach(),)


def tokens(name, count, vocabulary, batch=1):
    return name, torch.from_numpy(counter.tokens(name, (batch, count), vocabulary))


def labels(name, count, classes):
    return name, torch.from_numpy(counter.tokens(name, (count,), classes))


def past(layers, count, width):
    """Keys and values of each layer: slices of one tensor [2 * layers, count, width]."""
    values = torch.from_numpy(counter.uniform("past", (2 * layers, 1, count, width)))
    return [(f"past_{i}", values[i]) for i in range(2 * layers)]


# name -> (class, inputs by name, outputs)
MODELS = {
    "bert_base": (Bert, [tokens("tokens", 128, 30522), tokens("segments", 128, 2)], ["hidden", "pooled"]),
    "vit_base": (Vit, [("image", torch.from_numpy(counter.uniform("image", (3, 224, 224))))], ["logits"]),
    "vgg_features": (VggFeatures, [("image", torch.from_numpy(counter.uniform("image", (1, 3, 224, 224))))], ["features"]),
    "transformer_base": (
        Transformer,
        [tokens("source", 64, 37000), tokens("target", 64, 37000)],
        ["logits", "memory"],
    ),
    "gpt2_prefill_128": (Gpt2, [tokens("tokens", 128, 50257)], ["logits"]),
    "gpt2_prefill_512": (Gpt2, [tokens("tokens", 512, 50257)], ["logits"]),
    "gpt2_decode": (Gpt2Decode, [tokens("token", 1, 50257), *past(12, 511, 768)], ["logits"]),
    "swin_block": (SwinBlock, [("image", torch.from_numpy(counter.uniform("image", (1, 56, 56, 96))))], ["y"]),
    "lstm_1": (Lstm, [("x", torch.from_numpy(counter.uniform("x", (128, 1, 256))))], ["y", "h", "c"]),
    "lstm_8": (Lstm, [("x", torch.from_numpy(counter.uniform("x", (128, 8, 256))))], ["y", "h", "c"]),
    "gpt2_train_4": (Gpt2Train, [tokens("tokens", 64, 50257, 4), tokens("targets", 64, 50257, 4)], ["loss"]),
    "gpt2_train_1": (Gpt2Train, [tokens("tokens", 512, 50257), tokens("targets", 512, 50257)], ["loss"]),
    "bert_train": (BertTrain, [tokens("tokens", 128, 30522, 8), tokens("segments", 128, 2, 8)], ["loss"]),
    "vit_train": (
        VitTrain,
        [("images", torch.from_numpy(counter.uniform("images", (4, 3, 224, 224)))), labels("labels", 4, 1000)],
        ["loss"],
    ),
    "lstm_train": (LstmTrain, [("x", torch.from_numpy(counter.uniform("x", (128, 8, 256))))], ["loss"]),
}

GPU_MODELS = {"llama_decode": (LlamaDecode, [tokens("token", 1, 32000)], ["logits"])}  # too large for CPU benchmarks


def numpy_weight(name, shape):
    return torch.from_numpy(counter.weight(name, shape))


def make(name, ops=Plain, weight=numpy_weight):
    """(module with the generator's weights, inputs by name, names of outputs)"""
    kind, inputs, outputs = (MODELS | GPU_MODELS)[name]
    with torch.no_grad():
        module = kind(ops).eval()
        for parameter, value in module.named_parameters():
            value.copy_(weight(parameter, tuple(value.shape)))
            value.requires_grad_(is_trained(name))
    return module, inputs, outputs


def is_trained(name):
    return "_train" in name
