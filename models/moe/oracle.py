# SPDX-License-Identifier: Apache-2.0
"""Mixtral, Qwen 2 MoE and Qwen 3 MoE: each token's chosen experts one by one."""
import torch
import torch.nn.functional as F
from cases import IDS, Weights, attend, case, turn

WIDTH, HEAD = 32, 8


def mixture(w, x, prefix, names, experts, top, hidden, normalized):
    """The sum of the chosen experts of each row of x, each times its gate."""
    gates = F.linear(x, w(prefix + "gate.weight", experts, WIDTH)).softmax(-1)
    gate, up, down = names
    parts = []
    for i in range(experts):
        expert = f"{prefix}experts.{i}."
        y = F.silu(F.linear(x, w(f"{expert}{gate}.weight", hidden, WIDTH)))
        y = y * F.linear(x, w(f"{expert}{up}.weight", hidden, WIDTH))
        parts.append(F.linear(y, w(f"{expert}{down}.weight", WIDTH, hidden)))
    rows = []
    for token, row in enumerate(gates):
        largest, chosen = row.topk(top)
        if normalized:
            largest = largest / largest.sum()
        rows.append(sum(each * parts[i][token] for each, i in zip(largest, chosen.tolist())))
    return torch.stack(rows)


def shared_expert(w, x, prefix, hidden):
    y = F.silu(F.linear(x, w(prefix + "shared_expert.gate_proj.weight", hidden, WIDTH)))
    y = y * F.linear(x, w(prefix + "shared_expert.up_proj.weight", hidden, WIDTH))
    y = F.linear(y, w(prefix + "shared_expert.down_proj.weight", WIDTH, hidden))
    return y * F.linear(x, w(prefix + "shared_expert_gate.weight", 1, WIDTH)).sigmoid()


def moe_logits(w, ids, kind, experts, top, hidden, head=HEAD, normalized=True, shared=0, tied=False, epsilon=1e-6):
    heads, keys, base = 4, 2, 1e6
    table = w("model.embed_tokens.weight", 67, WIDTH)
    x = table[torch.tensor(ids)]

    def norm(x, name):
        return x / (x.square().mean(-1, keepdim=True) + epsilon).sqrt() * w(name + ".weight", x.shape[-1])

    def project(x, name, out, bias=False):
        return F.linear(x, *w.linear(name, out, x.shape[-1], bias))

    for i in range(2):
        layer = f"model.layers.{i}."
        y, own = norm(x, layer + "input_layernorm"), layer + "self_attn."
        q, k, v = (
            project(y, own + name, count * head, kind == "qwen2_moe")
            for name, count in (("q_proj", heads), ("k_proj", keys), ("v_proj", keys))
        )
        if kind == "qwen3_moe":
            q = norm(q.reshape(len(ids), heads, head), own + "q_norm").flatten(1)
            k = norm(k.reshape(len(ids), keys, head), own + "k_norm").flatten(1)
        y = attend(turn(q, heads, base), turn(k, keys, base), v, heads, keys, causal=True)
        x = x + project(y, own + "o_proj", WIDTH)
        y = norm(x, layer + "post_attention_layernorm")
        if kind == "mixtral":
            x = x + mixture(w, y, layer + "block_sparse_moe.", ("w1", "w3", "w2"), experts, top, hidden, normalized)
            continue
        names, mlp = ("gate_proj", "up_proj", "down_proj"), layer + "mlp."
        x = x + mixture(w, y, mlp, names, experts, top, hidden, normalized)
        if shared:
            x = x + shared_expert(w, y, mlp, shared)
    return norm(x, "model.norm")[-1] @ (table if tied else w("lm_head.weight", 67, WIDTH)).T


COMMON = {
    "attention_dropout": 0.0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "hidden_act": "silu",
    "hidden_size": WIDTH,
    "initializer_range": 0.02,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "num_attention_heads": 4,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 2,
    "num_key_value_heads": 2,
    "output_router_logits": False,
    "rms_norm_eps": 1e-06,
    "rope_theta": 1000000.0,
    "router_aux_loss_coef": 0.001,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.51.0",
    "use_cache": True,
    "vocab_size": 67,
}
QWEN = {
    "decoder_sparse_step": 1,
    "max_window_layers": 2,
    "mlp_only_layers": [],
    "moe_intermediate_size": 24,
    "use_sliding_window": False,
}
case(
    "mixtral",
    {
        **COMMON,
        "architectures": ["MixtralForCausalLM"],
        "model_type": "mixtral",
        "num_local_experts": 6,
        "rms_norm_eps": 1e-05,
        "router_jitter_noise": 0.0,
    },
    Weights(element="bf16"),
    IDS,
    lambda w, ids: moe_logits(w, ids, "mixtral", 6, 2, 48, epsilon=1e-5),
)
case(
    "qwen2_moe",
    {
        **COMMON,
        **QWEN,
        "architectures": ["Qwen2MoeForCausalLM"],
        "model_type": "qwen2_moe",
        "norm_topk_prob": False,
        "num_experts": 5,
        "num_experts_per_tok": 3,
        "shared_expert_intermediate_size": 40,
        "sliding_window": 32,
    },
    Weights(),
    IDS,
    lambda w, ids: moe_logits(w, ids, "qwen2_moe", 5, 3, 24, normalized=False, shared=40),
)
case(
    "qwen3_moe",
    {
        **COMMON,
        **QWEN,
        "architectures": ["Qwen3MoeForCausalLM"],
        "attention_bias": False,
        "head_dim": 16,
        "model_type": "qwen3_moe",
        "norm_topk_prob": True,
        "num_experts": 9,
        "num_experts_per_tok": 4,
        "rope_scaling": None,
        "tie_word_embeddings": True,
    },
    Weights(),
    IDS,
    lambda w, ids: moe_logits(w, ids, "qwen3_moe", 9, 4, 24, head=16, tied=True),
)
