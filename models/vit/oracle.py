# SPDX-License-Identifier: Apache-2.0
"""Image encoders: ViT and DeiT."""
import torch
import torch.nn.functional as F
from cases import DEVIATION, MEAN, PATCH, PICTURES, PREPROCESSORS, SIDE, Weights, attend, case, pixels

WIDTH = 24


def vit_rows(w, name, prefix, mean, deviation):
    """Returns the normed rows of an image's class token (and of the distillation token)."""
    embeddings, tokens = prefix + "embeddings.", ["cls_token"] + ["distillation_token"] * (name == "deit")
    patches = F.conv2d(
        pixels(mean, deviation),
        w(embeddings + "patch_embeddings.projection.weight", WIDTH, 3, PATCH, PATCH),
        w(embeddings + "patch_embeddings.projection.bias", WIDTH),
        PATCH,
    )
    x = torch.cat([w(embeddings + token, 1, 1, WIDTH)[0] for token in tokens] + [patches.flatten(1).T])
    x = x + w(embeddings + "position_embeddings", 1, len(x), WIDTH)[0]

    def norm(x, name):
        return F.layer_norm(x, (WIDTH,), *w.norm(name, WIDTH), 1e-12)

    for i in range(2):
        layer = f"{prefix}encoder.layer.{i}."
        y = norm(x, layer + "layernorm_before")
        parts = (w.linear(f"{layer}attention.attention.{part}", WIDTH, WIDTH) for part in ("query", "key", "value"))
        q, k, v = (F.linear(y, *part) for part in parts)
        x = x + F.linear(attend(q, k, v, 3), *w.linear(layer + "attention.output.dense", WIDTH, WIDTH))
        y = F.gelu(F.linear(norm(x, layer + "layernorm_after"), *w.linear(layer + "intermediate.dense", 48, WIDTH)))
        x = x + F.linear(y, *w.linear(layer + "output.dense", WIDTH, 48))
    return norm(x, prefix + "layernorm")[: len(tokens)]


def vit_features(w, _):
    rows = vit_rows(w, "vit", "", (0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
    w.linear("pooler.dense", WIDTH, WIDTH)
    return rows[0]


def deit_classes(w, _):
    rows = vit_rows(w, "deit", "deit.", MEAN, DEVIATION)
    heads = [w.linear(name, 5, WIDTH) for name in ("cls_classifier", "distillation_classifier")]
    return (F.linear(rows[0], *heads[0]) + F.linear(rows[1], *heads[1])) / 2


def vit_classes(w, _):
    return F.linear(vit_rows(w, "vit", "vit.", (0.5, 0.5, 0.5), (0.5, 0.5, 0.5))[0], *w.linear("classifier", 5, WIDTH))


VIT = {
    "architectures": ["ViTForImageClassification"],
    "attention_probs_dropout_prob": 0.0,
    "encoder_stride": 16,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.0,
    "hidden_size": WIDTH,
    "id2label": {str(i): name for i, name in enumerate(("cat", "dog", "goat", "hen", "sheep"))},
    "image_size": SIDE,
    "initializer_range": 0.02,
    "intermediate_size": 48,
    "label2id": {name: i for i, name in enumerate(("cat", "dog", "goat", "hen", "sheep"))},
    "layer_norm_eps": 1e-12,
    "model_type": "vit",
    "num_attention_heads": 3,
    "num_channels": 3,
    "num_hidden_layers": 2,
    "patch_size": PATCH,
    "qkv_bias": True,
    "transformers_version": "4.16.0",
}
case("vit", VIT, Weights(), ["picture.ppm"], vit_classes, PICTURES)
case(
    "vit_features",
    {key: value for key, value in {**VIT, "architectures": ["ViTModel"]}.items() if "label" not in key},
    Weights(),
    ["picture.ppm"],
    vit_features,
    PICTURES,
)
case(
    "deit",
    {**VIT, "architectures": ["DeiTForImageClassificationWithTeacher"], "model_type": "deit"},
    Weights(),
    ["picture.ppm"],
    deit_classes,
    (*PICTURES, *PREPROCESSORS),
)
