// SPDX-License-Identifier: Apache-2.0
//
// The structure of attention in kernels: softmax(masked(scores)) values, with any elementwise ops before and after.
#pragma once

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <optional>

namespace kiln {

/// The ops of an attention; shapes are [outer.., queries, keys] or [outer.., queries]. Each is used only by the next
/// ones.
struct AttentionOps {
  mlir::linalg::GenericOp masked;              // the elementwise mask of the scores; null: they are not masked
  mlir::linalg::GenericOp maxima;              // the maxima of the masked scores along the keys
  mlir::linalg::GenericOp weights;             // e^(masked - maximum), to any base
  mlir::linalg::GenericOp sums;                // sums of the weights along the keys
  mlir::linalg::GenericOp productOp;           // the only other op that reads the weights
  unsigned maskedScore = 0;                    // number of the operand of `masked` that is the score
  unsigned weightScore = 0, weightMaximum = 0; // numbers of the operands of `weights`
};

/// Returns the ops of the attention to which an op's only result, the scores, belongs; nullopt if there is none.
std::optional<AttentionOps> attentionOf(mlir::linalg::GenericOp scores);

/// How a value in the region of a mask depends on the indices of query and key, by ascending difficulty: a value that
/// GrowsWithQuery does not decrease with the query's index; one that is OnKey may depend on anything.
enum class Dependence { None, GrowsWithQuery, OnQuery, OnKey };

/// A limit of a mask: a query attends to a key only if the key's index is below `value`, or equal to it if the limit is
/// inclusive. `value` is in the region of the op that masks scores.
struct KeyLimit {
  mlir::Value value;
  bool isInclusive = false;
  Dependence dependence = Dependence::None; // of the value

  bool growsWithQuery() const { return dependence == Dependence::GrowsWithQuery; }
};

/// A mask as limits of its keys.
struct KeyLimits {
  mlir::Value score; // the value that is masked; null if the op has no mask
  llvm::SmallVector<KeyLimit> limits;
  bool areAll = false; // whether the mask excludes exactly the keys outside of them
};

/// Returns the limits of an op's mask, in the form select(key < limit and .., score, very low) of causal masks and
/// lengths, as far as they depend on `most` or less. The key's index is that of a loop, and so is the query's if
/// limits may grow with it. Elements of operands that are not `isKnown` may depend on anything.
KeyLimits findKeyLimits(mlir::linalg::GenericOp op, unsigned keyLoop, std::optional<unsigned> queryLoop,
                        Dependence most, llvm::function_ref<bool(mlir::OpOperand &)> isKnown);

} // namespace kiln
