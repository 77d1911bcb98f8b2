// SPDX-License-Identifier: Apache-2.0
//
// Backward traversal of a block: shared by Differentiate.cpp (ops) and ReverseLoop.cpp (loops).
#pragma once

#include "compiler/dialect/gradients/GradientBuilder.h"
#include "compiler/training/Differentiate.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::kiln {

inline bool isFloat(Value value) { return isa<FloatType>(rankedType(value).getElementType()); }

/// The request, shared by all loops of an entry.
struct GradientRequest {
  llvm::DenseSet<StringAttr> wanted; // the parameters
  DifferentiationOptions options;
};

/// A GEMM in a loop over time whose weight gradient is one GEMM over all iterations, after the loop.
struct Postponed {
  LinearOp product;
  Value dy;                   // of one iteration
  std::optional<size_t> rows; // the number of the reversed loop's sequence that is the GEMM's x; nullopt: x is an
                              // output
};

/// The gradients of the values of a block.
class Reverse {
public:
  /// `active`: values from enclosing blocks that depend on a parameter.
  Reverse(OpBuilder &builder, const GradientRequest &request, llvm::DenseSet<Value> active)
      : builder(builder), request(request), active(std::move(active)) {}

  bool isActive(Value value) const { return active.contains(value); }
  void activate(Value value) {
    if (isFloat(value))
      active.insert(value);
  }
  /// Determines which values of the block depend on active values or wanted parameters.
  void findActive(Block &block);
  void add(Value value, Value gradient, Location loc);
  Value gradientOf(Value value) const { return gradients.lookup(value); }
  /// Propagates gradients backwards from the last op up to `end`, exclusive.
  LogicalResult run(Block &block, Operation *end);

  /// Gradients by name: the sum over all parameters of that name.
  llvm::MapVector<StringAttr, Value> parameters;
  /// Weights whose gradient is one GEMM over the rows of all iterations, and the GEMMs that use them.
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
