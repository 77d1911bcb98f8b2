// SPDX-License-Identifier: Apache-2.0
//
// Evaluates a module before and after every pass, and names the first pass that changed a result:
//
//   kiln-form-kernels changed "logits" of forward: element 17 was 0.5, is 0.25 (tokens=3)
//
// 1. The module as imported is evaluated in f64 with bounds (compiler/interpreter): what a right implementation gives.
// 2. After each pass that changed something all entries run again, on the same inputs and weights. Each element is
//    within its bound, or the pass is wrong. Elements without a bound are skipped.
// 3. Where the stage before was evaluated by the same arithmetic, both agree up to what roundings of constants do.
// 4. Passes on kernel functions run the kernel by itself, on arguments of a call that was seen before: f32 numbers, so
//    that the bounds are those of the kernel alone, and tight in the deepest model.
#pragma once

#include <memory>

#include "compiler/verify/RandomCalls.h"
#include "mlir/Pass/PassManager.h"

namespace kiln::verify {

struct VerifyOptions {
  std::uint64_t seed = 1;
  /// Scalar operations of a session of calls; larger ones only run with the smallest extents.
  double mostOperations = 2e7;
};

/// What was looked at.
struct VerifyCounts {
  std::size_t evaluations = 0; // of all entries
  std::size_t kernels = 0;     // kernel functions that a pass changed, evaluated by themselves
  std::size_t elements = 0, undetermined = 0;
};

class PassVerifier {
public:
  /// Evaluates the module, which is as imported: entry functions of kiln ops. The context has no threads.
  explicit PassVerifier(mlir::ModuleOp module, const VerifyOptions &options = {});
  ~PassVerifier();

  /// From now on, for all passes of this manager, which the verifier outlives. A wrong pass fails.
  void attach(mlir::PassManager &passes);

  /// The sentence; empty if no pass changed anything. Also where the module cannot be evaluated.
  const std::string &difference() const;

  /// The pass that failed by itself, with a diagnostic; empty if none did.
  const std::string &failedPass() const;

  const VerifyCounts &counts() const;
  const RandomCalls &calls() const;
  /// What the imported module gives, by session and call.
  const std::vector<std::vector<std::vector<SharedTensor>>> &expected() const;
  /// A weight as the imported module stores it.
  SharedTensor weight(const std::string &pattern, const std::string &name);

private:
  class Hook;
  class Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace kiln::verify
