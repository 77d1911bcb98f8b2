#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch on a GPU on command: one line in, one answer out. It first writes `ready` and its version, or why not.

- `make product ROWS COLUMNS DEPTH WEIGHT`, `make layer_norm|softmax ROWS COLUMNS`, `make attention full|causal TOKENS
  HEADS`, `make model NAME`: answers the forms that it can run.
- `run FORM CALLS`: answers the seconds of a call, by events around so many.
- `output`: answers the first output of the last run, raw f32.
"""
import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../peers/pytorch"))
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/models/oracle"))


def tensor(values):
    return torch.from_numpy(values).cuda()


def product(rows, columns, depth, weight):
    x = tensor(counter.uniform("x", (int(rows), int(depth))))
    w = tensor(counter.weight(weight, (int(columns), int(depth))))
    return lambda: F.linear(x, w)


def layer_norm(rows, columns):
    x = tensor(counter.uniform("x", (int(rows), int(columns))))
    w, b = (tensor(counter.weight(f"norm.{part}", (int(columns),))) for part in ("weight", "bias"))
    return lambda: F.layer_norm(x, (int(columns),), w, b)


def softmax(rows, columns):
    x = tensor(counter.uniform("x", (int(rows), int(columns))))
    return lambda: x.softmax(-1)


def attention(kind, tokens, heads):
    def split(name):
        x = tensor(counter.uniform(name, (1, int(tokens), 64 * int(heads))))
        return x.view(1, int(tokens), int(heads), 64).transpose(1, 2)

    q, k, v = split("q"), split("k"), split("v")
    return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=kind == "causal").transpose(1, 2)


def model(name):
    from models import make

    module, inputs, _ = make(name)
    module, inputs = module.cuda(), [value.cuda() for _, value in inputs]
    return lambda: module(*inputs)[0]


MAKERS = {"product": product, "layer_norm": layer_norm, "softmax": softmax, "attention": attention, "model": model}


def make_forms(kind, *arguments):
    """Eager, and for models what torch.compile makes of it, in a CUDA graph where that is possible."""
    forms = {"eager": MAKERS[kind](*arguments)}
    if kind == "model" and hasattr(torch, "compile"):
        compiled = torch.compile(forms["eager"], mode="reduce-overhead")
        try:
            for _ in range(3):
                compiled()
            forms["compiled"] = compiled
        except Exception as error:  # eager is left
            print(f"note: torch.compile: {error}", file=sys.stderr)
    return forms


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
            forms, output = {}, None  # the last case's memory
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
    import torch
    import torch.nn.functional as F

    import counter
except ImportError as error:
    print(f"{error}", flush=True)
    sys.exit(0)
if not torch.cuda.is_available():
    print(f"PyTorch {torch.__version__} finds no GPU (torch.cuda.is_available() is False)", flush=True)
    sys.exit(0)
with torch.no_grad():
    main()
