// SPDX-License-Identifier: Apache-2.0
//
// Calls of kernels, kept so that a pass that changes a kernel function is judged by that kernel alone.
#pragma once

#include "compiler/verify/ModuleInterpreter.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace kiln::verify {

class KernelSamples {
public:
  /// Keeps the call, unless the kernel has one of this session, or holds no kiln ops any more.
  void add(mlir::func::FuncOp kernel, llvm::ArrayRef<std::int64_t> extents, llvm::ArrayRef<SharedTensor> arguments,
           std::size_t session, const std::string &entry, const std::string &words);

  /// Before the entries run again.
  void clear() { samples.clear(); }
  bool empty() const { return samples.empty(); }

  /// Before a pass on a kernel of kiln ops: what it gives. Throws std::runtime_error where it cannot run.
  void expect(mlir::func::FuncOp kernel);

  /// After the pass: "result 0 of linear_3 in forward: element 17 was 0.5, is 0.25 (tokens=3)", or nothing.
  std::optional<std::string> compare(mlir::func::FuncOp kernel, std::size_t &elements, std::size_t &undetermined) const;

  /// After a pass on the module: calls keep their order where kernels get other names or become one.
  void follow(mlir::ModuleOp module);

private:
  struct Sample {
    std::vector<std::int64_t> extents;
    std::vector<SharedTensor> arguments, expected;
    std::size_t session;
    std::string entry, words;
  };

  llvm::StringMap<std::vector<Sample>> samples; // by kernel
  std::vector<std::string> callees;             // of all calls, in their order
};

} // namespace kiln::verify
