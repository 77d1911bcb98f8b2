# SPDX-License-Identifier: Apache-2.0
#
# Programs as text with marks around everything that can be changed, ⟦kind|text⟧, and the single change that makes a
# near miss of a correct program. The kind is that of the text: a dimension, an element type, an axis, a list of
# arguments.
import re

OPEN, CLOSE = "\u27e6", "\u27e7"


def mark(kind, text):
    return f"{OPEN}{kind}|{text}{CLOSE}"


def extent(text):
    return mark("extent", text)


def element(text):
    return mark("element", "kiln::" + text)


def weight(text):
    """Marks the type of a layer's weights: an element type or a storage format."""
    return mark("weight", "kiln::" + text)


def axis(text):
    return mark("axis", text)


def whole(text):
    """Marks an integer that is no dimension: heads, a stride, a width of a layer."""
    return mark("whole", text)


def real(text):
    return mark("real", text)


def name(text):
    return mark("name", f'"{text}"')


def flag(text):
    return mark("flag", text)


def listed(kind, items):
    return mark(kind, ", ".join(items))


def template(*items):
    """Returns <a, b>, or nothing."""
    return "<" + listed("targs", items) + ">" if items else ""


def call(function, arguments, template_arguments=()):
    marked = [mark("arg", argument) for argument in arguments]
    return mark("callee", function) + template(*template_arguments) + "(" + listed("args", marked) + ")"


class Piece:
    """A part of the marked text: strings and pieces."""

    def __init__(self, kind, parts):
        self.kind, self.parts = kind, parts

    def text(self):
        return "".join(part if isinstance(part, str) else part.text() for part in self.parts)

    def walk(self):
        yield self
        for part in self.parts:
            if isinstance(part, Piece):
                yield from part.walk()

    def items(self):
        """Returns the items of a list between its own commas, each a list of parts."""
        found = [[]]
        for part in self.parts:
            if isinstance(part, str) and ", " in part:
                first, *rest = part.split(", ")
                found[-1].append(first)
                found.extend([[piece] for piece in rest])
            else:
                found[-1].append(part)
        return [[part for part in item if part != ""] for item in found if item != [""]]

    def put(self, items):
        self.parts = []
        for number, item in enumerate(items):
            self.parts.extend(([", "] if number else []) + item)


def parse(text):
    stack = [Piece("program", [])]
    for token in re.split(f"({OPEN}\\w+\\||{CLOSE})", text):
        if token.startswith(OPEN):
            stack.append(Piece(token[1:-1], []))
        elif token == CLOSE:
            piece = stack.pop()
            stack[-1].parts.append(piece)
        elif token:
            stack[-1].parts.append(token)
    assert len(stack) == 1, text
    return stack[0]


HUGE = ["2147483647", "2147483648", "4000000000", "(std::int64_t(1) << 40)", "9223372036854775807", "-9223372036854775807 - 1"]
DIMS = ["B", "T", "S", "C", "T + 1", "T - 1", "T - 100", "2 * T", "B * T", "T * 0", "T * -1", "T - T", "B + T", "B * T * S",
        "(T + 1) * B", "T * 4000000000", "T * T * T", "B * S * 2147483647", 'kiln::Dim("tokens", 1, 65)', 'kiln::Dim("n", 0, 5)',
        'kiln::Dim("n", 9, 5)', 'kiln::Dim("", 1, 5)', 'kiln::Dim("a_name_of_more_than_23_characters", 1, 5)',
        'kiln::Dim("my rows", 1, 5)', 'kiln::Dim("int", 1, 5)', 'kiln::Dim("n", 1, 4000000000)', 'kiln::Dim("n", B * T, 999)',
        'kiln::Dim("n", T, 3)', 'kiln::Dim("n", 1, 5)', "kiln::Dim{}"]
ELEMENTS = ["f32", "f16", "bf16", "i32", "i8", "boolean"]
STORAGES = ["int8"] + [f"stored<kiln::{each}>" for each in ("f16", "bf16", "f32", "i8", "boolean")]
NAMES = ['""', '"a b"', '"3x"', '"x-y"', '"int"', '"class"', '"_x"', '"x.y"', '"a/b"', '"{}"', '"..."', '"x\\"y"', '"x\\ny"',
         '"\\xc3\\xa9"', '"' + "n" * 300 + '"', '"model"', '"call"', '"std"', '"weight"', '"x"', '"output"', "nullptr", "7", '"\\xff"', '"a*/b"', '"h.0"']
ARGUMENTS = ["7", "0.5", "true", "nullptr", '"x"', "kiln::None()", "std::tuple<>()", "std::tuple{x0, x0}", "std::pair{x0, x0}",
             "kiln::causal", "Thing()", "T", "kiln::f32", "x0", "kiln::relu(x0)", "kiln::argmax(x0)", "std::string()", "{}"]
REALS = ["0", "-0.5", "1", "1.5", "2", "1e-30", "1e30", "1e39", "1e300", "__builtin_nan(\"\")", "__builtin_inf()", "-1e-9", "7",
         '"x"', "x0", "true"]
TYPES = ["int", "float", "kiln::Tensor<kiln::f32>", "kiln::Tensor<kiln::f32, B, T, 2, 3, 4, 5, 6>",
         "kiln::Tensor<kiln::f32, 1, 2, 1, 2, 1, 2, 1, 2>", "kiln::None", "std::tuple<kiln::Tensor<kiln::f32, T, 8>>", "Thing",
         "kiln::State<kiln::f32, 4, 8>", "const char *", "auto", "kiln::Linear<8, 8>", "kiln::f32"]
CALLEES = ["kiln::relu", "kiln::softmax", "kiln::sum", "kiln::matmul", "kiln::concat", "kiln::linear", "kiln::gather", "kiln::less",
           "kiln::outputs", "kiln::unknown", "kiln::transpose", "kiln::argmax", "kiln::where", "kiln::scan", "kiln::positions"]
RESULTS = ["", "7", "x0", "kiln::outputs()", "kiln::outputs(x0, x0)", "std::pair{x0, x0}", "std::tuple{x0, 7}", "*this", "nullptr",
           "kiln::causal", "M()"]


def numbers(text, random):
    """Returns numbers near an integer, if the text is one."""
    near = []
    if re.fullmatch(r"-?\d+", text):
        value = int(text)
        near = [str(value + 1), str(value - 1), str(2 * value), str(-value)]
    return near + ["0", "-1", "1", "3", random.choice(HUGE)]


def change_list(piece, random):
    items = piece.items()
    ways = ["add"] + (["drop", "double"] if items else []) + (["swap"] if len(items) > 1 else [])
    way = random.choice(ways)
    at = random.randrange(len(items)) if items else 0
    if way == "drop":
        del items[at]
    elif way == "double":
        items.insert(at, items[at])
    elif way == "swap":
        other = random.choice([i for i in range(len(items)) if i != at])
        items[at], items[other] = items[other], items[at]
    else:
        extra = random.choice(["x0", "7", "0.5", "kiln::causal", "T"] if piece.kind == "args" else
                              ["1", "2", "T", "-1", "0", "kiln::i32", "true", "1, 1, 1, 1, 1", "2, T, 1, 2, 1, 2"])
        items.insert(random.randrange(len(items) + 1), [extra])
    piece.put(items)


def replacements(piece, random, text, program):
    if piece.kind == "extent":
        return random.choice([numbers(text, random)] * 4 + [DIMS] * 5 + [["1.5", '"x"', "kiln::f32"]])
    if piece.kind == "element":
        return [f"kiln::{each}" for each in ELEMENTS] * 4 + ["float", "3", "kiln::f64", "kiln::int8"]
    if piece.kind == "weight":
        return [f"kiln::{each}" for each in ELEMENTS + STORAGES * 2] + ["float", "3", "kiln::int4", "kiln::stored"]
    if piece.kind == "axis":
        return numbers(text, random) + [str(i) for i in range(-8, 8)] + ["100", "T", "1.5"]
    if piece.kind == "bound":
        return numbers(text, random)
    if piece.kind == "whole":
        return numbers(text, random) * 3 + ["T", "1.5", "kiln::Pair(2, 0)", "kiln::Pair(-1, 3)"]
    if piece.kind == "real":
        return REALS
    if piece.kind == "name":
        others = [each.text() for each in program.walk() if each.kind == "name" and each is not piece]
        return NAMES + others * 6
    if piece.kind == "flag":
        return ["true", "false", "7", "kiln::NormOrder::post", "kiln::WeightOrder::in_out"]
    return {"arg": ARGUMENTS, "type": TYPES, "callee": CALLEES, "result": RESULTS, "const": [""], "public": ["private: "],
            "base": ["", ": kiln::Layer<Thing>", ": kiln::Model"]}[piece.kind]


WEIGHTS = {"extent": 6, "element": 4, "weight": 4, "axis": 6, "whole": 5, "real": 4, "bound": 0.4, "name": 2, "flag": 1,
           "arg": 1, "args": 1, "targs": 1.5, "type": 0.4, "callee": 0.4, "result": 0.7, "const": 0.3, "base": 0.3}


def change(program, random):
    """Changes exactly one thing; returns the old and the new text."""
    while True:
        pieces = [piece for piece in program.walk() if piece.kind in WEIGHTS]
        piece = random.choices(pieces, [WEIGHTS[each.kind] for each in pieces])[0]
        before = piece.text()
        if piece.kind in ("args", "targs"):
            change_list(piece, random)
        else:
            piece.parts = [random.choice(replacements(piece, random, before, program))]
        if piece.text() != before:
            return piece.kind, before, piece.text()
