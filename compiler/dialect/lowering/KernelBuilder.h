// SPDX-License-Identifier: Apache-2.0
//
// Lowers a kernel function of kiln ops to linalg ops. Most values are never stored: an op computes one of its elements
// from elements of its operands (ElementBuilder), so that reshapes, slices, transposes, broadcasts and pointwise chains
// become indexing maps and one region. Results of reducing ops are stored (KernelBuilder). The other files of this
// folder implement both for the families of ops, as methods of KernelOpInterface.
//
// Elements of f16 and bf16 are f32 in every region: extended where they are loaded, and rounded to nearest even where
// they are stored. An op that is computed where it is read therefore produces f32, except in batch-invariant libraries,
// where it is rounded: there a value must not depend on which ops are fused with it.
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

/// A coordinate of an element: affine in the loops of the linalg.generic, or else a value of type index.
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

/// Counts the additions and multiplications of a tensor whose elements are sums over the product of these extents.
AffineExpr countFlops(Value tensor, ArrayRef<AffineExpr> summed);

/// A block whose first arguments are elements of tensors, each with the map from the loops to its indices.
struct ElementRegion {
  std::unique_ptr<Block> block;
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
};

/// Lowers one kernel function in place.
class KernelBuilder {
public:
  /// `isBatchInvariant`: the kernel is batch-invariant: results of ops are also rounded where they are read.
  KernelBuilder(func::FuncOp kernel, bool isBatchInvariant);
  /// For more ops of a kernel that is lowered already, before one of its ops.
  explicit KernelBuilder(Operation *before);

  LogicalResult run();

  /// Returns the stored tensor with the value's elements, creating it if necessary.
  Value materialize(Value value);

  /// Returns the stored tensor, or null.
  Value getTensor(Value value) const { return tensors.lookup(value); }
  void setTensor(Value value, Value tensor) { tensors[value] = tensor; }

  /// Ensures that reading an element of `value` costs no more than a load and a widening.
  void prepareRepeatedReads(Value value);

  /// Returns what the op's decomposition stored; decomposes the op at the first call.
  ArrayRef<Value> getIntermediates(Operation *op);

  /// Returns a scalar constant; equal constants are shared.
  Value createConstant(TypedAttr value);
  Value createConstant(Type type, double value);

  /// Returns the value of an extent over the kernel's index arguments.
  Value createExtent(AffineExpr extent);

  /// Creates a tensor by parallel loops over `extents`; the body's value is rounded to the element type.
  Value createParallel(ArrayRef<AffineExpr> extents, Type element, function_ref<Value(ElementBuilder &)> body);

  /// Returns the stored tensor converted to another element type; the tensor itself if the types are equal.
  Value createConverted(Value tensor, Type element);

  /// Creates a reduction over the loops `reduced`: the results have the other loops as dimensions, and start with
  /// `initial`.
  SmallVector<Value> createReduction(ArrayRef<AffineExpr> extents, ArrayRef<unsigned> reduced,
                                     ArrayRef<TypedAttr> initial,
                                     function_ref<SmallVector<Value>(ElementBuilder &, ValueRange)> body);

  /// Builds a region of kiln.kernel_attention over loops of these extents; its last arguments are floats of the type
  /// `last`, which are passed to the body.
  ElementRegion createRegion(ArrayRef<AffineExpr> extents, ArrayRef<Type> last,
                             function_ref<SmallVector<Value>(ElementBuilder &, ValueRange)> body);

  /// Creates an op at the end of what the kernel computes so far.
  template <class Op, class... Args> Op create(Args &&...args) {
    return Op::create(builder, std::forward<Args>(args)...);
  }

  MLIRContext *getContext() { return kernel.getContext(); }
  /// Returns the number of the kernel's index arguments.
  unsigned getNumSymbols() {
    return llvm::count_if(kernel.getArgumentTypes(), [](Type type) { return type.isIndex(); });
  }

  /// Whether results must be batch-invariant: independent, to the bit, of fusion and of variants of the kernel.
  bool keepsOrder() const { return isBatchInvariant; }

  /// Returns the largest product of the extents within the kernel's bounds.
  int64_t largestProduct(ArrayRef<AffineExpr> extents);

private:
  struct ExtentArithmetic;
  using ExtentValues = DenseMap<std::pair<Value, Value>, Value>; // by the operands

  SmallVector<Value> createGeneric(ArrayRef<AffineExpr> extents, ArrayRef<unsigned> reduced, ArrayRef<Value> outputs,
                                   function_ref<SmallVector<Value>(ElementBuilder &, ValueRange)> body);
  Value createEmpty(ArrayRef<AffineExpr> extents, Type element);

  func::FuncOp kernel;
  const bool isBatchInvariant;
  ImplicitLocOpBuilder builder; // at the end of the kernel's body
  DenseMap<Value, Value> tensors;
  DenseMap<Operation *, SmallVector<Value>> intermediates;
  llvm::MapVector<TypedAttr, Value> constants;
  ExtentValues extentSums, extentProducts, extentQuotients;

  friend class ElementBuilder;
};

/// Builds the region of one linalg.generic, or one of kiln.kernel_attention.
class ElementBuilder : public ImplicitLocOpBuilder {
public:
  ElementBuilder(KernelBuilder &kernel, Block *block, ArrayRef<AffineExpr> extents, bool isOfAttention = false);

  /// Reads an element of a kiln value, in its computed type (computedType).
  Value read(Value value, ArrayRef<Coordinate> at);

  /// Converts a number to another type of its kind, extended or truncated, as its computed type; unchanged if the types
  /// are equal.
  Value convert(Value x, Type type) { return cut(x, computedType(type)); }
  /// Converts to the type itself, to be stored.
  Value cut(Value x, Type type);

  /// Loads an element of a stored tensor, in its computed type.
  Value load(Value tensor, ArrayRef<Coordinate> at);

  /// Copies a region of kiln.kernel_attention here and returns what it yields. `loops` has the number of a loop for
  /// each loop of that op that the region uses; `last` are its last arguments.
  SmallVector<Value> copyRegion(Region &region, ValueRange inputs, ArrayAttr maps, ArrayRef<unsigned> loops,
                                ValueRange last = {});

  AffineExpr loop(unsigned i) { return getAffineDimExpr(i); }
  /// Returns all loops, as coordinates.
  Coordinates loops();

  /// Returns e^(x - max) for an x of at most max, which the attribute kiln.nonpositive of the math.exp states.
  Value expBelow(Value x, Value max);

  /// Maps a float to a signed integer of the same order; 0 and -0 map to one integer, and every NaN maps above all
  /// numbers. Compared instead of floats, since targets may assume that no float is NaN.
  Value toOrder(Value x);
  Value fromOrder(Value order);

  Value constant(Type type, double value) { return kernel.createConstant(type, value); }
  /// Returns the coordinate as a value of type index.
  Value toIndex(const Coordinate &coordinate);
  /// Adds a constant to a coordinate: affine where possible.
  Coordinate shift(const Coordinate &coordinate, int64_t by);
  AffineExpr simplify(AffineExpr expr);

  KernelBuilder &kernel;
  ArrayRef<AffineExpr> extents;

private:
  /// Evaluates an element of a value that is not stored; a 16-bit float is not rounded yet.
  Value evaluate(Value value, ArrayRef<Coordinate> at);
  Value loadStored(Value tensor, ArrayRef<Coordinate> at);
  Value loadAt(Value tensor, AffineMap map);
  struct IndexArithmetic;
  Value expand(AffineExpr expr);

  Block *block;
  const bool isOfAttention;
  SmallVector<std::optional<int64_t>> ranges;
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  std::map<std::pair<void *, std::vector<Coordinate>>, Value> read_;

  friend class KernelBuilder;
};

} // namespace mlir::kiln
