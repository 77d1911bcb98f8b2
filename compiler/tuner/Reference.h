// SPDX-License-Identifier: Apache-2.0
//
// What a default schedule's results are compared with, before candidates are compared with them: the kernel's linalg,
// evaluated one element after the other (compiler/verify), which shares nothing with a target.
//
// 1. The interpreter is slow, so each workload is made smaller. Where even the least extents take too long there is no
//    reference, and the result says so.
// 2. A number may differ by 1e-4 of the result's largest one. Both sides compute in f32, in another order and with
// other
//    approximations of functions: a sum of K numbers then differs by about sqrt(K) * 2^-24 of its size, 1e-4 at 3
//    million of them; functions differ by a few 2^-24. A task that is left out, or done with another's operands, is off
//    by as much as the numbers are large.
// 3. Where more differs, the interpreter runs again on arguments moved by one rounding. A kernel that makes much of
//    roundings, such as one that divides by a difference, is right within 64 times what that changed; integers that
//    are made of numbers, if no more than 64 times as many differ as did then.
// 4. Where the interpreter gives infinity or NaN anything is right: what overflows depends on the order.
#pragma once

#include "compiler/tuner/Session.h"

#include <optional>

namespace kiln {

/// Operations of the interpreter: each takes some 25 ns.
struct ReferenceLimits {
  double enough = 1e8; // extents are halved until there are so few
  double most = 2e8;   // at the least extents
};

/// Both empty: the results agree.
struct ReferenceResult {
  std::string wrong;     // completes "the schedule": "gives 0.5 where the interpreter gives 0.25: element 3 of ..."
  std::string unchecked; // why there is no reference for a workload
};

/// Calls the kernel near each workload. Fails if it cannot be loaded or returns an error.
llvm::Expected<ReferenceResult> compareWithInterpreter(Session &session, const KernelUse &use, const KernelCode &code,
                                                       llvm::ArrayRef<std::vector<int64_t>> workloads,
                                                       const KernelAbi &abi, const ReferenceLimits &limits = {});

/// The extents near a workload's that the interpreter evaluates: the workload's own, or halved and odd, so that tiles
/// are ragged. Nothing if it would take too long.
std::optional<std::vector<int64_t>> referenceExtents(mlir::func::FuncOp kernel, std::vector<int64_t> workload,
                                                     const ReferenceLimits &limits);

} // namespace kiln
