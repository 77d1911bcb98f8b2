// SPDX-License-Identifier: Apache-2.0
#include "compiler/tuner/Compare.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <limits>

namespace kiln {

using Clock = std::chrono::steady_clock;

static llvm::Error makeError(const std::string &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), "%s", message.c_str());
}

namespace {

/// One side of a comparison: the base or the candidate.
struct Side {
  std::unique_ptr<Caller> caller;
  std::vector<double> samples;
};

} // namespace

static double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

/// Long enough for the resolution of the clock, and to make the time to start threads negligible.
static constexpr double sampleSeconds = 300e-6;

static llvm::Expected<Comparison> measure(Side &base, Side &candidate, KernelData &data,
                                          const CompareOptions &options) {
  double once = std::numeric_limits<double>::infinity();
  for (Side *side : {&base, &candidate}) {
    llvm::Expected<double> seconds = side->caller->time(data, 1);
    if (!seconds)
      return seconds.takeError();
    once = std::min(once, *seconds);
  }
  unsigned repeats = std::clamp(unsigned(sampleSeconds / std::max(once, 1e-7)), 1u, 1000u);
  base.samples.clear(), candidate.samples.clear();
  std::vector<double> ratios;
  Clock::time_point start = Clock::now();
  while (ratios.size() < options.mostPairs) {
    bool isBaseFirst = ratios.size() % 2 == 0;
    for (Side *side : {isBaseFirst ? &base : &candidate, isBaseFirst ? &candidate : &base}) {
      llvm::Expected<double> seconds = side->caller->time(data, repeats);
      if (!seconds)
        return seconds.takeError();
      side->samples.push_back(*seconds);
    }
    ratios.push_back(candidate.samples.back() / base.samples.back());
    double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
    if (ratios.size() < (elapsed > 2 * options.seconds ? 3 : options.leastPairs))
      continue;
    if (options.stopsEarly && (*std::min_element(ratios.begin(), ratios.end()) > 1.03 || median(ratios) > 1.25))
      break;
    if (elapsed > options.seconds)
      break;
  }
  return Comparison{median(candidate.samples), median(base.samples), median(ratios), unsigned(ratios.size())};
}

llvm::Expected<CompareResult> compareKernels(Session &session, const KernelCode &baseCode,
                                             const KernelCode &candidateCode,
                                             llvm::MutableArrayRef<KernelData> workloads,
                                             const CompareOptions &options) {
  const KernelAbi &abi = workloads.front().abi();
  Side base, candidate;
  for (auto [side, code] : {std::pair(&base, &baseCode), std::pair(&candidate, &candidateCode)}) {
    llvm::Expected<std::unique_ptr<Caller>> caller = session.load(*code, abi);
    if (!caller)
      return caller.takeError();
    side->caller = std::move(*caller);
  }

  CompareResult result;
  for (KernelData &data : workloads) {
    std::string expected;
    for (Side *side : {&base, &candidate}) {
      data.poisonResults();
      if (llvm::Error error = side->caller->call(data))
        return error;
      if (side == &base)
        expected = data.saveResults();
    }
    result.wrong = data.compareResults(expected, options.tolerance);
    if (!result.wrong.empty()) {
      result.workloads.clear();
      return result;
    }
    llvm::Expected<Comparison> comparison = measure(base, candidate, data, options);
    if (!comparison)
      return comparison.takeError();
    result.workloads.push_back(*comparison);
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
