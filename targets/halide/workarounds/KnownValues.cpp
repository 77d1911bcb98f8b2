// SPDX-License-Identifier: Apache-2.0
#include "targets/halide/workarounds/KnownValues.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/DenseMap.h"

namespace kiln::halide {

using namespace mlir;

namespace {

/// In ascending order of how much must be preserved. A constant of the kernel is finite (translate/ScalarOps.cpp).
enum class Knowledge { unknown, constant, computed, madeOfComputed };

class Propagation {
public:
  void visit(Operation &op) {
    if (auto generic = dyn_cast<linalg::GenericOp>(op))
      return visit(generic);
    if (auto fill = dyn_cast<linalg::FillOp>(op)) {
      known[fill.getResult(0)] = of(fill.getInputs().front());
      return;
    }
    Knowledge result = isa<arith::ConstantOp>(op) ? Knowledge::constant : ofResult(op.getOperands());
    if (result >= Knowledge::computed)
      ops.insert(&op);
    // A comparison of known values is strict, but its result is neither NaN nor infinite; nor is an index.
    bool isComparison = isa<arith::CmpFOp, arith::CmpIOp>(op);
    for (Value value : op.getResults())
      known[value] = isComparison || value.getType().isIndex() ? Knowledge::unknown : result;
  }

  llvm::DenseSet<Operation *> ops;

private:
  Knowledge of(Value value) const { return known.lookup(value); }

  Knowledge ofResult(ValueRange operands) const {
    auto isKnown = [&](Value x) { return of(x) == Knowledge::constant || of(x) == Knowledge::computed; };
    if (!operands.empty() && llvm::all_of(operands, isKnown))
      return Knowledge::computed;
    bool isMadeOfComputed = llvm::any_of(operands, [&](Value x) { return of(x) >= Knowledge::computed; });
    return isMadeOfComputed ? Knowledge::madeOfComputed : Knowledge::unknown;
  }

  void visit(linalg::GenericOp generic) {
    Block *block = generic.getBlock();
    for (auto [argument, operand] : llvm::zip_equal(block->getArguments(), generic->getOperands()))
      known[argument] = of(operand);
    for (Operation &op : block->without_terminator())
      visit(op);
    for (auto [result, value] : llvm::zip_equal(generic.getResults(), block->getTerminator()->getOperands()))
      known[result] = of(value);
  }

  llvm::DenseMap<Value, Knowledge> known;
};

} // namespace

llvm::DenseSet<Operation *> madeOfKnownValues(func::FuncOp kernel) {
  Propagation propagation;
  for (Operation &op : kernel.getBody().front())
    propagation.visit(op);
  return propagation.ops;
}

} // namespace kiln::halide
