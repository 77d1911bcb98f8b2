// SPDX-License-Identifier: Apache-2.0
#include "targets/halide/strategies/AttentionMatch.h"

namespace kiln::halide {

using namespace mlir;

/// Returns for each dimension of the products the one of the kernel's result with the same index; nullopt unless the
/// result has every dimension of the products, with the channels innermost.
static std::optional<SmallVector<int>> alignResult(func::FuncOp kernel, linalg::GenericOp products) {
  const int64_t rank = cast<RankedTensorType>(products.getResult(0).getType()).getRank();
  if (!hasOneResultShape(kernel) || kernel.getNumResults() != 1 ||
      cast<RankedTensorType>(kernel.getResultTypes().front()).getRank() != rank)
    return std::nullopt;
  const Alignment alignment(kernel);
  SmallVector<int> found;
  for (unsigned i = 0; i < rank; ++i) {
    const int at = alignment.get(products.getResult(0), i);
    if (at < 0 || llvm::is_contained(found, at))
      return std::nullopt;
    found.push_back(at);
  }
  return found.back() == rank - 1 ? std::optional(found) : std::nullopt;
}

std::optional<AttentionMatch> matchAttentionOps(const DecomposedKernel &kernel) {
  const AttentionOps *ops = kernel.attention();
  if (!ops)
    return std::nullopt;
  const std::optional<Contraction> scores = asContraction(ops->scores, /*mayScale=*/true),
                                   products = asContraction(ops->products, /*mayScale=*/true);
  if (!scores || scores->a != AttentionOps::scaledOfScores || scores->tile || !scores->m)
    return std::nullopt;
  if (!products || products->a != AttentionOps::weightOfProducts || products->tile || !products->m)
    return std::nullopt;
  std::optional<SmallVector<int>> productAt = alignResult(kernel.get(), ops->products);
  if (!productAt)
    return std::nullopt;
  return AttentionMatch{*ops, *scores, *products, std::move(*productAt)};
}

} // namespace kiln::halide
