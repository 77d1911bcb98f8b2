# SPDX-License-Identifier: Apache-2.0
"""Phi."""
import torch
import torch.nn.functional as F
from cases import IDS, Weights, attend, case, turn


def phi_logits(w, ids):
    width, heads, hidden, turned, epsilon = 32, 4, 128, 4, 1e-5
    x = w("model.embed_tokens.weight", 67, width)[torch.tensor(ids)]

    def project(x, name, out):
        return F.linear(x, *w.linear(name, out, x.shape[-1]))

    for i in range(2):
        layer = f"model.layers.{i}."
        own = layer + "self_attn."
        y = F.layer_norm(x, (width,), *w.norm(layer + "input_layernorm", width), epsilon)
        q, k, v = (project(y, own + name, width) for name in ("q_proj", "k_proj", "v_proj"))
        attended = attend(turn(q, heads, 1e4, turned), turn(k, heads, 1e4, turned), v, heads, causal=True)
        inner = F.gelu(project(y, layer + "mlp.fc1", hidden), approximate="tanh")
        x = x + project(attended, own + "dense", width) + project(inner, layer + "mlp.fc2", width)
    x = F.layer_norm(x, (width,), *w.norm("model.final_layernorm", width), epsilon)
    return project(x[-1], "lm_head", 67)


case(
    "phi",
    {
        "architectures": ["PhiForCausalLM"],
        "attention_dropout": 0.0,
        "bos_token_id": 66,
        "embd_pdrop": 0.0,
        "eos_token_id": 66,
        "hidden_act": "gelu_new",
        "hidden_size": 32,
        "initializer_range": 0.02,
        "intermediate_size": 128,
        "layer_norm_eps": 1e-05,
        "max_position_embeddings": 64,
        "model_type": "phi",
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "num_key_value_heads": 4,
        "partial_rotary_factor": 0.5,
        "qk_layernorm": False,
        "resid_pdrop": 0.1,
        "rope_scaling": None,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "torch_dtype": "float16",
        "transformers_version": "4.37.0",
        "use_cache": True,
        "vocab_size": 67,
    },
    Weights(),
    IDS,
    phi_logits,
)
