// SPDX-License-Identifier: Apache-2.0
#include "targets/halide/strategies/Contraction.h"

#include "targets/halide/strategies/Placement.h"

namespace kiln::halide {

using namespace mlir;
using Halide::Expr;
using Halide::Func;
using Halide::RDom;
using Halide::Var;

namespace {

class ContractionBuilder {
public:
  ContractionBuilder(Translator &translator, const ContractionSchedule &schedule, Tiled &tiled)
      : translator(translator), schedule(schedule), tiled(tiled), shape(tiled.shape), op(shape.op),
        group(productsOfSum(shape)), partialSums(group ? int(staticK(shape) / group) : schedule.partialSums) {}

  Func build();

private:
  void nameLoops();
  Func pack(StringRef name, unsigned operand, unsigned loop, int size, ArrayRef<Var> batch);
  Expr readPacked(Func packed, unsigned loop, int size, ArrayRef<Var> batch) const;
  bool isBlocked() const { return schedule.blockK > 0 && schedule.blockK < staticSteps(shape); }
  bool hasPieces() const { return isBlocked() || partialSums > 1 || group; }
  Func interleaveRows();
  Func makeGroupSums();
  Exprs interleavedIndex() const;
  Exprs readInterleaved() const;
  Expr scaledGroup(const Expr &sum);
  Expr zero(bool isWhole) const {
    return isWhole ? Expr(0) : Halide::Internal::make_zero(elementType(shape.sumType()));
  }
  bool buildTile(const std::vector<Var> &tileVars, const Expr &block, const Expr &part);

  Translator &translator;
  const ContractionSchedule &schedule;
  Tiled &tiled;
  const Contraction &shape;
  linalg::GenericOp op;
  const int64_t group;   // elements of K that share a scale and are summed up separately; 0: none
  const int partialSums; // of a block of K
  std::vector<Var> vars; // variables of the output, innermost first
  Exprs loops;           // values of the op's loops
};

void ContractionBuilder::nameLoops() {
  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  tiled.rank = out.getNumResults();
  loops.resize(op.getNumLoops());
  for (unsigned i = 0; i < tiled.rank; ++i) {
    unsigned loop = out.getDimPosition(tiled.rank - 1 - i);
    vars.push_back(dimensionVar(i));
    loops[loop] = vars.back();
    tiled.extents.push_back(translator.loopExtent(op, loop));
    if (shape.m && loop == *shape.m)
      tiled.rowDim = i;
  }
  AffineMap maps[2] = {op.getIndexingMapsArray()[shape.a], op.getIndexingMapsArray()[shape.b]};
  for (unsigned loop : shape.outer) {
    Var var(loops[loop].as<Halide::Internal::Variable>()->name);
    if (maps[0].isFunctionOfDim(loop))
      tiled.batchA.push_back(var);
    if (maps[1].isFunctionOfDim(loop))
      tiled.batchB.push_back(var);
  }
}

/// Packs an operand. Its dimensions are, innermost first, the position in the tile, k, the tile, and the batch loops
/// that the operand depends on.
Func ContractionBuilder::pack(StringRef name, unsigned operand, unsigned loop, int size, ArrayRef<Var> batch) {
  Var lane("lane"), group("group");
  std::vector<Var> kVars;
  for (unsigned i = 0; i < shape.reduction.size(); ++i)
    kVars.push_back(Var("k" + std::to_string(i)));
  std::vector<Var> packedVars{lane};
  packedVars.insert(packedVars.end(), kVars.rbegin(), kVars.rend());
  packedVars.push_back(group);
  packedVars.insert(packedVars.end(), batch.begin(), batch.end());
  Exprs at = loops;
  for (auto [i, reduction] : llvm::enumerate(shape.reduction))
    at[reduction] = kVars[i];
  at[loop] = heldBelow(Halide::likely(group * size + lane), translator.loopExtent(op, loop));
  Func packed(translator.name(name));
  packed(packedVars) = translator.readWide(op, operand, at);
  return packed;
}

Expr ContractionBuilder::readPacked(Func packed, unsigned loop, int size, ArrayRef<Var> batch) const {
  Exprs indices{loops[loop] % size};
  for (unsigned reduction : llvm::reverse(shape.reduction))
    indices.push_back(loops[reduction]);
  indices.push_back(loops[loop] / size);
  indices.insert(indices.end(), batch.begin(), batch.end());
  return packed(indices);
}

/// Packs the rows of a into words of the interleaved layout. The dimensions are, innermost first, the word along k, the
/// row, and the batch loops that a depends on.
Func ContractionBuilder::interleaveRows() {
  Var word("word"), row("row");
  std::vector<Var> vars{word};
  Exprs at = loops;
  at[shape.reduction[0]] = word;
  if (shape.m) {
    vars.push_back(row);
    at[*shape.m] = row;
  }
  vars.insert(vars.end(), tiled.batchA.begin(), tiled.batchA.end());
  Func words(translator.name("words"));
  words(vars) = translator.interleavedRow(shape, at);
  return words;
}

/// Sums up the groups of the rows of a. The innermost dimension is the group, the others are those of interleaveRows().
Func ContractionBuilder::makeGroupSums() {
  Var which("group"), row("row");
  std::vector<Var> vars{which};
  tiled.within = RDom({{0, int(shape.group)}}, translator.name("within"));
  Exprs at = loops;
  at[shape.reduction[0]] = which * int(shape.group) + tiled.within.x;
  if (shape.m) {
    vars.push_back(row);
    at[*shape.m] = row;
  }
  vars.insert(vars.end(), tiled.batchA.begin(), tiled.batchA.end());
  Func sums(translator.name("group_sums"));
  sums(vars) = 0;
  sums(vars) += Halide::cast<int32_t>(translator.readOperand(op, shape.a, at));
  return sums;
}

/// Returns the outer indices of `words` and `groupSums`. Rows of full tiles after the last one read other rows again.
Exprs ContractionBuilder::interleavedIndex() const {
  Exprs indices;
  if (shape.m) {
    Expr row = loops[*shape.m], extent = translator.loopExtent(op, *shape.m);
    indices.push_back(Halide::min(rowOfFullTile(row, extent, schedule.tileRows), extent - 1));
  }
  indices.insert(indices.end(), tiled.batchA.begin(), tiled.batchA.end());
  return indices;
}

/// Returns the words of a row that are multiplied by the weight's word.
Exprs ContractionBuilder::readInterleaved() const {
  const int count = int(rowInterleavesPerStep(shape));
  Exprs words;
  for (int i = 0; i < count; ++i) {
    Exprs indices = interleavedIndex();
    indices.insert(indices.begin(), loops[shape.reduction[0]] * count + i);
    words.push_back(tiled.words(indices));
  }
  return words;
}

/// Multiplies the sum of a group of K by its scale, unless its numbers were scaled as they were read.
Expr ContractionBuilder::scaledGroup(const Expr &sum) {
  loops[shape.reduction[0]] = tiled.pieces.x * int(group);
  if (!shape.group) {
    const Expr scale = translator.scaleOf(op, shape.b, loops);
    return scale.defined() ? sum * scale : sum;
  }
  Exprs indices = interleavedIndex();
  indices.insert(indices.begin(), tiled.pieces.x);
  return translator.scaledGroup(shape, sum, tiled.groupSums(indices), loops);
}

/// Builds the register tile of one partial sum of a block. It is a separate Func, so that the accumulators are held in
/// registers. Returns false after a diagnostic.
bool ContractionBuilder::buildTile(const std::vector<Var> &tileVars, const Expr &block, const Expr &part) {
  const int partK = shape.group ? int(shape.group / shape.interleave)
                    : group     ? int(group)
                                : schedule.blockK / partialSums;
  Halide::Region region;
  for (unsigned reduction : llvm::reverse(shape.reduction))
    region.push_back({0, hasPieces()      ? Expr(partK)
                         : shape.isVnni() ? Expr(int(staticSteps(shape)))
                                          : translator.loopExtent(op, reduction)});
  RDom reduction(region, translator.name("k"));
  for (unsigned i = 0; i < shape.reduction.size(); ++i)
    loops[shape.reduction[shape.reduction.size() - 1 - i]] = reduction[i];
  if (isBlocked())
    loops[shape.reduction[0]] += block * schedule.blockK;
  if (partialSums > 1)
    loops[shape.reduction[0]] += part * partK;

  Func tile(translator.name("tile"));
  tile(tileVars) = zero(shape.isVnni());
  Exprs at(tileVars.begin(), tileVars.end());
  tiled.tile = tile;
  tiled.reduction = reduction;
  if (shape.isVnni()) {
    tile(at) = translator.addProducts(shape, tile(at), readInterleaved(), translator.interleavedWeight(shape, loops));
    return true;
  }
  Exprs values = translator.body(op, loops, [&](unsigned operand) -> Expr {
    if (operand == shape.a && tiled.packedA.defined())
      return readPacked(tiled.packedA, *shape.m, schedule.tileRows, tiled.batchA);
    if (operand == shape.b && shape.tile == 0)
      return readPacked(tiled.packedB, shape.n, schedule.tileColumns, tiled.batchB);
    if (operand != shape.a && operand != shape.b)
      return tile(at);
    Exprs read = loops;
    if (operand == shape.a && shape.m) {
      Expr &row = read[*shape.m], extent = translator.loopExtent(op, *shape.m);
      row = rowOfFullTile(row, extent, schedule.tileRows);
      // Otherwise a Func that computes the operand would also compute the rows of full tiles after the last one, from
      // elements that do not exist.
      if (!isa<BlockArgument>(op->getOperand(operand)))
        row = Halide::min(row, extent - 1);
    }
    return translator.readOperand(op, operand, read);
  });
  if (values.empty())
    return false;
  tile(at) = overDomain(reduction, values[0]);
  return true;
}

Func ContractionBuilder::build() {
  nameLoops();
  const bool hasOneScale = shape.tile && translator.groupOf(op, shape.b) == 0;
  if (hasOneScale || group)
    translator.setUnscaled(op, shape.b);
  if (shape.group)
    tiled.groupSums = makeGroupSums();
  if (shape.isVnni())
    tiled.words = interleaveRows();
  else if (shape.m && schedule.isPacked)
    tiled.packedA = pack("packed_a", shape.a, *shape.m, schedule.tileRows, tiled.batchA);
  if (shape.tile == 0)
    tiled.packedB = pack("packed_b", shape.b, shape.n, schedule.tileColumns, tiled.batchB);

  std::vector<Var> tileVars = vars;
  Var block("block"), part("part");
  if (hasPieces())
    tileVars.push_back(part);
  if (isBlocked())
    tileVars.push_back(block);
  if (!buildTile(tileVars, block, part))
    return Func();
  Func result = tiled.tile;
  if (hasPieces()) {
    // With one block each tile has a total, with several blocks all tiles of rows share a panel.
    Halide::Region region{{0, partialSums}};
    if (isBlocked())
      region.push_back({0, int(staticSteps(shape) / schedule.blockK)});
    tiled.pieces = RDom(region, translator.name("pieces"));
    Func &sums = isBlocked() ? tiled.panel : tiled.total;
    sums = Func(translator.name(isBlocked() ? "panel" : "total"));
    sums(vars) = zero(shape.hasIntegerSums());
    Exprs at(vars.begin(), vars.end());
    at.push_back(tiled.pieces.x);
    if (isBlocked())
      at.push_back(tiled.pieces.y);
    Expr sum = tiled.tile(at);
    if (group)
      sum = scaledGroup(sum);
    const Exprs here(vars.begin(), vars.end());
    sums(vars) = shape.group ? Halide::strict_float(sums(here) + sum) : sums(here) + sum;
    result = sums;
  }
  if (hasOneScale && translator.scaleOf(op, shape.b, loops).defined()) {
    Func scaled(translator.name("scaled")); // inlined into its uses
    scaled(vars) = translator.scaledSum(shape, result(vars), loops);
    result = scaled;
  }
  if (!tiled.isFused) {
    tiled.store = Func(translator.name("sums"));
    tiled.store(vars) = result(vars);
    result = tiled.store;
  }
  return result;
}

} // namespace

Func buildContraction(Translator &translator, const ContractionSchedule &schedule, Tiled &tiled) {
  return ContractionBuilder(translator, schedule, tiled).build();
}

} // namespace kiln::halide
