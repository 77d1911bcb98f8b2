# SPDX-License-Identifier: Apache-2.0
"""Whole models from PyTorch's layers (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer), one layer at a time."""
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import counter
from golden import DTYPES, Golden, Weights, assign, both, causal, joined, run, sinusoid, tied_logits


def gpt2():
    """GPT-2 small: 12 layers, width 768, 12 heads; pre-norm, tanh-form GELU, tied logits; Conv1D weights [in, out]."""
    layers, width, heads, vocabulary, context = 12, 768, 12, 50257, 1024
    cases = (1, 7, 64, 128, 1024)
    weights, golden = Weights(), Golden("gpt2")

    def conv1d(name, inputs, outputs):
        return weights(f"{name}.weight", inputs, outputs).t().contiguous(), weights(f"{name}.bias", outputs)

    layer = nn.TransformerEncoderLayer(
        width, heads, 4 * width, dropout=0.0, activation=lambda x: F.gelu(x, approximate="tanh"),
        layer_norm_eps=1e-5, batch_first=True, norm_first=True)  # fmt: skip
    wte, wpe = weights("wte.weight", vocabulary, width), weights("wpe.weight", context, width)
    x = {}
    for count in cases:
        tokens = torch.from_numpy(counter.tokens("tokens", (count,), vocabulary)).long()
        x[count] = {d: (wte[tokens].to(d) + wpe[:count].to(d)).unsqueeze(0) for d in DTYPES}
    for i in range(layers):
        assign(layer, {
            "norm1.": weights.norm(f"h.{i}.ln_1", width),
            "self_attn.in_proj_": conv1d(f"h.{i}.attn.c_attn", width, 3 * width),
            "self_attn.out_proj.": conv1d(f"h.{i}.attn.c_proj", width, width),
            "norm2.": weights.norm(f"h.{i}.ln_2", width),
            "linear1.": conv1d(f"h.{i}.mlp.c_fc", width, 4 * width),
            "linear2.": conv1d(f"h.{i}.mlp.c_proj", 4 * width, width),
        })  # fmt: skip
        for count in cases:
            x[count] = run(layer, x[count], src_mask=causal(count))
    ln_f = nn.LayerNorm(width, eps=1e-5)
    assign(ln_f, {"": weights.norm("ln_f", width)})
    for count in cases:
        y = run(ln_f, x[count])
        logits = tied_logits({d: y[d][0] for d in DTYPES}, wte)
        golden.add(f"T{count}", "logits", vocabulary, logits, np.ones(count, bool))
    golden.metadata["parameters"] = str(weights.parameters)
    golden.write()


def bert_parameters(weights, name, width):
    """Maps the parameters of a BERT layer to those of nn.TransformerEncoderLayer."""
    attention = (weights.linear(f"{name}.attention.self.{part}", width, width) for part in ("query", "key", "value"))
    return {
        "self_attn.in_proj_": joined(*attention),
        "self_attn.out_proj.": weights.linear(f"{name}.attention.output.dense", width, width),
        "norm1.": weights.norm(f"{name}.attention.output.LayerNorm", width),
        "linear1.": weights.linear(f"{name}.intermediate.dense", 4 * width, width),
        "linear2.": weights.linear(f"{name}.output.dense", width, 4 * width),
        "norm2.": weights.norm(f"{name}.output.LayerNorm", width),
    }


def bert_base():
    """BERT-base uncased: 12 layers, width 768, 12 heads; post-norm, erf GELU, padding lengths, pooler."""
    layers, width, heads, vocabulary, context, eps = 12, 768, 12, 30522, 512, 1e-12
    cases = [(b, t) for b in (1, 2) for t in (1, 7, 64, 128, 512)]
    weights, golden = Weights(), Golden("bert_base")

    word = weights("embeddings.word_embeddings.weight", vocabulary, width)
    position = weights("embeddings.position_embeddings.weight", context, width)
    token_type = weights("embeddings.token_type_embeddings.weight", 2, width)
    norm = nn.LayerNorm(width, eps=eps)
    assign(norm, {"": weights.norm("embeddings.LayerNorm", width)})
    layer = nn.TransformerEncoderLayer(
        width, heads, 4 * width, dropout=0.0, activation=F.gelu, layer_norm_eps=eps, batch_first=True)
    x, valid = {}, {}
    for b, t in cases:
        tokens = torch.from_numpy(counter.tokens("tokens", (b, t), vocabulary)).long()
        segments = torch.from_numpy(counter.tokens("segments", (b, t), 2)).long()
        lengths = np.array([t, (t + 1) // 2][:b], np.int32)
        golden.tensors[f"B{b}T{t}.lengths"] = lengths
        valid[b, t] = np.arange(t)[None, :] < lengths[:, None]
        x[b, t] = run(norm, {d: word[tokens].to(d) + position[:t].to(d) + token_type[segments].to(d) for d in DTYPES})
    for i in range(layers):
        assign(layer, bert_parameters(weights, f"encoder.layer.{i}", width))
        for case in cases:
            x[case] = run(layer, x[case], src_key_padding_mask=~torch.from_numpy(valid[case]))
    dense = nn.Linear(width, width)
    assign(dense, {"": weights.linear("pooler.dense", width, width)})
    for b, t in cases:
        golden.add(f"B{b}T{t}", "hidden", width, [{d: x[b, t][d].flatten(0, 1) for d in DTYPES}], valid[b, t].ravel())
        pooled = run(dense, {d: x[b, t][d][:, 0] for d in DTYPES})
        golden.add(f"B{b}T{t}", "pooled", width, [{d: pooled[d].tanh() for d in DTYPES}], np.ones(b, bool))
    golden.metadata["parameters"] = str(weights.parameters)
    golden.write()


def encoder_parameters(weights, name, width, hidden):
    """Maps the parameters of Kiln's EncoderBlock to those of nn.TransformerEncoderLayer."""
    parts = (weights.linear(f"{name}.self_attn.{part}", width, width) for part in ("q_proj", "k_proj", "v_proj"))
    return {
        "self_attn.in_proj_": joined(*parts),
        "self_attn.out_proj.": weights.linear(f"{name}.self_attn.out_proj", width, width),
        "norm1.": weights.norm(f"{name}.norm1", width),
        "linear1.": weights.linear(f"{name}.mlp.fc1", hidden, width),
        "linear2.": weights.linear(f"{name}.mlp.fc2", width, hidden),
        "norm2.": weights.norm(f"{name}.norm2", width),
    }


def decoder_parameters(weights, name, width, hidden):
    """Likewise for DecoderBlock and nn.TransformerDecoderLayer."""
    parts = (weights.linear(f"{name}.cross_attn.{part}", width, width) for part in ("q_proj", "k_proj", "v_proj"))
    return encoder_parameters(weights, name, width, hidden) | {
        "multihead_attn.in_proj_": joined(*parts),
        "multihead_attn.out_proj.": weights.linear(f"{name}.cross_attn.out_proj", width, width),
        "norm3.": weights.norm(f"{name}.norm3", width),
    }


def transformer_base():
    """Transformer base (Vaswani et al. 2017): 6 + 6 layers, width 512, 8 heads; post-norm, ReLU, one embedding."""
    layers, width, heads, hidden, vocabulary = 6, 512, 8, 2048, 37000
    cases = ((1, 1), (7, 5), (64, 64), (128, 100), (256, 256))
    weights, golden = Weights(), Golden("transformer_base")

    embedding = weights("embedding.weight", vocabulary, width)

    def embed(name, count):
        tokens = torch.from_numpy(counter.tokens(name, (count,), vocabulary)).long()
        positions = sinusoid(count, width)
        return {d: (embedding[tokens].to(d) * math.sqrt(width) + positions.to(d)).unsqueeze(0) for d in DTYPES}

    x = {case: embed("source", case[0]) for case in cases}
    y = {case: embed("target", case[1]) for case in cases}
    options = dict(dropout=0.0, activation=F.relu, layer_norm_eps=1e-5, batch_first=True)
    encoder = nn.TransformerEncoderLayer(width, heads, hidden, **options)
    decoder = nn.TransformerDecoderLayer(width, heads, hidden, **options)
    for i in range(layers):
        name = f"encoder.{i}"
        assign(encoder, encoder_parameters(weights, name, width, hidden))
        for case in cases:
            x[case] = run(encoder, x[case])
    for i in range(layers):
        name = f"decoder.{i}"
        assign(decoder, decoder_parameters(weights, name, width, hidden))
        for case in cases:
            y[case] = run(decoder, y[case], x[case], tgt_mask=causal(case[1]))
    for s, t in cases:
        memory = {d: x[s, t][d][0] for d in DTYPES}
        golden.add(f"S{s}T{t}", "memory", width, [memory], np.ones(s, bool))
        logits = tied_logits({d: y[s, t][d][0] for d in DTYPES}, embedding)
        golden.add(f"S{s}T{t}", "logits", vocabulary, logits, np.ones(t, bool))
    golden.metadata["parameters"] = str(weights.parameters)
    golden.write()


def transformer_blocks():
    """The encoder and the decoder block of width 72, 6 heads: post-norm with ReLU, pre-norm with GELU; padding by lengths."""
    width, heads, hidden = 72, 6, 288
    cases = [(1, 1, 1), (3, 7, 5), (2, 96, 80)]  # B, T, S
    weights, golden = Weights(), Golden("transformer_blocks")
    for kind, activation, first in (("post", F.relu, False), ("pre", F.gelu, True)):
        options = dict(dropout=0.0, activation=activation, layer_norm_eps=1e-5, batch_first=True, norm_first=first)
        encoder = nn.TransformerEncoderLayer(width, heads, hidden, **options)
        assign(encoder, encoder_parameters(weights, f"{kind}_encoder", width, hidden))
        decoder = nn.TransformerDecoderLayer(width, heads, hidden, **options)
        assign(decoder, decoder_parameters(weights, f"{kind}_decoder", width, hidden))
        for b, t, s in cases:
            x = both(torch.from_numpy(counter.uniform("x", (b, t, width))) * 2)
            memory = both(torch.from_numpy(counter.uniform("memory", (b, s, width))) * 2)
            lengths = np.array([t, (t + 1) // 2, 1][:b], np.int32)
            golden.tensors[f"B{b}T{t}.lengths"] = lengths
            valid = np.arange(t)[None, :] < lengths[:, None]
            y = run(encoder, x, src_key_padding_mask=~torch.from_numpy(valid))
            golden.add(f"encode_{kind}.B{b}T{t}", "y", width, [{d: y[d].flatten(0, 1) for d in DTYPES}], valid.ravel())
            y = run(decoder, x, memory, tgt_mask=causal(t))
            golden.add(f"decode_{kind}.B{b}T{t}", "y", width, [{d: y[d].flatten(0, 1) for d in DTYPES}], np.ones(b * t, bool))
    golden.metadata["parameters"] = str(weights.parameters)
    golden.write()


def masked_words():
    """BERT and RoBERTa of 3 layers, width 96, 4 heads, 601 words, with the masked-word head."""
    layers, width, heads, vocabulary = 3, 96, 4, 601
    cases = [(1, 1), (3, 7), (2, 64), (1, 512)]
    golden = Golden("masked_words")
    for model, segments, first, eps, head in (
        ("bert", 2, 0, 1e-12, ("cls.predictions", "transform.dense", "transform.LayerNorm")),
        ("roberta", 1, 2, 1e-5, ("lm_head", "dense", "layer_norm")),
    ):
        weights = Weights()
        table = weights(f"{model}.embeddings.word_embeddings.weight", vocabulary, width)
        place = weights(f"{model}.embeddings.position_embeddings.weight", 512 + first, width)[first:]
        kinds = weights(f"{model}.embeddings.token_type_embeddings.weight", segments, width)
        norm = nn.LayerNorm(width, eps=eps)
        assign(norm, {"": weights.norm(f"{model}.embeddings.LayerNorm", width)})
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout=0.0, activation=F.gelu, layer_norm_eps=eps, batch_first=True)  # fmt: skip
        x, valid = {}, {}
        for b, t in cases:
            tokens = torch.from_numpy(counter.tokens("tokens", (b, t), vocabulary)).long()
            kind = torch.from_numpy(counter.tokens("segments", (b, t), segments)).long()
            lengths = np.array([t, (t + 1) // 2, 1][:b], np.int32)
            golden.tensors[f"B{b}T{t}.lengths"] = lengths
            valid[b, t] = np.arange(t)[None, :] < lengths[:, None]
            x[b, t] = run(norm, {d: table[tokens].to(d) + place[:t].to(d) + kinds[kind].to(d) for d in DTYPES})
        for i in range(layers):
            assign(layer, bert_parameters(weights, f"{model}.encoder.layer.{i}", width))
            for case in cases:
                x[case] = run(layer, x[case], src_key_padding_mask=~torch.from_numpy(valid[case]))
        dense, norm, bias = nn.Linear(width, width), nn.LayerNorm(width, eps=eps), weights(f"{head[0]}.bias", vocabulary)
        assign(dense, {"": weights.linear(f"{head[0]}.{head[1]}", width, width)})
        assign(norm, {"": weights.norm(f"{head[0]}.{head[2]}", width)})
        for b, t in cases:
            y = run(norm, {d: F.gelu(z) for d, z in run(dense, x[b, t]).items()})
            logits = {d: (y[d] @ table.to(d).t() + bias.to(d)).flatten(0, 1) for d in DTYPES}
            golden.add(f"{model}.B{b}T{t}", "logits", vocabulary, [logits], valid[b, t].ravel())
        golden.metadata[f"{model}.parameters"] = str(weights.parameters)
    golden.write()


def image_transformer(golden, prefix, width, heads, tokens, classifiers):
    """12 pre-norm layers over tokens, then patches of 16 of a 224 x 224 image; the mean of one classifier per token."""
    layers, image, patch, classes, eps = 12, 224, 16, 1000, 1e-12
    rows = (image // patch) ** 2 + len(tokens)
    weights = Weights()
    project = nn.Conv2d(3, width, patch, patch)
    name = f"{prefix}.embeddings.patch_embeddings.projection"
    assign(project, {"": (weights(f"{name}.weight", width, 3, patch, patch), weights(f"{name}.bias", width))})
    patches = run(project, both(torch.from_numpy(counter.uniform("image", (1, 3, image, image)))))
    first = torch.cat([weights(f"{prefix}.embeddings.{token}", 1, 1, width) for token in tokens], 1)
    positions = weights(f"{prefix}.embeddings.position_embeddings", 1, rows, width)
    x = {d: torch.cat((first.to(d), p.flatten(2).transpose(1, 2)), 1) + positions.to(d) for d, p in patches.items()}
    layer = nn.TransformerEncoderLayer(
        width, heads, 4 * width, dropout=0.0, activation=F.gelu, layer_norm_eps=eps, batch_first=True, norm_first=True)  # fmt: skip
    for i in range(layers):
        name = f"{prefix}.encoder.layer.{i}"
        attention = (weights.linear(f"{name}.attention.attention.{part}", width, width) for part in ("query", "key", "value"))
        assign(layer, {
            "norm1.": weights.norm(f"{name}.layernorm_before", width),
            "self_attn.in_proj_": joined(*attention),
            "self_attn.out_proj.": weights.linear(f"{name}.attention.output.dense", width, width),
            "norm2.": weights.norm(f"{name}.layernorm_after", width),
            "linear1.": weights.linear(f"{name}.intermediate.dense", 4 * width, width),
            "linear2.": weights.linear(f"{name}.output.dense", width, 4 * width),
        })  # fmt: skip
        x = run(layer, x)
    norm, head = nn.LayerNorm(width, eps=eps), nn.Linear(width, classes)
    assign(norm, {"": weights.norm(f"{prefix}.layernorm", width)})
    y, logits = run(norm, x), {d: 0 for d in DTYPES}
    for i, classifier in enumerate(classifiers):
        assign(head, {"": weights.linear(classifier, classes, width)})
        logits = {d: logits[d] + z / len(classifiers) for d, z in run(head, {d: y[d][:, i] for d in DTYPES}).items()}
    golden.add("image", "logits", classes, [logits], np.ones(1, bool))
    golden.metadata["parameters"] = str(weights.parameters)
    golden.write()


def vit_base():
    """ViT-B/16 at 224 x 224: a convolution makes patches; 12 pre-norm layers, width 768, 12 heads; head on row 0."""
    image_transformer(Golden("vit_base"), "vit", 768, 12, ("cls_token",), ("classifier",))


def deit_tiny():
    """DeiT-Ti/16: width 192, 3 heads, a class and a distillation token with a head each, and their mean."""
    heads = ("cls_classifier", "distillation_classifier")
    image_transformer(Golden("deit_tiny"), "deit", 192, 3, ("cls_token", "distillation_token"), heads)
