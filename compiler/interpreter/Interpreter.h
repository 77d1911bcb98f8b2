// SPDX-License-Identifier: Apache-2.0
//
// Runs a graph in f64, as dsl/SPEC.md specifies it, with an error bound for every element: the reference with which
// compiled libraries are compared. It needs the DSL's headers only, and shares no code with the lowering. Arithmetic.h
// describes what the bounds cover.
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
  /// Returns the weight of a name such as "h.3.attn.weight", which has the numbers of layers (kiln/numbered.h), with
  /// the errors that implementations may add to it. Called once per name.
  using WeightSource = std::function<Tensor(const std::string &name)>;

  /// Throws std::runtime_error for a graph whose scopes, parameters and states are malformed.
  Interpreter(Graph graph, WeightSource weights);

  /// Named states ("h.0.keys"), zero at first, kept between calls of run. A state that no call has written is absent.
  std::map<std::string, Tensor> states;

  /// Whether linear takes int8 rows for the weight of that name (dsl/SPEC.md, Stored weights), whose outputs are along
  /// `dim`; if null, no rows are quantised.
  std::function<bool(const std::string &name, int dim)> takesInt8;

  /// Called with the result of each op before anything reads it; may change values and errors.
  std::function<void(Tensor &result)> after;

  /// Runs an entry. Inputs are in the entry's order, rounded to their element types, and exact if `errors` is empty.
  /// Throws std::runtime_error on a malformed graph or call, and then leaves the states unchanged.
  std::vector<Tensor> run(std::size_t entry, const Extents &extents, const std::vector<Tensor> &inputs);

private:
  class Run;

  Graph graph;
  WeightSource weights;
  std::map<std::string, std::shared_ptr<const Tensor>> known;
};

} // namespace kiln::interpreter
