# SPDX-License-Identifier: Apache-2.0
#
# Classifies the outcome of a near miss: the compiler rejected it with the text of a labelled rule, which the program
# can break; or with C++'s own message for an error in C++; or the outcome is a finding.
import re
from pathlib import Path

# Rules that any program can break.
EVERYWHERE = {"constant", "dim", "tensor", "layer", "model", "parameter", "storage"}
# By a name in the program: the rules that apply to it.
RULES_OF = {
    "linear": ["linear"], "Linear": ["linear"], "logits": ["logits", "linear"], "matmul": ["matmul"],
    "conv2d": ["conv2d", "window"], "Conv2d": ["conv2d", "window"], "BatchNorm2d": ["batch_norm", "broadcast", "unary"],
    "attention": ["attention"], "attention_scores": ["attention"], "attention_weights": ["attention", "softmax"],
    "MultiHeadAttention": ["attention", "linear", "softmax"], "AdditiveAttention": ["additive", "matmul", "linear", "broadcast"],
    "EncoderBlock": ["attention", "linear", "layer_norm", "broadcast"], "Mlp": ["linear", "unary"],
    "DecoderBlock": ["attention", "linear", "layer_norm", "broadcast"], "rotary": ["rotary"],
    "add": ["broadcast"], "sub": ["broadcast"], "mul": ["broadcast"], "div": ["broadcast"], "maximum": ["broadcast"],
    "less": ["broadcast"], "where": ["where", "broadcast"], "dropout": ["dropout", "unary"], "softmax": ["softmax"],
    "log_softmax": ["softmax"], "layer_norm": ["layer_norm"], "LayerNorm": ["layer_norm"], "rms_norm": ["rms_norm"],
    "RmsNorm": ["rms_norm"], "mean": ["reduction"], "max": ["reduction"], "sum": ["reduction"], "argmax": ["reduction"],
    "gumbel_max": ["reduction", "broadcast", "unary"], "max_pool2d": ["pool2d", "window"], "avg_pool2d": ["pool2d", "window"],
    "adaptive_avg_pool2d": ["pool2d", "window"], "resize_bilinear": ["resize_bilinear"], "reshape": ["reshape"],
    "expand": ["expand"], "zeros": ["expand"], "arange": ["expand"], "transpose": ["transpose"], "concat": ["concat"],
    "slice": ["slice"], "last": ["last"], "positions_in": ["last", "positions", "expand"], "gather": ["gather"], "roll": ["roll"],
    "to_windows": ["windows"], "from_windows": ["windows"], "shift_mask": ["windows"],
    "relative_bias": ["relative_bias"], "WindowAttention": ["windows", "roll", "linear", "attention", "relative_bias", "slice"],
    "SwinBlock": ["windows", "roll", "linear", "layer_norm", "attention", "broadcast", "slice"],
    "PatchMerging": ["windows", "linear", "layer_norm"], "constant": ["constant"], "embedding": ["embedding"],
    "Embedding": ["embedding"], "positions": ["positions"], "sinusoidal": ["sinusoidal"], "Stack": ["stack"],
    "scan": ["scan"], "State": ["state", "append", "store"], "cached": ["state", "append", "cache"],
    "remember": ["state", "append"], "remembered": ["state", "append"],
    "Rnn": ["recurrent"], "Lstm": ["recurrent"], "Gru": ["recurrent"], "RnnStep": ["recurrent"], "LstmStep": ["recurrent"],
    "GruStep": ["recurrent"],
}
for unary in ("exp", "log", "sqrt", "tanh", "sigmoid", "relu", "gelu", "gelu_tanh", "silu"):
    RULES_OF[unary] = ["unary"]
for each in ("Rnn", "Lstm", "Gru"):
    RULES_OF[each] += ["linear", "broadcast", "scan"]
    RULES_OF[each + "Step"] += ["linear", "broadcast"]


def read_rules(include):
    """Returns every labelled text of the DSL, without its label, by its label."""
    rules = {}
    for header in sorted(Path(include, "kiln").glob("*.h")):
        joined = re.sub(r'"\s*\n\s*"', "", header.read_text())
        for text, label in re.findall(r'"([^"\n]*) \[([a-z0-9_]+_c\d+)\]', joined):
            rules[label] = text
        # Functions that no constant expression may call, so that a compiler prints their names.
        for function, label in re.findall(r"inline void (\w+?_((?:[a-z]+)_c\d+))\(", joined):
            rules[label + " by name"] = function
    return rules


def labels_in(said, rules):
    """Returns the labels of the rules that a compiler's message quotes completely, with values before the label or not."""
    said = said.replace("\\'", "'")
    values = r"([;,] (expected|got) [^\n]*)?"
    found = {label for label in re.findall(r"\[([a-z0-9_]+_c\d+)\]", said)
             if label in rules and re.search(re.escape(rules[label]) + values + re.escape(f" [{label}]"), said)}
    for label, function in rules.items():
        if label.endswith(" by name") and function in said:
            found.add(label.split()[0])
    return found


def plausible(labels, program):
    """Returns the labels that a program with these names can break."""
    allowed = set(EVERYWHERE)
    for word in set(re.findall(r"\w+", program)):
        allowed.update(RULES_OF.get(word, []))
    if re.search(r" [-+*/] ", program):
        allowed.add("broadcast")
    return {label for label in labels if label.rsplit("_c", 1)[0] in allowed}


# Errors in C++ itself, which the C++ compiler reports: (kind, the first error, why that is enough).
ACCEPTED = [
    ("call", r"no matching (member )?function for call to|no match for call to|too (few|many) arguments to function|"
             r"no matching constructor|invalid conversion|does not provide a call operator|could not convert .* from|no viable conversion|cannot convert|no suitable|invalid operands|"
             r"no match for .operator|deduced class type|cannot initialize|excess elements|too many initializers",
     "the number or the C++ type of arguments fits no function; the compiler names the call and what stands in its way"),
    ("template argument", r"wrong number of template arguments|too (few|many) template arguments|template argument|"
                          r"type/value mismatch|is not implicitly convertible|conversion from .* to .*Dim.* is ambiguous|"
                          r"ambiguous|narrow|does not refer to a value|conversion from .double|could not convert|no viable conversion|cannot convert|"
                          r"overflow in constant|out of range|is not valid|not a valid type",
     "a template argument of another C++ type, or a number that its type does not hold"),
    ("name", r"undeclared|not declared|not been declared|no member named|is not a member|has no member|redefinition|redeclar|no type named|"
             r"designator used multiple times|"
             r"does not name a type|not a structural type|is not a type|does not name a template|unknown type name|duplicates|"
             r"missing template arguments|unknown identifier|no template named|conflicting declaration",
     "a name that C++ does not know, or that stands twice"),
    ("syntax", r"expected |before .* token|stray|unqualified-id|two or more data types",
     "no C++"),
    ("const", r"discards qualifiers|as 'this' argument|but function is not marked const|is not marked const|non-const|"
              r"passing .const .* as .this",
     "a layer's forward that is not const"),
    ("value", r"not (a )?constant expression|invalid type argument|decomposes into|cannot decompose|cannot be used as a function|"
              r"is not a function|called object type|only \d+ names|initializer for .*void|void|inconsistent|"
              r"structured binding|base type|nullptr|null pointer|with no member|is not a pointer|request for member|tuple index|"
              r"class template|deduction|tuple_element|overloaded|cannot bind|non-scalar|static assertion failed: tuple|get<",
     "a value that cannot stand there in C++"),
]


def is_of_cpp(kind, after, error):
    """Whether a change is an error of C++'s types; other errors must have the text of a rule."""
    number = re.fullmatch(r"-?\d+", after)
    if number and kind in ("extent", "axis", "whole", "bound"):
        return (kind in ("axis", "whole") and abs(int(after)) > 2147483647) or "overflow" in error
    if kind == "extent" and ("long int" in error or "int64_t" in error) and re.search(r"\b[A-Z]\b|Dim", after):
        return True  # a dynamic dimension as the width of a layer, which is a number: the compiler names both types
    if kind == "name" and after == "nullptr" and "Dim" in error:
        return True
    wrong = {"extent": {"1.5", '"x"', "kiln::f32"}, "element": {"float", "3", "kiln::f64", "kiln::int8"},
             "weight": {"float", "3", "kiln::int4", "kiln::stored"}, "axis": {"T", "1.5", "(std::int64_t(1) << 40)"},
             "whole": {"T", "1.5", "kiln::Pair(2, 0)", "kiln::Pair(-1, 3)", "(std::int64_t(1) << 40)"},
             "real": {'"x"', "x0"}, "name": {"7"}}
    return kind not in wrong or after in wrong[kind] or "9223372036854775807" in after and kind in ("axis", "whole")


# Errors that only Kiln's compiler reports: (kind, the message, why the DSL does not report it).
ACCEPTED_LATE = [
    ("a name of the run time", "is a function of the run time", "the archive says which names those are"),
    ("a name of the headers", "is a name of the standard headers", "the generated headers say which names those are"),
    ("names that become one", "expected names that differ in more than upper and lower case", "the generated headers say which"),
]


def first_error(said):
    """Returns the compiler's first error, up to the next one; g++ prints its location first."""
    blocks = re.split(r"\n(?=\S*:\d+:\d+: (?:fatal )?error: |error: )", "\n" + said)
    return blocks[1] if len(blocks) > 1 else ""


def accepted_kind(error):
    line = error.split("\n")[0]
    for kind, words, _ in ACCEPTED:
        if re.search(words, line):
            return kind
    return None


def judge(status, said, program, changed, rules):
    """Returns (outcome, detail). Outcomes that begin with ! are findings."""
    if status == "late":
        return "!late", "the compiler took longer than its limit"
    if status < 0 or status > 1 or re.search(r"internal compiler error|PLEASE submit a bug report|Segmentation fault|"
                                             r"out of memory|virtual memory exhausted|cannot allocate", said, re.I):
        return "!crash", f"the compiler ended with {status}"
    if status == 0:
        return "compiled", ""
    error = first_error(said)
    if labels := labels_in(error, rules):
        good = plausible(labels, program)
        return ("labelled", sorted(good)[0]) if good else ("!other rule", ", ".join(sorted(labels)))
    kind = accepted_kind(error)
    if kind and is_of_cpp(changed[0], changed[2], error.split(chr(10))[0]):
        return "C++", kind
    return "!unlabelled", re.sub(r"^\S*:\d+:\d+: ", "", error.split("\n")[0])[:160]
