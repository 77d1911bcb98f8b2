// SPDX-License-Identifier: Apache-2.0
//
// What a kernel is called in tuning files and object caches. A key depends on nothing but the kernel's computation: not
// on its name, its place in the module, the layers that call it, locations or the order of attributes, so equal kernels
// of different models share measurements.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <cstdint>
#include <string>
#include <vector>

namespace kiln {

/// Inclusive bounds of a run-time extent.
struct Bounds {
  int64_t min = 0, max = 0;
  auto operator<=>(const Bounds &) const = default;
};

struct KernelKey {
  std::string
      structure; // 16 hexadecimal digits: the computation with static extents, bounds and float constants erased
  std::vector<int64_t>
      shape; // the erased extents in order of appearance, each once: 768x3072 for [s0, 768] times [768, 3072]
  std::vector<Bounds> bounds; // of the run-time extents s0, s1, ..
  std::string content;        // 32 hexadecimal digits: everything
  bool operator==(const KernelKey &) const = default;
};

/// The key of a kernel function. It is stable over processes, machines and builds of one version of Kiln; structure and
/// shape are meant to outlive versions.
KernelKey keyOf(mlir::func::FuncOp kernel);

/// The text whose hash is `structure`, for tests and for finding out why two kernels differ.
std::string structureText(mlir::func::FuncOp kernel);

/// The first `digits` hexadecimal digits of the text's SHA-256.
std::string hashText(llvm::StringRef text, unsigned digits);

/// "768x3072", "-" without extents; "1..8,1..512", "-" without run-time extents.
std::string toString(const std::vector<int64_t> &shape);
std::string toString(const std::vector<Bounds> &bounds);

} // namespace kiln
