#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Common mistakes in a spec: the first line that `kiln compile` prints is a line of the user's file, with its number,
# for every C++ compiler; kiln-diagnose, which kiln_add_library runs before the compiler, prints the same.
#
#   first_line.py [--kiln PROGRAM] --diagnose PROGRAM --include FOLDER --include FOLDER [--only NAME]
#     [--every N] [--first N] [--compiler NAME] [--flags "-std=c++23 -stdlib=libc++"]
#   first_line.py --count prints the number of mistakes.
import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SPEC = """#include <kiln/generator.h>
inline constexpr kiln::Dim T{"tokens", 1, 64};
struct Block : kiln::Layer<Block> {
  using Layer::Layer;
  kiln::LayerNorm<16> norm{"norm"};
  kiln::MultiHeadAttention<16, 2> attn{"attn"};
  kiln::Linear<16, 32> up{"up"};
  kiln::Linear<32, 16> down{"down"};
  constexpr auto forward(const kiln::tensor auto &x) const {
    auto y = x + attn(norm(x), kiln::causal);
    return y + down(kiln::gelu(up(y)));
  }
};
struct Tiny : kiln::Model {
  static constexpr kiln::Names inputs{"x"}, outputs{"y"};
  kiln::Linear<8, 16> in{"in"};
  Block block{"block"};
  kiln::Linear<16, 4> head{"head"};
  constexpr auto forward(kiln::Tensor<kiln::f32, T, 8> x) const {
    auto y = block(in(x));
    return head(y);
  }
};
KILN_MODEL(tiny, Tiny)
"""
SEEN = "    return head(y);"
FORWARD = "  constexpr auto forward(kiln::Tensor<kiln::f32, T, 8> x) const {"
# (name, old text, new text, the line, a part of its message)
MISTAKES = [
    ("width", "kiln::Linear<32, 16> down", "kiln::Linear<16, 16> down", 11,
     "block.down: linear: wrong input width; expected 16, got 32 [linear_c1]"),
    ("operator", SEEN, "    auto z = y + x;\n    return head(z);", 21,
     "forward: elementwise operation: shapes do not broadcast; expected dimensions that are equal or 1, got f32[tokens 1..64, 16] and f32[tokens 1..64, 8]"),
    ("twice", '{"head"}', '{"in"}', 21, "layer: name is used twice; expected different names in one owner, got in [layer_c1]"),
    ("condition", SEEN, "    if (kiln::max(kiln::max(y)) > 0)\n      y = -y;\n" + SEEN, 21, "expected kiln::where"),
    ("swapped", "attn(norm(x), kiln::causal)", "attn(kiln::causal, norm(x))", 10, "got options of attention and f32["),
    ("recurrent", "  Block block{\"block\"};", "  kiln::Gru<16, 16> block{\"block\"};", 21, "the outputs and the last state"),
    ("array", SEEN, "    float table[4] = {};\n    return head(y) * table;", 22, "kiln::constant"),
    ("template", "kiln::Tensor<kiln::f32, T, 8> x", "const kiln::tensor auto &x", 19, "its forward is a template"),
    ("private", FORWARD, "private:\n" + FORWARD, 20, "its forward is private"),
    ("not const", "T, 8> x) const {", "T, 8> x) {", 19, "no const member function; expected one of the model that is no template [model_c10]"),
    ("not constexpr", FORWARD, FORWARD.replace("constexpr ", ""), 19, "forward: it is not constexpr"),
    ("layer not constexpr", "  constexpr auto forward(const", "  auto forward(const", 9, "forward: it is not constexpr"),
    ("constructor", "  using Layer::Layer;\n", "", 16, "expected `using Layer::Layer;`"),
    ("template layer", "struct Block : kiln::Layer<Block> {", "template <int W> struct B : kiln::Layer<B<W>> {", 4,
     "expected `using kiln::Layer<B<W>>::Layer;`"),
    ("another name", "constexpr auto forward(kiln::", "constexpr auto run(kiln::", 14, "model: neither forward nor entries; expected one of them"),
    ("typing", "kiln::gelu(", "kiln::gellu(", 11, "gellu"),
    ("argument", "kiln::Linear<16, 32> up", "kiln::Linear<16> up", 7, "template arguments"),
    ("header", "kiln/generator.h", "kiln/dsl.h", 24, "expected #include <kiln/generator.h>"),
    ("no model", "KILN_MODEL(tiny, Tiny)\n", "", 23, "expected KILN_MODEL"),
    ("names", 'inputs{"x"}', 'inputs{"x", "z"}', 15, "wrong number of input names; expected 1, got 2 [model_c1]"),
    ("mutable", "  kiln::LayerNorm<16> norm", "  mutable int calls = 0;\n  kiln::LayerNorm<16> norm", 5, "[model_c17]",
     "    auto y = x +", "    ++calls;\n    auto y = x +"),
    ("axis", SEEN, "    return head(kiln::mean<2>(y));", 21,
     "forward: reduction: axis out of range; expected one within the rank, got axis 2 of f32[tokens 1..64, 16] [reduction_c1]"),
    ("type", "kiln::Tensor<kiln::f32, T, 8> x", "kiln::Tensor<kiln::f16, T, 8> x", 20,
     "in: linear: wrong element types; expected one floating-point type, got f16[tokens 1..64, 8] and f32[16] [linear_c5]"),
    ("two dimensions", '{"tokens", 1, 64};', '{"tokens", 1, 64}, U{"tokens", 1, 32};', 2,
     "forward: dimension: other bounds than before; expected tokens 1..64, got tokens 1..32 [dim_c5]",
     "8> x) const {\n    auto y = block(in(x))", "8> x, kiln::Tensor<kiln::f32, U, 8> z) const {\n    auto y = block(in(x + z))"),
    ("called twice", SEEN, "    return head(in(y));", 21, "in: linear: wrong input width; expected 8, got 16 [linear_c1]"),
    ("heads", "MultiHeadAttention<16, 2>", "MultiHeadAttention<16, 3>", 10,
     "block.attn: attention: query width is not divisible by the heads; expected a multiple of 3, got 16 [attention_c1]"),
    ("no name", 'head{"head"}', "head", 21, "forward: layer: missing name; expected a non-empty one, got an empty one [layer_c2]"),
    ("reshape", SEEN, "    return head(kiln::reshape<T, 8>(y));", 21,
     "forward: reshape: another number of elements; expected [tokens 1..64, 8], got [tokens 1..64, 16] [reshape_c1]"),
    ("literal dimension", "kiln::f32, T, 8> x", "kiln::f32, 64, 7> x", 20, "in: linear: wrong input width; expected 8, got 7 [linear_c1]"),
    ("matmul", SEEN, "    return kiln::matmul(y, y);", 21,
     "forward: matmul: wrong inner dimension; expected tokens 1..64, got 16 [matmul_c1]"),
    ("unnamed output", SEEN, "    return kiln::outputs(head(y), y);", 15,
     "forward: entry: wrong number of output names; expected 2, got 1 [model_c2]"),
    ("space in a dimension", '{"tokens", 1', '{"the tokens", 1', 2,
     "forward: dimension: invalid name; expected an identifier in C and C++, got the tokens [dim_c8]"),
    ("space in an input", 'inputs{"x"}', 'inputs{"the x"}', 15,
     "forward: entry: invalid name; expected identifiers in C and C++, got the x [model_c3]"),
    ("state read", SEEN, '    kiln::State<kiln::f32, T, 16> kept("kept");\n    return head(y + kept.read(y));', 22,
     "forward: parameter, constant or state: dynamic dimension; expected static ones, got tokens 1..64 [tensor_c5]"),
    ("state stored", SEEN, '    kiln::State<kiln::f32, T, 16> kept("kept");\n    kept.store(y);\n' + SEEN, 22,
     "forward: parameter, constant or state: dynamic dimension; expected static ones, got tokens 1..64 [tensor_c5]"),
    ("array first", SEEN, "    float table[4] = {};\n    return table * head(y);", 22, "kiln::constant of an array"),
    ("private base", "struct Block : kiln::Layer<Block> {", "class Block : kiln::Layer<Block> {", 3,
     "Block: its base kiln::Layer<Block> is private; expected a struct, or `class Block : public kiln::Layer<Block>`"),
    ("endless layer", "return y + down(kiln::gelu(up(y)));", "return (*this)(y);", 11, "layer: it calls itself; expected"),
    ("endless forward", "  constexpr auto forward(kiln::Tensor<kiln::f32, T, 8> x) const {\n    auto y = block(in(x));\n" + SEEN,
     "  constexpr kiln::Tensor<kiln::f32, T, 8> forward(kiln::Tensor<kiln::f32, T, 8> x) const {\n    return forward(x);", 20,
     "model: its functions call one another without end, or too deep"),
    ("and", SEEN, "    return head(kiln::where(y > 0 && y < 1, y, -y));", 21, "expected kiln::where, kiln::logical_and"),
    ("or", SEEN, "    return head(kiln::where(y > 0 || true, y, -y));", 21, "expected kiln::where, kiln::logical_and"),
    ("std::max", SEEN, "    return head(std::max(y, -y));", 21, "std::max: it takes numbers, and a tensor has none while "
     "the model is traced; expected kiln::maximum"),
    ("std::min", SEEN, "    return std::min(head(y), head(y));", 21, "expected kiln::minimum"),
    ("std::abs", SEEN, "    return head(std::abs(y));", 22, "expected kiln::abs", "<kiln/generator.h>\n",
     "<kiln/generator.h>\n#include <cmath>\n"),
    ("std::exp", SEEN, "    return head(std::min(y, std::exp(y)));", 21, "expected kiln::exp"),
    ("two models", "KILN_MODEL(tiny, Tiny)\n", "KILN_MODEL(tiny, Tiny)\nKILN_MODEL(small, Tiny)\n", 25,
     "KILN_MODEL: the spec has a main already; expected one KILN_MODEL and no main"),
    ("main", "KILN_MODEL(tiny, Tiny)\n", "KILN_MODEL(tiny, Tiny)\nint main() {}\n", 25, "main: KILN_MODEL defines it"),
    ("quoted model", "KILN_MODEL(tiny,", 'KILN_MODEL("tiny",', 24,
     'KILN_MODEL: invalid name; expected an identifier in C and C++, got "tiny"'),
    ("dash in the model", "KILN_MODEL(tiny,", "KILN_MODEL(tiny-net,", 24,
     "KILN_MODEL: invalid name; expected an identifier in C and C++, got tiny-net"),
    ("umlaut", 'inputs{"x"}', 'inputs{"größe"}', 15,
     "forward: entry: invalid name; expected identifiers in C and C++, got größe [model_c3]"),
    ("stack of stacks", '  Block block{"block"};', '  kiln::Stack<2, kiln::Stack<2, Block>> block{"block"};', 17, "[stack_c5]"),
    ("options of a stack", '  Block block{"block"};', '  kiln::Stack<2, Block> block{"block", 1e-5};', 17, "[stack_c4]"),
    ("stack of recurrent layers", '  Block block{"block"};', '  kiln::Stack<2, kiln::Gru<16, 16>> block{"block"};', 20,
     "stack: layer returns another type than its argument's; expected f32[tokens 1..64, 16], got the outputs and the last "
     "state of a recurrent layer [stack_c1]"),
    ("width in a stack", '  Block block{"block"};', '  kiln::Stack<2, kiln::Mlp<8, 8>> block{"block"};', 20,
     "block.{}.fc1: linear: wrong input width; expected 8, got 16 [linear_c1]", "auto y = block(in(x));",
     "auto z = in(x), y = block(z);"),
]
# clang quotes a text as a string, as a shortened one or as numbers, by its length.
MISTAKES += [(f"length {count}", '{"block"}', '{"' + "b" * count + '"}', 11,
              "b" * count + ".down: linear: wrong input width; expected 16, got 32 [linear_c1]",
              "kiln::Linear<32, 16> down", "kiln::Linear<16, 16> down") for count in (1, 48, 49, 50, 100)] # 49: 128 characters


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    return done.returncode, done.stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kiln")
    parser.add_argument("--count", action="store_true")
    parser.add_argument("--diagnose", required="--count" not in sys.argv)
    parser.add_argument("--include", action="append", required="--count" not in sys.argv)
    parser.add_argument("--only")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--compiler")
    parser.add_argument("--flags", default="-std=c++20")
    options = parser.parse_args()
    if options.count:
        print(len(MISTAKES))
        return
    wanted = [options.compiler] if options.compiler else ["g++", "clang++-22"]
    compilers = [name for name in wanted if shutil.which(name)]
    mistakes = [each for each in MISTAKES if options.only in (None, each[0])][options.first::options.every]
    failed = 0
    with tempfile.TemporaryDirectory(prefix="kiln-mistakes-") as folder:
        spec = Path(folder, "spec.cpp")
        for name, before, after, line, words, *more in mistakes:
            text = SPEC
            for old, new in [(before, after)] + ([tuple(more)] if more else []):
                assert old in text, (name, old)
                text = text.replace(old, new)
            spec.write_text(text)
            for compiler in compilers:
                plain = [compiler, *options.flags.split(), "-c", spec, "-o", f"{folder}/spec.o"] + [f"-I{each}" for each in options.include]
                commands = [[options.diagnose, spec, "--", *plain]]
                if options.kiln and name in ("width", "typing", "no model", "header"):
                    commands.append(["env", f"CXX={compiler}", options.kiln, "compile", spec, "-o", folder])
                for command in commands:
                    status, said = run(command)
                    first = said.split("\n")[0]
                    good = status != 0 and first.startswith(f"{spec}:{line}: error: ") and words in first
                    if "model_c12" in said and name != "another name" or not good:
                        failed += 1
                        print(f"{name}, {compiler}: expected line {line} and \"{words}\", got status {status} and\n  {first}")
    status, said = run([options.diagnose, "--verbose", "/dev/null", "--", compilers[0], "-x", "c++", "/nonexistent.cpp"])
    if status == 0 or not re.search("nonexistent", said):
        failed += 1
        print(f"what the compiler says of other things is lost: {said}")
    print(f"{len(mistakes)} mistakes, {', '.join(compilers)}: {failed} wrong")
    sys.exit(1 if failed or not compilers else 0)


main()
