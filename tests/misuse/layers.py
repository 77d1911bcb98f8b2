# SPDX-License-Identifier: Apache-2.0
#
# Correct uses of every layer and structure of dsl/SPEC.md, in the style of operations.py.
from markup import axis, call, element, extent, flag, mark, name, real, template, weight, whole


def stored(d):
    """Returns the type of a layer's weights."""
    return weight(d.one("f32", "int8", "stored<kiln::f16>", "stored<kiln::bf16>", "stored<kiln::f32>"))


def or_not(d, *arguments):
    """Returns template arguments that have defaults, or none of them."""
    return list(arguments) if d.one(0, 1) else []


def linear(d):
    n, k = d.small(), d.small()
    order = or_not(d, flag("kiln::WeightOrder::in_out"), *or_not(d, stored(d)))
    fc = d.layer("kiln::Linear", [extent(n), extent(k), flag(d.one("true", "false")), *order])
    d.give(call(fc, [d.input(d.leading() + [n])]))


def conv2d(d):
    n, k = 4, 2 * d.small(3)
    groups = d.one(1, 2)
    options = f"kiln::Conv2dOptions{{.stride = {whole(d.small(2))}, .padding = {whole(1)}, .groups = {whole(groups)}}}"
    of = or_not(d, flag("true"), stored(d)) if groups == 1 else []
    conv = d.layer("kiln::Conv2d", [extent(n), extent(k), whole(d.small(3)), options, *of])
    norm = d.layer("kiln::BatchNorm2d", [extent(k)], [real(1e-5)])
    d.give(call(norm, [call(conv, [d.input(d.leading(1) + ["6", "7", n])])]))


def embedding(d):
    rows, width = 64, d.width()
    wte = d.layer("kiln::Embedding", [extent(rows), extent(width), *or_not(d, stored(d))])
    rows_of = call(wte, [d.input(d.leading(), "i32")])
    d.give(d.one(rows_of, call("kiln::logits", [rows_of, wte])))


def norms(d):
    width = d.small()
    kind = d.one("kiln::LayerNorm", "kiln::RmsNorm")
    norm = d.layer(kind, [extent(width), *or_not(d, weight("f32"))], [real(1e-5)] if d.one(0, 1) else [])
    d.give(call(norm, [d.input(d.leading() + [width])]))


def multi_head(d):
    width = d.width()
    of = or_not(d, flag("true"), stored(d))
    attn = d.layer("kiln::MultiHeadAttention", [extent(width), whole(d.one(1, 2, 4)), *of])
    x = d.input(["B", "T", width])
    options = d.one([], ["kiln::causal"], [call("kiln::lengths", [d.input(["B"], "i32")])])
    way = d.one("self", "cross", "three", "weights")
    if way == "self":
        d.give(call(attn, [x] + options))
    elif way == "weights":
        d.give(call(attn + ".weights", [x] + options))
    else:
        memory = d.input(["B", "S", width])
        d.give(call(attn, [x] + [memory] * (1 if way == "cross" else 2)))


def additive(d):
    attn = d.layer("kiln::AdditiveAttention", [extent(6), extent(5), extent(d.small())])
    d.give(call(attn, [d.input(["B", "T", "6"]), d.input(["B", "S", "5"])]))


def mlp(d):
    width = d.width()
    part = d.layer("kiln::Mlp", [extent(width), extent(d.small()), mark("flag", "kiln::Activation::" + d.one("relu", "silu"))])
    d.give(call(part, [d.input(d.leading() + [width])]))


def block_options(d):
    return (f"kiln::BlockOptions{{.norm = kiln::NormOrder::{d.one('pre', 'post')}, .causal = {flag('true')}, "
            f".weight = {stored(d)}, .epsilon = {real(1e-5)}}}")


def encoder(d):
    width = d.width()
    arguments = [extent(width), whole(d.one(1, 2, 4)), extent(d.small())] + ([block_options(d)] if d.one(0, 1) else [])
    options = d.one([], ["kiln::causal"])
    if d.one(0, 1):
        block = d.layer("kiln::EncoderBlock", arguments)
    else:
        block = d.layer("kiln::Stack", [whole(d.small(3)), mark("arg", "kiln::EncoderBlock" + template(*arguments))])
    d.give(call(block, [d.input(["B", "T", width])] + options))


def decoder(d):
    width = d.width()
    block = d.layer("kiln::DecoderBlock", [extent(width), whole(d.one(1, 2)), extent(d.small())])
    d.give(call(block, [d.input(["B", "T", width]), d.input(["B", "S", width])]))


def recurrent(d):
    n, k = d.small(), d.small()
    kind, layers, both = d.one("Rnn", "Lstm", "Gru"), d.small(2), d.one("true", "false")
    options = (f"kiln::RecurrentOptions{{.layers = {whole(layers)}, .bidirectional = {flag(both)}, "
               f".weight = {stored(d)}}}")
    rnn = d.layer("kiln::" + kind, [extent(n), extent(k), options])
    batch = d.one(["B"], ["2"], [])
    x = d.input(["T"] + batch + [n])
    arguments = [x]
    way = d.one("zeros", "initial", "lengths")
    if way == "initial":
        states = [d.input([layers * (2 if both == "true" else 1)] + batch + [k]) for _ in range(2 if kind == "Lstm" else 1)]
        arguments.append(states[0] if len(states) == 1 else "std::tuple{" + ", ".join(states) + "}")
    elif way == "lengths" and batch:
        arguments += ["kiln::None()", d.input(batch, "i32")]
    got = d.let(call(rnn, arguments), f"r{len(d.lines)}")
    d.give(f"{got}.outputs")


def step(d):
    n, k = d.small(), d.small()
    kind = d.one("Rnn", "Lstm", "Gru")
    cell = d.layer(f"kiln::{kind}Step", [extent(n), extent(k), *or_not(d, stored(d))])
    x, h = d.input(["B", n]), d.input(["B", k])
    if kind == "Lstm":
        got = call(cell, [x, "std::tuple{" + h + ", " + d.input(["B", k]) + "}"])
        d.give(f"std::get<0>({got})")
    else:
        d.give(call(cell, [x, h]))


def stack(d):
    width = d.width()
    fc = f"  kiln::Linear{template(extent(width), extent(width))} fc{{{name('fc')}}};\n"
    own = d.own("", fc, result="x + " + call("kiln::relu", [call("fc", ["x"])]))
    h = d.layer("kiln::Stack", [whole(d.small(4)), mark("arg", own)])
    d.give(call(h, [d.input(d.leading() + [width])]))


def own_layer(d):
    width, k = d.width(), d.small()
    parts = (f"  kiln::Linear{template(extent(width), extent(k))} fc{{{name('fc')}}};\n"
             f"  kiln::LayerNorm{template(extent(k))} norm{{{name('norm')}}};\n")
    exact = d.tensor(["T", width]) + " x"
    own = d.own("", parts, d.one(exact, "const kiln::tensor auto &x"), call("norm", [call("fc", ["x"])]))
    gate = d.layer(own, [])
    d.give(call(gate, [d.input(["T", width])]))


def scan(d):
    width, batch = d.small(), d.one(["B"], [])
    x, h = d.input(["T"] + batch + [width]), None
    hidden = d.layer("kiln::Linear", [extent(width), extent(width)])
    h = d.input(batch + [width])
    following = call("kiln::tanh", [f"here + {call(hidden, ['h'])}"])
    step = f"[&](auto h, auto here) {{ auto next = {following}; return {mark('result', 'std::pair{next, next}')}; }}"
    direction = [mark("flag", "kiln::Direction::reverse")] if d.one(0, 0, 1) else []
    got = d.let(call("kiln::scan", [h, d.one(x, call("kiln::relu", [x])), step], direction))
    d.give(f"{got}.first")
    d.give(f"{got}.second")


def scan_several(d):
    x = d.input(["T", "4"])
    step = ("[](auto s, auto in) { auto [a, n] = s; auto [x, at] = in; "
            "return std::pair{std::tuple{a + x, n + at}, std::tuple<>()}; }")
    states = "std::tuple{" + call("kiln::zeros", [x], [element("f32"), extent(4)]) + ", " + call(
        "kiln::zeros", [x], [element("i32")]) + "}"
    sequences = "std::tuple{" + x + ", " + call("kiln::positions", [x], [axis(0)]) + "}"
    got = d.let(call("kiln::scan", [states, sequences, step]))
    d.give(f"std::get<0>({got}.first)")
    d.give(f"std::get<1>({got}.first)")


def state(d):
    width = d.width()
    x = d.input(["T", width])
    kept = d.let(f"kiln::State{template(element('f32'), extent(128), extent(width))}({name('kept')})", f"s{len(d.lines)}")
    way = d.one("append", "store", "read")
    if way == "append":
        d.give(call(kept + ".append", [x], [extent("C")]))
    elif way == "store":
        d.lines.append("    " + call(kept + ".store", [call("kiln::zeros", [x], [element("f32"), extent(128), extent(width)])]) +
                       ";\n")
        d.give(call(kept + ".read", [x]))
    else:
        d.give(call(kept + ".read", [x], [extent(d.one("C", "5"))]))


def cached(d):
    width = d.width()
    block = d.layer("kiln::EncoderBlock", [extent(width), whole(d.one(1, 2, 4)), extent(d.small())])
    d.give(call(block, [d.input(["T", width]), "kiln::cached" + template(extent("C"))]))


def remembered(d):
    width = d.width()
    block = d.layer("kiln::DecoderBlock", [extent(width), whole(d.one(1, 2)), extent(d.small())])
    other = call(block, [d.input(["S", width]), "kiln::remember"])
    x = d.inputs.pop().rsplit(" ", 1)[0]
    d.entries.append(f"constexpr auto other{len(d.entries)}({x} m) const {{ return {other.replace(f'x{len(d.inputs)}', 'm')}; }}")
    arguments = [d.input(["T", width]), "kiln::remembered" + template(extent("S")), "kiln::cached" + template(extent("C"))]
    d.give(call(block, arguments))


def entries(d):
    width = d.width()
    fc = d.layer("kiln::Linear", [extent(width), extent(width)])
    d.entries.append(f"constexpr auto other{len(d.entries)}({d.tensor(['B', width])} m) const {{ return {call(fc, ['m'])}; }}")
    d.give(call(fc, [d.input(["T", width])]))


def window_layers(d):
    x = d.input(["4", "4", "8"]) if d.one(0, 1) else d.input(["B", "4", "4", "8"])
    way = d.one("attention", "block", "merging")
    if way == "attention":
        part = d.layer("kiln::WindowAttention", [extent(8), whole(2), whole(2), whole(d.one(0, 1))])
    elif way == "block":
        part = d.layer("kiln::SwinBlock", [extent(8), whole(2), whole(2), flag(d.one("true", "false")), extent(16)])
    else:
        part = d.layer("kiln::PatchMerging", [extent(8)])
    d.give(call(part, [x]))


LAYERS = [linear, conv2d, embedding, norms, multi_head, multi_head, additive, mlp, encoder, decoder, recurrent, recurrent, step,
          stack, stack, own_layer, own_layer, scan, scan, scan_several, state, state, cached, remembered, entries, window_layers,
          window_layers]
