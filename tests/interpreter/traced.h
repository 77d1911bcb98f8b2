// SPDX-License-Identifier: Apache-2.0
//
// Runs traced models in the interpreter with the counter's weights, which oracle/counter.py supplies to PyTorch.
#pragma once

#include "compiler/interpreter/Compare.h"
#include "compiler/interpreter/Sampled.h"
#include "golden.h"
#include "support.h"

#include <gtest/gtest.h>

namespace kiln::interpreter {

/// Returns the counter's weights of every parameter, under the names of all layers.
inline Interpreter::WeightSource counterWeights(const Graph &graph) {
  std::map<std::string, Parameter> parameters;
  for (const Parameter &parameter : graph.parameters) {
    for (const std::string &name : names_in_layers(graph.name(parameter), graph.layers(parameter.scope)))
      parameters.emplace(name, parameter);
  }
  return [parameters](const std::string &name) {
    auto found = parameters.find(name);
    if (found == parameters.end())
      throw std::runtime_error("no weight " + name);
    const Parameter &parameter = found->second;
    const testing::CounterWeight value(name, parameter.shape);
    std::vector<double> values;
    for (std::int64_t i = 0; i < elementCount(parameter.shape); ++i)
      values.push_back(value(static_cast<std::uint64_t>(i)));
    return Tensor::of(parameter.element, parameter.shape, std::move(values));
  };
}

/// Returns the counter's input of a name, times a factor.
inline Tensor uniform(const char *name, TensorShape shape, double factor = 1) {
  Tensor x = Tensor::zeros(ElementType::f32, std::move(shape));
  for (std::int64_t i = 0; i < x.size(); ++i)
    x.values[i] = factor * testing::counter_uniform(name, static_cast<std::uint64_t>(i));
  return x;
}
inline Tensor integers(TensorShape shape, const std::vector<std::int32_t> &values) {
  return Tensor::of(ElementType::i32, std::move(shape), {values.begin(), values.end()});
}
inline Tensor tokens(const char *name, TensorShape shape, std::int32_t vocabulary) {
  const std::int64_t count = elementCount(shape);
  return integers(std::move(shape), testing::counterTokens(name, count, vocabulary));
}

/// A model's graph, whose entries are called by name.
template <class Runner = Interpreter> class Traced {
public:
  explicit Traced(const Graph &graph) : graph(graph), interpreter(graph, counterWeights(graph)) {}

  std::vector<Tensor> run(const std::string &name, const Extents &extents, const std::vector<Tensor> &inputs) {
    for (std::size_t entry = 0; entry < graph.entries.size(); ++entry)
      if (graph.entries[entry].name == name)
        return interpreter.run(entry, extents, inputs);
    throw std::runtime_error("no entry " + name);
  }

  Graph graph;
  Runner interpreter;
};

/// Goldens are f64 results rounded to f32; so are these results.
inline constexpr double goldenTolerance = 2e-7;

inline std::vector<float> rounded(const Tensor &tensor) { return {tensor.values.begin(), tensor.values.end()}; }

/// Compares with the golden of that name, and expects tight bounds for at least the share `tight` of the elements.
inline void expectGolden(const testing::Golden &golden, const std::string &name, const Tensor &tensor, double tight) {
  EXPECT_LE(golden.error(name, rounded(tensor)), goldenTolerance) << name;
  EXPECT_GE(tightShare(tensor), tight) << name;
}

} // namespace kiln::interpreter
