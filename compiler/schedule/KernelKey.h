// SPDX-License-Identifier: Apache-2.0
//
// What a kernel is called in tuning files and object caches. A key depends on nothing but the kernel's computation: not
// on its name, its place in the module, the layers that call it, locations or the order of attributes, so equal kernels
// of different models share measurements.
//
// Structure and shape, which measurements are found by, are the kernel's before a target's own passes, so that another
// polynomial drops none. The content, which objects are found by, is the kernel's as it is compiled.
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
/// shape are meant to outlive versions. They are those that recordKey() wrote down; without that, the kernel's own.
KernelKey keyOf(mlir::func::FuncOp kernel);

/// Writes structure and shape down at the kernel, where they stay while passes change it.
void recordKey(mlir::func::FuncOp kernel);

/// The text whose hash is `structure`, of the kernel as it is now: for tests and for finding out why two kernels
/// differ.
std::string structureText(mlir::func::FuncOp kernel);

/// The first `digits` hexadecimal digits of the text's SHA-256.
std::string hashText(llvm::StringRef text, unsigned digits);

/// "768x3072", "-" without extents; "1..8,1..512", "-" without run-time extents.
std::string toString(const std::vector<int64_t> &shape);
std::string toString(const std::vector<Bounds> &bounds);

} // namespace kiln
