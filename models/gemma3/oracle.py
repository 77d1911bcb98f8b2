# SPDX-License-Identifier: Apache-2.0
"""Gemma 3: local and global layers in periods, norms around each part, tied embeddings."""
import math

import torch
import torch.nn.functional as F
from cases import IDS, Weights, case, turn


def attended(q, k, v, heads, shared, scalar, window):
    """Causal attention of [tokens, heads * width] to the last `window` tokens, or to all if it is None."""
    tokens = q.shape[0]
    q, k, v = (x.reshape(tokens, n, -1).transpose(0, 1) for x, n in ((q, heads), (k, shared), (v, shared)))
    k, v = (x.repeat_interleave(heads // shared, 0) for x in (k, v))
    scores = q @ k.transpose(1, 2) / math.sqrt(scalar)
    sees = torch.ones(tokens, tokens).tril()
    if window:
        sees = sees.triu(1 - window)
    scores = scores.masked_fill(sees == 0, -math.inf)
    return (scores.softmax(-1) @ v).transpose(0, 1).reshape(tokens, -1)


def gemma3_logits(w, ids, layers=5, period=3, window=4, heads=4, shared=2, head=16, scalar=24, factor=1, base=1e6):
    width, hidden, epsilon = 32, 48, 1e-6
    table = w("model.embed_tokens.weight", 67, width)
    x = table[torch.tensor(ids)] * math.sqrt(width)

    def norm(x, name):
        scaled = x / (x.square().mean(-1, keepdim=True) + epsilon).sqrt()
        return scaled * (w(name + ".weight", x.shape[-1]) + 1)

    def project(x, name, out):
        return F.linear(x, *w.linear(name, out, x.shape[-1], False))

    def normed(x, name, count):
        return norm(x.reshape(len(ids), count, head), name).flatten(1)

    for i in range(layers):
        layer, is_global = f"model.layers.{i}.", (i + 1) % period == 0
        y, own = norm(x, layer + "input_layernorm"), layer + "self_attn."
        q, k, v = (
            project(y, own + name, count * head)
            for name, count in (("q_proj", heads), ("k_proj", shared), ("v_proj", shared))
        )
        q, k = normed(q, own + "q_norm", heads), normed(k, own + "k_norm", shared)
        rotation = {"base": base, "scaled": lambda f: f / factor} if is_global else {"base": 1e4}
        q, k = turn(q, heads, **rotation), turn(k, shared, **rotation)
        y = attended(q, k, v, heads, shared, scalar, None if is_global else window)
        x = x + norm(project(y, own + "o_proj", width), layer + "post_attention_layernorm")
        y, mlp = norm(x, layer + "pre_feedforward_layernorm"), layer + "mlp."
        gate = F.gelu(project(y, mlp + "gate_proj", hidden), approximate="tanh")
        y = project(gate * project(y, mlp + "up_proj", hidden), mlp + "down_proj", width)
        x = x + norm(y, layer + "post_feedforward_layernorm")
    return norm(x, "model.norm")[-1] @ table.T


GEMMA3 = {
    "architectures": ["Gemma3ForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "attn_logit_softcapping": None,
    "bos_token_id": 2,
    "cache_implementation": "hybrid",
    "eos_token_id": [1, 106],
    "final_logit_softcapping": None,
    "head_dim": 16,
    "hidden_activation": "gelu_pytorch_tanh",
    "hidden_size": 32,
    "initializer_range": 0.02,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "model_type": "gemma3_text",
    "num_attention_heads": 4,
    "num_hidden_layers": 5,
    "num_key_value_heads": 2,
    "pad_token_id": 0,
    "query_pre_attn_scalar": 24,
    "rms_norm_eps": 1e-06,
    "rope_local_base_freq": 10000,
    "rope_scaling": None,
    "rope_theta": 1000000,
    "sliding_window": 4,
    "sliding_window_pattern": 3,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.50.0.dev0",
    "use_cache": True,
    "vocab_size": 67,
}
case("gemma3", GEMMA3, Weights(element="bf16"), IDS, gemma3_logits)
OLD = ("rope_local_base_freq", "rope_scaling", "rope_theta", "sliding_window_pattern", "torch_dtype")
NEW = {
    "_sliding_window_pattern": 2,
    "dtype": "bfloat16",
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
    "num_hidden_layers": 4,
    "num_key_value_heads": 1,
    "query_pre_attn_scalar": 16,
    "rope_parameters": {
        "full_attention": {"factor": 8.0, "rope_theta": 1000.0, "rope_type": "linear"},
        "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"},
    },
    "sliding_window": 7,
    "use_bidirectional_attention": False,
}
case(
    "gemma3_scaled",
    {**{key: value for key, value in GEMMA3.items() if key not in OLD}, **NEW},
    Weights(),
    IDS,
    lambda w, ids: gemma3_logits(w, ids, layers=4, period=2, window=7, shared=1, scalar=16, factor=8, base=1e3),
)
