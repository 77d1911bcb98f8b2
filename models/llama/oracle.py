# SPDX-License-Identifier: Apache-2.0
"""Llama and similar decoders: Mistral, Qwen, Gemma."""
import math

import torch
import torch.nn.functional as F
from cases import IDS, Weights, attend, case, turn


def llama3_scaled(frequencies, factor=8, low=1, high=4, original=64):
    """Makes wavelengths of more than `original` tokens `factor` times longer, with a smooth transition below (Llama
    3.1)."""
    wavelengths = 2 * math.pi / frequencies
    smooth = (original / wavelengths - low) / (high - low)
    between = (1 - smooth) * frequencies / factor + smooth * frequencies
    slow = torch.where(wavelengths > original / low, frequencies / factor, between)
    return torch.where(wavelengths < original / high, frequencies, slow)


def yarn_scaled(frequencies, base=100, factor=4, fast=4, slow=1, original=64):
    """YaRN as in released models: interpolates between the pair with `fast` rotations and the pair with `slow`
    rotations."""

    def pair(turns):  # that has this number of rotations in the original context
        return math.log(original / (2 * math.pi * turns)) / math.log(base) * len(frequencies)

    first, last = math.floor(pair(fast)), math.ceil(pair(slow))
    stays = ((last - torch.arange(len(frequencies)).double()) / (last - first)).clamp(0, 1)
    return stays * frequencies + (1 - stays) * frequencies / factor


def llama_logits(w, ids, heads=4, shared=2, head=8, base=1e4, epsilon=1e-5, kind="llama", tied=False, **positions):
    width, hidden = 32, 48
    table = w("model.embed_tokens.weight", 67, width)
    x = table[torch.tensor(ids)]
    if kind == "gemma":
        x = x * math.sqrt(width)

    def norm(x, name):
        weight = w(name + ".weight", x.shape[-1])
        return x / (x.square().mean(-1, keepdim=True) + epsilon).sqrt() * (weight + 1 if kind == "gemma" else weight)

    def project(x, name, out, bias=False):
        return F.linear(x, *w.linear(name, out, x.shape[-1], bias))

    def normed(x, name, count):
        return norm(x.reshape(len(ids), count, head), name).flatten(1) if kind == "qwen3" else x

    for i in range(2):
        layer = f"model.layers.{i}."
        y, own = norm(x, layer + "input_layernorm"), layer + "self_attn."
        q, k, v = (
            project(y, own + name, count * head, kind == "qwen2")
            for name, count in (("q_proj", heads), ("k_proj", shared), ("v_proj", shared))
        )
        q, k = normed(q, own + "q_norm", heads), normed(k, own + "k_norm", shared)
        y = attend(turn(q, heads, base, **positions), turn(k, shared, base, **positions), v, heads, shared, causal=True)
        x = x + project(y, own + "o_proj", width)
        y, mlp = norm(x, layer + "post_attention_layernorm"), layer + "mlp."
        gate = project(y, mlp + "gate_proj", hidden)
        gate = F.gelu(gate, approximate="tanh") if kind == "gemma" else F.silu(gate)
        x = x + project(gate * project(y, mlp + "up_proj", hidden), mlp + "down_proj", width)
    return norm(x, "model.norm")[-1] @ (table if tied else w("lm_head.weight", 67, width)).T


def frequencies(scaled, head=16, base=100):
    """Returns the frequencies of a head's pairs."""
    numbers = scaled(base ** (-torch.arange(head // 2).double() * 2 / head)).tolist()
    return "\n".join(f"{number:.17g}" for number in numbers) + "\n"


LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "hidden_act": "silu",
    "hidden_size": 32,
    "initializer_range": 0.02,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "mlp_bias": False,
    "model_type": "llama",
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "num_key_value_heads": 2,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-05,
    "rope_scaling": None,
    "rope_theta": 500000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.40.0",
    "use_cache": True,
    "vocab_size": 67,
}
case("llama", LLAMA, Weights(element="bf16"), IDS, lambda w, ids: llama_logits(w, ids, base=5e5))
SCALING = {"factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 64}
case(
    "llama3",
    {**LLAMA, "head_dim": 16, "rope_scaling": {**SCALING, "rope_type": "llama3"}, "rope_theta": 100.0},
    Weights(),
    IDS,
    lambda w, ids: llama_logits(w, ids, head=16, base=100, scaled=llama3_scaled),
    [("frequencies.txt", frequencies(llama3_scaled))],
)
YARN = {"beta_fast": 4, "factor": 4.0, "original_max_position_embeddings": 64, "rope_type": "yarn"}
case(
    "yarn",
    {**LLAMA, "head_dim": 16, "rope_scaling": YARN, "rope_theta": 100.0},
    Weights(),
    IDS,
    lambda w, ids: llama_logits(
        w, ids, head=16, base=100, scaled=yarn_scaled, amplitude=0.1 * math.log(YARN["factor"]) + 1
    ),
    [("frequencies.txt", frequencies(yarn_scaled))],
)


def like_llama(kind, changes, gone=()):
    config = {**LLAMA, "model_type": kind, "architectures": [kind.capitalize() + "ForCausalLM"], **changes}
    return {key: value for key, value in config.items() if key not in gone}


case(
    "mistral",
    like_llama(
        "mistral", {"sliding_window": 32, "rope_theta": 10000.0}, ("attention_bias", "mlp_bias", "rope_scaling")
    ),
    Weights(),
    IDS,
    lambda w, ids: llama_logits(w, ids),
)
case(
    "qwen2",
    like_llama(
        "qwen2",
        {
            "max_window_layers": 2,
            "rms_norm_eps": 1e-06,
            "rope_theta": 1000000.0,
            "sliding_window": 32,
            "tie_word_embeddings": True,
            "use_sliding_window": False,
        },
        ("attention_bias", "mlp_bias", "pretraining_tp", "rope_scaling"),
    ),
    Weights(),
    IDS,
    lambda w, ids: llama_logits(w, ids, base=1e6, epsilon=1e-6, kind="qwen2", tied=True),
)
case(
    "qwen3",
    like_llama(
        "qwen3",
        {
            "dtype": "bfloat16",
            "head_dim": 16,
            "layer_types": ["full_attention", "full_attention"],
            "max_window_layers": 2,
            "rms_norm_eps": 1e-06,
            "rope_parameters": {"rope_theta": 1000000.0, "rope_type": "default"},
            "sliding_window": None,
            "tie_word_embeddings": True,
            "use_sliding_window": False,
        },
        ("mlp_bias", "pretraining_tp", "rope_scaling", "rope_theta", "torch_dtype"),
    ),
    Weights(),
    IDS,
    lambda w, ids: llama_logits(w, ids, head=16, base=1e6, epsilon=1e-6, kind="qwen3", tied=True),
)
case(
    "gemma",
    like_llama(
        "gemma",
        {
            "head_dim": 16,
            "hidden_act": "gelu",
            "hidden_activation": None,
            "num_key_value_heads": 1,
            "rms_norm_eps": 1e-06,
            "rope_theta": 10000.0,
        },
        ("mlp_bias", "pretraining_tp", "tie_word_embeddings"),
    ),
    Weights(),
    IDS,
    lambda w, ids: llama_logits(w, ids, shared=1, head=16, epsilon=1e-6, kind="gemma", tied=True),
)
