# SPDX-License-Identifier: Apache-2.0
#
# Correct uses of every operation of dsl/SPEC.md. Each function takes a Draw and adds inputs to it, then an expression.
from markup import axis, call, element, extent, mark, name, real, whole


def shape_of(d, most=3):
    return d.leading(most) + [str(d.small())]


def along(d, rank):
    return axis(d.random.randrange(-rank, rank))


def parameter(d):
    shape = [extent(d.small()) for _ in range(d.small(3))]
    x = d.input(shape_of(d))
    d.give(call("kiln::parameter", [x, name(d.one("cls", "weight", "a.b"))], [element(d.one("f32", "f16", "i32")), *shape]))


def constant(d):
    x, n, k = d.input(shape_of(d)), d.small(3), d.small(3)
    values = ", ".join(real(i) for i in range(n * k))
    d.give(call("kiln::constant", [x, "{" + values + "}"], [element(d.one("f32", "i32", "f16", "i8")), extent(n), extent(k)]))


def number(d):
    x = d.input(shape_of(d), d.one("f32", "f16", "i32"))
    d.give(f"{x} {d.one('+', '-', '*', '/')} {whole(d.small())}")


def embedding(d):
    indices, table = d.input(d.leading(), "i32"), d.input([d.small(), d.small()])
    d.give(call("kiln::embedding", [indices, table]))


def positions(d):
    shape = shape_of(d)
    d.give(call("kiln::positions", [d.input(shape, d.one("f32", "i32"))], [along(d, len(shape))]))


def arange(d):
    x = d.input(["T"], "i32")
    d.give(call("kiln::arange", [x], [extent(d.one("C", "7", "T"))]))
    d.give(call("kiln::positions_in", [x], [extent("C")]))


def sinusoidal(d):
    at = call("kiln::positions", [d.input(["T", "6"])], [axis(0)])
    d.give(call("kiln::sinusoidal", [at, real(d.one(10000, 500, 2.5))], [whole(2 * d.small())]))


def positions_embedded(d):
    tokens = d.input(["B", "T"], "i32")
    table = d.layer("kiln::Embedding", [extent(64), extent(d.width())])
    d.give(call(table, [call("kiln::positions", [tokens])]))


def linear(d):
    lead, n, k = d.leading(), d.small(), d.small()
    x, e = None, d.one("f32", "f32", "f16")
    x = d.input(lead + [n], e)
    in_out = d.random.random() < 0.3
    weight = d.input([n, k] if in_out else [k, n], e)
    arguments = [x, weight] + ([d.input([k], e)] if d.one(0, 1) else [])
    d.give(call("kiln::linear", arguments, [mark("flag", "kiln::WeightOrder::in_out")] if in_out else []))


def matmul(d):
    lead, n, k, p = d.leading(), d.one("T", "3", "5"), d.small(), d.small()
    a = d.input(lead + [n, k])
    d.give(call("kiln::matmul", [a, d.input(d.one(lead, []) + [k, p])]))


def pair(d, low, high):
    one, other = d.random.randint(low, high), d.random.randint(low, high)
    return whole(one) if d.one(0, 1) else f"{{{whole(one)}, {whole(other)}}}"


def conv2d(d):
    groups = d.one(1, 1, 2)
    channels, outputs, kh, kw = 4, groups * d.small(3), d.small(3), d.small(3)
    x = d.input(d.leading(1) + [d.one("9", "2 * T + 6"), "11", channels])
    arguments = [x, d.input([outputs, channels // groups, kh, kw])] + ([d.input([outputs])] if d.one(0, 1) else [])
    options = (f"kiln::Conv2dOptions{{.stride = {d.one(whole(1), whole(2))}, .padding = {pair(d, 0, 2)}, "
               f".dilation = {pair(d, 1, 2)}, .groups = {whole(groups)}}}")
    d.give(call("kiln::conv2d", arguments, [options]))


def attention(d):
    lead, h, width = d.leading(1), d.one(1, 2, 4), d.width()
    groups = d.one(h, h, 1) if h > 1 else 1
    keys = d.one("S", "T", "C", "5")
    q = d.input(lead + ["T", width])
    k, v = d.input(lead + [keys, width // h * groups]), d.input(lead + [keys, 6 * groups])
    options = []
    if keys in ("T", "C") and d.one(0, 1):
        options.append("kiln::causal")
    if d.one(0, 0, 1):
        options.append(call("kiln::mask", [d.input(d.one(["T", keys], [1, keys], lead + [h, "T", keys]))]))
    if d.one(0, 0, 1):
        options.append(call("kiln::lengths", [d.input(lead, "i32")]))
    if d.one(0, 0, 1):
        options.append(call("kiln::scale", [real(0.25)]))
    heads = [whole(h)] + ([whole(groups)] if groups != h else [])
    form = d.one("attention", "attention", "attention_scores", "attention_weights")
    arguments = [q, k] + ([v] if form == "attention" else []) + ([" | ".join(options)] if options else [])
    d.give(call("kiln::" + form, arguments, heads))


def rotary(d):
    h, depth = d.small(3), 2 * d.small(3)
    x = d.input(d.leading(1) + ["T", h * depth])
    angles = call("kiln::sinusoidal", [call("kiln::positions", [x], [axis(-2)])], [whole(depth)])
    d.give(call("kiln::rotary", [x, angles], [whole(h)]))


def binary(d):
    shape, e = shape_of(d), d.one("f32", "f16", "bf16", "i32")
    a, b = d.input(shape, e), d.input(shape[d.random.randrange(len(shape)):], e)
    d.give(d.one(f"{a} {d.one('+', '-', '*', '/')} {b}",
                 call(d.one("kiln::add", "kiln::mul", "kiln::maximum", "kiln::sub", "kiln::div"), [a, b])))


def unary(d):
    x = d.input(shape_of(d), d.one("f32", "f16"))
    function = d.one("exp", "log", "sqrt", "tanh", "sigmoid", "relu", "gelu", "gelu_tanh", "silu")
    d.give(call("kiln::" + function, [x]))


def where(d):
    shape = shape_of(d)
    a, b = d.input(shape), d.input(shape)
    d.give(call("kiln::where", [call("kiln::less", [a, d.one(b, real(0.5))]), a, d.one(b, real(-1))]))


def dropout(d):
    d.give(call("kiln::dropout", [d.input(shape_of(d)), real(0.1)]))


def softmax(d):
    shape = shape_of(d)
    d.give(call(d.one("kiln::softmax", "kiln::log_softmax"), [d.input(shape)], [along(d, len(shape))]))


def layer_norm(d):
    shape = shape_of(d)
    x, w, b = d.input(shape), d.input(shape[-1:]), d.input(shape[-1:])
    d.give(call("kiln::layer_norm", [x, w, b, real(1e-5)]))


def rms_norm(d):
    shape = shape_of(d)
    x, w = d.input(shape), d.input(shape[-1:])
    d.give(call("kiln::rms_norm", [x, w, real(1e-6)]))


def reduction(d):
    shape = shape_of(d)
    function = d.one("mean", "max", "sum", "argmax")
    d.give(call("kiln::" + function, [d.input(shape, d.one("f32", "f16"))], [along(d, len(shape))]))


def gumbel(d):
    shape = shape_of(d)
    d.give(call("kiln::gumbel_max", [d.input(shape), d.input(shape)], [along(d, len(shape))]))


def pool(d):
    x = d.input(d.leading(1) + [d.one("8", "2 * T + 2"), "12", "3"])
    options = f"kiln::Pool2dOptions{{.stride = {d.one(whole(2), whole(1))}, .padding = {whole(d.one(0, 1))}}}"
    kernel = d.one(whole(2), f"kiln::Pair({whole(2)}, {whole(3)})")
    d.give(call(d.one("kiln::max_pool2d", "kiln::avg_pool2d"), [x], [kernel, options]))


def resize(d):
    x = d.input(d.leading(1) + ["8", "12", "3"])
    d.give(d.one(call("kiln::adaptive_avg_pool2d", [x], [whole(d.one(1, 2, 4))]),
                 call("kiln::resize_bilinear", [x], [f"kiln::Pair({whole(5)}, {whole(d.small())})"])))


def reshape(d):
    x = d.input(["B", "T", "12"])
    d.give(call("kiln::reshape", [x], [extent(e) for e in d.one(["B * T", "12"], ["B", "T", "3", "4"], ["B", "T * 12"])]))


def expand(d):
    if d.one(0, 1):
        d.give(call("kiln::expand", [d.input(["T", "1"])], [extent("B"), extent("T"), extent(d.small())]))
    else:
        x = d.input(shape_of(d))
        d.give(call("kiln::zeros", [x], [element(d.one("f32", "i32", "boolean")), extent("T"), extent(d.small())]))


def transpose(d):
    shape = shape_of(d)
    order = list(range(len(shape)))
    d.random.shuffle(order)
    d.give(call("kiln::transpose", [d.input(shape)], [axis(i) for i in order]))


def concat(d):
    e = d.one("f32", "i32")
    x, y = d.input(["B", "T", "4"], e), d.input(["B", "3", "4"], e)
    d.give(d.one(call("kiln::concat", [x, y, x], [axis(d.one(1, -2))]), call("kiln::concat", [x, x], [axis(d.one(0, 1, 2))])))


def slice_(d):
    x = d.input(["T + 4", "12"])
    d.give(d.one(call("kiln::slice", [x], [axis(0), whole(d.small(4)), extent("T")]),
                 call("kiln::slice", [x], [axis(-1), whole(d.small()), extent(d.small(3))]),
                 call("kiln::last", [x], [axis(0), extent(d.one("T", "4"))])))


def gather(d):
    table, indices = d.input(["6", "T", "3"]), d.input(d.leading(), "i32")
    d.give(call("kiln::gather", [table, indices], [along(d, 3)]))


def roll(d):
    d.give(call("kiln::roll", [d.input(["B", "5", "4"])], [axis(d.one(1, -1)), whole(d.small())]))


def windows(d):
    x = d.input(d.leading(1) + ["4", "6", "5"])
    cut = call("kiln::to_windows", [x], [whole(2)])
    d.give(d.one(cut, call("kiln::from_windows", [cut], [whole(2), extent(4), extent(6)]),
                 call("kiln::shift_mask", [x], [whole(2), whole(1), extent(4), extent(6)]),
                 call("kiln::relative_bias", [d.input(["9", "3"])], [whole(2)])))


OPERATIONS = [parameter, constant, number, embedding, positions, arange, sinusoidal, positions_embedded, linear, matmul, conv2d,
              attention, attention, rotary, binary, unary, where, dropout, softmax, layer_norm, rms_norm, reduction, gumbel, pool,
              resize, reshape, expand, transpose, concat, slice_, gather, roll, windows]
