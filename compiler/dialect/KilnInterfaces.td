// SPDX-License-Identifier: Apache-2.0
//
// What kiln.repeat and kiln.scan have in common.
#ifndef KILN_INTERFACES
#define KILN_INTERFACES

include "mlir/IR/OpBase.td"

def Kiln_LoopInterface : OpInterface<"LoopInterface"> {
  let description = [{
    A loop whose body carries values from one iteration to the next. They come first among the op's operands, which are their
    initial values, among the arguments of the body, among what it yields, and among the results, which are their last values.
  }];
  let cppNamespace = "::mlir::kiln";
  let methods = [
    InterfaceMethod<"how many values are carried", "unsigned", "getNumCarried">,
    InterfaceMethod<"how often the body runs, over the symbols", "::mlir::AffineExpr", "getTripCount">,
    InterfaceMethod<"the values of one iteration inside the body", "::mlir::Block::BlockArgListType", "getCarried",
      (ins), [{}], [{ return $_op->getRegion(0).front().getArguments().take_front($_op.getNumCarried()); }]>,
    InterfaceMethod<"the op that ends the body", "::mlir::Operation *", "getYield",
      (ins), [{}], [{ return $_op->getRegion(0).front().getTerminator(); }]>
  ];
}

#endif // KILN_INTERFACES
