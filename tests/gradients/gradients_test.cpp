// SPDX-License-Identifier: Apache-2.0
//
// Gradients beside differences of the loss, both in f64: the interpreter of graphs computes the loss, which it knows
// nothing of derivatives for, and the interpreter of modules what differentiation made.
#include "compiler/frontend/Import.h"
#include "compiler/interpreter/Interpreter.h"
#include "compiler/verify/ModuleInterpreter.h"
#include "loops.h"
#include "ops.h"
#include "tests/verify/support.h"

#include "compiler/dialect/Extents.h"
#include "compiler/transforms/Differentiate.h"
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
      if (mlir::kiln::gradientName(model.graph.name(parameter)) != name)
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

TEST(Gradients, OfEachOp) {
  const Graph graph = trace<specs::GradientOps>();
  for (std::int64_t rows : {1, 2, 7}) {
    SCOPED_TRACE(rows);
    Differentiated model(graph, static_cast<unsigned>(rows));
    ASSERT_TRUE(model.module);
    const Tensor x = draw({rows, 4}, model.random);
    auto integers = [](std::vector<std::int64_t> shape, std::vector<double> values) {
      return Tensor::of(ElementType::i32, std::move(shape), std::move(values));
    };
    std::vector<double> indices;
    for (std::int64_t i = 0; i < rows; ++i)
      indices.push_back(static_cast<double>(i % 3 == 2 ? 0 : i % 5));
    for (std::size_t entry = 0; entry < graph.entries.size(); ++entry) {
      std::vector<Tensor> inputs{x};
      if (graph.entries[entry].name == std::string("lookups")) {
        inputs.push_back(integers({rows}, indices));
        inputs.push_back(integers({2, 3}, {0, 6, 1, 1, 3, 6}));
      }
      if (graph.entries[entry].name == std::string("attention"))
        inputs.push_back(integers({2}, {5, 3}));
      expectGradients(model, entry, {{"rows", rows}}, inputs);
    }
  }
}

TEST(Gradients, OfLoops) {
  const Graph graph = trace<specs::GradientLoops>();
  for (std::int64_t rows : {1, 3}) {
    SCOPED_TRACE(rows);
    Differentiated model(graph, static_cast<unsigned>(rows));
    ASSERT_TRUE(model.module);
    const Tensor x = draw({rows, 4}, model.random), batch = draw({rows, 2, 4}, model.random);
    for (std::size_t entry = 0; entry < graph.entries.size(); ++entry) {
      const bool isBatch = graph.nodes[graph.regions[graph.entries[entry].region].arguments[0]].shape.size() == 3;
      expectGradients(model, entry, {{"rows", rows}}, {isBatch ? batch : x});
    }
  }
}

} // namespace
} // namespace kiln::testing
