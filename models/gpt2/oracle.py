# SPDX-License-Identifier: Apache-2.0
"""GPT-2."""
import torch
import torch.nn.functional as F
from cases import IDS, Weights, attend, case


def gpt2_logits(w, ids, layers=2, width=32, heads=4, hidden=128, epsilon=1e-5, approximate="tanh"):
    tokens = torch.tensor(ids)
    table = w("wte.weight", 67, width)
    x = table[tokens] + w("wpe.weight", 48, width)[: len(ids)]

    def conv1d(x, name, inputs, out):
        return x @ w(name + ".weight", inputs, out) + w(name + ".bias", out)

    for i in range(layers):
        h = f"h.{i}."
        y = F.layer_norm(x, (width,), *w.norm(h + "ln_1", width), epsilon)
        q, k, v = conv1d(y, h + "attn.c_attn", width, 3 * width).split(width, -1)
        x = x + conv1d(attend(q, k, v, heads, causal=True), h + "attn.c_proj", width, width)
        y = F.layer_norm(x, (width,), *w.norm(h + "ln_2", width), epsilon)
        y = F.gelu(conv1d(y, h + "mlp.c_fc", width, hidden), approximate=approximate)
        x = x + conv1d(y, h + "mlp.c_proj", hidden, width)
    return F.layer_norm(x, (width,), *w.norm("ln_f", width), epsilon)[-1] @ table.T


GPT2 = {
    "activation_function": "gelu_new",
    "architectures": ["GPT2LMHeadModel"],
    "attn_pdrop": 0.1,
    "bos_token_id": 66,
    "embd_pdrop": 0.1,
    "eos_token_id": 66,
    "initializer_range": 0.02,
    "layer_norm_epsilon": 1e-05,
    "model_type": "gpt2",
    "n_ctx": 48,
    "n_embd": 32,
    "n_head": 4,
    "n_layer": 2,
    "n_positions": 48,
    "resid_pdrop": 0.1,
    "summary_activation": None,
    "summary_first_dropout": 0.1,
    "summary_proj_to_labels": True,
    "summary_type": "cls_index",
    "summary_use_proj": True,
    "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}},
    "vocab_size": 67,
}
case("gpt2", GPT2, Weights(), IDS, gpt2_logits)
case(
    "gpt2_gelu",
    {**GPT2, "activation_function": "gelu"},
    Weights(),
    IDS,
    lambda w, ids: gpt2_logits(w, ids, approximate="none"),
)
case(
    "gpt2_narrow",
    {**GPT2, "n_inner": 72, "layer_norm_epsilon": 0.001},
    Weights("transformer."),
    IDS,
    lambda w, ids: gpt2_logits(w, ids, hidden=72, epsilon=1e-3),
)
