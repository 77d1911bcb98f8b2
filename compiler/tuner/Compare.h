// SPDX-License-Identifier: Apache-2.0
//
// Compares a candidate's time with the incumbent's. Both are called in pairs whose order alternates, with rotating
// weights; the ratio is the median over the pairs, so that a slowdown of the machine affects both. Runs in a child
// process.
#pragma once

#include "compiler/tuner/Session.h"

namespace kiln {

struct CompareOptions {
  unsigned threads = 1;
  double tolerance = 1e-4;                 // relative to the largest number of a result
  double seconds = 1;                      // per workload, after which no pair is started
  unsigned leastPairs = 5, mostPairs = 31; // 3 are enough for calls that take long
  bool stopsEarly = true;                  // if the candidate is clearly slower
};

/// The result for one workload.
struct Comparison {
  double seconds = 0, baseSeconds = 0; // medians
  double ratio = 0;                    // of candidate to base: the median over the pairs
  unsigned pairs = 0;
};

struct CompareResult {
  std::string wrong; // how the candidate's results differ from the base's; then workloads is empty
  std::vector<Comparison> workloads;
};

/// Loads both, checks the candidate's results and measures. Fails if a kernel cannot be loaded or returns an error.
llvm::Expected<CompareResult> compareKernels(Session &session, const KernelCode &base, const KernelCode &candidate,
                                             llvm::MutableArrayRef<KernelData> workloads,
                                             const CompareOptions &options);

/// Serialises the result, to be sent from the child process.
std::string encode(const CompareResult &result);
llvm::Expected<CompareResult> decodeCompareResult(llvm::StringRef bytes);

} // namespace kiln
