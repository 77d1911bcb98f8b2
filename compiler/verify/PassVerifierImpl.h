// SPDX-License-Identifier: Apache-2.0
//
// The state of a PassVerifier. PassVerifier.cpp handles passes that keep what entries take, return and store, and
// FollowEntries.cpp those that change it.
#pragma once

#include "compiler/verify/KernelSamples.h"
#include "compiler/verify/Outcome.h"
#include "compiler/verify/PassVerifier.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/MapVector.h"

namespace kiln::verify {

/// How a module is evaluated.
struct Manner {
  bool isMoved = false;      // with perturbed constants, weights and inputs
  bool keepsWeights = false; // weights that a call writes are as before in the next call
  bool isStored = false;     // weights have the values of their storage formats, also where no op states one
};

class PassVerifier::Impl {
public:
  Impl(mlir::ModuleOp module, const VerifyOptions &options);

  void beforePass(mlir::Pass *pass, mlir::Operation *op);
  void afterPass(mlir::Pass *pass, mlir::Operation *op);
  void afterFailure(mlir::Pass *pass, mlir::Operation *op);

  std::string difference, failedPass, stoppedAt;
  VerifyCounts counts;
  RandomCalls calls;
  Outcome expected; // with the bounds of correct implementations
  RandomWeights weights;

private:
  /// Runs all calls.
  Outcome evaluate(Manner manner = {}) { return evaluate(module, manner); }
  Outcome evaluate(mlir::ModuleOp evaluatedModule, Manner manner);
  std::vector<SharedTensor> call(mlir::func::FuncOp entry, const EntryCall &call,
                                 std::map<std::string, SharedTensor> &states,
                                 const std::map<std::string, SharedTensor> &written = {});
  std::string nameOf(mlir::Pass *pass);
  void compare(const std::string &pass, llvm::StringRef argument);
  std::optional<std::string> findIn(const Outcome &wanted, const Outcome &actual) {
    return findDifference(wanted, actual, calls, module, counts.elements, counts.undetermined);
  }
  /// Compares all results with those of the last stage, and keeps the new ones.
  std::optional<std::string> compareAll();
  /// Makes the results of the module the expected ones.
  void restart();

  // Comparisons after passes that change what entries take, return or store. They return a difference, or nothing.
  using Follow = std::optional<std::string> (Impl::*)();
  /// Returns the comparison after a pass of this name; null if the pass keeps all that.
  static Follow followOf(llvm::StringRef pass);
  std::optional<std::string> followStorage();
  std::optional<std::string> followRounding();
  std::optional<std::string> followGradients();
  std::optional<std::string> followAccumulation();
  std::optional<std::string> followUpdates();
  std::optional<std::string> followBatches();
  void compareKernel(const std::string &pass, mlir::func::FuncOp kernel);
  /// Runs the function, and keeps the message of an exception in `difference`.
  template <class Function> void guarded(const std::string &pass, Function function);

  mlir::ModuleOp module;
  const double mostOperations;
  const bool isDistributedFirst; // only several processes together have the results of the module as it is given
  mlir::OwningOpRef<mlir::ModuleOp> previous; // the module before a pass that changes its entries
  Outcome narrow;                             // with the bounds of two evaluations in the same arithmetic
  Outcome last;                               // results of the last stage
  bool isOtherArithmetic = false;             // since the last stage: passes changed the arithmetic of single kernels
  KernelSamples samples;
  std::optional<mlir::OperationFingerPrint> evaluated,
      before; // the module when it ran last; the op before a nested pass
  llvm::MapVector<mlir::Pass *, std::string> names;
  std::vector<std::string> nested; // passes on functions since the last pass on the module
};

} // namespace kiln::verify
