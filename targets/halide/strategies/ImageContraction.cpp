// SPDX-License-Identifier: Apache-2.0
#include "targets/halide/strategies/ImageContraction.h"

namespace kiln::halide {

using namespace mlir;
using Halide::Expr;
using Halide::Func;
using Halide::Var;

std::optional<ImageContraction> findImageContraction(func::FuncOp kernel, const MachineModel &machine) {
  std::optional<Contraction> found = onlyContraction(kernel);
  if (!found || !found->m || found->outer.empty() || found->reduction.size() < 2 || found->tile == 0 ||
      found->tile % vectorLanes(machine, found->sumType()))
    return std::nullopt;
  // The row and batch loops must index only the image, not the weight, and the channels, the first reduction, must be a
  // dimension of the image.
  linalg::GenericOp op = found->op;
  AffineMap image = op.getIndexingMapsArray()[found->a], weight = op.getIndexingMapsArray()[found->b],
            out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  std::optional<unsigned> channels = image.getResultPosition(getAffineDimExpr(found->reduction[0], op->getContext()));
  bool isImage = llvm::none_of(found->outer, [&](unsigned loop) { return weight.isFunctionOfDim(loop); }) &&
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
  image(vars) = translator.wide(of.image(), translator.read(of.image(), logical));
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

std::vector<int64_t> blocksOfRows(int64_t height) {
  std::vector<int64_t> blocks;
  for (int64_t rows = 1; rows < 2 * height; rows *= 2)
    blocks.push_back(std::min(rows, height));
  return blocks;
}

int64_t sharedColumns(const ImageContraction &of) {
  linalg::GenericOp op = of.op();
  const int64_t columns = staticExtent(op, of.shape.reduction.back());
  // Returns how far an iteration of a loop moves along the row.
  auto strideOf = [&](AffineExpr position, unsigned loop) {
    SmallVector<AffineExpr> at(op.getNumLoops(), getAffineConstantExpr(0, op->getContext()));
    at[loop] = getAffineConstantExpr(1, op->getContext());
    auto stride = dyn_cast<AffineConstantExpr>(position.replaceDims(at));
    return stride ? stride.getValue() : 0;
  };
  for (AffineExpr position : op.getIndexingMapsArray()[of.shape.a].getResults())
    if (position.isFunctionOfDim(of.columns()) &&
        strideOf(position, of.columns()) >= columns * strideOf(position, of.shape.reduction.back()))
      return 1;
  return columns;
}

std::pair<int64_t, int64_t> findTile(const ImageContraction &of, llvm::ArrayRef<int64_t> outputs, int64_t width,
                                     int64_t columns, const MachineModel &machine) {
  constexpr int64_t inFlight = 8;   // independent multiply-adds that hide the latency of one
  constexpr double loadCost = 0.25; // relative to a multiply-add
  const int64_t lanes = vectorLanes(machine, of.shape.sumType()),
                registers = vectorRegisters(machine, of.shape.sumType());
  std::pair<int64_t, int64_t> best{1, outputs.front()};
  double most = 0;
  for (int64_t n : outputs)
    for (int64_t m = 1; m <= std::min<int64_t>(registers / 2, width); ++m) {
      const int64_t vectors = n / lanes, pixels = m + columns - 1;
      if (m * vectors + (columns > 1 ? pixels : vectors) + 1 > registers)
        continue;
      const double used = double(width) / double(llvm::alignTo(width, m)),
                   busy = std::min(1.0, double(m * vectors) / inFlight),
                   loads = double(pixels + columns * vectors) / double(columns * m * vectors);
      if (double score = used * busy / (1 + loads * loadCost); score > most) {
        most = score;
        best = {m, n};
      }
    }
  return best;
}

void scheduleResults(Translator &translator, const ImageContraction &of, bool isCopied, Func store,
                     const Exprs &extents, int lanes, llvm::function_ref<void(Func)> scheduleStore) {
  llvm::DenseSet<Operation *> placed{of.op()};
  if (Operation *producer = of.image().getDefiningOp(); producer && isCopied)
    placed.insert(producer);
  placeAtRoot(translator, placed, lanes);
  if (store.defined()) {
    store.compute_root();
    for (unsigned i = 0; i < extents.size(); ++i)
      store.bound(dimensionVar(i), 0, extents[i]);
    scheduleStore(store);
  }
  for (const Output &output : translator.outputs) {
    if (store.defined())
      halide::scheduleStore(output, lanes, Tasks());
    else
      scheduleStore(output.func);
  }
}

} // namespace kiln::halide
