// SPDX-License-Identifier: Apache-2.0
#include "compiler/object/MaskedStores.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

#include <optional>

using namespace llvm;

namespace kiln {

/// Returns the lane that is set in a constant mask, if there is exactly one.
static std::optional<unsigned> onlyLane(const Value *mask) {
  const auto *constant = dyn_cast<Constant>(mask);
  const auto *type = dyn_cast<FixedVectorType>(mask->getType());
  if (!constant || !type)
    return std::nullopt;
  std::optional<unsigned> only;
  for (unsigned lane = 0; lane < type->getNumElements(); ++lane) {
    const Constant *element = constant->getAggregateElement(lane);
    if (element && (element->isNullValue() || isa<UndefValue>(element))) // code generation takes these as false
      continue;
    if (!element || only)
      return std::nullopt;
    only = lane;
  }
  return only;
}

void storeSingleLanes(Function &function) {
  const DataLayout &layout = function.getParent()->getDataLayout();
  for (Instruction &instruction : make_early_inc_range(instructions(function))) {
    auto *store = dyn_cast<IntrinsicInst>(&instruction);
    if (!store || store->getIntrinsicID() != Intrinsic::masked_store)
      continue;
    Value *vector = store->getArgOperand(0), *address = store->getArgOperand(1);
    const std::optional<unsigned> lane = onlyLane(store->getArgOperand(2));
    Type *element = vector->getType()->getScalarType();
    if (!lane || !layout.typeSizeEqualsStoreSize(element)) // elements of vectors may be bits, which have no address
      continue;
    IRBuilder<> builder(store);
    const Align align = commonAlignment(store->getParamAlign(1).valueOrOne(), *lane * layout.getTypeStoreSize(element));
    builder.CreateAlignedStore(builder.CreateExtractElement(vector, *lane),
                               builder.CreateConstInBoundsGEP1_32(element, address, *lane), align);
    store->eraseFromParent();
  }
}

} // namespace kiln
