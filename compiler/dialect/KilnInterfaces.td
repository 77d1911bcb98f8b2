// SPDX-License-Identifier: Apache-2.0
//
// Interfaces of loops, of ops that may be part of a kernel, and of ops with index operands.
#ifndef KILN_INTERFACES
#define KILN_INTERFACES

include "mlir/IR/OpBase.td"

def Kiln_LoopInterface : OpInterface<"LoopInterface"> {
  let description = [{
    A loop whose body carries values from one iteration to the next. They come first among the op's operands, which are their
    initial values, among the arguments of the body, among what it yields, and among the results, which are their last values.
    The operands after them are sequences: the body has a slice of their first axis in each iteration. The other yielded
    values are stacked along a new first axis, and are the other results. Slices of `kiln.each_sequence` are several rows,
    and there is no new axis.
  }];
  let cppNamespace = "::mlir::kiln";
  let methods = [
    InterfaceMethod<"the number of carried values", "unsigned", "getNumCarried">,
    InterfaceMethod<"the trip count, over the symbols", "::mlir::AffineExpr", "getTripCount">,
    InterfaceMethod<"whether iterations are layers, so that parameters and states inside have a copy for each", "bool",
      "isOverLayers", (ins), [{}], [{ return false; }]>,
    InterfaceMethod<"the values of one iteration inside the body", "::mlir::Block::BlockArgListType", "getCarried",
      (ins), [{}], [{ return $_op->getRegion(0).front().getArguments().take_front($_op.getNumCarried()); }]>,
    InterfaceMethod<"the op that ends the body", "::mlir::Operation *", "getYield",
      (ins), [{}], [{ return $_op->getRegion(0).front().getTerminator(); }]>,
    InterfaceMethod<"the operands that the body has slices of", "::mlir::OperandRange", "getSequences",
      (ins), [{}], [{ return $_op->getOperands().drop_front($_op.getNumCarried()); }]>,
    InterfaceMethod<"the slices inside the body", "::mlir::Block::BlockArgListType", "getSlices",
      (ins), [{}], [{ return $_op->getRegion(0).front().getArguments().drop_front($_op.getNumCarried()); }]>,
    InterfaceMethod<"the stacked results", "::mlir::ResultRange", "getStacked",
      (ins), [{}], [{ return $_op->getResults().drop_front($_op.getNumCarried()); }]>,
    InterfaceMethod<"the yielded values that are stacked", "::mlir::OperandRange", "getYieldedOutputs",
      (ins), [{}], [{ return $_op.getYield()->getOperands().drop_front($_op.getNumCarried()); }]>
  ];
}

def Kiln_KernelOpInterface : OpInterface<"KernelOpInterface"> {
  let description = [{
    An op that may be part of a kernel: its role (compiler/dialect/KernelOp.h), and its lowering to linalg
    (compiler/dialect/lowering/KernelBuilder.h). An op of the dialect has it or is a HostOp.
  }];
  let cppNamespace = "::mlir::kiln";
  let methods = [
    InterfaceMethod<"the op's role in a kernel", "::mlir::kiln::KernelRole", "getKernelRole",
      (ins), [{}], [{ return ConcreteOp::role; }]>,
    InterfaceMethod<"the cost of recomputing an element", "::mlir::kiln::ElementCost", "getElementCost",
      (ins), [{}], [{ return ConcreteOp::cost; }]>,
    InterfaceMethod<"an element of the result, from elements of the operands or from values of `decompose`",
      "::mlir::Value", "evaluateElement",
      (ins "::mlir::kiln::ElementBuilder &":$builder, "::llvm::ArrayRef<::mlir::kiln::Coordinate>":$at)>,
    InterfaceMethod<"stores the reduced values of an op that reduces, and returns them",
      "::llvm::SmallVector<::mlir::Value>", "decompose", (ins "::mlir::kiln::KernelBuilder &":$kernel),
      [{}], [{ return {}; }]>,
    InterfaceMethod<"the accumulator type of an op that reduces; elements of its operands are widened to it",
      "::mlir::Type", "getAccumulatorType", (ins), [{}],
      [{ return ::mlir::kiln::defaultAccumulatorType($_op->getOperand(0).getType()); }]>,
    InterfaceMethod<"additions and multiplications of the op's products, over the symbols, as `flops` of the DSL counts them",
      "::mlir::AffineExpr", "getFlops", (ins), [{}], [{
        static_assert(!addsProducts(ConcreteOp::role), "an op that adds products must implement getFlops");
        return ::mlir::getAffineConstantExpr(0, $_op->getContext());
      }]>,
    InterfaceMethod<"marks the operands that have the leading axes; returns whether these can be collapsed",
      "bool", "collapseRows", (ins "::mlir::kiln::RowCollapser &":$rows)>,
    InterfaceMethod<"axes of operands and results whose extents the op adds, subtracts or divides",
      "::llvm::SmallVector<int64_t>", "getResizedAxes", (ins), [{}], [{ return {}; }]>
  ];
  let extraSharedClassDeclaration = [{
    /// Whether elements are computed where they are read, and not stored.
    bool isLazy() {
      switch (getKernelRole()) {
      case KernelRole::Contraction:
      case KernelRole::Attention:
      case KernelRole::Reduction:
        return false;
      default:
        return true;
      }
    }
  }];
}

def Kiln_IndexOperandsInterface : OpInterface<"IndexOperandsInterface"> {
  let description = [{
    An op with integer operands: which of them are indices or lengths, and their ranges. The runtime checks those
    that are inputs of an entry (compiler/hostcode/ValueChecks.h). Each op with an operand of `Kiln_IntegerTensor` implements it,
    even if its operands may have any value: otherwise an assertion of KilnDialect.td fails.
  }];
  let cppNamespace = "::mlir::kiln";
  let methods = [
    InterfaceMethod<"the operands that are indices or lengths", "::llvm::SmallVector<::mlir::kiln::IndexOperand>",
      "getIndexOperands">
  ];
}

def Kiln_DifferentiableInterface : OpInterface<"DifferentiableInterface"> {
  let description = [{
    An op that has a derivative (compiler/dialect/gradients). It computes the gradients of its operands from those of its
    results, none of which is null, with ops of the dialect: the vector-Jacobian product. A gradient is null if the result
    does not depend on the operand, or is piecewise constant in it.
  }];
  let cppNamespace = "::mlir::kiln";
  let methods = [
    InterfaceMethod<"the gradients of the operands", "::llvm::SmallVector<::mlir::Value>", "differentiate",
      (ins "::mlir::kiln::GradientBuilder &":$builder, "::mlir::ValueRange":$gradients)>
  ];
}

#endif // KILN_INTERFACES
