// SPDX-License-Identifier: Apache-2.0
//
// Checks the results of a default schedule before candidates are compared with them. The reference is the kernel's
// linalg, evaluated element by element (compiler/verify), which shares no code with a target.
//
// 1. The interpreter is slow, so each workload is reduced. Where even the smallest sizes take too long there is no
// reference, and the result says so.
// 2. A number may differ by 1e-4 of the result's largest one. Both sides compute in f32, in another order and with
// other approximations of functions: a sum of K numbers then differs by about sqrt(K) * 2^-24 of its magnitude, 1e-4
// for 3 million numbers; functions differ by a few 2^-24. A task that is skipped, or executed with wrong operands,
// causes differences as large as the numbers.
// 3. For larger differences the interpreter runs again on arguments perturbed by one rounding. A kernel that amplifies
// rounding errors, such as one that divides by a difference, is correct within 64 times the resulting change; integers
// that are computed from floats, if at most 64 times as many differ as did then.
// 4. Where the interpreter gives infinity or NaN any result is accepted: overflow depends on the order of operations.
#pragma once

#include "compiler/tuner/Session.h"

#include <optional>

namespace kiln {

/// Limits on operations of the interpreter, which take some 25 ns each.
struct ReferenceLimits {
  double enough = 1e8; // sizes are halved until at most this many
  double most = 2e8;   // at the smallest sizes
};

/// If both are empty the results agree.
struct ReferenceResult {
  std::string wrong;     // completes "the schedule": "gives 0.5 where the interpreter gives 0.25: element 3 of ..."
  std::string unchecked; // why a workload has no reference
};

/// Calls the kernel near each workload. Fails if the kernel cannot be loaded or returns an error.
llvm::Expected<ReferenceResult> compareWithInterpreter(Session &session, const KernelUse &use, const KernelCode &code,
                                                       llvm::ArrayRef<std::vector<int64_t>> workloads,
                                                       const KernelAbi &abi, const ReferenceLimits &limits = {});

/// Returns the sizes near a workload's that the interpreter evaluates: the workload's own, or halved and odd, so that
/// there are partial tiles. Returns nullopt if it would take too long.
std::optional<std::vector<int64_t>> referenceExtents(mlir::func::FuncOp kernel, std::vector<int64_t> workload,
                                                     const ReferenceLimits &limits);

} // namespace kiln
