// SPDX-License-Identifier: Apache-2.0
//
// Gradients beside differences of the loss, both in f64: the interpreter of graphs, which knows nothing of derivatives,
// computes the loss, and the interpreter of modules what differentiation made. Then compiled libraries beside the
// latter.
#include "compiler/interpreter/Compare.h"
#include "differentiated.h"
#include "loops.h"
#include "ops.h"
#include "tests/fuzz/CompiledModel.h"
#include "tests/targets/RunnableTargets.h"

namespace kiln::testing {
namespace {

/// Each element of each gradient of an entry beside (loss(w + h) - loss(w - h)) / 2h, of two h whose errors of second
/// order cancel.
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
          // With a kink or a jump between the steps they do not agree.
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

/// Inputs of an entry: integers within their tables.
std::vector<Tensor> drawInputs(Differentiated &model, const Entry &entry, std::int64_t rows) {
  if (entry.name == std::string("attention"))
    return {draw({rows, 4}, model.random), integers({2}, {5, 3})};
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

/// The seed also draws the weights.
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
TEST(Gradients, OfLoops) { expectGradientsOfAll(trace<specs::GradientLoops>(), {1, 3}); }

/// Within the bounds of the interpreter, and to the bit whatever the number of workers.
void expectCompiled(const Graph &graph, const std::string &target) {
  Differentiated model(graph, 5);
  ASSERT_TRUE(model.module);
  llvm::Expected<fuzz::CompiledModel> compiled = fuzz::CompiledModel::compile(graph, target);
  ASSERT_TRUE(static_cast<bool>(compiled)) << llvm::toString(compiled.takeError());
  llvm::Error unbound = compiled->bind(model.weights);
  ASSERT_FALSE(unbound) << llvm::toString(std::move(unbound));
  for (std::int64_t rows : {1, 2, 9})
    for (std::size_t number = 0; number < graph.entries.size(); ++number) {
      const Entry &entry = graph.entries[number];
      SCOPED_TRACE(target + " " + entry.name + " " + std::to_string(rows));
      const interpreter::Extents extents{{"rows", rows}};
      const std::vector<Tensor> inputs = drawInputs(model, entry, rows);
      const std::vector<verify::SharedTensor> expected = model.run(entry, extents, inputs);
      fuzz::CompiledModel::Buffers bytes;
      for (const Tensor &input : inputs)
        bytes.push_back(fuzz::toBytes(input));
      std::optional<fuzz::CompiledModel::Buffers> first;
      for (unsigned workers : {1u, 3u}) {
        fuzz::CompiledModel::Session session(
            *compiled, {.order = workers > 1 ? fuzz::CallStyle::Order::Threads : fuzz::CallStyle::Order::Serial,
                        .workers = workers});
        llvm::Expected<fuzz::CompiledModel::Buffers> results = session.call(number, extents, bytes);
        ASSERT_TRUE(static_cast<bool>(results)) << llvm::toString(results.takeError());
        if (first)
          EXPECT_EQ(*results, *first) << "with another number of workers";
        first = std::move(*results);
      }
      ASSERT_EQ(first->size(), expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        std::vector<float> got((*first)[i].size() / sizeof(float));
        std::memcpy(got.data(), (*first)[i].data(), (*first)[i].size());
        const interpreter::Comparison comparison = interpreter::compare(*expected[i], std::span(std::as_const(got)));
        EXPECT_TRUE(comparison.isRight) << model.resultName(entry, static_cast<unsigned>(i)) << ": "
                                        << describe(comparison);
      }
    }
}

TEST(Gradients, Compiled) {
  for (const std::string &target : runnableTargets()) {
    expectCompiled(trace<specs::GradientOps>(), target);
    expectCompiled(trace<specs::GradientLoops>(), target);
  }
}

} // namespace
} // namespace kiln::testing
