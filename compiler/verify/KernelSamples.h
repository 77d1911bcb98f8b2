// SPDX-License-Identifier: Apache-2.0
//
// Recorded calls of kernels, so that a pass that changes a kernel function can be checked on only that kernel.
#pragma once

#include "compiler/verify/ModuleInterpreter.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace kiln::verify {

class KernelSamples {
public:
  /// Records the call, unless the kernel has one of this session, or no longer holds kiln ops.
  void add(mlir::func::FuncOp kernel, llvm::ArrayRef<std::int64_t> extents, llvm::ArrayRef<SharedTensor> arguments,
           std::size_t session, const std::string &entry, const std::string &words);

  /// Removes all calls; call before the entries run again.
  void clear() { samples.clear(); }
  bool empty() const { return samples.empty(); }

  /// Records the results of a kernel of kiln ops; call before a pass. Throws std::runtime_error if the kernel cannot
  /// run.
  void expect(mlir::func::FuncOp kernel);

  /// Call after the pass. Returns "result 0 of linear_3 in forward: element 17 was 0.5, is 0.25 (tokens=3)", or
  /// nothing.
  std::optional<std::string> compare(mlir::func::FuncOp kernel, std::size_t &elements, std::size_t &undetermined) const;

  /// Call after a pass on the module. Calls keep their order, by which renamed and merged kernels are recognised.
  void follow(mlir::ModuleOp module);

private:
  struct Sample {
    std::vector<std::int64_t> extents;
    std::vector<SharedTensor> arguments, expected;
    std::size_t session;
    std::string entry, words;
  };

  llvm::StringMap<std::vector<Sample>> samples; // by kernel
  std::vector<std::string> callees;             // callees of all calls, in their order
};

} // namespace kiln::verify
