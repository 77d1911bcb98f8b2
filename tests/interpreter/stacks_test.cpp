// SPDX-License-Identifier: Apache-2.0
// Stacks compared with the same layers written out: several carried values, a slice for each layer, outputs of layers,
// patterns of several types with an incomplete period. Equal names get equal weights. Loops that end early are compared
// with loops in f64.
#include "compiler/interpreter/Interpreter.h"

#include "kiln/dsl.h"

#include <gtest/gtest.h>

namespace kiln::interpreter::stacks {
namespace {

constexpr Dim T{"tokens", 1, 9};
using X = kiln::Tensor<f32, T, 4>;
using Y = kiln::Tensor<f32, T, 3>;

/// Carries two values; the gate is of the layer.
struct Double : Layer<Double> {
  using Layer::Layer;
  Linear<4, 4> a{"a"};
  Linear<4, 3> b{"b"};
  Linear<3, 4> c{"c"};
  constexpr auto forward(const tensor auto &x, const tensor auto &y, const tensor auto &gate,
                         const tensor auto &memory) const {
    return std::tuple{tanh(a(x) * gate + c(y) + memory), y + b(x)};
  }
};
struct Local : Layer<Local> {
  using Layer::Layer;
  Linear<4, 4> fc{"fc"};
  constexpr auto forward(const tensor auto &x, const tensor auto &gate) const { return tanh(fc(x)) * gate + x; }
};
struct Global : Layer<Global> {
  using Layer::Layer;
  Linear<4, 4> fc{"fc"}, more{"more"};
  constexpr auto forward(const tensor auto &x, const tensor auto &gate) const { return tanh(more(fc(x))) + gate; }
};
/// The next value, and as output what a cache would get.
template <class Block> struct Giving : Block {
  using Block::Block;
  constexpr auto forward(const tensor auto &x, const tensor auto &gate) const {
    auto next = Block::forward(x, gate);
    return std::pair{next, std::tuple{next * 2, sum<1>(x)}};
  }
};

constexpr auto gates(const tensor auto &x) { return constant<f32, 8>(x, {1, 0.5, -1, 2, 0.25, 1.5, -0.5, 0.75}); }

struct Stacked : Model {
  Stack<3, Double> doubles{"doubles"};
  Stack<8, Pattern<2, Local, 1, Global>> layers{"layers"};
  Stack<8, Pattern<2, Giving<Local>, 1, Giving<Global>>> giving{"giving"};
  Stack<2, Pattern<3, Local, 1, Global>> few{"few"};

  constexpr auto several(X x, Y y) const {
    auto [p, q] = doubles(std::tuple{x, y}, per_layer(slice<0, 0, 3>(gates(x))), relu(x));
    return outputs(p, q);
  }
  constexpr auto all_of_several(X x, Y y) const {
    auto [last, all] = doubles.hidden_states(std::tuple{x, y}, per_layer(slice<0, 0, 3>(gates(x))), relu(x));
    return outputs(std::get<0>(last), std::get<1>(last), std::get<0>(all), std::get<1>(all));
  }
  constexpr auto pattern(X x) const { return layers(x, per_layer(gates(x))); }
  constexpr auto all_of_pattern(X x) const {
    auto [last, all] = layers.hidden_states(x, per_layer(gates(x)));
    return outputs(last, all);
  }
  constexpr auto outputs_of_pattern(X x) const {
    auto [last, all] = giving.with_outputs(x, per_layer(gates(x)));
    return outputs(last, std::get<0>(all), std::get<1>(all));
  }
  constexpr auto incomplete(X x) const { return few(x, x); }

  static constexpr auto entries() {
    return std::tuple{entry("several", &Stacked::several),
                      entry("all_of_several", &Stacked::all_of_several),
                      entry("pattern", &Stacked::pattern),
                      entry("all_of_pattern", &Stacked::all_of_pattern),
                      entry("outputs_of_pattern", &Stacked::outputs_of_pattern),
                      entry("incomplete", &Stacked::incomplete)};
  }
};

/// The same layers one by one.
struct Unrolled : Model {
  Double d0{"doubles.0"}, d1{"doubles.1"}, d2{"doubles.2"};
  Local l0{"layers.0"}, l1{"layers.1"}, l3{"layers.3"}, l4{"layers.4"}, l6{"layers.6"}, l7{"layers.7"};
  Global g2{"layers.2"}, g5{"layers.5"};
  Local o0{"giving.0"}, o1{"giving.1"}, o3{"giving.3"}, o4{"giving.4"}, o6{"giving.6"}, o7{"giving.7"};
  Global o2{"giving.2"}, o5{"giving.5"};
  Local f0{"few.0"}, f1{"few.1"};

  template <int I> static constexpr auto gate(const tensor auto &x) { return reshape<>(slice<0, I, 1>(gates(x))); }
  static constexpr auto raised(const tensor auto &x) { return unsqueeze<0>(x); }

  constexpr auto several(X x, Y y) const {
    auto m = relu(x);
    auto [x0, y0] = d0(x, y, gate<0>(x), m);
    auto [x1, y1] = d1(x0, y0, gate<1>(x), m);
    auto [x2, y2] = d2(x1, y1, gate<2>(x), m);
    return outputs(x2, y2);
  }
  constexpr auto all_of_several(X x, Y y) const {
    auto m = relu(x);
    auto [x0, y0] = d0(x, y, gate<0>(x), m);
    auto [x1, y1] = d1(x0, y0, gate<1>(x), m);
    auto [x2, y2] = d2(x1, y1, gate<2>(x), m);
    return outputs(x2, y2, concat<0>(raised(x0), raised(x1), raised(x2)),
                   concat<0>(raised(y0), raised(y1), raised(y2)));
  }
  constexpr auto each(X x) const {
    auto x0 = l0(x, gate<0>(x));
    auto x1 = l1(x0, gate<1>(x));
    auto x2 = g2(x1, gate<2>(x));
    auto x3 = l3(x2, gate<3>(x));
    auto x4 = l4(x3, gate<4>(x));
    auto x5 = g5(x4, gate<5>(x));
    auto x6 = l6(x5, gate<6>(x));
    return std::tuple{x0, x1, x2, x3, x4, x5, x6, l7(x6, gate<7>(x))};
  }
  constexpr auto pattern(X x) const { return std::get<7>(each(x)); }
  constexpr auto all_of_pattern(X x) const {
    auto all = each(x);
    return outputs(std::get<7>(all), std::apply([](const auto &...y) { return concat<0>(raised(y)...); }, all));
  }
  constexpr auto outputs_of_pattern(X x) const {
    auto x0 = o0(x, gate<0>(x));
    auto x1 = o1(x0, gate<1>(x));
    auto x2 = o2(x1, gate<2>(x));
    auto x3 = o3(x2, gate<3>(x));
    auto x4 = o4(x3, gate<4>(x));
    auto x5 = o5(x4, gate<5>(x));
    auto x6 = o6(x5, gate<6>(x));
    auto x7 = o7(x6, gate<7>(x));
    auto join = [](const auto &...y) { return concat<0>(raised(y)...); };
    return outputs(x7, join(x0 * 2, x1 * 2, x2 * 2, x3 * 2, x4 * 2, x5 * 2, x6 * 2, x7 * 2),
                   join(sum<1>(x), sum<1>(x0), sum<1>(x1), sum<1>(x2), sum<1>(x3), sum<1>(x4), sum<1>(x5), sum<1>(x6)));
  }
  constexpr auto incomplete(X x) const { return f1(f0(x, x), x); }

  static constexpr auto entries() {
    return std::tuple{entry("several", &Unrolled::several),
                      entry("all_of_several", &Unrolled::all_of_several),
                      entry("pattern", &Unrolled::pattern),
                      entry("all_of_pattern", &Unrolled::all_of_pattern),
                      entry("outputs_of_pattern", &Unrolled::outputs_of_pattern),
                      entry("incomplete", &Unrolled::incomplete)};
  }
};

/// Returns numbers that depend on the name only.
Tensor numbers(const std::string &name, ElementType element, TensorShape shape) {
  std::uint64_t state = 14695981039346656037u;
  for (char letter : name)
    state = detail::hashed(state, letter);
  std::vector<double> values;
  for (std::int64_t i = 0; i < elementCount(shape); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    values.push_back(static_cast<double>(state >> 40) * 0x1p-23 - 1);
  }
  return Tensor::of(element, std::move(shape), std::move(values));
}

Interpreter::WeightSource weightsOf(const Graph &graph) {
  std::map<std::string, Parameter> known;
  for (const Parameter &parameter : graph.parameters)
    for (const std::string &name : names_in_layers(graph.name(parameter), graph.layers(parameter.scope)))
      EXPECT_TRUE(known.emplace(name, parameter).second) << name;
  return [known](const std::string &name) {
    return numbers(name, known.at(name).element, {known.at(name).shape.begin(), known.at(name).shape.end()});
  };
}

TEST(Stacks, AgreeWithLayersThatAreWrittenOut) {
  const Graph stacked = trace<Stacked>(), unrolled = trace<Unrolled>();
  Interpreter loops(stacked, weightsOf(stacked)), layers(unrolled, weightsOf(unrolled));
  ASSERT_EQ(stacked.entries.size(), unrolled.entries.size());
  for (std::int64_t rows : {1, 7})
    for (std::size_t entry = 0; entry < stacked.entries.size(); ++entry) {
      SCOPED_TRACE(stacked.entries[entry].name);
      std::vector<Tensor> inputs{numbers("x", f32, {rows, 4})};
      if (stacked.entries[entry].input_names.size() > 1)
        inputs.push_back(numbers("y", f32, {rows, 3}));
      const std::vector<Tensor> got = loops.run(entry, {{"tokens", rows}}, inputs),
                                expected = layers.run(entry, {{"tokens", rows}}, inputs);
      ASSERT_EQ(got.size(), expected.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i].shape, expected[i].shape);
        EXPECT_EQ(got[i].values, expected[i].values);
      }
    }
}

/// A cache of each layer, which a pattern reads by slices and returns as outputs.
struct Keeping : Layer<Keeping> {
  using Layer::Layer;
  Linear<4, 4> fc{"fc"};
  State<f32, 2, 4> past{"past"};
  constexpr auto forward(const tensor auto &x) const {
    auto next = tanh(fc(x)) + past.read(x);
    past.store(next);
    return next;
  }
};
struct Remembering : Model {
  Stack<5, Pattern<1, Keeping, 1, Linear<4, 4>>> layers{"layers"};
  constexpr auto forward(kiln::Tensor<f32, 2, 4> x) const { return layers(x); }
};

TEST(Stacks, StatesOfPatternsHaveTheNumbersOfTheirLayers) {
  const Graph graph = trace<Remembering>();
  Interpreter model(graph, weightsOf(graph));
  model.run(0, {}, {numbers("x", f32, {2, 4})});
  std::vector<std::string> names;
  for (const auto &[name, state] : model.states)
    names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"layers.0.past", "layers.2.past", "layers.4.past"}));
}

/// Halves a number until it is below the limit.
struct Halving : Model {
  constexpr auto forward(kiln::Tensor<f32, 1> x, kiln::Tensor<f32, 1> limit, kiln::Tensor<f32, T> steps) const {
    auto [last, all, count] = scan_until(x, steps, [&](auto h, auto) {
      auto next = h * 0.5;
      return std::tuple{next, std::tuple{next, less(next, 100)}, reshape<>(less(next, limit))};
    });
    return outputs(last, std::get<0>(all), std::get<1>(all), count);
  }
};

TEST(ScanUntil, LaterIterationsChangeNothing) {
  const Graph graph = trace<Halving>();
  Interpreter model(graph, weightsOf(graph));
  for (std::int64_t rows : {1, 2, 9})
    for (double limit : {0.3, 1.5, 0.001}) {
      double x = 4;
      std::vector<double> halves(static_cast<std::size_t>(rows)), isRun(halves);
      std::int64_t count = 0;
      for (bool ends = false; count < rows && !ends; ++count) {
        halves[count] = x /= 2;
        isRun[count] = 1;
        ends = x < limit;
      }
      const std::vector<Tensor> got =
          model.run(0, {{"tokens", rows}},
                    {Tensor::of(f32, {1}, {4}), Tensor::of(f32, {1}, {limit}), numbers("steps", f32, {rows})});
      EXPECT_EQ(got[0].values, std::vector<double>{x});
      EXPECT_EQ(got[1].values, halves);
      EXPECT_EQ(got[2].values, isRun);
      EXPECT_EQ(got[3].values, std::vector<double>{static_cast<double>(count)});
    }
}

} // namespace
} // namespace kiln::interpreter::stacks
