# SPDX-License-Identifier: Apache-2.0
"""Image encoders: ViT, DeiT, and CLIP, which also encodes texts."""
import json

import torch
import torch.nn.functional as F
from common import IDS, Weights, attend, case, counter

SIDE, PATCH, WIDTH = 16, 4, 24
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
LEVELS = torch.tensor(counter.tokens("levels", (SIDE, SIDE, 3), 256))
PICTURE = b"P6\n16 16\n255\n" + bytes(LEVELS.flatten().tolist())


def pixels(mean, deviation):
    """Returns the image as normalised [channels, rows, columns]."""
    levels = LEVELS.double() / 255
    return ((levels - torch.tensor(mean).double()) / torch.tensor(deviation).double()).permute(2, 0, 1)


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
PREPROCESSOR = {
    "do_normalize": True,
    "do_rescale": True,
    "do_resize": True,
    "image_mean": MEAN,
    "image_std": DEVIATION,
    "size": {"height": SIDE, "width": SIDE},
}
FILES = (("picture.ppm", PICTURE),)
case("vit", VIT, Weights(), ["picture.ppm"], vit_classes, FILES)
case(
    "vit_features",
    {key: value for key, value in {**VIT, "architectures": ["ViTModel"]}.items() if "label" not in key},
    Weights(),
    ["picture.ppm"],
    vit_features,
    FILES,
)
case(
    "deit",
    {**VIT, "architectures": ["DeiTForImageClassificationWithTeacher"], "model_type": "deit"},
    Weights(),
    ["picture.ppm"],
    deit_classes,
    (*FILES, ("preprocessor_config.json", json.dumps(PREPROCESSOR, indent=2) + "\n")),
)


def clip_rows(w, x, prefix, heads, causal):
    width, epsilon = x.shape[-1], 1e-5
    for i in range(2):
        layer = f"{prefix}encoder.layers.{i}."

        def project(x, name, out):
            return F.linear(x, *w.linear(layer + name, out, x.shape[-1]))

        y = F.layer_norm(x, (width,), *w.norm(layer + "layer_norm1", width), epsilon)
        q, k, v = (project(y, f"self_attn.{part}_proj", width) for part in "qkv")
        x = x + project(attend(q, k, v, heads, causal=causal), "self_attn.out_proj", width)
        y = project(F.layer_norm(x, (width,), *w.norm(layer + "layer_norm2", width), epsilon), "mlp.fc1", 2 * width)
        x = x + project(y * (1.702 * y).sigmoid(), "mlp.fc2", width)
    return x


def clip_vector(w, given):
    """Returns the vector of an image, or of a text's tokens, whose last token represents it."""
    w("logit_scale", 1)
    if given == "picture.ppm":
        prefix, embeddings = "vision_model.", "vision_model.embeddings."
        filters = w(embeddings + "patch_embedding.weight", 24, 3, PATCH, PATCH)
        x = F.conv2d(pixels(MEAN, DEVIATION), filters, stride=PATCH)
        x = torch.cat((w(embeddings + "class_embedding", 24)[None], x.flatten(1).T))
        x = x + w(embeddings + "position_embedding.weight", 17, 24)
        x = clip_rows(w, F.layer_norm(x, (24,), *w.norm(prefix + "pre_layrnorm", 24)), prefix, 3, False)
        x = F.layer_norm(x[0], (24,), *w.norm(prefix + "post_layernorm", 24))
        return F.normalize(F.linear(x, w("visual_projection.weight", 20, 24)), dim=0)
    prefix = "text_model."
    x = w(prefix + "embeddings.token_embedding.weight", 67, 32)[torch.tensor(given)]
    x = x + w(prefix + "embeddings.position_embedding.weight", 21, 32)[: len(given)]
    x = clip_rows(w, x, prefix, 4, True)
    x = F.layer_norm(x[-1], (32,), *w.norm(prefix + "final_layer_norm", 32))
    return F.normalize(F.linear(x, w("text_projection.weight", 20, 32)), dim=0)


# Includes the generation fields of early files.
TOWER = {
    "architectures": None,
    "chunk_size_feed_forward": 0,
    "diversity_penalty": 0.0,
    "do_sample": False,
    "early_stopping": False,
    "hidden_act": "quick_gelu",
    "layer_norm_eps": 1e-05,
    "length_penalty": 1.0,
    "max_length": 20,
    "num_beams": 1,
    "num_hidden_layers": 2,
    "output_attentions": False,
    "projection_dim": 20,
    "tie_encoder_decoder": False,
    "tie_word_embeddings": True,
    "top_k": 50,
}
case(
    "clip",
    {
        "architectures": ["CLIPModel"],
        "initializer_factor": 1.0,
        "logit_scale_init_value": 2.6592,
        "model_type": "clip",
        "projection_dim": 20,
        "text_config": {
            **TOWER,
            "bos_token_id": 65,
            "eos_token_id": 66,
            "hidden_size": 32,
            "intermediate_size": 64,
            "max_position_embeddings": 21,
            "model_type": "clip_text_model",
            "num_attention_heads": 4,
            "vocab_size": 67,
        },
        "torch_dtype": "float32",
        "transformers_version": "4.16.0",
        "vision_config": {
            **TOWER,
            "hidden_size": 24,
            "image_size": SIDE,
            "intermediate_size": 48,
            "model_type": "clip_vision_model",
            "num_attention_heads": 3,
            "num_channels": 3,
            "patch_size": PATCH,
        },
    },
    Weights(),
    ["picture.ppm", *IDS],
    clip_vector,
    (*FILES, ("preprocessor_config.json", json.dumps(PREPROCESSOR, indent=2) + "\n")),
)
