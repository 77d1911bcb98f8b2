// SPDX-License-Identifier: Apache-2.0
#include "targets/halide/Contraction.h"

namespace kiln::halide {

using namespace mlir;
using Halide::Expr;
using Halide::Func;
using Halide::RDom;
using Halide::Var;

Func buildContraction(Translator &translator, const ContractionSchedule &schedule, Tiled &tiled) {
  const int tileRows = schedule.tileRows, tileColumns = schedule.tileColumns, blockDepth = schedule.blockDepth;
  const Contraction &shape = tiled.shape;
  linalg::GenericOp op = shape.op;
  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  tiled.rank = out.getNumResults();
  std::vector<Var> vars;
  Exprs loops(op.getNumLoops());
  for (unsigned i = 0; i < tiled.rank; ++i) {
    unsigned loop = out.getDimPosition(tiled.rank - 1 - i);
    vars.push_back(dimensionVar(i));
    loops[loop] = vars.back();
    tiled.extents.push_back(translator.loopExtent(op, loop));
    if (shape.m && loop == *shape.m)
      tiled.rowDim = i;
  }
  AffineMap maps[2] = {op.getIndexingMapsArray()[shape.a], op.getIndexingMapsArray()[shape.b]};
  for (unsigned loop : shape.batch) {
    Var var(loops[loop].as<Halide::Internal::Variable>()->name);
    if (maps[0].isFunctionOfDim(loop))
      tiled.batchA.push_back(var);
    if (maps[1].isFunctionOfDim(loop))
      tiled.batchB.push_back(var);
  }

  // Packing: innermost the position in the tile, then k, the tile, and the batch loops that the operand depends on.
  Var lane("lane"), group("group");
  std::vector<Var> depthVars;
  for (unsigned i = 0; i < shape.reduction.size(); ++i)
    depthVars.push_back(Var("k" + std::to_string(i)));
  auto pack = [&](StringRef name, unsigned operand, unsigned loop, int size, ArrayRef<Var> batch) {
    std::vector<Var> packedVars{lane};
    packedVars.insert(packedVars.end(), depthVars.rbegin(), depthVars.rend());
    packedVars.push_back(group);
    packedVars.insert(packedVars.end(), batch.begin(), batch.end());
    Exprs at = loops;
    for (auto [i, reduction] : llvm::enumerate(shape.reduction))
      at[reduction] = depthVars[i];
    at[loop] = Halide::min(Halide::likely(group * size + lane), translator.loopExtent(op, loop) - 1);
    Func packed(translator.name(name));
    packed(packedVars) = translator.readOperand(op, operand, at);
    return packed;
  };
  if (shape.m && schedule.isPacked)
    tiled.packedA = pack("packed_a", shape.a, *shape.m, tileRows, tiled.batchA);
  if (shape.tile == 0)
    tiled.packedB = pack("packed_b", shape.b, shape.n, tileColumns, tiled.batchB);
  auto readPacked = [&](Func packed, unsigned loop, int size, ArrayRef<Var> batch, const Exprs &at) -> Expr {
    Exprs indices{at[loop] % size};
    for (unsigned reduction : llvm::reverse(shape.reduction))
      indices.push_back(at[reduction]);
    indices.push_back(at[loop] / size);
    indices.insert(indices.end(), batch.begin(), batch.end());
    return packed(indices);
  };

  // The tile: a Func of its own, so that its sums are held in registers.
  bool isBlocked = blockDepth > 0 && blockDepth < staticExtent(op, shape.reduction[0]);
  Halide::Region region;
  for (unsigned reduction : llvm::reverse(shape.reduction))
    region.push_back({0, isBlocked ? Expr(blockDepth) : translator.loopExtent(op, reduction)});
  tiled.depth = RDom(region, translator.name("k"));
  for (unsigned i = 0; i < shape.reduction.size(); ++i)
    loops[shape.reduction[shape.reduction.size() - 1 - i]] = tiled.depth[i];
  std::vector<Var> tileVars = vars;
  Var block("block");
  if (isBlocked) {
    tileVars.push_back(block);
    loops[shape.reduction[0]] = block * blockDepth + tiled.depth[0];
  }
  Halide::Type type = elementType(getElementTypeOrSelf(op.getResult(0)));
  tiled.tile = Func(translator.name("tile"));
  tiled.tile(tileVars) = Halide::Internal::make_zero(type);
  Exprs tileIndices(tileVars.begin(), tileVars.end());
  Exprs values = translator.body(op, loops, [&](unsigned number) -> Expr {
    if (number == shape.a && tiled.packedA.defined())
      return readPacked(tiled.packedA, *shape.m, tileRows, tiled.batchA, loops);
    if (number == shape.b && shape.tile == 0)
      return readPacked(tiled.packedB, shape.n, tileColumns, tiled.batchB, loops);
    if (number != shape.a && number != shape.b)
      return tiled.tile(tileIndices);
    Exprs at = loops;
    if (number == shape.a && shape.m) // full tiles are computed: the last row again behind it
      at[*shape.m] = Halide::min(Halide::likely(at[*shape.m]), translator.loopExtent(op, *shape.m) - 1);
    return translator.readOperand(op, number, at);
  });
  if (values.empty())
    return Func();
  tiled.tile(tileIndices) = values[0];

  Func result = tiled.tile;
  if (isBlocked) {
    tiled.blocks = RDom({{0, int(staticExtent(op, shape.reduction[0]) / blockDepth)}}, translator.name("blocks"));
    tiled.panel = Func(translator.name("panel"));
    tiled.panel(vars) = Halide::Internal::make_zero(type);
    tileIndices.back() = tiled.blocks.x;
    tiled.panel(vars) += tiled.tile(tileIndices);
    result = tiled.panel;
  }
  if (!tiled.isFused) {
    tiled.store = Func(translator.name("sums"));
    tiled.store(vars) = result(vars);
    result = tiled.store;
  }
  return result;
}

} // namespace kiln::halide
