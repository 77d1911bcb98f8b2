# SPDX-License-Identifier: Apache-2.0
#
# The parts of a correct program: inputs, layers, helpers and results, all of them marked for markup.py. The parts of
# the catalogue (operations.py, layers.py) request shapes from a Draw and add expressions to it.
import markup as m

HEAD = """#include "kiln/dsl.h"
#include "kiln/windows.h"
inline constexpr kiln::Dim B{⟦name|"batch"⟧, ⟦bound|1⟧, ⟦bound|4⟧}, T{"tokens", 1, ⟦bound|64⟧}, S{"source", 1, 32};
inline constexpr kiln::Dim C{"context", T, ⟦bound|128⟧};
struct Thing {};
"""


class Draw:
    def __init__(self, random):
        self.random = random
        self.inputs, self.members, self.helpers, self.lines, self.results = [], [], [], [], []
        self.entries = []

    def one(self, *choices):
        return self.random.choice(choices)

    def small(self, most=9):
        return self.random.randint(1, most)

    def width(self):
        """Returns a width that can be divided into heads."""
        return self.one(8, 12, 16, 24)

    def leading(self, most=2):
        """Returns the dimensions before the last ones, as text."""
        return self.random.sample(["B", "T", "3", "2", "S", "1"], self.random.randint(0, most))

    def tensor(self, shape, element="f32"):
        """Returns the type of a tensor."""
        return m.mark("type", f"kiln::Tensor{m.template(m.element(element), *[m.extent(e) for e in shape])}")

    def input(self, shape, element="f32"):
        name = f"x{len(self.inputs)}"
        self.inputs.append(f"{self.tensor(shape, element)} {name}")
        return name

    def layer(self, kind, template_arguments, arguments=()):
        """Adds a member with a name. Returns its name in C++."""
        name = f"layer{len(self.members)}"
        given = ", ".join([m.name(self.one(f"part.{name}", name, f"h.{len(self.members)}"))] + list(arguments))
        self.members.append(f"  {kind}{m.template(*template_arguments)} {name}{{{given}}};")
        return name

    def own(self, body, members="", parameters="const kiln::tensor auto &x", result=None):
        """Adds a user-defined layer with these statements. Returns its type."""
        name = f"Own{len(self.helpers)}"
        self.helpers.append(f"struct {name} {m.mark('base', f': kiln::Layer<{name}>')} {{\n  using Layer::Layer;\n{members}"
                            f"  constexpr auto forward({parameters}) {m.mark('const', 'const ')}{{\n{body}"
                            f"    return {m.mark('result', result)};\n  }}\n}};\n")
        return name

    def let(self, expression, name=None):
        name = name or f"y{len(self.lines)}"
        self.lines.append(f"    auto {name} = {expression};\n")
        return name

    def give(self, expression):
        self.results.append(expression)

    def program(self):
        """Returns the marked text. With entries, `forward` is one of them."""
        if not self.inputs:
            self.input(["T", "4"])
        if len(self.results) == 1 and self.random.random() < 0.8:
            result = self.results[0]
        else:
            result = m.call("kiln::outputs", self.results)
        names = ""
        if not self.entries and self.random.random() < 0.3:
            inputs = ", ".join(m.name(f"in{i}") for i in range(len(self.inputs)))
            outputs = ", ".join(m.name(f"out{i}") for i in range(len(self.results)))
            names = f"  static constexpr kiln::Names inputs{{{inputs}}}, outputs{{{outputs}}};\n"
        entries = "".join(f"  {entry}\n" for entry in self.entries)
        if self.entries or self.random.random() < 0.1:
            of = [m.call("kiln::entry", [m.name("forward"), "&M::forward"])]
            of += [m.call("kiln::entry", [m.name(f"other{i}"), f"&M::other{i}"]) for i in range(len(self.entries))]
            entries += ("  static constexpr auto entries() {\n    return std::tuple{" + m.listed("args", of) + "};\n  }\n")
        return (HEAD + "".join(self.helpers) + "struct M " + m.mark("base", ": kiln::Model") + " {\n" + names +
                "".join(f"{member}\n" for member in self.members) +
                f"  constexpr auto forward({m.listed('args', self.inputs)}) {m.mark('const', 'const ')}{{\n" +
                "".join(self.lines) + f"    return {m.mark('result', result)};\n  }}\n{entries}}};\n")
