// SPDX-License-Identifier: Apache-2.0
//
// How a kernel function of kiln ops becomes one of linalg ops. Most values are never stored: an op says how to compute
// one of its elements from elements of its operands (ElementBuilder), so that reshapes, slices, transposes, broadcasts
// and pointwise chains become indexing maps and one region. Ops that reduce are stored (KernelBuilder). The files
// beside this one hold both for the families of ops, as methods of KernelOpInterface.
//
// Elements of f16 and bf16 are f32 in every region: widened where they are loaded, and rounded, to the nearest even,
// where they are stored. So an op that is computed where it is read leaves f32, but in an ordered library: there a
// number does not depend on what else is in the kernel.
#pragma once

#include <map>

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::kiln {

class ElementBuilder;

/// One coordinate of an element: affine in the loops of the linalg.generic, or else a value of type index.
struct Coordinate {
  AffineExpr expr;
  Value value;

  Coordinate(AffineExpr expr) : expr(expr) {}
  Coordinate(Value value) : value(value) {}
  bool operator<(const Coordinate &other) const {
    return std::pair(expr.getAsOpaquePointer(), value.getAsOpaquePointer()) <
           std::pair(other.expr.getAsOpaquePointer(), other.value.getAsOpaquePointer());
  }
};
using Coordinates = SmallVector<Coordinate>;

/// Whether tensors of a kernel may have such elements.
bool isSupportedElement(Type type);

/// The additions and multiplications of a tensor whose elements are sums over extents of this product.
AffineExpr countFlops(Value tensor, ArrayRef<AffineExpr> summed);

/// Lowers one kernel function in place.
class KernelBuilder {
public:
  /// `isOrdered`: what an op gives is rounded where it is read, too.
  KernelBuilder(func::FuncOp kernel, bool isOrdered);

  LogicalResult run();

  /// The stored tensor with the value's elements; made if there is none yet.
  Value materialize(Value value);

  /// The stored tensor, or null.
  Value getTensor(Value value) const { return tensors.lookup(value); }
  void setTensor(Value value, Value tensor) { tensors[value] = tensor; }

  /// Makes sure that reading an element of `value` is no more than a load, and what widens it.
  void prepareRepeatedReads(Value value);

  /// What the op's decomposition stored; decomposes it at the first call.
  ArrayRef<Value> getIntermediates(Operation *op);

  /// A scalar constant, one for equal ones.
  Value createConstant(TypedAttr value);
  Value createConstant(Type type, double value);

  /// The value of an extent over the kernel's index arguments.
  Value createExtent(AffineExpr extent);

  /// A tensor computed by parallel loops over `extents`; what the body gives is rounded to its elements.
  Value createParallel(ArrayRef<AffineExpr> extents, Type element, function_ref<Value(ElementBuilder &)> body);

  /// The stored tensor with its elements as those of another type; itself if the types are the same.
  Value createConverted(Value tensor, Type element);

  /// A reduction over the loops `reduced`: the results have the other loops as dimensions, and start with `initial`.
  SmallVector<Value> createReduction(ArrayRef<AffineExpr> extents, ArrayRef<unsigned> reduced,
                                     ArrayRef<TypedAttr> initial,
                                     function_ref<SmallVector<Value>(ElementBuilder &, ValueRange)> body);

  MLIRContext *getContext() { return kernel.getContext(); }

  /// Whether a result may not depend, to the bit, on what else the kernel could be.
  bool keepsOrder() const { return isOrdered; }

  /// The largest product of the extents within the kernel's bounds.
  int64_t largestProduct(ArrayRef<AffineExpr> extents);

private:
  SmallVector<Value> createGeneric(ArrayRef<AffineExpr> extents, ArrayRef<unsigned> reduced, ArrayRef<Value> outputs,
                                   function_ref<SmallVector<Value>(ElementBuilder &, ValueRange)> body);
  Value createEmpty(ArrayRef<AffineExpr> extents, Type element);

  func::FuncOp kernel;
  const bool isOrdered;
  ImplicitLocOpBuilder builder; // at the end of the kernel's body
  DenseMap<Value, Value> tensors;
  DenseMap<Operation *, SmallVector<Value>> intermediates;
  llvm::MapVector<TypedAttr, Value> constants;
  DenseMap<AffineExpr, Value> extentValues;

  friend class ElementBuilder;
};

/// Builds the region of one linalg.generic.
class ElementBuilder : public ImplicitLocOpBuilder {
public:
  ElementBuilder(KernelBuilder &kernel, Block *block, ArrayRef<AffineExpr> extents);

  /// An element of a kiln value, in the type that it is computed in (computedType).
  Value read(Value value, ArrayRef<Coordinate> at);

  /// A number as one of another type of its kind, widened or cut, in the type that is computed in; itself if the types
  /// are the same.
  Value convert(Value x, Type type) { return cut(x, computedType(type)); }
  /// The same in the type itself, to be stored.
  Value cut(Value x, Type type);

  /// An element of a stored tensor, in the type that it is computed in.
  Value load(Value tensor, ArrayRef<Coordinate> at);

  AffineExpr loop(unsigned i) { return getAffineDimExpr(i); }
  /// All loops, as coordinates.
  Coordinates loops();

  /// e^(x - max) for an x that is not above max, said by the attribute kiln.nonpositive of the math.exp.
  Value expBelow(Value x, Value max);

  /// A float's place in the order of all, a signed integer; one for 0 and -0, and the last for every NaN. To be
  /// compared instead of floats, of which targets may assume that none is NaN.
  Value toOrder(Value x);
  Value fromOrder(Value order);

  Value constant(Type type, double value) { return kernel.createConstant(type, value); }
  /// The coordinate as a value of type index.
  Value toIndex(const Coordinate &coordinate);
  /// A coordinate shifted, multiplied, divided: affine where it can be.
  Coordinate shift(const Coordinate &coordinate, int64_t by);
  AffineExpr simplify(AffineExpr expr);

  KernelBuilder &kernel;
  ArrayRef<AffineExpr> extents;

private:
  /// What `read` gives of a value that is not stored, but a short float as it was computed.
  Value evaluate(Value value, ArrayRef<Coordinate> at);
  Value loadStored(Value tensor, ArrayRef<Coordinate> at);
  Value expand(AffineExpr expr);

  Block *block;
  SmallVector<std::optional<int64_t>> ranges;
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  std::map<std::pair<void *, std::vector<Coordinate>>, Value> read_;

  friend class KernelBuilder;
};

} // namespace mlir::kiln
