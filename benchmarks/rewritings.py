#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rewritings.py KILN [--target LEVEL] [--ops REGEX] [--random N] [--seed S] [--above RATIO] [--folder DIR] [--all]

Measures each operation on an operand that comes from a movement, a cast or a broadcast (a slice, a transpose, a concat,
a reshape, a cast, a broadcast; with --random also random chains of them), with one thread, and compares it with the
operation on a plain input. Prints each form that takes more than RATIO (3) times as long as the plain form and the
movement by itself together, and each movement that takes RATIO times as long as the plain form. KILN is the command,
for instance build/dev/bin/kiln; a run takes some minutes.
"""

import argparse
import json
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

ROWS, WIDTH, MORE = 32, 64, 8  # of the operand; MORE rows or columns for slices

# Operations on `x` of [rows, WIDTH], or of [WIDTH] if the name begins with "vector".
OPS = {
    "linear": "linear(x, {w})",
    "linear_in_out": "linear<kiln::WeightOrder::in_out>(x, {w})",
    "vector_linear": "linear(x, {w})",
    "matmul": "matmul(x, {w})",
    "matmul_right": "matmul({w}, transpose<1, 0>(x))",
    "conv1d": "conv1d(x, {v})",
    "conv2d": "conv2d(unsqueezed(x), {c})",
    "rotary": "rotary<4>(x, {a})",
    "gather": "gather(x, constant<kiln::i32, 4>(x, {3, 1, 1, 0}))",
    "embedding": "embedding(constant<kiln::i32, 4>(x, {3, 1, 1, 0}), x)",
    "topk": "topk<4, 1>(x).first",
    "attention": "attention<4>(x, x, x)",
    "attention_keys": "attention<4>(parameter<kiln::f32, 8, 64>(x, \"q\"), x, x)",
    "softmax": "softmax(x)",
    "softmax_rows": "softmax<0>(x)",
    "log_softmax": "log_softmax(x)",
    "layer_norm": "layer_norm(x, {b}, {b})",
    "rms_norm": "rms_norm(x, {b})",
    "sum": "sum(x)",
    "mean_rows": "mean<0>(x)",
    "max": "max(x)",
    "argmax": "argmax(x)",
    "gelu": "gelu(x)",
    "add": "x + {b}",
    "cumsum_rows": "cumsum<0>(x)",
    "l2_normalize": "l2_normalize(x)",
    "group_norm": "group_norm<4>(unsqueezed(x), {b}, {b})",
    "avg_pool": "avg_pool2d<kiln::Pair(1, 2)>(unsqueezed(x))",
    "max_pool": "max_pool2d<kiln::Pair(1, 2)>(unsqueezed(x))",
}

# The weights that operations read.
WEIGHTS = {"w": [WIDTH, WIDTH], "v": [WIDTH, WIDTH, 3], "b": [WIDTH], "c": [WIDTH, WIDTH, 1, 3], "a": [ROWS, WIDTH // 4]}


# Each maps [rows, columns] of its result to its operand: rows, columns, element type, and the expression of `x`.
def first_columns(r, c): return r, c + MORE, f"slice<-1, 0, {c}>({{x}})"
def inner_columns(r, c): return r, c + 2 * MORE, f"slice<-1, {MORE}, {c}>({{x}})"
def first_rows(r, c): return r + MORE, c, f"slice<0, 0, {r}>({{x}})"
def last_rows(r, c): return r + MORE, c, f"last<0, {r}>({{x}})"
def transposed(r, c): return c, r, "transpose<1, 0>({x})"
def reshaped(r, c): return 1, r * c, f"reshape<{r}, {c}>({{x}})"
def widened(r, c): return r, c, "cast<kiln::f32>(cast<kiln::f16>({x}))"
def repeated(r, c): return 1, c, f"expand<{r}, {c}>({{x}})"
def doubled(r, c): return r, c // 2, "concat<-1>({x}, {x})"
def stacked(r, c): return r // 2, c, "concat<0>({x}, {x})"


FORMS = [first_columns, inner_columns, first_rows, last_rows, transposed, reshaped, widened, repeated, doubled, stacked]
# The same with a number of rows that is a dynamic dimension, so that the start of the slice is known only in a call.
LAST = "last_of_many"


class Entry:
    def __init__(self, op, form, chain, size, rows, columns, moved):
        self.op, self.form, self.name = op, form, f"{op}_{form}"
        self.chain, self.rows, self.columns, self.moved, self.size = chain, rows, columns, moved, size


def chain_of(forms, rows, columns):
    """The shape of the chain's first operand, and the expression of the chain."""
    expression = "{x}"
    for form in forms:
        if form is reshaped and rows == 1 or form in (doubled, stacked) and (columns if form is doubled else rows) % 2:
            continue
        rows, columns, here = form(rows, columns)
        expression = expression.replace("{x}", here)
    return rows, columns, expression


def entries_of(op, chains):
    size = (1, WIDTH) if op.startswith("vector") else (ROWS, WIDTH)
    made = []
    for name, forms in [("plain", [])] + chains:
        rows, columns, moved = chain_of(forms, *size)
        if name != "plain" and moved == "{x}":
            continue
        made.append(Entry(op, name, forms, size, rows, columns, moved))
    return made


def spec_of(model, entries):
    lines = ["#include <kiln/generator.h>", "using namespace kiln;",
             f'inline constexpr Dim T{{"tokens", {ROWS}, {4 * ROWS}}};',
             "constexpr auto unsqueezed(const tensor auto &x) {",
             "  using X = std::decay_t<decltype(x)>;",
             "  return reshape<1, X::shape[0], X::shape[1]>(x);", "}",
             f"struct {model.capitalize()} : Model {{"]
    for entry in entries:
        body = OPS.get(entry.op, "x") if entry.op != "moved" else "x"
        for weight, shape in WEIGHTS.items():
            extents = ", ".join(map(str, shape))
            body = body.replace("{" + weight + "}", f'parameter<f32, {extents}>(x, "{weight}_{entry.op}")')
        rows = "T" if entry.form == LAST else str(entry.rows)
        moved = f"last<0, {entry.size[0]}>(in)" if entry.form == LAST else entry.moved.replace("{x}", "in")
        if entry.op.startswith("vector"):
            moved = f"reshape<{WIDTH}>({moved})"
        result = f"{body}" if entry.op != "moved" else "x * 1.5"
        lines += [f"  constexpr auto {entry.name}(Tensor<f32, {rows}, {entry.columns}> in) const {{",
                  f"    auto x = {moved};", f"    return {result};", "  }"]
    lines += ["  static constexpr auto entries() {", "    return std::tuple{"]
    struct = model.capitalize()
    lines += [",\n".join(f'        entry("{e.name}", &{struct}::{e.name}, {{"in"}}, {{"out"}})' for e in entries)]
    lines += ["    };", "  }", "};", f"KILN_MODEL({model}, {model.capitalize()})", ""]
    return "\n".join(lines)


def program_of(model, entries):
    upper = model.upper()
    lines = [f'#include "{model}.h"', "#include <algorithm>", "#include <chrono>", "#include <cstdio>",
             "#include <vector>",
             "template <class F> static double microseconds(F call) {",
             "  using Clock = std::chrono::steady_clock;",
             "  auto run = [&](int count) {",
             "    const auto begin = Clock::now();",
             "    for (int i = 0; i < count; ++i) call();",
             "    return std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / count;",
             "  };",
             "  run(3);",
             "  const int count = static_cast<int>(std::clamp(500 / run(3), 1.0, 2000.0));",
             "  std::vector<double> all;",
             "  for (int i = 0; i < 9; ++i) all.push_back(run(count));",
             "  return *std::min_element(all.begin(), all.end());", "}",
             "int main(int, char **argv) {", f"  {model}_t *model = nullptr; kiln_error_t error{{}};",
             f"  if ({model}_create(nullptr, &model, &error) || {model}_bind_weights(model, argv[1], &error))",
             '    return std::printf("%s\\n", error.message), 1;',
             "  std::vector<float> in(1 << 20, 0.25f), out(1 << 20);"]
    for entry in entries:
        rows = "T" if entry.form == LAST else str(entry.rows)
        extents = f"{4 * ROWS}, " if rows == "T" else ""
        element = "int32_t" if entry.op == "argmax" else "float"
        bytes_ = f"{upper}_{entry.name.upper()}_ARENA_BYTES(1)"
        lines += [
            f"  {{ static char arena[{bytes_} + 64];",
            "    char *aligned = arena + (64 - reinterpret_cast<std::size_t>(arena) % 64);",
            f"    kiln_call_t call{{}}; call.arena = aligned; call.arena_bytes = {bytes_};",
            "    double us = microseconds([&] {",
            f"      if ({model}_{entry.name}(model, &call, {extents}in.data(),",
            f"                               reinterpret_cast<{element} *>(out.data()))) throw 1; }});",
            f'    std::printf("{entry.op} {entry.form} %.4f\\n", us); }}']
    lines += [f"  {model}_destroy(model);", "}", ""]
    return "\n".join(lines)


def weights_of(entries):
    """The safetensors file of all weights."""
    shapes = {}
    for op in {e.op for e in entries}:
        for weight, shape in WEIGHTS.items():
            if "{" + weight + "}" in OPS.get(op, ""):
                shapes[f"{weight}_{op}"] = shape
        if '"q"' in OPS.get(op, ""):
            shapes["q"] = [8, 64]
    header, data = {}, b""
    for name, shape in shapes.items():
        count = 1
        for extent in shape:
            count *= extent
        values = struct.pack(f"<{count}f", *[0.01] * count)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def measure(kiln, target, folder, model, entries):
    (folder / f"{model}.cpp").write_text(spec_of(model, entries))
    (folder / f"{model}_main.cpp").write_text(program_of(model, entries))
    (folder / f"{model}.safetensors").write_bytes(weights_of(entries))
    compile_ = [kiln, "compile", str(folder / f"{model}.cpp"), "-o", str(folder / model)]
    if target:
        compile_ += ["--target", target]
    subprocess.run(compile_, check=True, stdout=subprocess.DEVNULL)
    binary = folder / f"{model}_main"
    subprocess.run(["g++", "-std=c++20", "-O2", f"-I{folder / model}", str(folder / f"{model}_main.cpp"),
                    str(folder / model / f"lib{model}.a"), "-lm", "-o", str(binary)], check=True)
    weights = str(folder / f"{model}.safetensors")
    run = subprocess.run([str(binary), weights], check=True, capture_output=True, text=True)
    return {tuple(line.split()[:2]): float(line.split()[2]) for line in run.stdout.splitlines()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kiln")
    parser.add_argument("--target", default="")
    parser.add_argument("--ops", default=".")
    parser.add_argument("--random", type=int, default=0, help="drawn chains for each operation")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--above", type=float, default=3.0)
    parser.add_argument("--folder", default="")
    parser.add_argument("--all", action="store_true", help="print every form")
    options = parser.parse_args()
    draw = random.Random(options.seed)
    chains = [(form.__name__, [form]) for form in FORMS]
    for number in range(options.random):
        chains.append((f"drawn{number}", [draw.choice(FORMS) for _ in range(draw.randint(2, 3))]))
    folder = pathlib.Path(options.folder or tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    chosen = [op for op in OPS if re.search(options.ops, op)]
    found, total = [], 0
    # Times the movement by itself, followed by a multiplication.
    moved = measure(options.kiln, options.target, folder, "movement",
                    entries_of("moved", chains + [(LAST, [last_rows])]))
    for entry in entries_of("moved", chains):
        alone, plain = moved[("moved", entry.form)], moved[("moved", "plain")]
        total += entry.form != "plain"
        line = f"{'movement':16} {entry.form:14} {alone:9.2f} us, plain {plain:8.2f}: {alone / plain:6.2f}"
        if alone > options.above * plain:
            found.append((alone / plain, line))
        if options.all:
            print(line, flush=True)
    for op in chosen:
        model = "r_" + op
        entries = entries_of(op, chains + ([] if op.startswith("vector") else [(LAST, [last_rows])]))
        times = measure(options.kiln, options.target, folder, model, entries)
        plain = times[(op, "plain")]
        for entry in entries[1:]:
            alone = moved.get(("moved", entry.form), 0.0)
            time, ratio = times[(op, entry.form)], times[(op, entry.form)] / (plain + alone)
            total += 1
            chain = ", ".join(form.__name__ for form in entry.chain)
            line = (f"{op:16} {entry.form:14} {time:9.2f} us, plain {plain:8.2f}, movement {alone:7.2f}: "
                    f"{ratio:6.2f}  {chain}")
            if ratio > options.above:
                found.append((ratio, line))
            if options.all:
                print(line, flush=True)
    print(f"{total} forms, seed {options.seed}; above {options.above}: {len(found)}")
    for _, line in sorted(found, reverse=True):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
