// SPDX-License-Identifier: Apache-2.0
//
// Calls of entries that a pass derives from others, and what these return according to the entries as they were: the
// function of a batched entry returns what a call for each sequence returns, and an entry that accumulates gradients
// the means over a call for each micro-batch.
#pragma once

#include "compiler/dialect/Training.h"
#include "compiler/verify/Outcome.h"

namespace kiln::verify {

/// A call, and the results that it should have.
struct DerivedCall {
  EntryCall call;
  std::vector<SharedTensor> results;
};

/// Calls an entry, on states that it may change.
using CallEntry = llvm::function_ref<std::vector<SharedTensor>(mlir::func::FuncOp, const EntryCall &,
                                                               std::map<std::string, SharedTensor> &states)>;

/// Returns a call with micro-batches that are made of the inputs of `call`. `entry`: as it was before accumulation.
DerivedCall accumulatedCall(mlir::func::FuncOp entry, const mlir::kiln::TrainingRequest &request, const EntryCall &call,
                            CallEntry run);

/// Returns a call of the batched function of `entry`, with sequences that are made of the inputs of `call`. `states`:
/// those of all sequences, by the names that ModuleInterpreter gives them.
DerivedCall batchedCall(mlir::func::FuncOp entry, mlir::func::FuncOp batched, std::int64_t sequences,
                        const EntryCall &call, std::map<std::string, SharedTensor> &states, CallEntry run);

} // namespace kiln::verify
