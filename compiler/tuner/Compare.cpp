// SPDX-License-Identifier: Apache-2.0
#include "compiler/tuner/Compare.h"

#include "compiler/tuner/Executor.h"
#include "compiler/tuner/LoadedKernel.h"
#include "runtime/src/model.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>

namespace kiln {

using Clock = std::chrono::steady_clock;

static llvm::Error makeError(const std::string &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), "%s", message.c_str());
}

namespace {

/// Calls kernels as an entry does: workers with scratch memory of the size that the kernel was said to need.
class Caller {
public:
  Caller(const Executor &executor, int64_t scratchBytes)
      : stride(KILN_ARENA_ROUND(scratchBytes)), scratch(executor.workers() * stride + KILN_ARENA_ALIGNMENT),
        workers(executor.workers()) {
    uintptr_t begin = KILN_ARENA_ROUND(reinterpret_cast<uintptr_t>(scratch.data()));
    for (size_t i = 0; i < workers.size(); ++i) {
      workers[i] = {};
      workers[i].workers = workers.data();
      workers[i].top = reinterpret_cast<char *>(begin + i * stride);
      workers[i].end = workers[i].top + stride;
    }
    workers[0].executor = workers.size() > 1 ? executor.get() : nullptr;
  }

  llvm::Error call(const LoadedKernel &kernel, llvm::ArrayRef<uint64_t> arguments) {
    words.assign({reinterpret_cast<uint64_t>(workers.data())});
    words.insert(words.end(), arguments.begin(), arguments.end());
    if (int result = kernel.call(words))
      return makeError(fmt::format("the kernel returned {}", result));
    return llvm::Error::success();
  }

  /// Seconds of one call, over `repeats` of them with rotating weights.
  double time(const LoadedKernel &kernel, const KernelData &data, unsigned repeats) {
    Clock::time_point start = Clock::now();
    for (unsigned i = 0; i < repeats; ++i) {
      workers[0].is_backward = data.isStep() && rotation % 2;
      llvm::consumeError(call(kernel, data.arguments(rotation++)));
    }
    return std::chrono::duration<double>(Clock::now() - start).count() / repeats;
  }

private:
  size_t stride;
  std::vector<char> scratch;
  std::vector<kiln_worker_t> workers;
  std::vector<uint64_t> words;
  size_t rotation = 0;
};

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
  llvm::Expected<LoadedKernel> baseKernel = LoadedKernel::load(baseCode.object, baseCode.symbol);
  if (!baseKernel)
    return baseKernel.takeError();
  llvm::Expected<LoadedKernel> kernel = LoadedKernel::load(candidateCode.object, candidateCode.symbol);
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
      if (llvm::Error error = side->caller.call(side->kernel, data.arguments(0)))
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
