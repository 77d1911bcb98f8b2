// SPDX-License-Identifier: Apache-2.0
#include "compiler/tuner/Compare.h"

#include "compiler/tuner/Caller.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>

namespace kiln {

using Clock = std::chrono::steady_clock;

static llvm::Error makeError(const std::string &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), "%s", message.c_str());
}

namespace {

/// One side of a comparison.
struct Side {
  LoadedKernel kernel;
  Caller caller;
  std::vector<double> samples;
};

} // namespace

static double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

/// Long enough for the clock, and to make starting threads small.
static constexpr double sampleSeconds = 300e-6;

static Comparison measure(Side &base, Side &candidate, const KernelData &data, const CompareOptions &options) {
  double once = std::min(base.caller.time(base.kernel, data, 1), candidate.caller.time(candidate.kernel, data, 1));
  unsigned repeats = std::clamp(unsigned(sampleSeconds / std::max(once, 1e-7)), 1u, 1000u);
  base.samples.clear(), candidate.samples.clear();
  std::vector<double> ratios;
  Clock::time_point start = Clock::now();
  while (ratios.size() < options.mostPairs) {
    bool isBaseFirst = ratios.size() % 2 == 0;
    for (Side *side : {isBaseFirst ? &base : &candidate, isBaseFirst ? &candidate : &base})
      side->samples.push_back(side->caller.time(side->kernel, data, repeats));
    ratios.push_back(candidate.samples.back() / base.samples.back());
    double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
    if (ratios.size() < (elapsed > 2 * options.seconds ? 3 : options.leastPairs))
      continue;
    if (options.stopsEarly && (*std::min_element(ratios.begin(), ratios.end()) > 1.03 || median(ratios) > 1.25))
      break;
    if (elapsed > options.seconds)
      break;
  }
  return {median(candidate.samples), median(base.samples), median(ratios), unsigned(ratios.size())};
}

llvm::Expected<CompareResult> compareKernels(const KernelCode &baseCode, const KernelCode &candidateCode,
                                             llvm::MutableArrayRef<KernelData> workloads,
                                             const CompareOptions &options) {
  const KernelAbi &abi = workloads.front().abi();
  llvm::Expected<LoadedKernel> baseKernel = LoadedKernel::load(baseCode.object, baseCode.symbol, abi);
  if (!baseKernel)
    return baseKernel.takeError();
  llvm::Expected<LoadedKernel> kernel = LoadedKernel::load(candidateCode.object, candidateCode.symbol, abi);
  if (!kernel)
    return kernel.takeError();
  Executor executor(options.threads);
  Side base{std::move(*baseKernel), Caller(executor, baseCode.scratchBytes), {}};
  Side candidate{std::move(*kernel), Caller(executor, candidateCode.scratchBytes), {}};

  CompareResult result;
  for (KernelData &data : workloads) {
    std::string expected;
    for (Side *side : {&base, &candidate}) {
      data.poisonResults();
      if (llvm::Error error = side->caller.call(side->kernel, data))
        return error;
      if (side == &base)
        expected = data.saveResults();
    }
    result.wrong = data.compareResults(expected, options.tolerance);
    if (!result.wrong.empty()) {
      result.workloads.clear();
      return result;
    }
    result.workloads.push_back(measure(base, candidate, data, options));
  }
  return result;
}

std::string encode(const CompareResult &result) {
  if (!result.wrong.empty())
    return "wrong " + result.wrong;
  std::string bytes = "times";
  for (const Comparison &c : result.workloads)
    bytes += fmt::format(" {} {} {} {}", c.seconds, c.baseSeconds, c.ratio, c.pairs);
  return bytes;
}

llvm::Expected<CompareResult> decodeCompareResult(llvm::StringRef bytes) {
  CompareResult result;
  if (bytes.consume_front("wrong ")) {
    result.wrong = bytes.str();
    return result;
  }
  llvm::SmallVector<llvm::StringRef> words;
  if (bytes.consume_front("times "))
    bytes.split(words, ' ');
  if (words.empty() || words.size() % 4)
    return makeError("a measurement gave back something else than times");
  for (size_t i = 0; i < words.size(); i += 4) {
    Comparison &c = result.workloads.emplace_back();
    if (words[i].getAsDouble(c.seconds) || words[i + 1].getAsDouble(c.baseSeconds) ||
        words[i + 2].getAsDouble(c.ratio) || words[i + 3].getAsInteger(10, c.pairs))
      return makeError("a measurement gave back something else than times");
  }
  return result;
}

} // namespace kiln
