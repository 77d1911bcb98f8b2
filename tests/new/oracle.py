# SPDX-License-Identifier: Apache-2.0
"""Writes cases/: small checkpoints as they are published, and what PyTorch makes of them in f64.

A case has its config.json, the tensors of its model.safetensors (tensors.txt: name, element type, extents), and
golden.txt: a line for each input, then the numbers of the result. Weights are those of tests/models/oracle/counter.py.
Everything here is written out by torch's functions alone, by the papers and the published names.

  python3 oracle.py [CASE...]
"""
import json
import math
import os
import sys

import torch
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../models/oracle"))
import counter  # noqa: E402

IDS = ([5], [3, 17, 60, 2, 41, 9, 33], [(7 * i + 11) % 67 for i in range(19)])
CASES = {}


class Weights:
    """A tensor by its name and extents, remembered for tensors.txt."""

    def __init__(self, prefix="", element="f32"):
        self.prefix, self.element, self.known = prefix, element, {}

    def __call__(self, name, *shape):
        name = self.prefix + name
        self.known[name] = shape
        values = torch.from_numpy(counter.weight(name, shape))
        if self.element == "bf16":
            values = values.bfloat16()
        return values.double()

    def linear(self, name, out, inputs, bias=True):
        return self(name + ".weight", out, inputs), self(name + ".bias", out) if bias else None

    def norm(self, name, width):
        return self(name + ".weight", width), self(name + ".bias", width)


def case(name, config, weights, inputs, run, files=()):
    """`run(weights, input)` gives the numbers of an input."""

    def write():
        folder = os.path.join(HERE, "cases", name)
        os.makedirs(folder, exist_ok=True)
        lines = []
        for each in inputs:
            numbers = run(weights, each).flatten().tolist()
            lines.append(each if isinstance(each, str) else " ".join(map(str, each)))
            lines.append(" ".join(f"{number:.9g}" for number in numbers))
        shapes = [f"{key} {weights.element} {' '.join(map(str, shape))}" for key, shape in weights.known.items()]
        for file, content in (
            ("config.json", json.dumps(config, indent=2) + "\n"),
            ("tensors.txt", "\n".join(shapes) + "\n"),
            ("golden.txt", "\n".join(lines) + "\n"),
            *files,
        ):
            with open(os.path.join(folder, file), "wb" if isinstance(content, bytes) else "w") as f:
                f.write(content)

    CASES[name] = write


def attend(q, k, v, heads, shared=None, causal=False):
    """Softmax attention of [tokens, heads * width]; each head of keys and values serves heads / shared of queries."""
    tokens, shared = q.shape[0], shared or heads
    q, k, v = (x.reshape(x.shape[0], n, -1).transpose(0, 1) for x, n in ((q, heads), (k, shared), (v, shared)))
    k, v = (x.repeat_interleave(heads // shared, 0) for x in (k, v))
    scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])
    if causal:
        scores = scores.masked_fill(torch.ones(tokens, tokens).triu(1).bool(), -math.inf)
    return (scores.softmax(-1) @ v).transpose(0, 1).reshape(tokens, -1)


def llama3_scaled(frequencies, factor=8, low=1, high=4, original=64):
    """Wavelengths of more than `original` tokens are `factor` times longer, with a smooth step before (Llama 3.1)."""
    wavelengths = 2 * math.pi / frequencies
    smooth = (original / wavelengths - low) / (high - low)
    between = (1 - smooth) * frequencies / factor + smooth * frequencies
    slow = torch.where(wavelengths > original / low, frequencies / factor, between)
    return torch.where(wavelengths < original / high, frequencies, slow)


def yarn_scaled(frequencies, base=100, factor=4, fast=4, slow=1, original=64):
    """YaRN as published models have it: by number from the pair that turns `fast` times to that of `slow` times."""

    def pair(turns):  # that turns so often in the original text
        return math.log(original / (2 * math.pi * turns)) / math.log(base) * len(frequencies)

    first, last = math.floor(pair(fast)), math.ceil(pair(slow))
    stays = ((last - torch.arange(len(frequencies)).double()) / (last - first)).clamp(0, 1)
    return stays * frequencies + (1 - stays) * frequencies / factor


def turn(x, heads, base, turned=None, scaled=lambda frequencies: frequencies, amplitude=1):
    """Rotary positions: of the first `turned` numbers of a head, the two halves are the parts of complex numbers."""
    x = x.reshape(x.shape[0], heads, -1)
    turned = turned or x.shape[-1]
    half = turned // 2
    angles = torch.arange(x.shape[0]).double()[:, None] * scaled(base ** (-torch.arange(half).double() / half))
    cos, sin = amplitude * angles.cos()[:, None], amplitude * angles.sin()[:, None]
    a, b = x[..., :half], x[..., half:turned]
    return torch.cat((a * cos - b * sin, b * cos + a * sin, x[..., turned:]), -1).flatten(1)


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
    """Of the pairs of a head."""
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

BERT_NAMES = {
    "layer": "encoder.layer.{}.",
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attended": "attention.output.dense",
    "attended_norm": "attention.output.LayerNorm",
    "intermediate": "intermediate.dense",
    "output": "output.dense",
    "output_norm": "output.LayerNorm",
}
DISTILBERT_NAMES = {
    "layer": "transformer.layer.{}.",
    "query": "attention.q_lin",
    "key": "attention.k_lin",
    "value": "attention.v_lin",
    "attended": "attention.out_lin",
    "attended_norm": "sa_layer_norm",
    "intermediate": "ffn.lin1",
    "output": "ffn.lin2",
    "output_norm": "output_layer_norm",
}


def encoder_rows(w, ids, prefix, names, width=32, heads=4, hidden=128, epsilon=1e-12, first=0, rows=40, segments=2):
    embeddings = prefix + "embeddings."

    def norm(x, name):
        return F.layer_norm(x, (width,), *w.norm(name, width), epsilon)

    x = w(embeddings + "word_embeddings.weight", 67, width)[torch.tensor(ids)]
    x = x + w(embeddings + "position_embeddings.weight", rows, width)[first : first + len(ids)]
    if segments:
        x = x + w(embeddings + "token_type_embeddings.weight", segments, width)[0]
    x = norm(x, embeddings + "LayerNorm")
    for i in range(2):
        layer = prefix + names["layer"].format(i)
        q, k, v = (F.linear(x, *w.linear(layer + names[part], width, width)) for part in ("query", "key", "value"))
        y = F.linear(attend(q, k, v, heads), *w.linear(layer + names["attended"], width, width))
        x = norm(x + y, layer + names["attended_norm"])
        y = F.gelu(F.linear(x, *w.linear(layer + names["intermediate"], hidden, width)))
        x = norm(x + F.linear(y, *w.linear(layer + names["output"], width, hidden)), layer + names["output_norm"])
    return x


def scores(w, rows, dense, norm, table, bias, width=32, epsilon=1e-12):
    """Of every word for every row."""
    y = F.layer_norm(F.gelu(F.linear(rows, *w.linear(dense, width, width))), (width,), *w.norm(norm, width), epsilon)
    return F.linear(y, w(table, 67, width), w(bias, 67))


BERT = {
    "architectures": ["BertForMaskedLM"],
    "attention_probs_dropout_prob": 0.1,
    "gradient_checkpointing": False,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 32,
    "initializer_range": 0.02,
    "intermediate_size": 128,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 40,
    "model_type": "bert",
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "pad_token_id": 0,
    "position_embedding_type": "absolute",
    "transformers_version": "4.6.0.dev0",
    "type_vocab_size": 2,
    "use_cache": True,
    "vocab_size": 67,
}


def bert_words(w, ids):
    rows = encoder_rows(w, ids, "bert.", BERT_NAMES)
    w.linear("bert.pooler.dense", 32, 32)  # in the file and without use
    w.linear("cls.seq_relationship", 2, 32)
    head, table = "cls.predictions.", "bert.embeddings.word_embeddings.weight"
    return scores(w, rows, head + "transform.dense", head + "transform.LayerNorm", table, head + "bias")


case("bert", BERT, Weights(), IDS, bert_words)


def minilm_vector(w, ids):
    rows = encoder_rows(w, ids, "", BERT_NAMES)
    w.linear("pooler.dense", 32, 32)
    return F.normalize(rows.mean(0), dim=0)


case(
    "minilm",
    {**BERT, "architectures": ["BertModel"], "_name_or_path": "nreimers/MiniLM-L6-H384-uncased"},
    Weights(),
    IDS,
    minilm_vector,
    (
        (
            "modules.json",
            json.dumps(
                [
                    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
                    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
                    {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
                ],
                indent=2,
            )
            + "\n",
        ),
    ),
)


def roberta_classes(w, ids):
    rows = encoder_rows(w, ids, "roberta.", BERT_NAMES, epsilon=1e-5, first=2, rows=42, segments=1)
    y = F.linear(rows[0], *w.linear("classifier.dense", 32, 32)).tanh()
    return F.linear(y, *w.linear("classifier.out_proj", 3, 32))


case(
    "roberta",
    {
        **BERT,
        "architectures": ["RobertaForSequenceClassification"],
        "bos_token_id": 0,
        "eos_token_id": 2,
        "id2label": {"0": "negative", "1": "neutral", "2": "positive"},
        "label2id": {"negative": 0, "neutral": 1, "positive": 2},
        "layer_norm_eps": 1e-05,
        "max_position_embeddings": 42,
        "model_type": "roberta",
        "pad_token_id": 1,
        "type_vocab_size": 1,
    },
    Weights(),
    IDS,
    roberta_classes,
)


def bert_tokens(w, ids):
    w.linear("bert.pooler.dense", 32, 32)
    return F.linear(encoder_rows(w, ids, "bert.", BERT_NAMES), *w.linear("classifier", 3, 32))


case(
    "bert_tokens",
    {
        **BERT,
        "_num_labels": 3,
        "architectures": ["BertForTokenClassification"],
        "id2label": {"0": "O", "1": "B-PER", "2": "I-PER"},
        "label2id": {"O": 0, "B-PER": 1, "I-PER": 2},
        "output_past": True,
    },
    Weights(),
    IDS,
    bert_tokens,
)


def distilbert_words(w, ids):
    rows = encoder_rows(w, ids, "distilbert.", DISTILBERT_NAMES, segments=0)
    w("vocab_projector.weight", 67, 32)  # what it holds is the embedding once more
    table = "distilbert.embeddings.word_embeddings.weight"
    return scores(w, rows, "vocab_transform", "vocab_layer_norm", table, "vocab_projector.bias")


case(
    "distilbert",
    {
        "activation": "gelu",
        "architectures": ["DistilBertForMaskedLM"],
        "attention_dropout": 0.1,
        "dim": 32,
        "dropout": 0.1,
        "hidden_dim": 128,
        "initializer_range": 0.02,
        "max_position_embeddings": 40,
        "model_type": "distilbert",
        "n_heads": 4,
        "n_layers": 2,
        "pad_token_id": 0,
        "qa_dropout": 0.1,
        "seq_classif_dropout": 0.2,
        "sinusoidal_pos_embds": False,
        "tie_weights_": True,
        "transformers_version": "4.10.0.dev0",
        "vocab_size": 67,
    },
    Weights(),
    IDS,
    distilbert_words,
)

SIDE, PATCH, WIDTH = 16, 4, 24
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
LEVELS = torch.tensor(counter.tokens("levels", (SIDE, SIDE, 3), 256))
PICTURE = b"P6\n16 16\n255\n" + bytes(LEVELS.flatten().tolist())


def pixels(mean, deviation):
    """The picture as channels, rows and columns of numbers."""
    levels = LEVELS.double() / 255
    return ((levels - torch.tensor(mean).double()) / torch.tensor(deviation).double()).permute(2, 0, 1)


def vit_rows(w, name, prefix, mean, deviation):
    """The normed rows of a picture's class token (and of the distillation token)."""
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
    """Of a picture, or of the tokens of a text, the last of which stands for it."""
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


# With what the first files say of generation, too.
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


def t5_bias(w, name, queries, keys, is_decoder, buckets=32, farthest=128):
    """[heads, queries, keys] by how far a key is from its query."""
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


def main():
    for name in sys.argv[1:] or CASES:
        CASES[name]()


if __name__ == "__main__":
    main()
