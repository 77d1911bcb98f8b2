// SPDX-License-Identifier: Apache-2.0
//
// Going backwards through a block: what Differentiate.cpp, for ops, and ReverseLoop.cpp, for loops, share.
#pragma once

#include "compiler/dialect/gradients/GradientBuilder.h"
#include "compiler/transforms/Differentiate.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::kiln {

inline bool isFloat(Value value) { return isa<FloatType>(rankedType(value).getElementType()); }

/// What all of an entry's loops need.
struct GradientRequest {
  llvm::DenseSet<StringAttr> wanted; // the parameters
  DifferentiationOptions options;
};

/// A product in a loop over time whose weight's gradient is one product of all iterations, behind the loop.
struct Postponed {
  LinearOp product;
  Value dy;                   // of an iteration
  std::optional<size_t> rows; // which of the second loop's sequences is the product's x; else it is an output
};

/// The gradients of a block's values.
class Reverse {
public:
  /// `active`: values from above that depend on a parameter.
  Reverse(OpBuilder &builder, const GradientRequest &request, llvm::DenseSet<Value> active)
      : builder(builder), request(request), active(std::move(active)) {}

  bool isActive(Value value) const { return active.contains(value); }
  void activate(Value value) {
    if (isFloat(value))
      active.insert(value);
  }
  /// Finds out what depends on them.
  void findActive(Block &block);
  void add(Value value, Value gradient, Location loc);
  Value gradientOf(Value value) const { return gradients.lookup(value); }
  /// From the gradients that are there: the ops up to `end`, which is not one of them.
  LogicalResult run(Block &block, Operation *end);

  /// By name: the sum over all parameters that have it.
  llvm::MapVector<StringAttr, Value> parameters;
  /// Weights that are multiplied by the rows of all iterations at once, and these products.
  llvm::DenseSet<Value> shared;
  SmallVector<Postponed> postponed;

private:
  bool hasParameter(Operation *op) const;
  Value ofResult(Value result);
  void addParameter(StringAttr name, Value gradient, Location loc);
  LogicalResult reverse(Operation *op);
  void sendBack(ReceiveOp receive);
  LogicalResult reverseLoop(LoopInterface loop); // ReverseLoop.cpp

  OpBuilder &builder;
  const GradientRequest &request;
  llvm::DenseSet<Value> active;
  DenseMap<Value, Value> gradients;
};

} // namespace mlir::kiln
