// SPDX-License-Identifier: Apache-2.0
//
// Gradients beside differences of the loss, both in f64: the interpreter of graphs, which knows nothing of derivatives,
// computes the loss, and the interpreter of modules what differentiation made. Then compiled libraries beside the
// latter.
#include "compiler/frontend/Import.h"
#include "compiler/interpreter/Compare.h"
#include "compiler/interpreter/Interpreter.h"
#include "compiler/verify/ModuleInterpreter.h"
#include "loops.h"
#include "ops.h"
#include "tests/fuzz/CompiledModel.h"
#include "tests/targets/RunnableTargets.h"
#include "tests/verify/support.h"

#include "compiler/dialect/Extents.h"
#include "kiln/gradients.h"
#include <gtest/gtest.h>
#include <random>

namespace kiln::testing {
namespace {

using interpreter::Tensor;

/// Numbers of [-1, 1] that f32 has, with so many bits to spare that a step to either side is exact.
constexpr double step = 0x1p-10;
Tensor draw(const std::vector<std::int64_t> &shape, std::mt19937 &random) {
  Tensor x = Tensor::zeros(ElementType::f32, shape);
  for (double &value : x.values)
    value = std::round(std::uniform_real_distribution<double>(-1, 1)(random) / step) * step;
  return x;
}

/// A model's entries, with weights of random numbers.
class Differentiated {
public:
  Differentiated(const Graph &graph, unsigned seed) : graph(graph), random(seed) {
    for (const Parameter &parameter : graph.parameters) {
      std::vector<std::int64_t> shape(parameter.shape.begin(), parameter.shape.end());
      for (std::int64_t copy = 0; copy < graph.copies(parameter.scope); ++copy)
        weights[nameOf(parameter, copy)] = draw(shape, random);
    }
    module = importGraph(graph, &context, "model");
  }

  /// By the interpreter of graphs.
  double loss(std::size_t entry, const interpreter::Extents &extents, const std::vector<Tensor> &inputs) const {
    interpreter::Interpreter run(graph, [&](const std::string &name) { return weights.at(name); });
    return run.run(entry, extents, inputs)[0].values[0];
  }
  std::vector<verify::SharedTensor> run(const Entry &entry, const interpreter::Extents &extents,
                                        const std::vector<Tensor> &inputs) {
    std::vector<std::int64_t> values;
    for (auto symbol : mlir::kiln::getSymbols(*module))
      values.push_back(extents.at(symbol.getName().str()));
    std::vector<verify::SharedTensor> arguments;
    for (const Tensor &input : inputs)
      arguments.push_back(std::make_shared<const Tensor>(input));
    verify::ModuleInterpreter run(
        [&](const std::string &, const std::string &name) { return std::make_shared<const Tensor>(weights.at(name)); });
    return run.run(module->lookupSymbol<mlir::func::FuncOp>(entry.name), values, arguments);
  }
  std::string resultName(const Entry &entry, unsigned result) {
    auto function = module->lookupSymbol<mlir::func::FuncOp>(entry.name);
    return function.getResultAttrOfType<mlir::StringAttr>(result, mlir::kiln::nameAttrName).str();
  }
  /// Copies of nested stacks count the innermost layers first.
  std::string nameOf(const Parameter &parameter, std::int64_t copy) const {
    std::string name = graph.name(parameter);
    for (int at = parameter.scope; at > 0; at = graph.scopes[at].parent)
      if (const std::int64_t layers = graph.scopes[at].copies; layers > 0) {
        name.replace(name.rfind("{}"), 2, std::to_string(copy % layers));
        copy /= layers;
      }
    return name;
  }

  Graph graph;
  std::mt19937 random;
  std::map<std::string, Tensor> weights;
  Context context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

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

Tensor integers(std::vector<std::int64_t> shape, std::vector<double> values) {
  return Tensor::of(ElementType::i32, std::move(shape), std::move(values));
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
