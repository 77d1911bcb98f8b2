#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the golden outputs of tests/models: `make_goldens.py [MODEL ...]`.

Needs Debian 12's python3-torch and python3-numpy, 3 GB, and about a minute on two cores for all of them. README.md
states the files' format.

1. Weights and inputs come from counter.py, one layer at a time.
2. Every layer is PyTorch's own module (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer), run in f64 and in f32.
3. Samples of the f64 outputs, rounded to f32, are the goldens. How far PyTorch's f32 is from f64, max|f32 - f64| /
   max|f64| over the whole output, is printed and kept in the file.
"""
import argparse
import math
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import counter
import tensor_file

HERE = os.path.dirname(os.path.abspath(__file__))
FIRST = 64  # values taken from the start of the last valid row
PER_ROW = 4  # values taken from every valid row at columns from the counter
DTYPES = (torch.float64, torch.float32)


# --- weights ----------------------------------------------------------------------------------------------------------


class Weights:
    """Generated parameters by name; counts what it gives."""

    def __init__(self):
        self.parameters = 0

    def __call__(self, name, *shape):
        self.parameters += math.prod(shape)
        return torch.from_numpy(counter.weight(name, shape))

    def linear(self, name, outputs, inputs):
        return self(f"{name}.weight", outputs, inputs), self(f"{name}.bias", outputs)

    def norm(self, name, width):
        return self(f"{name}.weight", width), self(f"{name}.bias", width)


def joined(*linears):
    """Linears of the same input as one: (weight, bias)."""
    return torch.cat([weight for weight, _ in linears]), torch.cat([bias for _, bias in linears])


def assign(module, parameters):
    """Sets a layer's parameters, given as {"self_attn.in_proj_": (weight, bias), ...}, and leaves nothing unset."""
    state = {}
    for name, (weight, bias) in parameters.items():
        state[name + "weight"], state[name + "bias"] = weight, bias
    module.load_state_dict(state)


def both(tensor):
    return {dtype: tensor.to(dtype) for dtype in DTYPES}


def run(module, x, *others, **masks):
    """`module` on `x` (dtype -> tensor), in f64 and in f32; the f32 parameters are exact in both."""
    out = {}
    for dtype in reversed(DTYPES):
        out[dtype] = module.to(dtype)(x[dtype], *(other[dtype] for other in others), **masks)
    return out


def causal(count):
    return torch.ones(count, count, dtype=torch.bool).triu(1)


# --- golden files -----------------------------------------------------------------------------------------------------


class Golden:
    def __init__(self, model):
        self.path = os.path.join(HERE, model + ".safetensors")
        self.tensors = {}
        self.metadata = {"model": model, "generator": f"counter {counter.VERSION}", "torch": torch.__version__}

    def add(self, case, output, columns, blocks, valid):
        """Samples `output`, given in blocks of rows, each dtype -> [rows, columns]; `valid`: does a row count."""
        rows = np.flatnonzero(valid)
        chosen = [(rows[-1], c) for c in range(min(FIRST, columns))]
        drawn = counter.tokens(f"sample.{case}.{output}", (len(rows), PER_ROW), columns)
        chosen += [(row, c) for row, cs in zip(rows, drawn) for c in cs]
        values, largest, difference, start = np.empty(len(chosen)), 0.0, 0.0, 0
        for block in blocks:
            reference, single = (block[dtype].numpy() for dtype in DTYPES)
            keep = valid[start : start + len(reference)]
            largest = max(largest, np.abs(reference[keep]).max(initial=0.0))
            difference = max(difference, np.abs(single[keep] - reference[keep]).max(initial=0.0))
            for k, (row, column) in enumerate(chosen):
                if start <= row < start + len(reference):
                    values[k] = reference[row - start, column]
            start += len(reference)
        prefix = f"{case}.{output}"
        self.tensors[prefix + ".index"] = np.array([r * columns + c for r, c in chosen], np.int32)
        self.tensors[prefix + ".value"] = values.astype(np.float32)
        self.tensors[prefix + ".max"] = np.array([largest], np.float32)
        self.metadata[prefix + ".torch_f32_error"] = f"{difference / largest:.2e}"
        print(f"{prefix:20} max {largest:8.4f}  torch f32 error {difference / largest:.2e}", flush=True)

    def write(self):
        tensor_file.write(self.path, self.tensors, self.metadata)
        print(f"{os.path.basename(self.path)}: {os.path.getsize(self.path)} bytes", flush=True)


def tied_logits(x, embedding):
    """Logits in blocks of rows, so that no whole [rows, vocabulary] array is held."""
    count = len(x[torch.float64])
    table = both(embedding)
    for start in range(0, count, 64):
        yield {dtype: x[dtype][start : start + 64] @ table[dtype].t() for dtype in DTYPES}


# --- models -----------------------------------------------------------------------------------------------------------


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
        name = f"encoder.layer.{i}"
        parts = ("query", "key", "value")
        attention = (weights.linear(f"{name}.attention.self.{part}", width, width) for part in parts)
        assign(layer, {
            "self_attn.in_proj_": joined(*attention),
            "self_attn.out_proj.": weights.linear(f"{name}.attention.output.dense", width, width),
            "norm1.": weights.norm(f"{name}.attention.output.LayerNorm", width),
            "linear1.": weights.linear(f"{name}.intermediate.dense", 4 * width, width),
            "linear2.": weights.linear(f"{name}.output.dense", width, 4 * width),
            "norm2.": weights.norm(f"{name}.output.LayerNorm", width),
        })  # fmt: skip
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


def sinusoid(count, width):
    """p(t)_{2k} = sin(t / 10000^(2k/d)), p(t)_{2k+1} = cos(same), in f64."""
    t = torch.arange(count, dtype=torch.float64)[:, None]
    angle = t / 10000.0 ** (torch.arange(0, width, 2, dtype=torch.float64) / width)
    return torch.stack((angle.sin(), angle.cos()), dim=2).flatten(1)


def transformer_base():
    """Transformer base (Vaswani et al. 2017): 6 + 6 layers, width 512, 8 heads; post-norm, ReLU, one embedding."""
    layers, width, heads, hidden, vocabulary = 6, 512, 8, 2048, 37000
    cases = ((1, 1), (7, 5), (64, 64), (128, 100), (256, 256))
    weights, golden = Weights(), Golden("transformer_base")

    def attention(name):
        parts = (weights.linear(f"{name}.{part}", width, width) for part in ("q_proj", "k_proj", "v_proj"))
        return joined(*parts), weights.linear(f"{name}.out_proj", width, width)

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
        self_in, self_out = attention(f"{name}.self_attn")
        assign(encoder, {
            "self_attn.in_proj_": self_in,
            "self_attn.out_proj.": self_out,
            "norm1.": weights.norm(f"{name}.norm1", width),
            "linear1.": weights.linear(f"{name}.mlp.fc1", hidden, width),
            "linear2.": weights.linear(f"{name}.mlp.fc2", width, hidden),
            "norm2.": weights.norm(f"{name}.norm2", width),
        })  # fmt: skip
        for case in cases:
            x[case] = run(encoder, x[case])
    for i in range(layers):
        name = f"decoder.{i}"
        self_in, self_out = attention(f"{name}.self_attn")
        cross_in, cross_out = attention(f"{name}.cross_attn")
        assign(decoder, {
            "self_attn.in_proj_": self_in,
            "self_attn.out_proj.": self_out,
            "norm1.": weights.norm(f"{name}.norm1", width),
            "multihead_attn.in_proj_": cross_in,
            "multihead_attn.out_proj.": cross_out,
            "norm2.": weights.norm(f"{name}.norm2", width),
            "linear1.": weights.linear(f"{name}.mlp.fc1", hidden, width),
            "linear2.": weights.linear(f"{name}.mlp.fc2", width, hidden),
            "norm3.": weights.norm(f"{name}.norm3", width),
        })  # fmt: skip
        for case in cases:
            y[case] = run(decoder, y[case], x[case], tgt_mask=causal(case[1]))
    for s, t in cases:
        memory = {d: x[s, t][d][0] for d in DTYPES}
        golden.add(f"S{s}T{t}", "memory", width, [memory], np.ones(s, bool))
        logits = tied_logits({d: y[s, t][d][0] for d in DTYPES}, embedding)
        golden.add(f"S{s}T{t}", "logits", vocabulary, logits, np.ones(t, bool))
    golden.metadata["parameters"] = str(weights.parameters)
    golden.write()


def vit_base():
    """ViT-B/16 at 224 x 224: a convolution makes patches; 12 pre-norm layers, width 768, 12 heads; head on row 0."""
    layers, width, heads, image, patch, classes, eps = 12, 768, 12, 224, 16, 1000, 1e-12
    rows = (image // patch) ** 2 + 1
    weights, golden = Weights(), Golden("vit_base")

    project = nn.Conv2d(3, width, patch, patch)
    name = "vit.embeddings.patch_embeddings.projection"
    assign(project, {"": (weights(f"{name}.weight", width, 3, patch, patch), weights(f"{name}.bias", width))})
    patches = run(project, both(torch.from_numpy(counter.uniform("image", (1, 3, image, image)))))
    first = weights("vit.embeddings.cls_token", 1, 1, width)
    positions = weights("vit.embeddings.position_embeddings", 1, rows, width)
    x = {d: torch.cat((first.to(d), p.flatten(2).transpose(1, 2)), 1) + positions.to(d) for d, p in patches.items()}
    layer = nn.TransformerEncoderLayer(
        width, heads, 4 * width, dropout=0.0, activation=F.gelu, layer_norm_eps=eps, batch_first=True, norm_first=True)  # fmt: skip
    for i in range(layers):
        name = f"vit.encoder.layer.{i}"
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
    assign(norm, {"": weights.norm("vit.layernorm", width)})
    assign(head, {"": weights.linear("classifier", classes, width)})
    logits = run(head, {d: y[:, 0] for d, y in run(norm, x).items()})
    golden.add("image", "logits", classes, [logits], np.ones(1, bool))
    golden.metadata["parameters"] = str(weights.parameters)
    golden.write()


class ResidualBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + self.downsample(x))


class SmallCnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 24, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(24)
        self.layer1 = nn.Sequential(ResidualBlock(24, 40, 2))
        self.separable = nn.Sequential(
            nn.Conv2d(40, 40, 3, 1, 1, groups=40, bias=False), nn.BatchNorm2d(40), nn.ReLU(), nn.Conv2d(40, 64, 1), nn.ReLU())  # fmt: skip
        self.features = nn.Sequential(
            nn.Conv2d(64, 72, 3, 1, 1), nn.ReLU(), nn.Conv2d(72, 72, 3, 1, 2, dilation=2), nn.ReLU(),
            nn.AvgPool2d(2), nn.Conv2d(72, 36, 3, 1, 1, groups=4), nn.ReLU())  # fmt: skip
        self.classifier = nn.Linear(36, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        features = self.features(self.separable(self.layer1(x)))
        return features, self.classifier(F.adaptive_avg_pool2d(features, 1).flatten(1))


def small_cnn():
    """A small convolutional network: stem, residual block, separable, dilated and grouped convolutions, pools."""
    weights, golden = Weights(), Golden("small_cnn")
    model = SmallCnn().eval()
    state = {}
    for name, value in model.state_dict().items():
        state[name] = value if name.endswith("num_batches_tracked") else weights(name, *value.shape)
    model.load_state_dict(state)
    for batch in (1, 3):
        image = torch.from_numpy(counter.uniform("image", (batch, 3, 90, 74)))
        out = {}
        for dtype in reversed(DTYPES):
            out[dtype] = model.to(dtype)(image.to(dtype))
        resized = {d: F.interpolate(out[d][0], (13, 4), mode="bilinear", align_corners=False) for d in DTYPES}
        for name, images in ("features", {d: out[d][0] for d in DTYPES}), ("resized", resized):
            rows = {d: images[d].flatten(0, 1).flatten(1) for d in DTYPES}
            golden.add(f"B{batch}", name, rows[torch.float64].shape[1], [rows], np.ones(36 * batch, bool))
        golden.add(f"B{batch}", "logits", 10, [{d: out[d][1] for d in DTYPES}], np.ones(batch, bool))
    golden.metadata["parameters"] = str(weights.parameters)
    golden.write()


def worked_attention():
    """Three sentences of two-dimensional word vectors; queries, keys and values are the vectors, scaled dot product."""
    sentences = {
        "S1": ("the sheep and goat grazing", [[1, 1], [4, 0], [0, 0], [2.5, 2.5], [5, 0]]),
        "S2": ("Messi is goat not Ronaldo", [[0, 5], [1, 1], [2.5, 2.5], [0, 0], [0, 4]]),
        "S3": ("Messi is the goat , not Ronaldo", [[6, 2], [1, 1], [1, 1], [5, 3], [0, 0], [1, 0], [4, 2]]),
    }
    golden = Golden("worked_attention")
    for name, (words, rows) in sentences.items():
        x = torch.tensor(rows, dtype=torch.float64)
        scores = x @ x.t() / math.sqrt(2)
        weights = scores.softmax(-1)
        y = weights @ x
        for key, value in (("x", x), ("scores", scores), ("weights", weights), ("y", y)):
            golden.tensors[f"{name}.{key}"] = value.numpy().astype(np.float32)
        golden.metadata[f"{name}.words"] = words
        goat = words.split().index("goat")
        print(name, "goat ->", [round(v, 6) for v in y[goat].tolist()])
    golden.write()


def recurrent():
    """nn.RNN, nn.LSTM, nn.GRU: layers, directions, without biases, initial states, lengths. Whole tensors."""
    width, hidden = 5, 7
    cells = {
        "rnn": nn.RNN(width, hidden),
        "relu": nn.RNN(width, hidden, num_layers=2, nonlinearity="relu", bias=False),
        "lstm": nn.LSTM(width, hidden, num_layers=2, bidirectional=True),
        "gru": nn.GRU(width, hidden, bidirectional=True),
    }
    weights, golden = Weights(), Golden("recurrent")
    for name, cell in cells.items():
        cell.load_state_dict({key: weights(f"{name}.{key}", *value.shape) for key, value in cell.state_dict().items()})
        passes = cell.num_layers * (2 if cell.bidirectional else 1)
        for steps, batch in ((1, 1), (7, 3), (33, 1), (33, 3)):
            x = both(torch.from_numpy(counter.uniform("x", (steps, batch, width))))
            h, c = (both(torch.from_numpy(counter.uniform(state, (passes, batch, hidden)))) for state in "hc")
            lengths = torch.tensor([(steps + 1) // 2, steps, 1][:batch])
            golden.tensors[f"T{steps}B{batch}.lengths"] = lengths.numpy().astype(np.int32)
            for padded in (False, True):
                prefix, error, outputs = f"{name}{'_padded' if padded else ''}.T{steps}B{batch}", 0.0, {}
                for dtype in reversed(DTYPES):
                    initial = (h[dtype], c[dtype]) if name == "lstm" else h[dtype]
                    if padded:
                        packed = nn.utils.rnn.pack_padded_sequence(x[dtype], lengths, enforce_sorted=False)
                        y, last = cell.to(dtype)(packed, initial)
                        y, _ = nn.utils.rnn.pad_packed_sequence(y, total_length=steps)
                    else:
                        y, last = cell.to(dtype)(x[dtype])
                    outputs[dtype] = (y, *last) if name == "lstm" else (y, last)
                for key, single, reference in zip("yhc", outputs[torch.float32], outputs[torch.float64]):
                    golden.tensors[f"{prefix}.{key}"] = reference.numpy().astype(np.float32)
                    error = max(error, ((single - reference).abs().max() / reference.abs().max()).item())
                golden.metadata[f"{prefix}.torch_f32_error"] = f"{error:.2e}"
        print(f"{name:5} torch f32 error {error:.2e}", flush=True)
    golden.metadata["parameters"] = str(weights.parameters)
    golden.write()


def main():
    models = {f.__name__: f for f in (gpt2, bert_base, transformer_base, vit_base, small_cnn, worked_attention, recurrent)}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(models))
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    with torch.no_grad():
        for name in args.models or models:
            print(f"{name}: {models[name].__doc__}")
            models[name]()


if __name__ == "__main__":
    main()
