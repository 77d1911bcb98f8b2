// SPDX-License-Identifier: Apache-2.0
#include "compiler/emit/RowVariants.h"

#include "compiler/dialect/KilnDialect.h"

using namespace mlir;
namespace kd = mlir::kiln;

namespace kiln {

/// The kernel with [least, most] as the bounds of one index argument, behind `previous`.
static func::FuncOp cloneWithBounds(func::FuncOp kernel, func::FuncOp previous, unsigned symbol, int64_t least,
                                    int64_t most) {
  func::FuncOp form = kernel.clone();
  SmallVector<int64_t> bounds(kernel->getAttrOfType<DenseI64ArrayAttr>(kd::boundsAttrName).asArrayRef());
  bounds[2 * symbol] = least;
  bounds[2 * symbol + 1] = most;
  form->setAttr(kd::boundsAttrName, DenseI64ArrayAttr::get(kernel.getContext(), bounds));
  auto module = kernel->getParentOfType<ModuleOp>();
  std::string name = (kernel.getName() + "_rows" + Twine(most)).str();
  while (module.lookupSymbol(name))
    name += "_";
  form.setName(name);
  previous->getBlock()->getOperations().insertAfter(previous->getIterator(), form);
  return form;
}

StringRef chooseForm(const RowVariants &variants, StringRef kernel, ArrayRef<int64_t> extents) {
  if (auto forms = variants.find(kernel); forms != variants.end())
    for (const KernelForm &form : forms->second)
      if (extents[form.symbol] <= form.bound)
        return form.function;
  return kernel;
}

RowVariants addRowVariants(ModuleOp module, const Target &target) {
  RowVariants variants;
  SmallVector<func::FuncOp> kernels;
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr(kd::kernelAttrName))
      kernels.push_back(function);
  for (func::FuncOp kernel : kernels) {
    func::FuncOp previous = kernel;
    llvm::SmallDenseMap<unsigned, int64_t> served; // symbol -> the largest bound so far
    ArrayRef<int64_t> bounds = kernel->getAttrOfType<DenseI64ArrayAttr>(kd::boundsAttrName).asArrayRef();
    for (RowVariant variant : target.compilerOf(kernel).rowVariants(kernel)) {
      int64_t least = bounds[2 * variant.symbol];
      if (auto found = served.find(variant.symbol); found != served.end())
        least = found->second + 1;
      previous = cloneWithBounds(kernel, previous, variant.symbol, least, variant.bound);
      variants[kernel.getName()].push_back({variant.symbol, variant.bound, previous.getName().str()});
      served[variant.symbol] = variant.bound;
    }
  }
  return variants;
}

} // namespace kiln
