// SPDX-License-Identifier: Apache-2.0
//
// What NAME_selftest wants (runtime/src/selftest.c): calls of the entries with weights and inputs that
// runtime/src/selftest.h computes, and results that the model as imported gives in f64, with how far a right library
// may be from them.
#pragma once

#include "compiler/emit/Interface.h"
#include "compiler/object/Object.h"

#include "mlir/IR/BuiltinOps.h"

namespace kiln {

/// The member of the run time that refers to the table.
inline constexpr llvm::StringRef selfTestMember = "selftest.c.o";

/// Each stride-th element of an output.
struct SelfTestOutput {
  uint64_t stride = 1;
  std::vector<double> values, tolerances; // infinite: not determined
};

/// A call of an entry.
struct SelfTestTrial {
  uint32_t entry = 0, seed = 0;
  bool isFirst = false; // of a session: states are zeros, and weights as they are bound
  std::vector<int64_t> extents;
  std::vector<SelfTestOutput> outputs;
};

/// Calls all entries but batched ones, with the smallest extents and with larger ones as long as that is fast. `model`
/// has the ranges of indices. An error: weights of other types than floats, too many of them, or a smallest call that
/// takes too long.
llvm::Expected<std::vector<SelfTestTrial>> evaluateSelfTest(mlir::ModuleOp module, const ModelInterface &model,
                                                            bool tf32);

/// An object with the table. `digests`: of embedded weights; empty: there are none.
llvm::Expected<std::string> compileSelfTest(const std::vector<SelfTestTrial> &trials,
                                            const std::vector<uint64_t> &digests, const CpuName &cpu);

} // namespace kiln
