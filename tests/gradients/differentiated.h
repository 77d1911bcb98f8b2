// SPDX-License-Identifier: Apache-2.0
//
// Models with gradient entries: traced, imported and run by the interpreters, with random weights.
#pragma once

#include "compiler/dialect/Extents.h"
#include "compiler/interpreter/Interpreter.h"
#include "compiler/pipeline/ImportModel.h"
#include "compiler/verify/ModuleInterpreter.h"
#include "kiln/training.h"
#include "tests/verify/parameter_names.h"
#include "tests/verify/support.h"

#include <gtest/gtest.h>
#include <random>

namespace kiln::testing {

using interpreter::Tensor;

/// Draws f32 numbers in [-1, 1] with spare bits, so that adding or subtracting a finite-difference step is exact.
inline constexpr double step = 0x1p-10;
inline Tensor draw(const std::vector<std::int64_t> &shape, std::mt19937 &random) {
  Tensor x = Tensor::zeros(ElementType::f32, shape);
  for (double &value : x.values)
    value = std::round(std::uniform_real_distribution<double>(-1, 1)(random) / step) * step;
  return x;
}

/// A model's entries, with random weights.
class Differentiated {
public:
  Differentiated(const Graph &graph, unsigned seed) : graph(graph), random(seed) {
    for (const Parameter &parameter : graph.parameters) {
      std::vector<std::int64_t> shape(parameter.shape.begin(), parameter.shape.end());
      for (std::int64_t copy = 0; copy < graph.copies(parameter.scope); ++copy)
        weights[nameOf(parameter, copy)] = draw(shape, random);
      if (std::string_view(parameter.leaf) == "running_var")
        for (std::int64_t copy = 0; copy < graph.copies(parameter.scope); ++copy)
          for (double &value : weights[nameOf(parameter, copy)].values)
            value = value * value + 0.5;
    }
    module = importModel(graph, &context, "model");
  }

  /// Computes the loss with the interpreter of graphs.
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
  std::string nameOf(const Parameter &parameter, std::int64_t copy) const {
    return testing::nameOf(graph, parameter, copy);
  }

  Graph graph;
  std::mt19937 random;
  std::map<std::string, Tensor> weights;
  Context context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

inline const Entry &entryOf(const Graph &graph, const std::string &name) {
  for (const Entry &entry : graph.entries)
    if (entry.name == name)
      return entry;
  throw std::runtime_error("no entry " + name);
}

inline Tensor integers(std::vector<std::int64_t> shape, std::vector<double> values) {
  return Tensor::of(ElementType::i32, std::move(shape), std::move(values));
}

} // namespace kiln::testing
