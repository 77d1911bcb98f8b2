// SPDX-License-Identifier: Apache-2.0
//
// A candidate's time beside the incumbent's. Both are called in turn, in pairs whose order alternates, with weights
// that rotate; the ratio is the median over the pairs, so that a machine that slows down slows both. It runs in a
// child process.
#pragma once

#include "compiler/tuner/Session.h"

namespace kiln {

struct CompareOptions {
  unsigned threads = 1;
  double tolerance = 1e-4;                 // of the largest number of a result
  double seconds = 1;                      // a workload, after which no pair is begun
  unsigned leastPairs = 5, mostPairs = 31; // 3 suffice of a call that takes long
  bool stopsEarly = true;                  // when the candidate is clearly slower
};

/// At one workload.
struct Comparison {
  double seconds = 0, baseSeconds = 0; // medians
  double ratio = 0;                    // of candidate over base, the median of the pairs'
  unsigned pairs = 0;
};

struct CompareResult {
  std::string wrong; // how the candidate's results differ from the base's; then there are no comparisons
  std::vector<Comparison> workloads;
};

/// Loads both, checks the candidate's results and measures. Fails if something cannot be loaded or returns an error.
llvm::Expected<CompareResult> compareKernels(Session &session, const KernelCode &base, const KernelCode &candidate,
                                             llvm::MutableArrayRef<KernelData> workloads,
                                             const CompareOptions &options);

/// The way out of the child.
std::string encode(const CompareResult &result);
llvm::Expected<CompareResult> decodeCompareResult(llvm::StringRef bytes);

} // namespace kiln
