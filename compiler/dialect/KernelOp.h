// SPDX-License-Identifier: Apache-2.0
//
// Op interfaces KernelOpInterface, IndexOperandsInterface and DifferentiableInterface (KilnInterfaces.td), and the
// traits that implement the first. The ops' methods are in compiler/dialect/lowering and compiler/dialect/gradients.
#pragma once

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/OpDefinition.h"

namespace mlir::kiln {

class ElementBuilder;
class GradientBuilder;
class KernelBuilder;
class RowCollapser;
struct Coordinate;

/// The role of an op in a kernel. The results of reducing ops (the last three) are stored, and each kernel has at most
/// one of them; elements of the others are computed where they are read.
enum class KernelRole {
  Pointwise, // computes an element of the result from one element of each operand
  Lookup,    // reads elements that are selected by indices
  Movement,  // copies an element from another position
  View,      // the same element in another shape
  Contraction,
  Attention,
  Reduction,
};

/// Whether ops of that role accumulate products, which count as their FLOPs.
constexpr bool addsProducts(KernelRole role) {
  return role == KernelRole::Contraction || role == KernelRole::Attention;
}

/// The cost of recomputing an element.
enum class ElementCost {
  Free, // no more than reading one
  Cheap,
  Costly, // a division, a function of the math library, several reads
};

/// An operand whose elements are integers in [minimum, limit): indices, or lengths.
struct IndexOperand {
  Value operand;
  int64_t minimum = 0;
  AffineExpr limit; // over the symbols
};

/// Implements the role and cost of an op for KernelOpInterface.
template <KernelRole R, ElementCost C> struct InKernel {
  template <class ConcreteOp> class Impl : public OpTrait::TraitBase<ConcreteOp, Impl> {
  public:
    static constexpr KernelRole role = R;
    static constexpr ElementCost cost = C;
  };
};

/// Reads the operands' elements, whose coordinates broadcast, and passes them to `compute`.
Value evaluatePointwise(ElementBuilder &builder, Operation *op, ArrayRef<Coordinate> at,
                        function_ref<Value(ArrayRef<Value>)> compute);
bool collapsePointwise(Operation *op, RowCollapser &rows);

/// An elementwise op whose operands broadcast as NumPy does. It implements `Value compute(ElementBuilder &,
/// ArrayRef<Value> x)`, which computes the element of the result from those of its operands; the rest is derived.
template <ElementCost C> struct Pointwise {
  template <class ConcreteOp> class Impl : public OpTrait::TraitBase<ConcreteOp, Impl> {
  public:
    static constexpr KernelRole role = KernelRole::Pointwise;
    static constexpr ElementCost cost = C;

    Value evaluateElement(ElementBuilder &builder, ArrayRef<Coordinate> at) {
      auto op = cast<ConcreteOp>(this->getOperation());
      return evaluatePointwise(builder, op, at, [&](ArrayRef<Value> x) { return op.compute(builder, x); });
    }
    bool collapseRows(RowCollapser &rows) { return collapsePointwise(this->getOperation(), rows); }
  };
};

/// A norm along the last axis of its first operand.
template <class ConcreteOp> class RowNorm : public OpTrait::TraitBase<ConcreteOp, RowNorm> {};

/// Marks an op of the entry-point code: it is never part of a kernel, or costs nothing outside of one.
template <class ConcreteOp> class HostOp : public OpTrait::TraitBase<ConcreteOp, HostOp> {};

/// Marks an op that kernel formation replaces by others before anything else.
template <class ConcreteOp> class Rewritten : public OpTrait::TraitBase<ConcreteOp, Rewritten> {};

LogicalResult verifyExtents(Operation *op);
LogicalResult verifyInferredTypes(Operation *op);

/// Verifies that every extent of the results is positive and known.
template <class ConcreteOp> class HasExtents : public OpTrait::TraitBase<ConcreteOp, HasExtents> {
public:
  static LogicalResult verifyTrait(Operation *op) { return verifyExtents(op); }
};

/// Verifies that the results have the types inferred from operands and attributes.
template <class ConcreteOp> class HasInferredTypes : public OpTrait::TraitBase<ConcreteOp, HasInferredTypes> {
public:
  static LogicalResult verifyTrait(Operation *op) { return verifyInferredTypes(op); }
};

} // namespace mlir::kiln
