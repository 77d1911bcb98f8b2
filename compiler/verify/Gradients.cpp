// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/Gradients.h"

#include <fmt/format.h>
#include <random>

#include "compiler/dialect/KilnDialect.h"
#include "compiler/dialect/Training.h"
#include "compiler/interpreter/Tensor.h"
#include "compiler/verify/CentralDifference.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
namespace kd = mlir::kiln;

namespace kiln::verify {
namespace {

/// A parameter whose gradient is a result.
struct Gradient {
  std::string pattern; // "h.{}.weight"
  SharedTensor value;  // the gradients of all copies, stacked along leading axes
};

/// Returns the names of the copies of a parameter in the order in which their gradients are stacked.
std::vector<std::string> namesOfCopies(const Gradient &gradient) {
  const auto loops = static_cast<std::ptrdiff_t>(StringRef(gradient.pattern).count("{}"));
  const TensorShape &shape = gradient.value->shape;
  return names_in_layers(gradient.pattern, {shape.begin(), shape.begin() + loops});
}

/// Moves weights along a random direction whose length is about that of one element.
class Direction {
public:
  Direction(RandomWeights &weights, std::size_t elements) : weights(weights), size(1 / std::sqrt(double(elements))) {}

  /// Includes a parameter, and adds up its share of the derivative.
  void add(const Gradient &gradient) {
    const std::vector<std::string> names = namesOfCopies(gradient);
    const std::size_t each = gradient.value->values.size() / names.size();
    for (std::size_t copy = 0; copy < names.size(); ++copy) {
      std::mt19937_64 random(llvm::xxh3_64bits(names[copy]));
      std::vector<double> &along = steps[names[copy]];
      for (std::size_t i = 0; i < each; ++i) {
        along.push_back(size * (static_cast<double>(random() >> 11) * 0x1p-52 - 1));
        const double element = gradient.value->values[copy * each + i];
        derivative += along.back() * element;
        scale = std::max(scale, std::abs(element));
      }
    }
  }

  double lossAt(func::FuncOp entry, const EntryCall &call, double distance) const {
    ModuleInterpreter interpreter([&](const std::string &pattern, const std::string &name) -> SharedTensor {
      const SharedTensor weight = weights.get(pattern, name);
      auto found = steps.find(name);
      if (found == steps.end())
        return weight;
      Tensor moved = *weight;
      for (std::size_t i = 0; i < moved.values.size(); ++i)
        moved.values[i] += distance * found->second.at(i);
      return std::make_shared<const Tensor>(std::move(moved));
    });
    return interpreter.run(entry, call.extents, call.inputs).at(0)->values.at(0);
  }

  double derivative = 0, scale = 1e-3;

private:
  RandomWeights &weights;
  const double size;
  std::map<std::string, std::vector<double>> steps; // by weight
};

/// Returns the names of parameters that have a storage format: the values that ops read go in steps.
std::vector<std::string> storedParameters(func::FuncOp entry) {
  std::vector<std::string> names;
  entry.walk([&](kd::ParameterOp parameter) {
    if (parameter.getStorageAttr())
      names.push_back(cast<StringAttr>(parameter.getSources()[0]).str());
  });
  return names;
}

} // namespace

bool hasSmoothLoss(func::FuncOp entry) {
  const std::optional<kd::TrainingRequest> request = kd::TrainingRequest::of(entry);
  if (!request || request->options.activations != ElementType::f32)
    return false;
  return !entry
              ->walk([](Operation *op) {
                const bool isRounded = llvm::any_of(
                    op->getResultTypes(), [](Type type) { return kd::isHalfFloat(getElementTypeOrSelf(type)); });
                return isRounded || isa<kd::CustomOp, kd::QuantizeRowsOp, kd::ReceiveOp, kd::RunningAverageOp,
                                        kd::SendOp, kd::StopGradientOp>(op)
                           ? WalkResult::interrupt()
                           : WalkResult::advance();
              })
              .wasInterrupted();
}

GradientCheck checkGradients(func::FuncOp entry, const EntryCall &call, RandomWeights &weights, bool isJoint) {
  GradientCheck check;
  const std::vector<std::string> stored = storedParameters(entry);
  ModuleInterpreter interpreter(
      [&](const std::string &pattern, const std::string &name) { return weights.get(pattern, name); });
  const std::vector<SharedTensor> results = interpreter.run(entry, call.extents, call.inputs);
  std::vector<Gradient> gradients;
  std::size_t elements = 0;
  for (unsigned i = 0; i < entry.getNumResults(); ++i)
    if (auto name = entry.getResultAttrOfType<StringAttr>(i, kd::gradientAttrName);
        name && !llvm::is_contained(stored, name.str())) {
      gradients.push_back({name.str(), results.at(i)});
      elements += results[i]->values.size();
    }
  if (gradients.empty() || !std::isfinite(results.at(0)->values.at(0)))
    return check;
  auto compare = [&](const Direction &direction, const std::string &of) {
    ++check.compared;
    const std::optional<double> expected =
        centralDifference([&](double distance) { return direction.lossAt(entry, call, distance); }, direction.scale);
    if (!expected)
      ++check.kinks;
    else if (check.difference.empty() &&
             !(std::abs(direction.derivative - *expected) <= derivativeTolerance(direction.scale, *expected)))
      check.difference = fmt::format(
          "{} of {}: the derivative along a direction is {:.9g}, by central differences {:.9g}{}", of,
          entry.getName().str(), direction.derivative, *expected, call.words.empty() ? "" : " (" + call.words + ")");
  };
  if (isJoint) {
    Direction direction(weights, elements);
    for (const Gradient &gradient : gradients)
      direction.add(gradient);
    compare(direction, "the gradients");
  } else {
    for (const Gradient &gradient : gradients) {
      Direction direction(weights, gradient.value->values.size());
      direction.add(gradient);
      compare(direction, "the gradient of \"" + gradient.pattern + "\"");
    }
  }
  return check;
}

} // namespace kiln::verify
