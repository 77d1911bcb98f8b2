// SPDX-License-Identifier: Apache-2.0
#include "compiler/library/ShapeVariants.h"

#include "compiler/kernel/KernelFunction.h"

using namespace mlir;
namespace kd = mlir::kiln;

namespace kiln {

/// Clones the kernel with [least, bound] as the bounds of the variant's index argument, and inserts the clone after
/// `previous`.
static func::FuncOp cloneWithBounds(func::FuncOp kernel, func::FuncOp previous, const ShapeVariant &variant,
                                    int64_t least) {
  func::FuncOp form = kernel.clone();
  SmallVector<kd::Interval> bounds = KernelFunction(kernel).bounds();
  bounds[variant.symbol] = {least, variant.bound};
  for (unsigned symbol : variant.ofOne)
    bounds[symbol] = {1, 1};
  KernelFunction(form).setBounds(bounds);
  auto module = kernel->getParentOfType<ModuleOp>();
  std::string name = (kernel.getName() + "_rows" + Twine(variant.bound)).str();
  while (module.lookupSymbol(name))
    name += "_";
  form.setName(name);
  previous->getBlock()->getOperations().insertAfter(previous->getIterator(), form);
  return form;
}

static bool serves(const ShapeVariant &variant, ArrayRef<int64_t> extents) {
  return extents[variant.symbol] <= variant.bound &&
         llvm::all_of(variant.ofOne, [&](unsigned symbol) { return extents[symbol] == 1; });
}

StringRef chooseVariant(const ShapeVariants &variants, StringRef kernel, ArrayRef<int64_t> extents) {
  if (auto forms = variants.find(kernel); forms != variants.end())
    for (const KernelVariant &form : forms->second)
      if (serves(form, extents))
        return form.function;
  return kernel;
}

ShapeVariants addShapeVariants(ModuleOp module, const Target &target) {
  ShapeVariants variants;
  SmallVector<func::FuncOp> kernels;
  for (auto function : module.getOps<func::FuncOp>())
    if (isKernel(function))
      kernels.push_back(function);
  for (func::FuncOp kernel : kernels) {
    func::FuncOp previous = kernel;
    std::vector<ShapeVariant> served;
    const SmallVector<kd::Interval> bounds = KernelFunction(kernel).bounds();
    for (ShapeVariant variant : target.compilerOf(kernel).shapeVariants(kernel)) {
      int64_t least = bounds[variant.symbol].min;
      for (const ShapeVariant &before : served) // variants for the same dimensions, by ascending bound
        if (before.symbol == variant.symbol && before.ofOne == variant.ofOne)
          least = before.bound + 1;
      previous = cloneWithBounds(kernel, previous, variant, least);
      variants[kernel.getName()].push_back({variant, previous.getName().str()});
      served.push_back(variant);
    }
  }
  return variants;
}

} // namespace kiln
