#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch on a GPU, controlled by lines: one command in, one answer out. It first writes `ready` and its version, or
an error.

- `make product ROWS COLUMNS DEPTH WEIGHT TYPE`, `make layer_norm|softmax ROWS COLUMNS`, `make attention full|causal
  TOKENS HEADS WIDTH TYPE` with heads of WIDTH, `make model NAME`: answers the available forms. TYPE is f32, tf32 or
  bf16.
- `run FORM CALLS`: answers the seconds per call, measured by events around CALLS calls.
- `output`: answers the first output of the last run, raw f32.
"""
import functools
import math
import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../peers/pytorch"))
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/models/oracle"))


def tensor(values):
    return torch.from_numpy(values).cuda()


def shift(value, bits):
    """Logical right shift of 64 bits."""
    return (value >> bits) & ((1 << (64 - bits)) - 1)


def signed(value):
    return (value ^ (1 << 63)) - (1 << 63)


def weight_on_gpu(name, shape):
    """counter.weight, computed on the GPU: a Llama has too many weights for the host."""
    center, scale = counter.center_and_scale(name, shape)
    out = torch.empty(math.prod(shape), device="cuda")
    for part, start in ((part, i << 24) for i, part in enumerate(out.split(1 << 24))):
        z = torch.arange(start + 1, start + 1 + len(part), device="cuda") * signed(counter.GOLDEN_RATIO)
        z += signed(counter.fnv1a64(name))
        z = (z ^ shift(z, 30)) * signed(0xBF58476D1CE4E5B9)
        z = (z ^ shift(z, 27)) * signed(0x94D049BB133111EB)
        unit = shift(z ^ shift(z, 31), 40).double() * 2.0**-23 - 1.0
        part.copy_(center + float(np.float32(scale)) * unit)
    return out.view(shape)


@functools.cache
def weight(name, *shape):
    return weight_on_gpu(name, shape)


@functools.cache
def uniform(name, *shape):
    return tensor(counter.uniform(name, shape))


def cast(value, type):
    return value.bfloat16() if type == "bf16" else value


def product(rows, columns, depth, name, type):
    torch.backends.cuda.matmul.allow_tf32 = type == "tf32"
    x, w = cast(uniform("x", int(rows), int(depth)), type), cast(weight(name, int(columns), int(depth)), type)
    return {"graph": lambda: F.linear(x, w)}


def layer_norm(rows, columns):
    x = uniform("x", int(rows), int(columns))
    w, b = (weight(f"norm.{part}", int(columns)) for part in ("weight", "bias"))
    return {"graph": lambda: F.layer_norm(x, (int(columns),), w, b)}


def softmax(rows, columns):
    x = uniform("x", int(rows), int(columns))
    return {"graph": lambda: x.softmax(-1)}


def attention(kind, tokens, heads, width, type):
    """The backends of scaled_dot_product_attention that support the case."""

    def split(name):
        x = cast(uniform(name, 1, int(tokens), int(width) * int(heads)), type)
        return x.view(1, int(tokens), int(heads), int(width)).transpose(1, 2)

    q, k, v = split("q"), split("k"), split("v")

    def by(backend):
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, is_causal=kind == "causal").transpose(1, 2)

    backends = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}
    torch.backends.cuda.matmul.allow_tf32 = type == "tf32"
    if type in ("f32", "tf32"):
        backends = {"efficient": SDPBackend.EFFICIENT_ATTENTION}
    forms = {}
    for name, backend in backends.items():
        try:
            by(backend)
            forms[name] = functools.partial(by, backend)
        except RuntimeError as error:
            print(f"note: {name} of attention: {error}", file=sys.stderr)
    return forms


def model(name):
    """Eager, and compiled by torch.compile, in a CUDA graph where possible."""
    from models import make

    torch.backends.cuda.matmul.allow_tf32 = False
    with torch.device("cuda"):
        module, inputs, _ = make(name, weight=weight_on_gpu)
    inputs = [value.cuda() for _, value in inputs]
    forms = {"eager": lambda: module(*inputs)[0]}
    compiled = torch.compile(forms["eager"], mode="reduce-overhead")
    try:
        for _ in range(3):
            compiled()
        forms["compiled"] = compiled
    except Exception as error:  # only eager, then
        print(f"note: torch.compile: {error}", file=sys.stderr)
    return forms


MAKERS = {"product": product, "layer_norm": layer_norm, "softmax": softmax, "attention": attention, "model": model}


def record(run):
    """A call as a CUDA graph, which has less launch overhead; its output is in the same memory each time."""
    for _ in range(3):
        run()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = run()

    def replay():
        graph.replay()
        return output

    return replay


def make_forms(kind, *arguments):
    """The forms of a case as CUDA graphs; those of a model unchanged, since its compiled form captures itself."""
    forms = MAKERS[kind](*arguments)
    if kind == "model":
        return forms
    recorded = {}
    for name, run in forms.items():
        try:
            recorded[name] = record(run)
        except Exception as error:  # called directly, then
            print(f"note: {name} as a graph: {error}", file=sys.stderr)
            recorded[name] = run
    return recorded


def time_calls(run, calls):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(calls):
        output = run()
    end.record()
    end.synchronize()
    return output, start.elapsed_time(end) * 1e-3 / calls


def main():
    print(f"ready PyTorch {torch.__version__}, CUDA {torch.version.cuda}", flush=True)
    forms, output = {}, None
    for line in sys.stdin:
        command, *words = line.split()
        if command == "make":
            forms, output = {}, None  # frees the last case's memory
            torch.cuda.empty_cache()
            forms = make_forms(*words)
            print(*forms, flush=True)
        elif command == "run":
            output, seconds = time_calls(forms[words[0]], int(words[1]))
            print(seconds, flush=True)
        else:
            sys.stdout.buffer.write(output.float().contiguous().cpu().numpy().tobytes())
            sys.stdout.buffer.flush()


try:
    import numpy as np
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel

    import counter
except ImportError as error:
    print(f"{error}", flush=True)
    sys.exit(0)
if not torch.cuda.is_available():
    print(f"PyTorch {torch.__version__} finds no GPU (torch.cuda.is_available() is False)", flush=True)
    sys.exit(0)
with torch.no_grad():
    main()
