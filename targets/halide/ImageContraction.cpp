// SPDX-License-Identifier: Apache-2.0
#include "targets/halide/ImageContraction.h"

namespace kiln::halide {

using namespace mlir;
using Halide::Expr;
using Halide::Func;
using Halide::Var;

std::optional<ImageContraction> findImageContraction(func::FuncOp kernel, int lanes) {
  std::optional<Contraction> found = onlyContraction(kernel);
  if (!found || !found->m || found->batch.empty() || found->reduction.size() < 2 || found->tile == 0 ||
      found->tile % lanes)
    return std::nullopt;
  // The rows and what is outside of them belong to the image alone; its channels, the first reduction, are a dimension.
  linalg::GenericOp op = found->op;
  AffineMap image = op.getIndexingMapsArray()[found->a], weight = op.getIndexingMapsArray()[found->b],
            out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  std::optional<unsigned> channels = image.getResultPosition(getAffineDimExpr(found->reduction[0], op->getContext()));
  bool isImage = llvm::none_of(found->batch, [&](unsigned loop) { return weight.isFunctionOfDim(loop); }) &&
                 out.getDimPosition(out.getNumResults() - 2) == *found->m;
  if (!isImage || !channels || ShapedType::isDynamic(staticExtent(op, found->reduction[0])))
    return std::nullopt;
  return ImageContraction{*found, *channels};
}

Func copyImage(Translator &translator, const ImageContraction &of, int channelBlock, Var within, Var block) {
  unsigned dims = cast<RankedTensorType>(of.image().getType()).getRank();
  bool isArgument = isa<BlockArgument>(of.image());
  std::vector<Var> vars{within};
  Exprs logical(dims);
  logical[of.channelDim] = block * channelBlock + within;
  for (unsigned i = dims; i-- > 0;) {
    if (i == of.channelDim)
      continue;
    vars.push_back(dimensionVar(vars.size()));
    logical[i] = isArgument ? Halide::clamp(vars.back(), 0, translator.extent(of.image(), i) - 1) : Expr(vars.back());
  }
  vars.push_back(block);
  Func image(translator.name("image"));
  image(vars) = translator.read(of.image(), logical);
  return image;
}

std::vector<int64_t> channelBlocks(const ImageContraction &of, int lanes) {
  std::vector<int64_t> blocks;
  for (int64_t c = 1; c <= of.channels(); ++c)
    if (of.channels() % c == 0 && (c % lanes == 0 || c == of.channels()))
      blocks.push_back(c);
  return blocks;
}

std::vector<int64_t> tileOutputs(const ImageContraction &of, int lanes) {
  std::vector<int64_t> outputs;
  for (int64_t n = lanes; n <= std::min<int64_t>(of.shape.tile, 4 * lanes); n += lanes)
    if (of.shape.tile % n == 0)
      outputs.push_back(n);
  return outputs;
}

} // namespace kiln::halide
