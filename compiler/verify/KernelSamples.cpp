// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/KernelSamples.h"

#include <fmt/format.h>

#include "compiler/dialect/KilnDialect.h"
#include "compiler/verify/Difference.h"

using namespace mlir;
namespace kd = mlir::kiln;

namespace kiln::verify {

/// Whether the kernel is not lowered yet.
static bool hasKilnOps(func::FuncOp kernel) {
  return llvm::any_of(kernel.getOps(), [](Operation &op) { return isa<kd::KernelOpInterface>(op); });
}

/// Returns the values without error bounds, as a caller of the kernel has them.
static SharedTensor asStored(const SharedTensor &tensor) {
  return std::make_shared<const Tensor>(Tensor::of(tensor->element, tensor->shape, tensor->values));
}

static std::vector<SharedTensor> runKernel(func::FuncOp kernel, ArrayRef<std::int64_t> extents,
                                           ArrayRef<SharedTensor> arguments) {
  return ModuleInterpreter(nullptr).run(kernel, extents, arguments);
}

void KernelSamples::add(func::FuncOp kernel, ArrayRef<std::int64_t> extents, ArrayRef<SharedTensor> arguments,
                        std::size_t session, const std::string &entry, const std::string &words) {
  if (auto found = samples.find(kernel.getName()); found != samples.end() && found->second.back().session == session)
    return;
  if (!hasKilnOps(kernel))
    return;
  std::vector<Sample> &known = samples[kernel.getName()];
  known.push_back({extents.vec(), {}, {}, session, entry, words});
  for (const SharedTensor &argument : arguments)
    known.back().arguments.push_back(asStored(argument));
}

void KernelSamples::expect(func::FuncOp kernel) {
  auto known = samples.find(kernel.getName());
  if (known == samples.end() || !hasKilnOps(kernel))
    return;
  for (Sample &sample : known->second)
    if (sample.expected.empty())
      sample.expected = runKernel(kernel, sample.extents, sample.arguments);
}

std::optional<std::string> KernelSamples::compare(func::FuncOp kernel, std::size_t &elements,
                                                  std::size_t &undetermined) const {
  auto known = samples.find(kernel.getName());
  if (known == samples.end())
    return std::nullopt;
  for (const Sample &sample : known->second) {
    if (sample.expected.empty())
      continue;
    const std::vector<SharedTensor> actual = runKernel(kernel, sample.extents, sample.arguments);
    const std::string words = sample.words.empty() ? "" : " (" + sample.words + ")";
    if (actual.size() != sample.expected.size())
      return fmt::format("{} in {}: it had {} results, has {}{}", kernel.getName().str(), sample.entry,
                         sample.expected.size(), actual.size(), words);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      elements += sample.expected[i]->values.size();
      if (auto difference = findDifference(*sample.expected[i], *actual[i], undetermined))
        return fmt::format("result {} of {} in {}: {}{}", i, kernel.getName().str(), sample.entry, *difference, words);
    }
  }
  return std::nullopt;
}

void KernelSamples::follow(ModuleOp module) {
  std::vector<std::string> now;
  module.walk([&](kd::CallOp call) { now.push_back(call.getCallee().str()); });
  if (now.size() == callees.size() && now != callees) {
    llvm::StringMap<std::vector<Sample>> renamed;
    llvm::StringMap<std::string> names;
    for (auto [before, after] : llvm::zip_equal(callees, now))
      names[before] = after;
    for (auto &[name, list] : samples)
      if (auto found = names.find(name); found != names.end())
        llvm::append_range(renamed[found->second], list);
    samples = std::move(renamed);
  }
  callees = std::move(now);
}

} // namespace kiln::verify
