// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/plan/LaunchPlan.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MathExtras.h"

namespace kiln::cuda {

using namespace mlir;

DeviceFunction makeFunction(const std::string &name, const tile::KernelLaunch &launch, int64_t sharedBytes) {
  return {name, uint32_t(launch.threads), uint32_t(sharedBytes), uint32_t(launch.cluster), launch.isDependentLaunch};
}

int64_t valueOf(AffineExpr expr, ArrayRef<int64_t> symbols) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return symbols[symbol.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  const int64_t a = valueOf(binary.getLHS(), symbols), b = valueOf(binary.getRHS(), symbols);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return a + b;
  case AffineExprKind::Mul:
    return a * b;
  case AffineExprKind::Mod:
    return a % b;
  case AffineExprKind::FloorDiv:
    return a / b;
  case AffineExprKind::CeilDiv:
    return llvm::divideCeil(a, b);
  default:
    llvm_unreachable("an extent has no other kinds");
  }
}

} // namespace kiln::cuda
