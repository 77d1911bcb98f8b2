# SPDX-License-Identifier: Apache-2.0
"""Mamba: a causal convolution and a selective state-space model, token by token as the paper defines it."""
import torch
import torch.nn.functional as F
from cases import IDS, Weights, case


def mamba_logits(w, ids, rank=2, state=16, expand=2, kernel=4, bias=False, conv_bias=True, tied=True, epsilon=1e-5):
    width = 32
    inner = expand * width
    table = w("backbone.embeddings.weight", 67, width)
    x = table[torch.tensor(ids)]

    def norm(x, name):
        return x / (x.square().mean(-1, keepdim=True) + epsilon).sqrt() * w(name + ".weight", width)

    for i in range(2):
        mixer = f"backbone.layers.{i}.mixer."
        y = norm(x, f"backbone.layers.{i}.norm")
        u, gate = F.linear(y, *w.linear(mixer + "in_proj", 2 * inner, width, bias)).chunk(2, -1)
        weight = w(mixer + "conv1d.weight", inner, 1, kernel)
        shift = w(mixer + "conv1d.bias", inner) if conv_bias else None
        u = F.silu(F.conv1d(F.pad(u.T, (kernel - 1, 0))[None], weight, shift, groups=inner)[0].T)
        low, b, c = F.linear(u, w(mixer + "x_proj.weight", rank + 2 * state, inner)).split([rank, state, state], -1)
        step = F.softplus(F.linear(low, *w.linear(mixer + "dt_proj", inner, rank)))
        a, skip = -w(mixer + "A_log", inner, state).exp(), w(mixer + "D", inner)
        h, rows = torch.zeros(inner, state).double(), []
        for t in range(len(ids)):
            h = (step[t][:, None] * a).exp() * h + (step[t] * u[t])[:, None] * b[t]
            rows.append(h @ c[t] + skip * u[t])
        y = torch.stack(rows) * F.silu(gate)
        x = x + F.linear(y, *w.linear(mixer + "out_proj", width, inner, bias))
    return norm(x, "backbone.norm_f")[-1] @ (table if tied else w("lm_head.weight", 67, width)).T


MAMBA = {
    "architectures": ["MambaForCausalLM"],
    "bos_token_id": 0,
    "conv_kernel": 4,
    "d_inner": 64,
    "d_model": 32,
    "eos_token_id": 0,
    "expand": 2,
    "fused_add_norm": True,
    "hidden_act": "silu",
    "hidden_size": 32,
    "initializer_range": 0.1,
    "intermediate_size": 64,
    "layer_norm_epsilon": 1e-05,
    "model_type": "mamba",
    "n_layer": 2,
    "num_hidden_layers": 2,
    "pad_token_id": 0,
    "pad_vocab_size_multiple": 8,
    "rescale_prenorm_residual": False,
    "residual_in_fp32": True,
    "rms_norm": True,
    "ssm_cfg": {},
    "state_size": 16,
    "time_step_floor": 0.0001,
    "time_step_init_scheme": "random",
    "time_step_max": 0.1,
    "time_step_min": 0.001,
    "time_step_rank": 2,
    "time_step_scale": 1.0,
    "torch_dtype": "float32",
    "transformers_version": "4.39.0.dev0",
    "use_bias": False,
    "use_cache": True,
    "use_conv_bias": True,
    "vocab_size": 67,
}
case("mamba", MAMBA, Weights(), IDS, mamba_logits)
OTHER = {
    "conv_kernel": 3,
    "expand": 3,
    "layer_norm_epsilon": 1e-06,
    "state_size": 5,
    "tie_word_embeddings": False,
    "time_step_rank": "auto",
    "use_bias": True,
    "use_conv_bias": False,
    "use_mambapy": False,
}
case(
    "mamba_other",
    {**{key: value for key, value in MAMBA.items() if key not in ("d_inner", "intermediate_size")}, **OTHER},
    Weights(element="bf16"),
    IDS,
    lambda w, ids: mamba_logits(
        w, ids, state=5, expand=3, kernel=3, bias=True, conv_bias=False, tied=False, epsilon=1e-6
    ),
)
