// SPDX-License-Identifier: Apache-2.0
//
// What ops say of themselves: KernelOpInterface, IndexOperandsInterface and DifferentiableInterface
// (KilnInterfaces.td), and the traits that answer the first. The ops' methods are in compiler/dialect/lowering and
// compiler/dialect/gradients.
#pragma once

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/OpDefinition.h"

namespace mlir::kiln {

class ElementBuilder;
class GradientBuilder;
class KernelBuilder;
class RowCollapser;
struct Coordinate;

/// How an op takes part in a kernel. Those that reduce, the last three, are stored, and each kernel has at most one;
/// elements of the others are computed where they are read.
enum class KernelRole {
  Pointwise, // an element of the result from one of each operand
  Lookup,    // from elements that indices choose
  Movement,  // an element as it is, from elsewhere
  View,      // the same element in another shape
  Contraction,
  Attention,
  Reduction,
};

/// Whether ops of that role add up products, whose number is in their flops.
constexpr bool addsProducts(KernelRole role) {
  return role == KernelRole::Contraction || role == KernelRole::Attention;
}

/// What computing an element once more costs.
enum class ElementCost {
  Free, // no more than to read one
  Cheap,
  Costly, // a division, a function of the math library, several reads
};

/// An operand whose elements are whole numbers in [minimum, limit): indices, or lengths.
struct IndexOperand {
  Value operand;
  int64_t minimum = 0;
  AffineExpr limit; // over the symbols
};

/// Answers what an op is, for KernelOpInterface.
template <KernelRole R, ElementCost C> struct InKernel {
  template <class ConcreteOp> class Impl : public OpTrait::TraitBase<ConcreteOp, Impl> {
  public:
    static constexpr KernelRole role = R;
    static constexpr ElementCost cost = C;
  };
};

/// Reads the operands' elements, whose coordinates broadcast, and lets `compute` make one of them.
Value evaluatePointwise(ElementBuilder &builder, Operation *op, ArrayRef<Coordinate> at,
                        function_ref<Value(ArrayRef<Value>)> compute);
bool collapsePointwise(Operation *op, RowCollapser &rows);

/// An op on each element alone, whose operands broadcast as NumPy does. It has `Value compute(ElementBuilder &,
/// ArrayRef<Value> x)`, the element of the result from those of its operands; the rest follows.
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

/// A norm along the last axis of its first operand, which may take the moments of it from the contraction before
/// (kiln.panel_moments).
template <class ConcreteOp> class RowNorm : public OpTrait::TraitBase<ConcreteOp, RowNorm> {};

/// What the host function does: the op never stands in a kernel, or it costs nothing to leave it outside.
template <class ConcreteOp> class HostOp : public OpTrait::TraitBase<ConcreteOp, HostOp> {};

/// Kernel formation replaces the op by others before anything else.
template <class ConcreteOp> class Rewritten : public OpTrait::TraitBase<ConcreteOp, Rewritten> {};

LogicalResult verifyExtents(Operation *op);
LogicalResult verifyInferredTypes(Operation *op);

/// Every extent of the results is positive, and stated.
template <class ConcreteOp> class HasExtents : public OpTrait::TraitBase<ConcreteOp, HasExtents> {
public:
  static LogicalResult verifyTrait(Operation *op) { return verifyExtents(op); }
};

/// The results have the types that follow from operands and attributes.
template <class ConcreteOp> class HasInferredTypes : public OpTrait::TraitBase<ConcreteOp, HasInferredTypes> {
public:
  static LogicalResult verifyTrait(Operation *op) { return verifyInferredTypes(op); }
};

} // namespace mlir::kiln
