// SPDX-License-Identifier: Apache-2.0
//
// What DifferentiableInterface writes derivatives with: ops of the dialect, whose types follow from their operands.
// Operands of the arithmetic broadcast as NumPy does.
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
  /// As an op whose result has `type`.
  template <class Op, class... Args> Value createAs(Type type, Args &&...args) {
    return Op::create(builder, loc, type, std::forward<Args>(args)...).getResult();
  }
  Value add(Value x, Value y) { return create<AddOp>(x, y); }
  Value sub(Value x, Value y) { return create<SubOp>(x, y); }
  Value mul(Value x, Value y) { return create<MulOp>(x, y); }
  Value div(Value x, Value y) { return create<DivOp>(x, y); }
  Value negate(Value x) { return mul(x, number(x, -1)); }
  Value scale(Value x, double factor) { return factor == 1 ? x : mul(x, number(x, factor)); }
  Value where(Value condition, Value x, Value y) { return create<WhereOp>(condition, x, y); }

  /// A number of the element type of `like`, without axes.
  Value number(Value like, double value);
  Value zeros(RankedTensorType type);

  /// A type with these extents, and the element type of `like`.
  RankedTensorType typeOf(ArrayRef<AffineExpr> extents, Value like);
  Value reshape(Value x, ArrayRef<AffineExpr> extents);
  Value transpose(Value x, ArrayRef<int64_t> permutation) { return create<TransposeOp>(x, permutation); }
  /// What another stage has in the place of x, which it gets for its own.
  Value exchange(Value x, Way way);
  /// The last two axes the other way round.
  Value transposeMatrix(Value x);
  /// [rows, last extent]: all other axes as one.
  Value asMatrix(Value x);

  /// The sum or the mean along an axis, which stays, with extent 1.
  Value sumKept(Value x, int64_t axis) { return keepAxis(create<SumOp>(x, axis), x, axis); }
  Value meanKept(Value x, int64_t axis) { return keepAxis(create<MeanOp>(x, axis), x, axis); }
  /// The result of a reduction of x with the axis that it lost, of extent 1.
  Value keepAxis(Value reduced, Value x, int64_t axis);
  /// Sums over the axes along which a value of `type` was broadcast to x.
  Value sumTo(Value x, RankedTensorType type);
  /// Rows [R, D] added up in order in a table [height, D], each where its index says: of indices with R elements. Not a
  /// product with zeros and ones, which would take a row that is not finite everywhere.
  Value scatterAdd(Value indices, Value rows, AffineExpr height);
  /// x broadcast to the type, unless it has it.
  Value expandTo(Value x, RankedTensorType type);
  /// 1 / the extent of an axis of x: a number without axes.
  Value reciprocalExtent(Value x, int64_t axis);

private:
  OpBuilder &builder;
  Location loc;
};

/// The gradient of a product's weight, from all of its rows: dy^T x, or x^T dy for a weight stored the other way round.
Value weightGradient(GradientBuilder &b, LinearOp product, Value x, Value dy);

/// A method of DifferentiableInterface.
#define KILN_GRADIENT(OP)                                                                                              \
  SmallVector<Value> OP::differentiate([[maybe_unused]] GradientBuilder &b, [[maybe_unused]] ValueRange gradients)

inline RankedTensorType rankedType(Value value) { return cast<RankedTensorType>(value.getType()); }

} // namespace mlir::kiln
