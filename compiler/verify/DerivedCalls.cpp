// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/DerivedCalls.h"

#include <cmath>

#include "compiler/dialect/KilnDialect.h"
#include "compiler/verify/Slices.h"

using namespace mlir;
namespace kd = mlir::kiln;

namespace kiln::verify {
namespace {

/// Returns the tensor with its elements rotated: other numbers that the entry accepts at that place.
SharedTensor rotated(const SharedTensor &tensor, std::int64_t by) {
  Tensor result = *tensor;
  for (std::int64_t i = 0; i < result.size(); ++i)
    result.set(i, tensor->at((i + by) % result.size()));
  return std::make_shared<const Tensor>(std::move(result));
}

/// Returns the mean of tensors, with a bound for sums in f32 in any order.
Tensor meanOf(ArrayRef<SharedTensor> tensors) {
  Tensor mean = *tensors.front();
  const auto count = static_cast<double>(tensors.size());
  for (std::int64_t i = 0; i < mean.size(); ++i) {
    double sum = 0, magnitude = 0, error = 0;
    for (const SharedTensor &tensor : tensors) {
      sum += tensor->values[i];
      magnitude += std::abs(tensor->values[i]);
      error += tensor->errors[i];
    }
    mean.values[i] = sum / count;
    mean.errors[i] = (error + (count + 2) * 0x1p-24 * magnitude) / count + 0x1p-126;
  }
  return mean;
}

/// The position of an input among the tensors that the entry takes; nullopt if there is none of that name.
std::optional<std::size_t> positionOf(func::FuncOp entry, StringRef name) {
  Value input = kd::getInput(entry, name);
  if (!input)
    return std::nullopt;
  std::size_t position = 0;
  for (BlockArgument argument : entry.getArguments()) {
    if (argument == input)
      return position;
    position += isa<RankedTensorType>(argument.getType());
  }
  return std::nullopt;
}

/// The states of one sequence by the names in the entry.
class SequenceStates {
public:
  SequenceStates(std::map<std::string, SharedTensor> &all, std::int64_t number)
      : all(all), suffix(number > 0 ? " of sequence " + std::to_string(number) : "") {
    for (const auto &[name, tensor] : all)
      if (StringRef own = name; isOwn(own))
        states[own.drop_back(suffix.size()).str()] = tensor;
  }
  void putBack() const {
    for (const auto &[name, tensor] : states)
      all[name + suffix] = tensor;
  }

  std::map<std::string, SharedTensor> states;

private:
  bool isOwn(StringRef name) const { return suffix.empty() ? !name.contains(" of sequence ") : name.ends_with(suffix); }

  std::map<std::string, SharedTensor> &all;
  const std::string suffix;
};

} // namespace

DerivedCall accumulatedCall(func::FuncOp entry, const kd::TrainingRequest &request, const EntryCall &call,
                            CallEntry run) {
  const std::int64_t count = request.getMicroBatches();
  const std::optional<std::size_t> step = positionOf(entry, "step");
  std::vector<std::vector<SharedTensor>> inputs(request.inputs), results(entry.getNumResults());
  for (std::int64_t number = 0; number < count; ++number) {
    EntryCall one = call;
    for (std::int64_t input = 0; input < request.inputs; ++input) {
      one.inputs[input] = rotated(call.inputs[input], number);
      inputs[input].push_back(one.inputs[input]);
    }
    if (step) {
      Tensor own = *call.inputs[*step];
      own.values[0] = own.values[0] * static_cast<double>(count) + static_cast<double>(number);
      one.inputs[*step] = std::make_shared<const Tensor>(std::move(own));
    }
    std::map<std::string, SharedTensor> none;
    const std::vector<SharedTensor> returned = run(entry, one, none);
    for (auto [all, result] : llvm::zip_equal(results, returned))
      all.push_back(result);
  }
  DerivedCall derived{call, {}};
  for (std::int64_t input = 0; input < request.inputs; ++input)
    derived.call.inputs[input] = std::make_shared<const Tensor>(stack(inputs[input]));
  for (auto [i, all] : llvm::enumerate(results)) {
    const bool isMean = i == 0 || entry.getResultAttr(static_cast<unsigned>(i), kd::gradientAttrName);
    derived.results.push_back(std::make_shared<const Tensor>(isMean ? meanOf(all) : stack(all)));
  }
  return derived;
}

DerivedCall batchedCall(func::FuncOp entry, func::FuncOp batched, std::int64_t sequences, const EntryCall &call,
                        std::map<std::string, SharedTensor> &states, CallEntry run) {
  std::vector<std::vector<SharedTensor>> inputs(call.inputs.size()), results(entry.getNumResults());
  for (std::int64_t number = 0; number < sequences; ++number) {
    EntryCall one = call;
    for (auto [input, all] : llvm::zip_equal(one.inputs, inputs)) {
      input = rotated(input, number);
      all.push_back(input);
    }
    SequenceStates own(states, number);
    const std::vector<SharedTensor> returned = run(entry, one, own.states);
    own.putBack();
    for (auto [all, result] : llvm::zip_equal(results, returned))
      all.push_back(result);
  }
  DerivedCall derived{call, {}};
  derived.call.entry = batched.getName().str();
  for (auto [input, all] : llvm::zip_equal(derived.call.inputs, inputs))
    input = std::make_shared<const Tensor>(join(all, 0));
  for (const std::vector<SharedTensor> &all : results)
    derived.results.push_back(std::make_shared<const Tensor>(join(all, 0)));
  return derived;
}

} // namespace kiln::verify
