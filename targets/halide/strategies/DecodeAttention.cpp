// SPDX-License-Identifier: Apache-2.0
//
// Decode attention: one query per sequence, as a decoder computes it for each token, in one pass over keys and values,
// whose bytes dominate the run time (AttentionFuncs.h has the Funcs). In batch-invariant kernels this strategy also
// compiles several queries, each computed as if it were the only one.
//
// Tasks are blocks of keys of a sequence (split KV). The heads whose keys are adjacent in memory are inside of a task,
// so that keys and values are read in storage order. Scores are vectors along the head dimension, for a few keys at a
// time; maxima, weights and sums are vectors of keys; products are vectors of channels, kept for all heads of the task.
// The blocks are combined at the end.
//
// With several queries, a task is some of the queries of a head. They traverse a block of keys together, so that it
// stays in the cache.
#include "targets/halide/strategies/AttentionFuncs.h"
#include "targets/halide/strategies/Placement.h"

namespace kiln::halide {

using namespace mlir;
using Halide::Func;
using Halide::TailStrategy;
using Halide::Var;
using Halide::VarOrRVar;

namespace {

class OneQuery : public Strategy {
public:
  OneQuery(AttentionMatch match, const MachineModel &machine)
      : found(std::move(match)), isBatchInvariant(::kiln::isBatchInvariant(found.scores.op)),
        lanes(vectorLanes(machine, found.scores.sumType())), keys(largestExtent(found.scores.op, found.scores.n)),
        queries(largestExtent(found.scores.op, *found.scores.m)),
        channels(staticExtent(found.products.op, found.products.n)) {}

  llvm::StringRef name() const override { return "one_query"; }
  SearchSpace searchSpace() const override {
    // Reading keys and values dominates the run time, whatever the tiles (M-0393).
    constexpr int64_t keysSideBySide = 4, keysOfTask = 64, queriesOfTask = 16;
    // A core that widens elements has fewer bytes in flight (M-1135).
    constexpr int64_t rowsAhead = 8;
    const std::vector<int64_t> blocks{32, 64, 128, 256, 512, 1024};
    SearchSpace space{
        makeParameter("keys", {1, 2, 4, 8, 16}, keysSideBySide),
        makeParameter("key_block", isBatchInvariant ? std::vector<int64_t>{keysOfTask} : blocks, keysOfTask),
        makeParameter("ahead", {0, 4, 8, 16}, isOfFewBits(found.scores) ? rowsAhead : 0)};
    if (queries > 1)
      space.push_back(makeParameter("queries", {1, 2, 4, 8, 16, 32}, queriesOfTask));
    return space;
  }
  std::vector<ShapeVariant> shapeVariants() const override;
  void prepare(Translator &translator, const ScheduleConfig &config) override;
  void schedule(Translator &translator, const ScheduleConfig &config) override;

private:
  std::vector<bool> findInner() const;
  /// Returns the dimension of the store that corresponds to a dimension of the products.
  Var storeDim(unsigned productDim) const { return dimensionVar(funcs->rank - 1 - found.productAt[productDim]); }
  Var scheduleOne(Func store);
  Var scheduleSeveral(Func store);
  void scheduleBlock(Func around, Var level);
  void placeOverKeys(KeyReduction &reduction, Func around, Var level);
  void placeProducts(Func func) const;

  AttentionMatch found;
  bool isBatchInvariant;
  int lanes;
  int64_t keys, queries, channels;
  int tileKeys = 0, tileQueries = 0;
  std::vector<bool> isInner; // one flag per outer dimension of the scores, innermost first
  std::optional<AttentionFuncs> funcs;
};

/// Returns which outer dimensions of the scores are inside of a task: those that are not outside of the keys in memory.
std::vector<bool> OneQuery::findInner() const {
  linalg::GenericOp op = found.scores.op;
  AffineMap result = op.getMatchingIndexingMap(op.getDpsInitOperand(0)),
            map = op.getMatchingIndexingMap(&op->getOpOperand(found.scores.b));
  std::vector<bool> inner;
  for (unsigned i = result.getNumResults() - 2; i-- > 0;) {
    bool isOutside = false;
    for (AffineExpr index : map.getResults()) {
      if (index.isFunctionOfDim(found.scores.n))
        break;
      isOutside |= index.isFunctionOfDim(result.getDimPosition(i));
    }
    inner.push_back(!isOutside);
  }
  return inner;
}

void OneQuery::prepare(Translator &translator, const ScheduleConfig &config) {
  AttentionSizes sizes;
  sizes.blockQueries = 1;
  sizes.blockKeys = config.at("key_block");
  // exp(0) need not be exactly 1, so a batch-invariant kernel combines even a single block of keys, since another
  // kernel may have several for the same row.
  sizes.hasKeyBlocks = isBatchInvariant || keys > sizes.blockKeys;
  sizes.keyLanes = lanes;
  sizes.isOneQuery = queries == 1;
  tileQueries = sizes.isOneQuery ? 1 : int(config.at("queries"));
  tileKeys = std::min<int>(config.at("keys"), lanes);
  isInner = findInner();
  funcs.emplace(found, sizes, translator);
  if (found.ops.readsMaxima)
    translator.setBuilder(found.ops.maxima,
                          [this](linalg::GenericOp) { return funcs->build() ? funcs->largest : Func(); });
  translator.setBuilder(found.ops.sums, [this](linalg::GenericOp) { return funcs->build() ? funcs->sum : Func(); });
  translator.setBuilder(found.products.op,
                        [this](linalg::GenericOp) { return funcs->build() ? funcs->product : Func(); });
  if (found.ops.masked)
    translator.setPadded(found.ops.masked, {funcs->rank - 1});
}

/// The variant for one query reads keys in storage order, across heads.
std::vector<ShapeVariant> OneQuery::shapeVariants() const {
  std::optional<unsigned> symbol = symbolOfExtent(found.scores.op, *found.scores.m);
  if (!symbol || queries == 1 || smallestExtent(found.scores.op, *found.scores.m) > 1)
    return {};
  return {{*symbol, 1}};
}

void OneQuery::placeOverKeys(KeyReduction &reduction, Func around, Var level) {
  AttentionFuncs &f = *funcs;
  reduction.func.compute_at(around, level);
  reduction.func.update().atomic().vectorize(reduction.lanes.x);
  reduction.ofLane.compute_at(around, level).vectorize(f.lane);
  reduction.ofLane.update().reorder(f.lane, reduction.keys.x).vectorize(f.lane);
}

void OneQuery::placeProducts(Func func) const { vectorizeGuarded(func, funcs->channel, int(channels), lanes); }

/// Schedules the Funcs that are computed for a block of keys, for all heads of a task.
void OneQuery::scheduleBlock(Func around, Var level) {
  AttentionFuncs &f = *funcs;
  std::vector<VarOrRVar> heads;
  for (unsigned i = 0; f.sizes.isOneQuery && i < isInner.size(); ++i)
    if (isInner[i])
      heads.push_back(dimensionVar(2 + i));
  Var keyTile("key_tile"), keyIn("key_in");

  f.scores.compute_at(around, level);
  f.scores.bound_extent(f.query, 1).split(f.key, keyTile, keyIn, tileKeys, TailStrategy::RoundUp);
  std::vector<VarOrRVar> order{keyIn, f.query};
  order.insert(order.end(), heads.begin(), heads.end());
  order.push_back(keyTile);
  f.scores.reorder(order).vectorize(keyIn);
  f.scoreTile.compute_at(f.scores, f.query).bound_extent(f.key, tileKeys).unroll(f.key);
  f.scoreTile.update().unroll(f.key);
  vectorizeReduction({found.scores.op, {f.scoreTile}, f.depthDomain, true}, lanes, 1, [&](Func parts) {
    parts.compute_at(f.scores, f.query).reorder_storage(Var("part"), f.query, f.key).unroll(f.key);
    parts.update().reorder(f.key, Halide::RVar("outer")).unroll(f.key);
  });

  placeOverKeys(f.maxima, around, level);
  f.weights.compute_at(around, level).vectorize(f.key, lanes, TailStrategy::RoundUp);
  placeOverKeys(f.sums, around, level);

  f.productTile.compute_at(around, level).bound(f.channel, 0, int(channels));
  placeProducts(f.productTile);
  padStorage(f.productTile, int(channels), lanes);
  order = {f.channel, f.query};
  order.insert(order.end(), heads.begin(), heads.end());
  order.push_back(f.productDomain.x);
  f.productTile.update().reorder(order);
  vectorizeGuarded(f.productTile.update(), f.channel, int(channels), lanes);
}

/// Fuses the loops into one parallel loop over tasks, and returns it.
static Var fuseTasks(Func store, const std::vector<Var> &loops) {
  Var task = loops.front();
  for (unsigned i = 1; i < loops.size(); ++i) {
    Var fused("task" + std::to_string(i));
    store.fuse(task, loops[i], fused);
    task = fused;
  }
  store.parallel(task);
  return task;
}

/// Schedules one query: the results of each block of keys are computed before the store. Returns the store's loop over
/// the rest.
Var OneQuery::scheduleOne(Func store) {
  AttentionFuncs &f = *funcs;
  // Loops from the innermost one: of the store, and of the results of a block of keys.
  std::vector<VarOrRVar> here{dimensionVar(0)}, there{f.channel, f.query}, ofStatistics{f.query};
  std::vector<Var> outerHere{storeDim(f.rank - 2)}, outerThere;
  for (unsigned i = 0; i < isInner.size(); ++i) {
    Var atStore = storeDim(f.rank - 3 - i), atBlock = dimensionVar(2 + i);
    if (isInner[i]) {
      here.push_back(atStore);
      there.push_back(atBlock);
      ofStatistics.push_back(atBlock);
    } else {
      outerHere.push_back(atStore);
      outerThere.push_back(atBlock);
    }
  }
  outerThere.push_back(f.block);
  here.insert(here.end(), outerHere.begin(), outerHere.end());
  store.reorder(here);
  const Var level = fuseTasks(store, outerHere), levelThere = outerThere.front();
  if (!f.sizes.hasKeyBlocks) {
    scheduleBlock(store, level);
    return level;
  }
  there.insert(there.end(), outerThere.begin(), outerThere.end());
  ofStatistics.insert(ofStatistics.end(), outerThere.begin(), outerThere.end());
  f.partial.compute_root().reorder(there).parallel(f.block);
  f.statistics.compute_root().reorder(ofStatistics).parallel(f.block).compute_with(f.partial, levelThere);
  scheduleBlock(f.partial, levelThere);
  return level;
}

/// Schedules several queries: a task computes the results of each block of keys for its queries. Returns the store's
/// loop over these.
Var OneQuery::scheduleSeveral(Func store) {
  AttentionFuncs &f = *funcs;
  Var inTask("query_in"), tile("query_tile");
  store.split(storeDim(f.rank - 2), tile, inTask, tileQueries, TailStrategy::GuardWithIf);
  std::vector<VarOrRVar> here{dimensionVar(0), inTask}, there{f.channel, f.query}, ofStatistics{f.query};
  std::vector<Var> tasks{tile};
  for (unsigned i = 0; i + 2 < f.rank; ++i) {
    tasks.push_back(storeDim(f.rank - 3 - i));
    there.push_back(dimensionVar(2 + i));
    ofStatistics.push_back(dimensionVar(2 + i));
  }
  here.insert(here.end(), tasks.begin(), tasks.end());
  store.reorder(here);
  const Var task = fuseTasks(store, tasks);
  there.push_back(f.block);
  ofStatistics.push_back(f.block);
  f.partial.compute_at(store, task).store_in(Halide::MemoryType::Heap).reorder(there);
  f.statistics.compute_at(store, task).store_in(Halide::MemoryType::Heap).reorder(ofStatistics);
  f.statistics.compute_with(f.partial, f.query);
  scheduleBlock(f.partial, f.query);
  f.productTile.unroll(f.channel).update().unroll(f.channel); // kept in registers
  return inTask;
}

void OneQuery::schedule(Translator &translator, const ScheduleConfig &config) {
  AttentionFuncs &f = *funcs;
  if (int64_t ahead = config.at("ahead")) {
    askForRows(translator, found.scores, found.scores.n, ahead);
    askForRows(translator, found.products, found.products.reduction[0], ahead);
  }
  Func store = translator.outputs.front().func;
  const Var level = f.sizes.isOneQuery ? scheduleOne(store) : scheduleSeveral(store);
  vectorizeGuarded(store, dimensionVar(0), int(channels), lanes);
  if (f.sizes.hasKeyBlocks) {
    placeProducts(f.partial);
    for (Func func : {f.maximum, f.factor, f.sum, f.product})
      func.compute_at(store, level);
    padStorage(f.partial, int(channels), lanes);
    padStorage(f.product, int(channels), lanes);
    vectorizeGuarded(f.product, dimensionVar(0), int(channels), lanes);
    vectorizeGuarded(f.product.update(), dimensionVar(0), int(channels), lanes);
  }
  llvm::DenseSet<Operation *> placed{found.scores.op, found.ops.maxima, found.ops.weights, found.ops.sums,
                                     found.products.op};
  if (found.ops.masked)
    placed.insert(found.ops.masked);
  placed.insert(found.ops.inverses);
  translator.stages[found.ops.inverses].funcs.front().compute_at(store, level);
  placeAtRoot(translator, placed, lanes);
}

} // namespace

std::unique_ptr<Strategy> matchOneQuery(const DecomposedKernel &kernel, const MachineModel &machine) {
  std::optional<AttentionMatch> found = matchAttentionOps(kernel);
  if (!found || (largestExtent(found->scores.op, *found->scores.m) != 1 && !isBatchInvariant(kernel.get())) ||
      ShapedType::isDynamic(staticExtent(found->products.op, found->products.n)))
    return nullptr;
  return std::make_unique<OneQuery>(std::move(*found), machine);
}

} // namespace kiln::halide
