// SPDX-License-Identifier: Apache-2.0
//
// Evaluates a module before and after every pass, and names the first pass that changed a result:
//
//   kiln-form-kernels changed "logits" of forward: element 17 was 0.5, is 0.25 (tokens=3)
//
// 1. The imported module is evaluated in f64 with error bounds (compiler/interpreter), which a correct implementation
//    keeps.
// 2. After each pass that changed something all entries run again, on the same inputs and weights. If an element is not
//    within its bound, the pass is wrong. Elements without a bound are skipped.
// 3. If the stage before was evaluated in the same arithmetic, both agree up to the roundings of constants.
// 4. After passes that change what entries take or return, the results that entries had before are compared, and new
//    ones with what they are derived from: gradients with central differences of the loss, the function of a batched
//    entry with a call for each sequence, accumulated gradients with a call for each micro-batch. From then on the new
//    results, states and weights are compared, too.
// 5. For passes on kernel functions only the kernel runs, on the arguments of a recorded call: f32 numbers, so that the
//    bounds are those of the kernel by itself, and tight in the deepest model.
#pragma once

#include <memory>

#include "compiler/verify/RandomCalls.h"
#include "mlir/Pass/PassManager.h"

namespace kiln::verify {

struct VerifyOptions {
  std::uint64_t seed = 1;
  /// The most scalar operations of a session of calls; larger sessions run only with the smallest extents.
  double mostOperations = 2e7;
};

/// Counts of what was checked.
struct VerifyCounts {
  std::size_t evaluations = 0; // runs of all entries
  std::size_t kernels = 0;     // kernel functions that a pass changed, evaluated by themselves
  std::size_t gradients = 0;   // derivatives that were compared with central differences
  std::size_t elements = 0, undetermined = 0;
};

class PassVerifier {
public:
  /// Evaluates the imported module, whose entry functions consist of kiln ops. The context has no threads.
  explicit PassVerifier(mlir::ModuleOp module, const VerifyOptions &options = {});
  ~PassVerifier();

  /// Checks all passes that this manager runs from now on. The verifier must outlive the manager. A wrong pass fails.
  void attach(mlir::PassManager &passes);

  /// Returns the message, also if the module cannot be evaluated; empty if no pass changed a result.
  const std::string &difference() const;

  /// Returns the name of the pass that failed by itself, with a diagnostic; empty if none did.
  const std::string &failedPass() const;

  /// Returns the pass after which only several processes together have the module's results, so that they were not
  /// compared any more; empty if there is none. A module that is given in this form is evaluated as if all processes
  /// had the same values.
  const std::string &stoppedAt() const;

  const VerifyCounts &counts() const;
  const RandomCalls &calls() const;
  /// Returns the results of the imported module, by session and call.
  const std::vector<std::vector<std::vector<SharedTensor>>> &expected() const;
  /// Returns a weight as the imported module stores it.
  SharedTensor weight(const std::string &pattern, const std::string &name);

private:
  class Hook;
  class Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace kiln::verify
