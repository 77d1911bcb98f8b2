# SPDX-License-Identifier: Apache-2.0
"""CLIP: an image encoder and a text encoder."""
import torch
import torch.nn.functional as F
from cases import DEVIATION, IDS, MEAN, PATCH, PICTURES, PREPROCESSORS, SIDE, Weights, attend, case, pixels


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
    (*PICTURES, *PREPROCESSORS),
)
