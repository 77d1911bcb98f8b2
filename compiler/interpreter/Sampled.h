// SPDX-License-Identifier: Apache-2.0
//
// Bounds for deep graphs. A bound that holds whatever the signs of all errors are grows with every contraction by the
// root of its depth or more, and says nothing behind a block of a Transformer. So the graph is also run a few times
// with the result of each op moved at random within the bound of that op alone, all other errors being carried by the
// values (Monte Carlo arithmetic; Parker 1997). An element then is off by a small multiple of what the runs differ by.
//
// Each op moves half at random and half in one direction for all of its elements, or in that of their signs, since what
// a polynomial errs is alike for like arguments. It is no proof, as the bounds of the Interpreter alone are: of 576,000
// elements at the end of chains of 30 ops in f32, 435 were off by more than the largest difference of 12 runs, 3 by
// more than twice and none by more than three times that; so it counts six times.
#pragma once

#include <random>

#include "compiler/interpreter/Interpreter.h"

namespace kiln::interpreter {

/// Moves the result of an op within its error, which then is none; what is not determined stays so.
class Mover {
public:
  explicit Mover(unsigned seed) : random(seed) {}
  void operator()(Tensor &result);

private:
  std::mt19937 random;
};

/// The errors of `outputs`, from the same outputs of moved runs: `factor` times the largest difference, or what they
/// have if that is less. An element that is not determined in a moved run is none here.
void takeErrors(Tensor &output, const std::vector<Tensor> &moved, double factor = 6);

/// An Interpreter with as many moved ones beside it, which keep states of their own.
class SampledInterpreter {
public:
  SampledInterpreter(const Graph &graph, const Interpreter::WeightSource &weights, unsigned samples = 12);

  /// As Interpreter::run.
  std::vector<Tensor> run(std::size_t entry, const Extents &extents, const std::vector<Tensor> &inputs);

private:
  Interpreter center;
  std::vector<Interpreter> moved;
};

} // namespace kiln::interpreter
