# SPDX-License-Identifier: Apache-2.0
"""Shared helpers of the oracles: generated weights, PyTorch's layers in f64 and f32, and golden files."""
import math
import os

import numpy as np
import torch

import counter
import tensor_file

HERE = os.path.dirname(os.path.abspath(__file__))
FIRST = 64  # values taken from the start of the last valid row
PER_ROW = 4  # values taken from every valid row at columns from the counter
DTYPES = (torch.float64, torch.float32)


# --- weights ----------------------------------------------------------------------------------------------------------


class Weights:
    """Generates parameters by name, and counts their elements."""

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
    """Concatenates linear layers with the same input into one: (weight, bias)."""
    return torch.cat([weight for weight, _ in linears]), torch.cat([bias for _, bias in linears])


def assign(module, parameters):
    """Sets all parameters of a layer, given as {"self_attn.in_proj_": (weight, bias), ...}."""
    state = {}
    for name, (weight, bias) in parameters.items():
        state[name + "weight"], state[name + "bias"] = weight, bias
    module.load_state_dict(state)


def both(tensor):
    return {dtype: tensor.to(dtype) for dtype in DTYPES}


def run(module, x, *others, **masks):
    """Runs `module` on `x` (dtype -> tensor), in f64 and in f32; the f32 parameters are exact in both."""
    out = {}
    for dtype in reversed(DTYPES):
        out[dtype] = module.to(dtype)(x[dtype], *(other[dtype] for other in others), **masks)
    return out


def causal(count):
    return torch.ones(count, count, dtype=torch.bool).triu(1)


def generated(model, golden):
    """Returns the module in evaluation mode with generated weights; sets their count in the golden's metadata."""
    weights = Weights()
    state = {name: value for name, value in model.state_dict().items() if not name.endswith("num_batches_tracked")}
    model.load_state_dict({name: weights(name, *value.shape) for name, value in state.items()}, strict=False)
    golden.metadata["parameters"] = str(weights.parameters)
    return model.eval()


# --- golden files -----------------------------------------------------------------------------------------------------


class Sketch:
    """Signed sums of all elements of an output, in at most 4096 buckets of about 64 elements. A test computes the same
    sums, so that any wrong element changes its bucket. README.md specifies the rule."""

    MOST_BITS = 12

    def __init__(self, elements, columns):
        self.columns = columns
        self.bits = min(max(int(np.ceil(np.log2(elements / 64))), 0), self.MOST_BITS)
        self.sums = np.zeros(1 << self.bits)

    def add(self, rows, numbers):
        """Adds `rows` [count, columns], whose row numbers in the output are `numbers`."""
        flat = numbers.astype(np.uint64)[:, None] * np.uint64(self.columns) + np.arange(self.columns, dtype=np.uint64)
        mixed = flat * np.uint64(0x9E3779B97F4A7C15)
        bucket = (mixed >> np.uint64(64 - self.bits)).astype(np.int64) if self.bits else np.zeros(flat.shape, np.int64)
        sign = 1.0 - 2.0 * ((mixed >> np.uint64(40)) & np.uint64(1)).astype(np.float64)
        self.sums += np.bincount(bucket.ravel(), (sign * rows).ravel(), len(self.sums))


class Golden:
    def __init__(self, model):
        self.path = os.path.join(HERE, model + ".safetensors")
        self.tensors = {}
        self.metadata = {"model": model, "generator": f"counter {counter.VERSION}", "torch": torch.__version__}

    def add(self, case, output, columns, blocks, valid):
        """Samples `output`, given in blocks of rows, each dtype -> [rows, columns]; `valid`: whether a row counts."""
        rows = np.flatnonzero(valid)
        chosen = [(rows[-1], c) for c in range(min(FIRST, columns))]
        drawn = counter.tokens(f"sample.{case}.{output}", (len(rows), PER_ROW), columns)
        chosen += [(row, c) for row, cs in zip(rows, drawn) for c in cs]
        values, largest, difference, start = np.empty(len(chosen)), 0.0, 0.0, 0
        sketch = Sketch(len(rows) * columns, columns)
        for block in blocks:
            reference, single = (block[dtype].numpy() for dtype in DTYPES)
            keep = valid[start : start + len(reference)]
            largest = max(largest, np.abs(reference[keep]).max(initial=0.0))
            difference = max(difference, np.abs(single[keep] - reference[keep]).max(initial=0.0))
            sketch.add(reference[keep], start + np.flatnonzero(keep))
            for k, (row, column) in enumerate(chosen):
                if start <= row < start + len(reference):
                    values[k] = reference[row - start, column]
            start += len(reference)
        prefix = f"{case}.{output}"
        self.tensors[prefix + ".index"] = np.array([r * columns + c for r, c in chosen], np.int32)
        self.tensors[prefix + ".value"] = values.astype(np.float32)
        self.tensors[prefix + ".max"] = np.array([largest], np.float32)
        self.tensors[prefix + ".sketch"] = sketch.sums
        self.tensors[prefix + ".shape"] = np.array([len(valid), columns], np.int32)
        if not valid.all():
            self.tensors[prefix + ".valid"] = valid.astype(np.int32)
        self.metadata[prefix + ".torch_f32_error"] = f"{difference / largest:.2e}"
        print(f"{prefix:20} max {largest:8.4f}  torch f32 error {difference / largest:.2e}", flush=True)

    def add_outputs(self, case, compute):
        """Samples each output of `compute(dtype)`, a dict of tensors [rows, columns]."""
        outputs = {dtype: compute(dtype) for dtype in reversed(DTYPES)}
        for name in outputs[torch.float64]:
            block = {dtype: outputs[dtype][name].detach() for dtype in DTYPES}
            rows, columns = block[torch.float64].shape
            self.add(case, name, columns, [block], np.ones(rows, bool))

    def write(self):
        tensor_file.write(self.path, self.tensors, self.metadata)
        print(f"{os.path.basename(self.path)}: {os.path.getsize(self.path)} bytes", flush=True)


def tied_logits(x, embedding):
    """Computes logits in blocks of rows, so that no whole [rows, vocabulary] array is in memory."""
    count = len(x[torch.float64])
    table = both(embedding)
    for start in range(0, count, 64):
        yield {dtype: x[dtype][start : start + 64] @ table[dtype].t() for dtype in DTYPES}


def sinusoid(count, width):
    """Computes p(t)_{2k} = sin(t / 10000^(2k/d)), p(t)_{2k+1} = cos(same), in f64."""
    t = torch.arange(count, dtype=torch.float64)[:, None]
    angle = t / 10000.0 ** (torch.arange(0, width, 2, dtype=torch.float64) / width)
    return torch.stack((angle.sin(), angle.cos()), dim=2).flatten(1)
