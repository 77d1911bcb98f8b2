# SPDX-License-Identifier: Apache-2.0
"""T5 and FLAN-T5."""
import math

import torch
import torch.nn.functional as F
from cases import Weights, case


def t5_bias(w, name, queries, keys, is_decoder, buckets=32, farthest=128):
    """Returns [heads, queries, keys] by the distance of a key from its query."""
    distance = torch.arange(keys)[None] - torch.arange(queries)[:, None]
    bucket = torch.zeros_like(distance)
    if is_decoder:
        distance = -distance.clamp(max=0)
    else:
        buckets //= 2
        bucket, distance = (distance > 0).long() * buckets, distance.abs()
    exact = buckets // 2
    steps = torch.log(distance.clamp(min=1).float() / exact) / math.log(farthest / exact) * (buckets - exact)
    far = (exact + steps.long()).clamp(max=buckets - 1)
    return w(name, 32, 4)[bucket + torch.where(distance < exact, distance, far)].permute(2, 0, 1)


def t5_logits(w, given, gated=False):
    source, target = ([int(word) for word in part.split()] for part in given.split("/"))
    width, own, hidden, table = 32, 4 * 6, 48, w("shared.weight", 67, 32)

    def norm(x, name):
        return x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * w(name + ".weight", width)

    def attention(x, memory, name, bias):
        parts = ((x, "q"), (memory, "k"), (memory, "v"))
        q, k, v = (F.linear(y, w(f"{name}.{part}.weight", own, width)) for y, part in parts)
        q, k, v = (y.reshape(len(y), 4, -1).transpose(0, 1) for y in (q, k, v))
        y = ((q @ k.transpose(1, 2) + bias).softmax(-1) @ v).transpose(0, 1).flatten(1)
        return F.linear(y, w(name + ".o.weight", width, own))

    def perceptron(x, name):
        if gated:
            y = F.gelu(F.linear(x, w(name + ".wi_0.weight", hidden, width)), approximate="tanh")
            y = y * F.linear(x, w(name + ".wi_1.weight", hidden, width))
        else:
            y = F.linear(x, w(name + ".wi.weight", hidden, width)).relu()
        return F.linear(y, w(name + ".wo.weight", width, hidden))

    def block(x, name, bias, memory=None):
        layer, y = name + "layer.0.", norm(x, name + "layer.0.layer_norm")
        x = x + attention(y, y, layer + "SelfAttention", bias)
        if memory is not None:
            layer = name + "layer.1."
            x = x + attention(norm(x, layer + "layer_norm"), memory, layer + "EncDecAttention", 0)
        layer = name + f"layer.{1 if memory is None else 2}."
        return x + perceptron(norm(x, layer + "layer_norm"), layer + "DenseReluDense")

    place = "block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    x = table[torch.tensor(source)]
    bias = t5_bias(w, "encoder." + place, len(x), len(x), False)
    for i in range(2):
        x = block(x, f"encoder.block.{i}.", bias)
    memory, x = norm(x, "encoder.final_layer_norm"), table[torch.tensor(target)]
    bias = t5_bias(w, "decoder." + place, len(x), len(x), True)
    bias = bias + torch.full((len(x), len(x)), -math.inf).double().triu(1)
    for i in range(2):
        x = block(x, f"decoder.block.{i}.", bias, memory)
    x = norm(x[-1], "decoder.final_layer_norm")
    return x @ w("lm_head.weight", 67, width).T if gated else x / math.sqrt(width) @ table.T


T5 = {
    "architectures": ["T5ForConditionalGeneration"],
    "d_ff": 48,
    "d_kv": 6,
    "d_model": 32,
    "decoder_start_token_id": 0,
    "dropout_rate": 0.1,
    "eos_token_id": 1,
    "initializer_factor": 1.0,
    "is_encoder_decoder": True,
    "layer_norm_epsilon": 1e-06,
    "model_type": "t5",
    "n_positions": 512,
    "num_heads": 4,
    "num_layers": 2,
    "output_past": True,
    "pad_token_id": 0,
    "relative_attention_num_buckets": 32,
    "task_specific_params": {"summarization": {"num_beams": 4, "prefix": "summarize: "}},
    "vocab_size": 67,
}
LONG = " ".join(str((5 * i + 3) % 67) for i in range(150))
PAIRS = ["5 / 0", "3 17 60 2 41 9 33 / 0 12 40", f"{LONG} / 0 {LONG}"]
case("t5", T5, Weights(), PAIRS, t5_logits)
case(
    "flan_t5",
    {
        **T5,
        "feed_forward_proj": "gated-gelu",
        "is_gated_act": True,
        "dense_act_fn": "gelu_new",
        "num_decoder_layers": 2,
        "relative_attention_max_distance": 128,
        "tie_word_embeddings": False,
    },
    Weights(),
    PAIRS,
    lambda w, given: t5_logits(w, given, gated=True),
)
