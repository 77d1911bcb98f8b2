// SPDX-License-Identifier: Apache-2.0
#include "compiler/interpreter/Sampled.h"

#include <algorithm>
#include <cmath>

namespace kiln::interpreter {

void Mover::operator()(Tensor &result) {
  std::uniform_real_distribution<double> unit(-1, 1);
  const double common = unit(random);
  const bool followsSign = unit(random) < 0;
  for (std::int64_t i = 0; i < result.size(); ++i) {
    const Value x = result.at(i);
    if (!x.isDetermined() || x.error == 0)
      continue;
    const double direction = followsSign && x.value < 0 ? -common : common;
    result.set(i, {x.value + x.error * (direction + unit(random)) / 2, 0});
  }
}

/// Returns the difference between an element of a perturbed run and that of the center; infinity if they are not
/// comparable.
static double differenceOf(Value center, Value moved) {
  if (!moved.isDetermined())
    return std::numeric_limits<double>::infinity();
  if (center.value == moved.value || (std::isnan(center.value) && std::isnan(moved.value)))
    return 0;
  const double difference = std::abs(center.value - moved.value);
  return std::isfinite(difference) ? difference : std::numeric_limits<double>::infinity();
}

void takeErrors(Tensor &output, const std::vector<Tensor> &moved, double factor) {
  for (std::int64_t i = 0; i < output.size(); ++i) {
    double difference = 0;
    for (const Tensor &run : moved)
      difference = std::max(difference, differenceOf(output.at(i), run.at(i)));
    // For integers and booleans the size of a difference has no meaning: keep the present error.
    if (difference > 0 && !floating(output.element))
      difference = std::numeric_limits<double>::infinity();
    output.errors[i] = std::min(output.errors[i], factor * difference);
  }
}

SampledInterpreter::SampledInterpreter(const Graph &graph, const Interpreter::WeightSource &weights, unsigned samples)
    : center(graph, weights), moved(samples, Interpreter(graph, weights)) {
  for (unsigned i = 0; i < samples; ++i)
    moved[i].after = Mover(i);
}

std::vector<Tensor> SampledInterpreter::run(std::size_t entry, const Extents &extents,
                                            const std::vector<Tensor> &inputs) {
  std::vector<Tensor> outputs = center.run(entry, extents, inputs);
  std::vector<std::vector<Tensor>> others(outputs.size());
  for (Interpreter &interpreter : moved) {
    std::vector<Tensor> results = interpreter.run(entry, extents, inputs);
    for (std::size_t i = 0; i < results.size(); ++i)
      others[i].push_back(std::move(results[i]));
  }
  for (std::size_t i = 0; i < outputs.size() && !moved.empty(); ++i)
    takeErrors(outputs[i], others[i]);
  return outputs;
}

} // namespace kiln::interpreter
