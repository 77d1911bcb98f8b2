// SPDX-License-Identifier: Apache-2.0
//
// A kernel that is one attention, softmax(masked(queries keys^T)) values, as the strategies for it need it. This file
// is independent of Halide.
#pragma once

#include "compiler/kernel/Attention.h"
#include "targets/halide/Structure.h"

namespace kiln::halide {

/// The ops of an attention kernel, with its contractions.
struct AttentionMatch {
  AttentionOps ops;
  Contraction scores;
  Contraction products;             // [outer.., queries, channels]
  llvm::SmallVector<int> productAt; // maps each dimension of the products to one of the result
};

/// Whether keys or values are stored in fewer bits than f32, in which they are computed.
inline bool isOfFewBits(const Contraction &of) {
  mlir::linalg::GenericOp op = of.op;
  return bytesOf(op->getOperand(of.b), 1) < int64_t(sizeof(float));
}

/// Returns the ops of an attention kernel; nullopt if the kernel has no attention, or if the strategies do not support
/// how it reads its operands or what follows it.
std::optional<AttentionMatch> matchAttentionOps(const DecomposedKernel &kernel);

} // namespace kiln::halide
