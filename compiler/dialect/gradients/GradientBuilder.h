// SPDX-License-Identifier: Apache-2.0
//
// The builder with which implementations of DifferentiableInterface create derivatives: ops of the dialect, whose types
// follow from their operands. Operands of arithmetic ops broadcast as NumPy does.
#pragma once

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"
#include "mlir/IR/Builders.h"

namespace mlir::kiln {

class GradientBuilder {
public:
  GradientBuilder(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  template <class Op, class... Args> Value create(Args &&...args) {
    return Op::create(builder, loc, std::forward<Args>(args)...).getResult();
  }
  /// Creates an op whose result has `type`.
  template <class Op, class... Args> Value createAs(Type type, Args &&...args) {
    return Op::create(builder, loc, type, std::forward<Args>(args)...).getResult();
  }
  /// Creates an op with results of these types.
  template <class Op, class... Args> ResultRange createAll(TypeRange types, Args &&...args) {
    return Op::create(builder, loc, types, std::forward<Args>(args)...)->getResults();
  }
  Value add(Value x, Value y) { return create<AddOp>(x, y); }
  Value sub(Value x, Value y) { return create<SubOp>(x, y); }
  Value mul(Value x, Value y) { return create<MulOp>(x, y); }
  Value div(Value x, Value y) { return create<DivOp>(x, y); }
  Value negate(Value x) { return mul(x, number(x, -1)); }
  Value scale(Value x, double factor) { return factor == 1 ? x : mul(x, number(x, factor)); }
  Value where(Value condition, Value x, Value y) { return create<WhereOp>(condition, x, y); }

  /// Creates a scalar constant of the element type of `like`.
  Value number(Value like, double value);
  Value zeros(RankedTensorType type);
  /// Creates an i32 scalar.
  Value integer(int32_t value);
  AffineExpr extent(int64_t value) { return builder.getAffineConstantExpr(value); }

  /// Returns a type with these extents and the element type of `like`.
  RankedTensorType typeOf(ArrayRef<AffineExpr> extents, Value like);
  Value reshape(Value x, ArrayRef<AffineExpr> extents);
  Value transpose(Value x, ArrayRef<int64_t> permutation) { return create<TransposeOp>(x, permutation); }
  /// Sends x to another stage and receives the corresponding value from it.
  Value exchange(Value x, Way way);
  /// Swaps the last two axes.
  Value transposeMatrix(Value x);
  /// Collapses all axes but the last: [rows, last extent].
  Value asMatrix(Value x);

  /// Sums or averages along an axis, which is kept with extent 1.
  Value sumKept(Value x, int64_t axis) { return keepAxis(create<SumOp>(x, axis), x, axis); }
  Value meanKept(Value x, int64_t axis, bool shifted = false) {
    return keepAxis(create<MeanOp>(x, axis, shifted), x, axis);
  }
  /// Restores the axis that a reduction of x removed, with extent 1.
  Value keepAxis(Value reduced, Value x, int64_t axis);
  /// Sums over the axes along which a value of `type` was broadcast to x.
  Value sumTo(Value x, RankedTensorType type);
  /// Accumulates rows [R, D], in order, into the rows of a table [height, D] given by `indices`, which have R elements.
  /// A GEMM with a one-hot matrix would not do: it would spread non-finite values to all rows.
  Value scatterAdd(Value indices, Value rows, AffineExpr height);
  /// Broadcasts x to the type, unless it has it already.
  Value expandTo(Value x, RankedTensorType type);
  /// Returns 1 / the extent of an axis of x as a scalar.
  Value reciprocalExtent(Value x, int64_t axis);

private:
  OpBuilder &builder;
  Location loc;
};

/// Returns the gradient of a GEMM's weight over all rows: dy^T x, or x^T dy for a weight stored [in, out].
Value weightGradient(GradientBuilder &b, LinearOp product, Value x, Value dy);

/// Defines DifferentiableInterface::differentiate of an op.
#define KILN_GRADIENT(OP)                                                                                              \
  SmallVector<Value> OP::differentiate([[maybe_unused]] GradientBuilder &b, [[maybe_unused]] ValueRange gradients)

inline RankedTensorType rankedType(Value value) { return cast<RankedTensorType>(value.getType()); }

} // namespace mlir::kiln
