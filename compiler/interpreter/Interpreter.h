// SPDX-License-Identifier: Apache-2.0
//
// Runs a graph in f64, as dsl/SPEC.md states it, with a bound on every element: the oracle that compiled libraries are
// compared with. It needs the DSL's headers only, and shares no code with the lowering. For what the bounds cover see
// Arithmetic.h.
//
//   kiln::interpreter::Interpreter interpreter(kiln::trace<M>(), weights);
//   std::vector<Tensor> outputs = interpreter.run(0, {{"tokens", 7}}, {tokens});
//   Comparison comparison = compare(outputs[0], actual);
#pragma once

#include <functional>
#include <memory>

#include "compiler/interpreter/Tensor.h"

namespace kiln::interpreter {

class Interpreter {
public:
  /// The weight of a name such as "h.3.attn.weight", each "{}" being the number of a layer, with the errors that
  /// implementations may make of it. Asked once.
  using WeightSource = std::function<Tensor(const std::string &name)>;

  /// Throws std::runtime_error for a graph whose scopes, parameters and states are malformed.
  Interpreter(Graph graph, WeightSource weights);

  /// Named states ("h.0.keys"): start as zeros, kept between calls of run. One that no call has written is not there.
  std::map<std::string, Tensor> states;

  /// Whether linear takes rows of int8 for the weight of that name (dsl/SPEC.md, Stored weights), whose outputs are
  /// along `dim`; rows stay as they are if null.
  std::function<bool(const std::string &name, int dim)> takesInt8;

  /// Called with the result of each op before anything reads it; may change values and errors.
  std::function<void(Tensor &result)> after;

  /// Runs an entry; inputs in the entry's order, rounded to their element types, without errors if `errors` is empty.
  /// Throws std::runtime_error on a malformed graph or call, and then leaves the states as they are.
  std::vector<Tensor> run(std::size_t entry, const Extents &extents, const std::vector<Tensor> &inputs);

private:
  class Run;

  Graph graph;
  WeightSource weights;
  std::map<std::string, std::shared_ptr<const Tensor>> known;
};

} // namespace kiln::interpreter
