// SPDX-License-Identifier: Apache-2.0
// Regions, names of layers, loops and states of small models with hand-computed results, and malformed graphs.
#include "compiler/interpreter/Interpreter.h"
#include "kiln/dsl.h"
#include "ops.h"

namespace kiln::interpreter {
namespace {

constexpr Dim T{"tokens", 1, 8}, C{"context", T, 8};
using Row = kiln::Tensor<kiln::f32, 1>;

/// Returns x plus the parameter "p".
struct Leaf : Layer<Leaf> {
  using Layer::Layer;
  constexpr auto forward(const tensor auto &x) const { return x + parameter<kiln::f32, 1>(x, "p"); }
};
struct Group : Layer<Group> {
  using Layer::Layer;
  Stack<2, Leaf> inner{"inner"};
  constexpr auto forward(const tensor auto &x) const { return inner(x) * 2.0; }
};
struct Nested : Model {
  Stack<3, Group> groups{"groups"};
  constexpr auto forward(Row x) const { return groups(x); }
};

TEST(Interpreter, NamesLayersOfNestedStacks) {
  std::vector<std::string> asked;
  Interpreter interpreter(trace<Nested>(), [&](const std::string &name) {
    asked.push_back(name);
    return f32({1}, {static_cast<double>(asked.size())});
  });
  for (int round = 0; round < 2; ++round) // each parameter is requested once
    expectValues(interpreter.run(0, {}, {f32({1}, {1})})[0], {2 * (2 * (2 * (1 + 1.0 + 2) + 3 + 4) + 5 + 6)});
  EXPECT_EQ(asked, (std::vector<std::string>{"groups.0.inner.0.p", "groups.0.inner.1.p", "groups.1.inner.0.p",
                                             "groups.1.inner.1.p", "groups.2.inner.0.p", "groups.2.inner.1.p"}));
}

TEST(Interpreter, WeightsMayHaveErrors) {
  Interpreter interpreter(trace<Nested>(), [](const std::string &) { return withErrors(f32({1}, {1}), {0.25}); });
  const Tensor y = interpreter.run(0, {}, {f32({1}, {1})})[0];
  EXPECT_GE(y.errors[0], 0.25 * (2 + 2) * (1 + 2 + 4));
  EXPECT_LE(y.errors[0], 0.25 * (2 + 2) * (1 + 2 + 4) + 1e-4);
}

/// Running sums, running products, and their difference, from the last slice to the first.
struct Loop : Model {
  constexpr auto forward(kiln::Tensor<kiln::f32, T, 2> x, kiln::Tensor<kiln::f32, 2> factor) const {
    auto step = [&](const auto &state, const auto &slices) {
      auto [slice, place] = slices;
      auto next = std::tuple{std::get<0>(state) + slice * factor, std::get<1>(state) * slice};
      return std::pair{next, std::tuple{std::get<0>(next) - std::get<1>(next), place}};
    };
    auto begin = std::tuple{zeros<kiln::f32, 2>(x), expand<2>(constant<kiln::f32, 1>(x, {1}))};
    auto [last, all] = scan<Direction::reverse>(begin, std::tuple{x, positions<0>(x)}, step);
    return kiln::outputs(std::get<0>(last), std::get<1>(last), std::get<0>(all), std::get<1>(all));
  }
};

TEST(Interpreter, ScansFromTheLastSliceToTheFirst) {
  Interpreter interpreter(trace<Loop>(), nullptr);
  const std::vector<Tensor> y =
      interpreter.run(0, {{"tokens", 3}}, {f32({3, 2}, {1, 2, 3, 4, 5, 6}), f32({2}, {1, 10})});
  expectValues(y[0], {9, 120});
  expectValues(y[1], {15, 48});
  expectValues(y[2], {9 - 15, 120 - 48, 8 - 15, 100 - 24, 5 - 5, 60 - 6});
  expectExactly(y[3], {0, 1, 2});
}

struct Remembering : Model {
  State<kiln::f32, 8, 1> rows{"rows"};
  State<kiln::f32, 1> total{"total"};
  constexpr auto add(kiln::Tensor<kiln::f32, T, 1> x) const {
    auto before = total.read(x), after = before + sum<0>(x);
    total.store(after);
    return kiln::outputs(rows.append<C>(x), total.read(x), after);
  }
  constexpr auto look(Row x) const { return kiln::outputs(rows.read<C>(x), x); }
  static constexpr auto entries() {
    return std::tuple{entry("add", &Remembering::add), entry("look", &Remembering::look)};
  }
};

TEST(Interpreter, StatesAreReadAsTheCallFoundThem) {
  Interpreter interpreter(trace<Remembering>(), nullptr);
  std::vector<Tensor> y = interpreter.run(0, {{"tokens", 2}, {"context", 2}}, {f32({2, 1}, {1, 2})});
  expectValues(y[0], {1, 2});
  expectValues(y[1], {0});
  expectValues(y[2], {3});
  y = interpreter.run(0, {{"tokens", 1}, {"context", 3}}, {f32({1, 1}, {7})});
  expectValues(y[0], {1, 2, 7});
  expectValues(y[1], {3});
  // A shorter context rolls back: later rows are overwritten.
  y = interpreter.run(0, {{"tokens", 1}, {"context", 2}}, {f32({1, 1}, {-5})});
  expectValues(y[0], {1, -5});
  expectValues(interpreter.run(1, {{"tokens", 1}, {"context", 4}}, {f32({1}, {0})})[0], {1, -5, 7, 0});
  EXPECT_EQ(interpreter.states.at("rows").shape, (TensorShape{8, 1}));
  // A failing call changes nothing; a copy of the states is independent.
  EXPECT_THROW(interpreter.run(0, {{"tokens", 1}, {"context", 9}}, {f32({1, 1}, {1})}), std::runtime_error);
  std::map<std::string, Tensor> fork = interpreter.states;
  interpreter.states.clear();
  expectValues(interpreter.run(1, {{"tokens", 1}, {"context", 2}}, {f32({1}, {0})})[0], {0, 0});
  interpreter.states = fork;
  expectValues(interpreter.run(1, {{"tokens", 1}, {"context", 2}}, {f32({1}, {0})})[0], {1, -5});
}

TEST(Interpreter, ChecksTheCall) {
  Interpreter interpreter(trace<Loop>(), nullptr);
  const Tensor x = f32({3, 2}, counted(6)), factor = f32({2}, {1, 1});
  EXPECT_THROW(interpreter.run(1, {{"tokens", 3}}, {x, factor}), std::runtime_error);
  EXPECT_THROW(interpreter.run(0, {}, {x, factor}), std::runtime_error);
  EXPECT_THROW(interpreter.run(0, {{"tokens", 4}}, {x, factor}), std::runtime_error);
  EXPECT_THROW(interpreter.run(0, {{"tokens", 3}}, {x}), std::runtime_error);
  EXPECT_THROW(interpreter.run(0, {{"tokens", 3}}, {x, i32({2}, {1, 1})}), std::runtime_error);
  Interpreter weights(trace<Nested>(), [](const std::string &) { return f32({2}, {1, 2}); });
  EXPECT_THROW(weights.run(0, {}, {f32({1}, {1})}), std::runtime_error);
}

/// Runs a graph after one change to it, and expects the error.
template <class M, class Change> void expectMalformed(const char *words, Change change) {
  Graph graph = trace<M>();
  change(graph);
  std::string got = "nothing";
  try {
    Interpreter interpreter(graph, [](const std::string &) { return f32({1}, {1}); });
    if constexpr (std::is_same_v<M, Nested>)
      interpreter.run(0, {}, {f32({1}, {1})});
    else if constexpr (std::is_same_v<M, Loop>)
      interpreter.run(0, {{"tokens", 3}}, {f32({3, 2}, counted(6)), f32({2}, {1, 1})});
    else
      interpreter.run(0, {{"tokens", 1}, {"context", 3}}, {f32({1, 1}, {1})});
  } catch (const std::runtime_error &error) {
    got = error.what();
  }
  EXPECT_NE(got.find(words), std::string::npos) << words << ": " << got;
}

Node &nodeOf(Graph &graph, Op op) {
  for (Node &node : graph.nodes)
    if (node.op == op)
      return node;
  throw std::logic_error("no such node");
}

TEST(Interpreter, ThrowsOnMalformedGraphs) {
  expectMalformed<Nested>("nothing", [](Graph &) {});
  expectMalformed<Nested>("unknown operand", [](Graph &g) { nodeOf(g, Op::add).operands[0] = 1 << 20; });
  expectMalformed<Nested>("unknown operand", [](Graph &g) { nodeOf(g, Op::add).operands[1] = -1; });
  expectMalformed<Nested>("operand is not computed", [](Graph &g) {
    nodeOf(g, Op::add).operands[0] = static_cast<int>(&nodeOf(g, Op::mul) - g.nodes.data());
  });
  expectMalformed<Nested>("region: part of itself", [](Graph &g) {
    for (Node &node : g.nodes)
      if (node.op == Op::stack)
        node.attributes.index = 1;
  });
  expectMalformed<Nested>("unknown body", [](Graph &g) { nodeOf(g, Op::stack).attributes.index = 99; });
  expectMalformed<Nested>("unknown parameter", [](Graph &g) { nodeOf(g, Op::parameter).attributes.index = 5; });
  expectMalformed<Nested>("unknown region", [](Graph &g) { g.entries[0].region = -1; });
  expectMalformed<Nested>("unknown node", [](Graph &g) { g.regions[0].nodes[0] = -7; });
  expectMalformed<Nested>("unknown operand", [](Graph &g) { g.regions[0].results[0] = 999; });
  expectMalformed<Nested>("earlier scope around it", [](Graph &g) { g.scopes[1].parent = 1; });
  expectMalformed<Nested>("scope of a parameter", [](Graph &g) { g.parameters[0].scope = 77; });
  expectMalformed<Nested>("outside of its stack", [](Graph &g) { g.regions[1].scope = 0; });
  expectMalformed<Nested>("wrong number of operands; expected 2",
                          [](Graph &g) { nodeOf(g, Op::add).operands.pop_back(); });
  expectMalformed<Nested>("wrong result; expected f32[1]", [](Graph &g) { nodeOf(g, Op::add).shape = {2}; });
  expectMalformed<Nested>("dimension out of range; expected at least 1",
                          [](Graph &g) { nodeOf(g, Op::add).shape = {0}; });
  expectMalformed<Nested>("too many elements for the interpreter; expected at most 268435456", [](Graph &g) {
    nodeOf(g, Op::add).op = Op::expand;
    nodeOf(g, Op::expand).operands.pop_back();
    nodeOf(g, Op::expand).shape = {Dim(1 << 27), Dim(1 << 27), Dim(1)};
  });
  expectMalformed<Nested>("got unknown", [](Graph &g) { nodeOf(g, Op::add).op = static_cast<Op>(200); });
  expectMalformed<Nested>("has a region or a state; expected neither",
                          [](Graph &g) { nodeOf(g, Op::add).op = Op::input; });
  expectMalformed<Loop>("scan: no sequence; expected one after its states",
                        [](Graph &g) { nodeOf(g, Op::scan).attributes.states = 9; });
  expectMalformed<Loop>("unknown result", [](Graph &g) { nodeOf(g, Op::result).attributes.index = 4; });
  expectMalformed<Loop>("region: wrong number of arguments", [](Graph &g) { nodeOf(g, Op::scan).operands.pop_back(); });
  expectMalformed<Loop>("unknown scan", [](Graph &g) { nodeOf(g, Op::result).operands[0] = -3; });
  expectMalformed<Loop>("axis out of range; expected one within the rank",
                        [](Graph &g) { nodeOf(g, Op::positions).attributes.axis = 2; });
  expectMalformed<Remembering>("unknown state", [](Graph &g) { nodeOf(g, Op::append).attributes.index = 2; });
  expectMalformed<Remembering>("expected one to write and none to read",
                               [](Graph &g) { nodeOf(g, Op::append).operands.clear(); });
  expectMalformed<Remembering>("; expected ", [](Graph &g) { nodeOf(g, Op::append).attributes.index = 1; });
  expectMalformed<Remembering>("state: several changes in an entry; expected one", [](Graph &g) {
    g.regions[0].nodes.push_back(static_cast<int>(&nodeOf(g, Op::append) - g.nodes.data()));
  });
}

} // namespace
} // namespace kiln::interpreter
