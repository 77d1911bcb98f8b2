// SPDX-License-Identifier: Apache-2.0
//
// Gradients compared with finite differences of the loss, both in f64: the interpreter of graphs, which does not
// differentiate, computes the loss, and the interpreter of modules runs the differentiated module. Then compiled
// libraries are compared with the latter.
#include "adapters.h"
#include "compiled.h"
#include "loops.h"
#include "moves.h"
#include "ops.h"
#include "tests/targets/RunnableTargets.h"

namespace kiln::testing {
namespace {

/// Compares each element of each gradient of an entry with (loss(w + h) - loss(w - h)) / 2h, for two h whose
/// second-order errors cancel.
void expectGradients(Differentiated &model, std::size_t number, const interpreter::Extents &extents,
                     const std::vector<Tensor> &inputs) {
  const Entry &entry = model.graph.entries[number];
  SCOPED_TRACE(entry.name);
  const std::vector<verify::SharedTensor> results = model.run(entry, extents, inputs);
  EXPECT_NEAR(results[0]->values[0], model.loss(number, extents, inputs), 1e-9);
  std::size_t compared = 0, kinks = 0;
  for (unsigned result = static_cast<unsigned>(entry.output_names.size()); result < results.size(); ++result) {
    const Tensor &gradient = *results[result];
    const std::string name = model.resultName(entry, result);
    std::size_t at = 0; // in the gradient, whose copies are stacked
    for (const Parameter &parameter : model.graph.parameters) {
      if (gradient_name(model.graph.name(parameter)) != name)
        continue;
      for (std::int64_t copy = 0; copy < model.graph.copies(parameter.scope); ++copy) {
        Tensor &weight = model.weights.at(model.nameOf(parameter, copy));
        for (double &value : weight.values) {
          auto difference = [&](double h) {
            const double own = value;
            value = own + h;
            const double above = model.loss(number, extents, inputs);
            value = own - h;
            const double below = model.loss(number, extents, inputs);
            value = own;
            return (above - below) / (2 * h);
          };
          const double near = difference(step), far = difference(2 * step), expected = (4 * near - far) / 3;
          ASSERT_LT(at, gradient.values.size()) << name;
          // The differences do not agree if there is a kink or a jump between the steps.
          if (std::abs(near - far) > 1e-3 * std::max(1.0, std::abs(near)))
            ++kinks;
          else
            ASSERT_NEAR(gradient.values[at], expected, 1e-6 * std::max(1.0, std::abs(expected))) << name << " " << at;
          ++at, ++compared;
        }
      }
    }
    EXPECT_EQ(at, gradient.values.size()) << name;
  }
  EXPECT_GT(compared, 10 * kinks);
}

/// Draws inputs of an entry: integers are within their tables.
std::vector<Tensor> drawInputs(Differentiated &model, const Entry &entry, std::int64_t rows) {
  if (entry.name == std::string("attention"))
    return {draw({rows, 4}, model.random), integers({2}, {5, 3})};
  if (entry.name == std::string("groups")) // the second group has no rows
    return {draw({rows, 4}, model.random),
            integers({3}, {static_cast<double>(rows / 2), 1, static_cast<double>(rows)})};
  if (entry.name == std::string("lookups")) {
    std::vector<double> indices;
    for (std::int64_t i = 0; i < rows; ++i)
      indices.push_back(static_cast<double>(i % 3 == 2 ? 0 : i % 5));
    return {draw({rows, 4}, model.random), integers({rows}, indices), integers({2, 3}, {0, 6, 1, 1, 3, 6})};
  }
  std::vector<std::int64_t> shape;
  for (const Dim &dim : model.graph.nodes[model.graph.regions[entry.region].arguments[0]].shape)
    shape.push_back(dim.fixed() ? dim.offset : rows);
  return {draw(shape, model.random)};
}

/// The number of rows is also the seed of the weights.
void expectGradientsOfAll(const Graph &graph, std::initializer_list<std::int64_t> sizes) {
  for (std::int64_t rows : sizes) {
    SCOPED_TRACE(rows);
    Differentiated model(graph, static_cast<unsigned>(rows));
    ASSERT_TRUE(model.module);
    for (std::size_t entry = 0; entry < graph.entries.size(); ++entry)
      expectGradients(model, entry, {{"rows", rows}}, drawInputs(model, graph.entries[entry], rows));
  }
}

TEST(Gradients, OfEachOp) { expectGradientsOfAll(trace<specs::GradientOps>(), {1, 2, 7}); }
TEST(Gradients, OfMoves) { expectGradientsOfAll(trace<specs::GradientMoves>(), {1, 2, 7}); }
TEST(Gradients, OfLoops) { expectGradientsOfAll(trace<specs::GradientLoops>(), {1, 3}); }

TEST(Gradients, Compiled) {
  for (const std::string &target : runnableTargets()) {
    expectCompiled(trace<specs::GradientOps>(), target, drawInputs);
    expectCompiled(trace<specs::GradientMoves>(), target, drawInputs);
    expectCompiled(trace<specs::GradientLoops>(), target, drawInputs);
  }
}

/// The frozen weights, of 8192 elements, are stored once and in their storage format, so they take `frozen` bytes. In
/// addition there are f32 biases and adapters.
template <WeightType Stored> void expectAdapters(std::uint64_t frozen) {
  for (const std::string &target : {runnableTargets().front(), runnableTargets().back()}) {
    const Graph graph = trace<specs::Adapted<Stored>>();
    llvm::Expected<fuzz::CompiledModel> compiled = fuzz::CompiledModel::compile(graph, target);
    ASSERT_TRUE(static_cast<bool>(compiled)) << llvm::toString(compiled.takeError());
    expectCompiled(graph, *compiled, target, drawInputs);
    EXPECT_EQ(compiled->packedBytes(), frozen + 2 * (64 + 64 * 4 + 4 * 64) * sizeof(float));
  }
}
TEST(Gradients, AdaptersWithF32) { expectAdapters<f32>(8192 * 4); }
TEST(Gradients, AdaptersWithF16) { expectAdapters<stored<f16>>(8192 * 2); }
TEST(Gradients, AdaptersWithInt8) { expectAdapters<int8>(8192 + 2 * 64 * 4); }
TEST(Gradients, AdaptersWithInt4) { expectAdapters<int4<32>>(8192 / 2 + 8192 / 32 * 2); }

} // namespace
} // namespace kiln::testing
