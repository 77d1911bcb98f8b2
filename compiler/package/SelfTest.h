// SPDX-License-Identifier: Apache-2.0
//
// Creates the table for NAME_selftest (runtime/src/selftest/): calls of the entries with weights and inputs that
// runtime/src/core/selftest.h computes, the results of the imported model in f64, and the tolerance for a correct
// library.
#pragma once

#include "compiler/library/Interface.h"
#include "compiler/object/Object.h"

#include "mlir/IR/BuiltinOps.h"

namespace kiln {

/// The runtime member that refers to the table.
inline constexpr llvm::StringRef selfTestMember = "selftest.c.o";

/// Every stride-th element of an output.
struct SelfTestOutput {
  uint64_t stride = 1;
  std::vector<double> values, tolerances; // infinite: not determined
};

/// A call of an entry.
struct SelfTestTrial {
  uint32_t entry = 0, seed = 0;
  bool isFirst = false; // starts a session: states are zeros, and weights are as bound
  std::vector<int64_t> extents;
  std::vector<SelfTestOutput> outputs;
};

/// Calls all entries but batched ones, with the smallest extents and, as long as that is fast, with larger ones.
/// `model` has the ranges of index inputs. Fails if weights are not floats, if there are too many of them, or if a
/// smallest call takes too long.
llvm::Expected<std::vector<SelfTestTrial>> evaluateSelfTest(mlir::ModuleOp module, const ModelInterface &model,
                                                            bool tf32);

/// Returns an object with the table. `digests` are those of the embedded weights; empty if there are none.
llvm::Expected<std::string> compileSelfTest(const std::vector<SelfTestTrial> &trials,
                                            const std::vector<uint64_t> &digests, const CpuName &cpu);

} // namespace kiln
