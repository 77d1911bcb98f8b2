// SPDX-License-Identifier: Apache-2.0
#include "compiler/hostcode/ValueChecks.h"

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <algorithm>

using namespace mlir;
namespace kd = mlir::kiln;

namespace kiln {

/// Returns the entry's argument that the elements of a value are copied from; null if they are computed.
static BlockArgument sourceInput(Value value) {
  for (;;) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      auto loop = dyn_cast<kd::LoopInterface>(argument.getOwner()->getParentOp());
      if (!loop)
        return argument;
      const unsigned number = argument.getArgNumber(), carried = loop.getNumCarried();
      if (number < carried)
        return {};
      value = loop.getSequences()[number - carried];
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (!kd::hasRole(op, kd::KernelRole::Movement) && !kd::hasRole(op, kd::KernelRole::View) && !isa<kd::ExpandOp>(op))
      return {};
    value = op->getOperand(0);
  }
}

static void narrow(std::optional<ValueCheck> &known, const ValueCheck &check) {
  if (!known) {
    known = check;
    return;
  }
  known->minimum = std::max(known->minimum, check.minimum);
  if (check.limit.max() < known->limit.max())
    known->limit = check.limit;
}

/// Whether the limit depends only on extents of the call. In a batched call, each sequence may have its own extents.
static bool isOfCall(const Dim &limit, const EntryInterface &entry) {
  return llvm::all_of(limit.symbols, [&](const Symbol &symbol) {
    return !symbol.present() || !llvm::is_contained(entry.ownSymbols, symbol);
  });
}

void addValueChecks(ModuleOp module, ModelInterface &model) {
  const SmallVector<kd::SymbolAttr> symbols = kd::getSymbols(module);
  for (EntryInterface &entry : model.entries)
    module.lookupSymbol<func::FuncOp>(entry.name).walk([&](kd::IndexOperandsInterface op) {
      for (const kd::IndexOperand &each : op.getIndexOperands()) {
        BlockArgument input = sourceInput(each.operand);
        if (!input)
          continue;
        std::optional<Dim> limit = kd::toDim(each.limit, symbols);
        assert(limit && "of an extent, which a Dim says");
        if (isOfCall(*limit, entry)) // kernels clamp other indices
          narrow(entry.arguments[input.getArgNumber() - symbols.size()].check, {each.minimum, *limit});
      }
    });
}

} // namespace kiln
