// SPDX-License-Identifier: Apache-2.0
//
// The memory of a kernel's calls at one workload: arguments of random values that are right in kind, and poisoned
// results. Weights have several copies that calls take in turn, so that they come from as far away as in a whole
// model. It is made once in the tuner's process; forked children read it where it is.
#pragma once

#include "compiler/emit/Calls.h"
#include "compiler/schedule/Workload.h"

#include <memory>

namespace kiln {

/// Element `i` of stored ones of that type: f32, f16, bf16, i32, i8 or i1.
double readElement(mlir::Type element, const char *data, int64_t i);

class KernelData {
public:
  /// `rotatedBytes`: how much memory the weights of consecutive calls take together, before the first copy comes again.
  KernelData(const KernelUse &use, llvm::ArrayRef<int64_t> extents, int64_t rotatedBytes, const KernelAbi &abi);
  ~KernelData();
  KernelData(KernelData &&) noexcept;

  const KernelAbi &abi() const;
  /// Whether calls turn the order of tasks.
  bool isStep() const;
  /// Those that the kernel is called with.
  llvm::ArrayRef<int64_t> extents() const;
  /// How many sets of weights there are.
  size_t rotations() const;
  /// The words of a call behind the user context, with the weights of a rotation.
  llvm::ArrayRef<uint64_t> arguments(size_t rotation) const;

  /// A tensor's memory in this process.
  struct Storage {
    std::vector<char *> copies; // one, or of a weight that rotates one a rotation
    int64_t bytes = 0;          // of each
    bool isResult = false;
    mlir::Type element;
    std::vector<int64_t> shape;
  };
  /// One a tensor, or a part of one, in the order of the words behind a call's extents.
  std::vector<Storage> storage() const;

  /// A part of an input as it is stored (compiler/dialect/StoredParts.h), of the first rotation.
  const char *input(size_t number, size_t part = 0) const;

  /// Bytes of what is read and written before the first copy of the weights comes again.
  int64_t footprint() const;

  /// Fills the results with NaN, or the integers of that bit pattern.
  void poisonResults();
  /// The results, one after the other.
  std::string saveResults() const;
  /// What differs from saved results by more than `tolerance` times the largest number of the result; nothing if
  /// nothing does. NaN equals NaN.
  std::string compareResults(llvm::StringRef saved, double tolerance) const;

private:
  struct Tensor;
  struct Memory;
  static void keepPromises(mlir::RankedTensorType type, llvm::MutableArrayRef<Tensor> parts);
  std::unique_ptr<Memory> memory;
};

} // namespace kiln
