// SPDX-License-Identifier: Apache-2.0
//
// Two contractions with row-wise work between them: result = weights(scores(queries, keys)) * values.
//
// 1. For each of the outer indices (batch, head) keys are packed [keys / tile][depth][tile] and values [depth /
// tile][keys][tile].
// 2. A block of query rows at a time: scores in register tiles with what follows element by element fused at the tile;
// the row-wise
//    reductions; the weights; then products in register tiles, fused with the stage that stores the result.
// 3. Tiles are always full: packed operands repeat their last row, arguments read between are clamped, reductions and
//    the store run over the true extents.
#include "targets/halide/Placement.h"
#include "targets/halide/Structure.h"

namespace kiln::halide {

using namespace mlir;
using Halide::Expr;
using Halide::Func;
using Halide::RDom;
using Halide::TailStrategy;
using Halide::Var;

namespace {

struct Match {
  Contraction scores, products;
  linalg::GenericOp masked;                // the stage fused at the score tile; null: the scores themselves
  llvm::SetVector<Operation *> between;    // parallel stages of the scores' shape, after `masked`
  llvm::SetVector<Operation *> reductions; // along the keys
  llvm::SetVector<Operation *> perRow;     // parallel stages of the reductions' shape
  SmallVector<int> productAt;              // for each dimension of the products that of the result
};

/// Dimension of the op's result that the loop indexes.
unsigned resultDimension(linalg::GenericOp op, unsigned loop) {
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  return *map.getResultPosition(getAffineDimExpr(loop, op->getContext()));
}

bool isElementwise(linalg::GenericOp op, ArrayRef<int64_t> shape) {
  return op.getNumReductionLoops() == 0 && op.getNumDpsInits() == 1 &&
         op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity() &&
         cast<RankedTensorType>(op.getResult(0).getType()).getShape() == shape;
}

/// Whether every use of an operand among `values` has the identity map.
bool readsAtSameIndex(linalg::GenericOp op, const llvm::SetVector<Value> &values) {
  for (OpOperand *input : op.getDpsInputOperands())
    if (values.contains(input->get()) && !op.getMatchingIndexingMap(input).isIdentity())
      return false;
  return true;
}

std::optional<Match> match(func::FuncOp kernel) {
  if (!hasOneResultShape(kernel) || kernel.getNumResults() != 1)
    return std::nullopt;
  Match found;
  SmallVector<Contraction> contractions;
  for (linalg::GenericOp op : kernel.getOps<linalg::GenericOp>())
    if (auto contraction = asContraction(op); contraction && contraction->tile == 0 && contraction->m)
      contractions.push_back(*contraction);
  if (contractions.size() != 2)
    return std::nullopt;
  found.scores = contractions[0];
  found.products = contractions[1];
  linalg::GenericOp scores = found.scores.op, products = found.products.op;
  auto type = cast<RankedTensorType>(scores.getResult(0).getType());
  if (!scores.getMatchingIndexingMap(scores.getDpsInitOperand(0)).isProjectedPermutation() ||
      found.scores.reduction.size() != 1 || found.products.reduction.size() != 1)
    return std::nullopt;

  // Stages between the two, all derived from the scores.
  llvm::SetVector<Value> wide, narrow;
  wide.insert(scores.getResult(0));
  ArrayRef<int64_t> shape = type.getShape(), rowShape = shape.drop_back();
  for (linalg::GenericOp op : kernel.getOps<linalg::GenericOp>()) {
    if (op == scores || op == products || !scores->isBeforeInBlock(op))
      continue;
    bool usesWide = llvm::any_of(op.getDpsInputs(), [&](Value v) { return wide.contains(v); });
    bool usesNarrow = llvm::any_of(op.getDpsInputs(), [&](Value v) { return narrow.contains(v); });
    if (!usesWide && !usesNarrow)
      continue;
    if (op.getNumReductionLoops()) {
      SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
      if (!usesWide || op.getNumDpsInits() != 1 || op.getNumReductionLoops() != 1 ||
          kinds.back() != utils::IteratorType::reduction || !readsAtSameIndex(op, wide) ||
          cast<RankedTensorType>(op.getResult(0).getType()).getShape() != rowShape)
        return std::nullopt;
      found.reductions.insert(op);
      narrow.insert(op.getResult(0));
    } else if (isElementwise(op, shape) && op->isBeforeInBlock(products)) {
      if (!readsAtSameIndex(op, wide))
        return std::nullopt;
      found.between.insert(op);
      wide.insert(op.getResult(0));
    } else if (isElementwise(op, rowShape)) {
      found.perRow.insert(op);
      narrow.insert(op.getResult(0));
    }
  }
  // The rows of both are the same loop, and what the second one reads is the weights at [.., query, key].
  Value weights = products.getDpsInputs()[found.products.a];
  AffineMap weightMap = products.getIndexingMapsArray()[found.products.a];
  unsigned rank = type.getRank();
  if (found.reductions.empty() || !wide.contains(weights) || resultDimension(scores, *found.scores.m) != rank - 2 ||
      weightMap.getNumResults() != rank ||
      weightMap.getResult(rank - 1) != getAffineDimExpr(found.products.reduction[0], kernel.getContext()) ||
      weightMap.getResult(rank - 2) != getAffineDimExpr(*found.products.m, kernel.getContext()) ||
      !weightMap.isProjectedPermutation())
    return std::nullopt;
  for (unsigned loop : found.products.batch)
    if (!weightMap.isFunctionOfDim(loop) && staticExtent(products, loop) != 1)
      return std::nullopt;

  // The result has every dimension of the products, the channels innermost.
  Alignment alignment(kernel);
  auto productType = cast<RankedTensorType>(products.getResult(0).getType());
  auto resultType = cast<RankedTensorType>(kernel.getResultTypes().front());
  if (productType.getRank() != resultType.getRank())
    return std::nullopt;
  for (unsigned i = 0; i < productType.getRank(); ++i) {
    int at = alignment.get(products.getResult(0), i);
    if (at < 0 || llvm::is_contained(found.productAt, at))
      return std::nullopt;
    found.productAt.push_back(at);
  }
  if (found.productAt.back() != int(productType.getRank()) - 1)
    return std::nullopt;

  // One stage alone reads the scores: it is computed with them.
  SmallVector<linalg::GenericOp> users = genericUsers(scores.getResult(0));
  if (users.size() == 1 && found.between.contains(users[0])) {
    found.masked = users[0];
    found.between.remove(users[0]);
  }
  return found;
}

class Attention : public Strategy {
public:
  Attention(Match match, const MachineModel &machine)
      : found(std::move(match)), machine(machine), lanes(vectorLanes(machine)) {}

  llvm::StringRef name() const override { return "attention"; }

  SearchSpace searchSpace() const override {
    int64_t columns = (machine.vectorRegisters >= 32 ? 4 : 2) * lanes;
    return {makeParameter("rows", {2, 4, 6, 8}, 6), makeParameter("keys", {lanes, 2 * lanes, 4 * lanes}, columns),
            makeParameter("query_tiles", {1, 2, 4, 8, 16}, 4)};
  }

  void prepare(Translator &translator, const SchedulePoint &point) override;
  void schedule(Translator &translator, const SchedulePoint &point) override;

private:
  /// Packs the operand that the columns index: [columns / size][k][size] for each batch index.
  Func pack(Translator &translator, const Contraction &shape, StringRef name, const Exprs &loops, int size);
  Func buildScores(Translator &translator);
  Func buildProducts(Translator &translator);
  void placeTile(Func tile, const RDom &depth, Var rows, int columns);

  Match found;
  MachineModel machine;
  int lanes;
  int tileRows = 0, tileKeys = 0, tileChannels = 0;
  Func packedKeys, scoreTile, scores, packedValues, productTile;
  RDom scoreDepth, productDepth;
};

/// Pure variables for the parallel loops of the op.
Exprs parallelLoops(linalg::GenericOp op) {
  Exprs loops(op.getNumLoops());
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  for (unsigned i = 0; i < map.getNumResults(); ++i)
    loops[map.getDimPosition(i)] = dimensionVar(map.getNumResults() - 1 - i);
  return loops;
}

std::vector<Var> batchVars(const Contraction &shape, const Exprs &loops) {
  std::vector<Var> vars;
  linalg::GenericOp op = shape.op;
  AffineMap map = op.getIndexingMapsArray()[shape.b];
  for (unsigned loop : shape.batch)
    if (map.isFunctionOfDim(loop))
      vars.push_back(Var(loops[loop].as<Halide::Internal::Variable>()->name));
  return vars;
}

Func Attention::pack(Translator &translator, const Contraction &shape, StringRef name, const Exprs &loops, int size) {
  Var lane("lane"), k("k"), group("group");
  std::vector<Var> vars{lane, k, group};
  for (Var var : batchVars(shape, loops))
    vars.push_back(var);
  Exprs at = loops;
  at[shape.reduction[0]] = k;
  at[shape.n] = Halide::min(Halide::likely(group * size + lane), translator.loopExtent(shape.op, shape.n) - 1);
  Func packed(translator.name(name));
  packed(vars) = translator.readOperand(shape.op, shape.b, at);
  return packed;
}

/// Reads the packed operand at the loops.
Expr readPacked(const Func &packed, const Contraction &shape, const Exprs &loops, int size) {
  Exprs at{loops[shape.n] % size, loops[shape.reduction[0]], loops[shape.n] / size};
  for (Var var : batchVars(shape, loops))
    at.push_back(var);
  return packed(at);
}

void Attention::prepare(Translator &translator, const SchedulePoint &point) {
  tileRows = point.at("rows");
  tileKeys = point.at("keys");
  int64_t channels = largestExtent(found.products.op, found.products.n);
  tileChannels =
      std::min<int64_t>((channels + lanes - 1) / lanes * lanes, (machine.vectorRegisters >= 32 ? 4 : 2) * lanes);
  translator.setBuilder(found.scores.op, [this, &translator](linalg::GenericOp) { return buildScores(translator); });
  translator.setBuilder(found.products.op,
                        [this, &translator](linalg::GenericOp) { return buildProducts(translator); });
  auto padLastTwo = [&](Operation *op) {
    unsigned loops = cast<linalg::GenericOp>(op).getNumLoops();
    translator.setPadded(op, {loops - 2, loops - 1});
  };
  if (found.masked)
    padLastTwo(found.masked);
  for (Operation *op : found.between)
    padLastTwo(op);
  for (Operation *op : found.perRow)
    translator.setPadded(op, {cast<linalg::GenericOp>(op).getNumLoops() - 1});
}

Func Attention::buildScores(Translator &translator) {
  const Contraction &shape = found.scores;
  linalg::GenericOp op = shape.op;
  Exprs loops = parallelLoops(op);
  unsigned rank = cast<RankedTensorType>(op.getResult(0).getType()).getRank();
  packedKeys = pack(translator, shape, "packed_keys", loops, tileKeys);
  std::vector<Var> vars;
  for (unsigned i = 0; i < rank; ++i)
    vars.push_back(dimensionVar(i));
  Exprs indices(vars.begin(), vars.end());
  scoreDepth = RDom(0, translator.loopExtent(op, shape.reduction[0]), translator.name("depth"));
  loops[shape.reduction[0]] = scoreDepth.x;
  Exprs clamped = loops;
  clamped[*shape.m] = Halide::min(loops[*shape.m], translator.loopExtent(op, *shape.m) - 1);
  scoreTile = Func(translator.name("score_tile"));
  scoreTile(vars) = Halide::Internal::make_zero(elementType(getElementTypeOrSelf(op.getResult(0))));
  Exprs values = translator.body(op, loops, [&](unsigned number) -> Expr {
    if (number == shape.a)
      return translator.readOperand(op, number, clamped);
    return number == shape.b ? readPacked(packedKeys, shape, loops, tileKeys) : Expr(scoreTile(indices));
  });
  if (values.empty())
    return Func();
  scoreTile(indices) = values[0];
  scores = Func(translator.name("scores"));
  scores(vars) = scoreTile(vars);
  return scores;
}

Func Attention::buildProducts(Translator &translator) {
  const Contraction &shape = found.products;
  linalg::GenericOp op = shape.op;
  Exprs loops = parallelLoops(op);
  unsigned rank = cast<RankedTensorType>(op.getResult(0).getType()).getRank();
  packedValues = pack(translator, shape, "packed_values", loops, tileChannels);
  std::vector<Var> vars;
  for (unsigned i = 0; i < rank; ++i)
    vars.push_back(dimensionVar(i));
  Exprs indices(vars.begin(), vars.end());
  productDepth = RDom(0, translator.loopExtent(op, shape.reduction[0]), translator.name("keys"));
  loops[shape.reduction[0]] = productDepth.x;
  productTile = Func(translator.name("product_tile"));
  productTile(vars) = Halide::Internal::make_zero(elementType(getElementTypeOrSelf(op.getResult(0))));
  Exprs values = translator.body(op, loops, [&](unsigned number) -> Expr {
    if (number == shape.a)
      return translator.readOperand(op, number, loops);
    return number == shape.b ? readPacked(packedValues, shape, loops, tileChannels) : Expr(productTile(indices));
  });
  if (values.empty())
    return Func();
  productTile(indices) = values[0];
  return productTile;
}

/// A register tile of tileRows x columns sums over the depth.
void Attention::placeTile(Func tile, const RDom &depth, Var rows, int columns) {
  Var d0 = dimensionVar(0);
  tile.bound_extent(d0, columns).align_bounds(d0, columns).bound_extent(rows, tileRows).align_bounds(rows, tileRows);
  tile.vectorize(d0, lanes).unroll(d0).unroll(rows);
  tile.update().reorder(d0, rows, depth.x).vectorize(d0, lanes).unroll(d0).unroll(rows);
}

void Attention::schedule(Translator &translator, const SchedulePoint &point) {
  const Output &output = translator.outputs.front();
  Func store = output.func;
  unsigned rank = output.rank();
  linalg::GenericOp products = found.products.op;
  unsigned queryDim = rank - 1 - found.productAt[resultDimension(products, *found.products.m)];

  // The result: channels in vectors, query rows in register tiles, tiles in blocks, everything else outside.
  Var channel("channel"), within("within"), lane("lane"), tile("tile"), row("row"), block("block"), inBlock("in_block");
  Var queries = dimensionVar(queryDim);
  store.split(dimensionVar(0), channel, within, tileChannels, TailStrategy::GuardWithIf)
      .split(within, within, lane, lanes);
  store.vectorize(lane).unroll(within);
  store.split(queries, tile, row, tileRows, TailStrategy::GuardWithIf).unroll(row);
  store.split(tile, block, inBlock, int(point.at("query_tiles")), TailStrategy::GuardWithIf);
  std::vector<Halide::VarOrRVar> order{lane, within, row, channel, inBlock, block};
  Var outermost = block, packAt;
  bool hasOuter = false;
  for (unsigned dim = 1; dim < rank; ++dim)
    if (dim != queryDim) {
      order.push_back(dimensionVar(dim));
      if (!hasOuter)
        packAt = dimensionVar(dim);
      hasOuter = true;
      if (output.bounds[dim] > 1)
        outermost = dimensionVar(dim);
    }
  store.reorder(order).parallel(outermost);

  for (auto [packed, size] : {std::pair(packedKeys, tileKeys), std::pair(packedValues, tileChannels)}) {
    if (hasOuter)
      packed.compute_at(store, packAt);
    else
      packed.compute_root();
    packed.store_in(Halide::MemoryType::Heap)
        .bound(Var("lane"), 0, size)
        .vectorize(Var("lane"), lanes)
        .unroll(Var("lane"));
  }

  // Scores, and the stage that reads them, in register tiles.
  llvm::DenseSet<Operation *> placed{found.scores.op, found.products.op};
  Func masked = scores;
  if (found.masked) {
    placed.insert(found.masked);
    masked = translator.stages[found.masked].funcs.front();
  }
  Var d0 = dimensionVar(0), d1 = dimensionVar(1), key("key"), keyIn("key_in"), query("query"), queryIn("query_in");
  masked.compute_at(store, block).store_in(Halide::MemoryType::Heap);
  masked.align_storage(d0, lanes);
  masked.tile(d0, d1, key, query, keyIn, queryIn, tileKeys, tileRows, TailStrategy::RoundUp)
      .reorder(keyIn, queryIn, query, key)
      .vectorize(keyIn, lanes)
      .unroll(keyIn)
      .unroll(queryIn);
  scoreTile.compute_at(masked, query);
  placeTile(scoreTile, scoreDepth, d1, tileKeys);

  // What lies between.
  for (Operation *op : found.between) {
    placed.insert(op);
    if (std::distance(op->getResult(0).use_begin(), op->getResult(0).use_end()) > 1 ||
        isReusedByReduction(cast<linalg::GenericOp>(op))) {
      Func func = translator.stages[op].funcs.front();
      func.compute_at(store, block).store_in(Halide::MemoryType::Heap).align_storage(d0, lanes);
      func.vectorize(d0, lanes, TailStrategy::RoundUp);
    }
  }
  for (Operation *op : found.reductions) {
    placed.insert(op);
    const Stage &stage = translator.stages[op];
    Func func = stage.funcs.front();
    func.compute_at(store, block);
    vectorizeReduction(stage, lanes, 4, [&](Func part) { part.compute_at(func, d0); });
  }
  for (Operation *op : found.perRow) {
    placed.insert(op);
    translator.stages[op].funcs.front().compute_at(store, block);
  }
  productTile.compute_at(store, channel);
  placeTile(productTile, productDepth, dimensionVar(rank - 1 - resultDimension(products, *found.products.m)),
            tileChannels);
  placeAtRoot(translator, placed, lanes);
}

} // namespace

std::unique_ptr<Strategy> matchAttention(func::FuncOp kernel, const MachineModel &machine) {
  std::optional<Match> found = match(kernel);
  return found ? std::make_unique<Attention>(std::move(*found), machine) : nullptr;
}

} // namespace kiln::halide
