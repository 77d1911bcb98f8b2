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
    Behind them: operands are sequences, of which the body gets a slice of the first axis in each iteration; what else the body
    yields is stacked along a new first axis, and that is the other results. Of `kiln.each_sequence` slices are some rows each,
    and there is no new axis.
  }];
  let cppNamespace = "::mlir::kiln";
  let methods = [
    InterfaceMethod<"how many values are carried", "unsigned", "getNumCarried">,
    InterfaceMethod<"how often the body runs, over the symbols", "::mlir::AffineExpr", "getTripCount">,
    InterfaceMethod<"whether iterations are layers, of which parameters and states inside have a copy each", "bool",
      "isOverLayers", (ins), [{}], [{ return false; }]>,
    InterfaceMethod<"the values of one iteration inside the body", "::mlir::Block::BlockArgListType", "getCarried",
      (ins), [{}], [{ return $_op->getRegion(0).front().getArguments().take_front($_op.getNumCarried()); }]>,
    InterfaceMethod<"the op that ends the body", "::mlir::Operation *", "getYield",
      (ins), [{}], [{ return $_op->getRegion(0).front().getTerminator(); }]>,
    InterfaceMethod<"what the body gets slices of", "::mlir::OperandRange", "getSequences",
      (ins), [{}], [{ return $_op->getOperands().drop_front($_op.getNumCarried()); }]>,
    InterfaceMethod<"the slices inside the body", "::mlir::Block::BlockArgListType", "getSlices",
      (ins), [{}], [{ return $_op->getRegion(0).front().getArguments().drop_front($_op.getNumCarried()); }]>,
    InterfaceMethod<"what is stacked", "::mlir::ResultRange", "getStacked",
      (ins), [{}], [{ return $_op->getResults().drop_front($_op.getNumCarried()); }]>,
    InterfaceMethod<"what the body yields to be stacked", "::mlir::OperandRange", "getYieldedOutputs",
      (ins), [{}], [{ return $_op.getYield()->getOperands().drop_front($_op.getNumCarried()); }]>
  ];
}

def Kiln_KernelOpInterface : OpInterface<"KernelOpInterface"> {
  let description = [{
    An op that may stand in a kernel: what it is there (compiler/dialect/KernelOp.h), and how it becomes linalg
    (compiler/dialect/lowering/KernelBuilder.h). An op of the dialect has it or is a HostOp.
  }];
  let cppNamespace = "::mlir::kiln";
  let methods = [
    InterfaceMethod<"how the op takes part in a kernel", "::mlir::kiln::KernelRole", "getKernelRole",
      (ins), [{}], [{ return ConcreteOp::role; }]>,
    InterfaceMethod<"what computing an element once more costs", "::mlir::kiln::ElementCost", "getElementCost",
      (ins), [{}], [{ return ConcreteOp::cost; }]>,
    InterfaceMethod<"an element of the result, from elements of the operands or from what `decompose` left",
      "::mlir::Value", "evaluateElement",
      (ins "::mlir::kiln::ElementBuilder &":$builder, "::llvm::ArrayRef<::mlir::kiln::Coordinate>":$at)>,
    InterfaceMethod<"stores what the op reduces to, and returns that; of an op that reduces",
      "::llvm::SmallVector<::mlir::Value>", "decompose", (ins "::mlir::kiln::KernelBuilder &":$kernel),
      [{}], [{ return {}; }]>,
    InterfaceMethod<"the type that an op that reduces computes and keeps sums in; elements of its operands are widened to it",
      "::mlir::Type", "getAccumulatorType", (ins), [{}],
      [{ return ::mlir::kiln::defaultAccumulatorType($_op->getOperand(0).getType()); }]>,
    InterfaceMethod<"additions and multiplications of the op's products, over the symbols, as `flops` of the language counts them",
      "::mlir::AffineExpr", "getFlops", (ins), [{}], [{
        static_assert(!addsProducts(ConcreteOp::role), "an op that adds products says how many: getFlops");
        return ::mlir::getAffineConstantExpr(0, $_op->getContext());
      }]>,
    InterfaceMethod<"marks the operands that have the leading axes; whether the op lets them be one",
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
    An op with an integer operand: which of them are indices or lengths, and their ranges. The run time checks those
    that are inputs of an entry (compiler/emit/ValueChecks.h). Each op with an operand of `Kiln_IntegerTensor` has it, be it to
    say that its numbers may be any: KilnDialect.td stops the build otherwise.
  }];
  let cppNamespace = "::mlir::kiln";
  let methods = [
    InterfaceMethod<"the operands that are indices or lengths", "::llvm::SmallVector<::mlir::kiln::IndexOperand>",
      "getIndexOperands">
  ];
}

def Kiln_DifferentiableInterface : OpInterface<"DifferentiableInterface"> {
  let description = [{
    An op that has a derivative (compiler/dialect/gradients). From the gradients of its results, none of which is null, it makes
    those of its operands, as ops of the dialect: the vector-Jacobian product. Null for an operand of which the result does not
    depend, or only by steps.
  }];
  let cppNamespace = "::mlir::kiln";
  let methods = [
    InterfaceMethod<"the gradients of the operands", "::llvm::SmallVector<::mlir::Value>", "differentiate",
      (ins "::mlir::kiln::GradientBuilder &":$builder, "::mlir::ValueRange":$gradients)>
  ];
}

#endif // KILN_INTERFACES
