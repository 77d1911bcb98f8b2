// SPDX-License-Identifier: Apache-2.0
//
// The memory of a kernel's calls for one workload: arguments with random values in the valid range, and poisoned
// results. Weights have several copies, which calls use in rotation, so that they come from the same level of the
// memory hierarchy as in a whole model. It is created once in the tuner's process and shared with forked child
// processes.
#pragma once

#include "compiler/kernel/Workload.h"
#include "compiler/library/Calls.h"
#include "compiler/schedule/Machine.h"

#include <memory>

namespace kiln {

/// Reads element `i` of an array of that type: f32, f16, bf16, i32, i8 or i1.
double readElement(mlir::Type element, const char *data, int64_t i);

/// Returns the memory over which the weights of consecutive calls of a kernel rotate: the size of all weights of the
/// module, at most twice the machine's last-level cache.
int64_t rotatedWeightBytes(mlir::ModuleOp module, const Machine &machine, const Target &target);

class KernelData {
public:
  /// `rotatedBytes`: the total size of the weights of consecutive calls before the first copy is used again.
  KernelData(const KernelUse &use, llvm::ArrayRef<int64_t> extents, int64_t rotatedBytes, const KernelAbi &abi);
  ~KernelData();
  KernelData(KernelData &&) noexcept;

  const KernelAbi &abi() const;
  /// Whether consecutive calls reverse the order of tasks, as in a loop over time.
  bool isStep() const;
  /// Returns the values of the kernel's index arguments.
  llvm::ArrayRef<int64_t> extents() const;
  /// Returns the number of copies of the weights.
  size_t rotations() const;
  /// Returns the arguments of a call after the user context, with the weights of a rotation.
  llvm::ArrayRef<uint64_t> arguments(size_t rotation) const;

  /// A tensor's memory in this process.
  struct Storage {
    std::vector<char *> copies; // one, or one per rotation for a weight
    int64_t bytes = 0;          // of each copy
    bool isResult = false;
    mlir::Type element;
    std::vector<int64_t> shape;
  };
  /// Returns one entry per tensor, or part of a tensor, in the order of a call's arguments after the sizes.
  std::vector<Storage> storage() const;

  /// Returns a part of an input as it is stored (compiler/dialect/StoredParts.h), of the first rotation.
  const char *input(size_t number, size_t part = 0) const;

  /// Returns the bytes that are read and written before the first copy of the weights is used again.
  int64_t footprint() const;

  /// Fills the results with NaN, or the integers of that bit pattern.
  void poisonResults();
  /// Returns the concatenated results.
  std::string saveResults() const;
  /// Describes results that differ from saved ones by more than `tolerance` times the largest number of the result;
  /// empty if none does. NaN equals NaN.
  std::string compareResults(llvm::StringRef saved, double tolerance) const;

private:
  struct Tensor;
  struct Memory;
  static void keepPromises(mlir::RankedTensorType type, llvm::MutableArrayRef<Tensor> parts);
  std::unique_ptr<Memory> memory;
};

} // namespace kiln
