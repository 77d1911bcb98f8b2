// SPDX-License-Identifier: Apache-2.0
//
// The identity of a kernel in tuning files and object caches. A key depends only on the kernel's computation: not on
// its name, its position in the module, the layers that call it, locations or the order of attributes, so equal kernels
// of different models share measurements.
//
// Structure and shape, by which measurements are found, are those of the kernel before a target's own passes, so that a
// changed polynomial does not invalidate measurements. The content, by which objects are found, is that of the compiled
// kernel.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <cstdint>
#include <string>
#include <vector>

namespace kiln {

/// Inclusive bounds of a dynamic dimension.
struct Bounds {
  int64_t min = 0, max = 0;
  auto operator<=>(const Bounds &) const = default;
};

struct KernelKey {
  std::string structure; // 16 hexadecimal digits: the computation with static sizes, bounds and float constants erased
  std::vector<int64_t>
      shape; // the erased sizes in order of appearance, each once: 768x3072 for [s0, 768] times [768, 3072]
  std::vector<Bounds> bounds; // of the dynamic dimensions s0, s1, ..
  std::string content;        // 32 hexadecimal digits: everything
  bool operator==(const KernelKey &) const = default;
};

/// Returns the key of a kernel function. It is stable across processes, machines and builds of one version of Kiln;
/// structure and shape are meant to be stable across versions. They are those that recordKey() recorded, or else
/// computed from the kernel.
KernelKey keyOf(mlir::func::FuncOp kernel);

/// Records structure and shape on the kernel, so that they stay the same while passes change it.
void recordKey(mlir::func::FuncOp kernel);

/// Returns the text whose hash is `structure`, for the current kernel: for tests and for finding out why two kernels
/// differ.
std::string structureText(mlir::func::FuncOp kernel);

/// Returns the first `digits` hexadecimal digits of the text's SHA-256.
std::string hashText(llvm::StringRef text, unsigned digits);

/// Formats "768x3072", "-" without sizes; "1..8,1..512", "-" without dynamic dimensions.
std::string toString(const std::vector<int64_t> &shape);
std::string toString(const std::vector<Bounds> &bounds);

} // namespace kiln
