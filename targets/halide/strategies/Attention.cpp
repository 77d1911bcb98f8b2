// SPDX-License-Identifier: Apache-2.0
//
// Blocked attention: softmax(masked(queries keys^T)) values, computed for a block of queries at a time over blocks of
// keys (AttentionFuncs.h).
//
// The blocks of queries of all heads are the parallel tasks. For each block of keys, a task computes scores in register
// tiles with the elementwise ops that follow fused at the tile, then row maxima, softmax weights, row sums, and
// products in register tiles. The scores and weights of a block stay in the cache. Scratch memory holds the products of
// a block of queries for each block of keys, so it grows with the number of keys. Tiles are always full; the store is
// guarded.
#include "targets/halide/strategies/AttentionFuncs.h"
#include "targets/halide/strategies/Placement.h"

namespace kiln::halide {

using namespace mlir;
using Halide::Func;
using Halide::RDom;
using Halide::TailStrategy;
using Halide::Var;

namespace {

/// Constants from which the default schedule configuration is computed, one set for machines with few vector registers
/// and one for machines with many. Members with an initialiser are the same for both.
struct AttentionDefaults {
  int64_t channelVectors;   // maximum channel vectors of a product tile (not measured)
  int64_t sums, sharedSums; // accumulator vectors of a product tile, without and with shared copies (M-0310)
  int64_t rows;             // maximum rows of a product tile; with few registers a divisor of the block (M-0351)
  int64_t queryVectors;     // query vectors of a score tile with shared copies: larger tiles read fewer cache lines per
                            // iteration (M-0310)
  int64_t scoreKeys;        // keys of a score tile (M-0310, M-0374)
  int64_t sharedScoreKeys;  // the same with shared copies if all keys form one block (M-0371 to M-0374)
  int64_t block;            // queries of a block (M-0340 to M-0346)
  int64_t causalBlock; // the same for causal attention with shared copies if all keys form one block (M-0360 to M-0366)
  bool sharesLimited;  // whether blocks share copies if a mask limits the keys; not measured with many registers

  int64_t longBlock = 128;  // queries of a block if keys and values exceed the L2 cache: they share one read (M-0332)
  int64_t keys = 512;       // keys of a block of a packed copy: larger blocks do not fit the L2 cache (M-0315)
  int64_t causalKeys = 256; // the same for causal attention with several blocks of keys (M-0366, M-0368)
  int64_t causalKeysInPlace = 256; // most causal keys for which a packed copy does not pay off (M-0365, M-0373)
  int64_t sharing = 512;           // queries that share a copy (M-0316, M-0317, M-0355)
  int64_t causalSharing = 256;     // the same for causal attention (M-0366, M-0369)
  int64_t longSharing = 1024;      // the same if keys and values exceed the L2 cache (M-0316)
  int64_t fewQueries = 16;         // most queries of a separate shape-specialised variant (M-0390, M-0391)
  int64_t rowsAhead = 12;          // prefetch distance of a packing loop, in rows of keys or values (M-0301 to M-0304)
};

const AttentionDefaults &attentionDefaults(const MachineModel &machine) {
  // channelVectors, sums, sharedSums, rows, queryVectors, scoreKeys, sharedScoreKeys, block, causalBlock, sharesLimited
  static constexpr AttentionDefaults few{2, 8, 8, 4, 2, 6, 4, 32, 16, true},
      many{5, 20, 24, 24, 3, 8, 8, 64, 64, false};
  return machine.hasManyRegisters() ? many : few;
}

class Attention : public Strategy {
public:
  Attention(AttentionMatch match, const MachineModel &machine)
      : found(std::move(match)), machine(machine), defaults(attentionDefaults(machine)),
        lanes(vectorLanes(machine, found.scores.sumType())),
        depth(largestExtent(found.scores.op, found.scores.reduction[0])),
        channels(largestExtent(found.products.op, found.products.n)),
        keys(largestExtent(found.scores.op, found.scores.n)), queries(largestExtent(found.scores.op, *found.scores.m)),
        hasFixedQueries(!ShapedType::isDynamic(staticExtent(found.scores.op, *found.scores.m))) {}

  llvm::StringRef name() const override { return "attention"; }
  SearchSpace searchSpace() const override;
  std::vector<ShapeVariant> shapeVariants() const override;
  void prepare(Translator &translator, const ScheduleConfig &config) override;
  void schedule(Translator &translator, const ScheduleConfig &config) override;

private:
  bool hasQueryLimits() const {
    return llvm::any_of(found.ops.limits, [](const KeyLimit &limit) { return limit.growsWithQuery; });
  }
  bool hasManyQueries() const { return queries > 2 * lanes; }
  /// Returns the bytes of the keys and values of a head.
  int64_t bytesOfHead() const { return bytesOf(values(), 2 * keys * channels); }
  Value values() const { return found.products.op->getOperand(found.products.b); }
  bool isLong() const { return bytesOfHead() > machine.l2Bytes / 2 && !hasQueryLimits(); }
  /// Whether all keys form one block by default.
  bool hasOneKeyBlock() const { return keys <= defaults.keys; }
  /// Whether blocks of queries share packed copies of keys and values by default.
  bool wantsShared() const {
    return hasManyQueries() && (found.ops.limits.empty() || defaults.sharesLimited) &&
           bytesOfHead() <= 2 * machine.l2Bytes;
  }
  bool wantsSharedCausal() const { return wantsShared() && hasQueryLimits(); }
  int64_t blockOf(int64_t tile) const;
  int64_t keysOfBlock() const;
  /// Whether the query blocks of a task iterate over the blocks of keys together, each of which has one packed copy.
  bool isGrouped() const { return sharing > 1 && funcs->sizes.hasKeyBlocks; }
  /// Returns the loop of the store in each iteration of which keys and values are traversed once.
  Var queriesLevel() const { return isGrouped() ? group : level; }
  /// Returns the loop of `partial` at which the Funcs of a block of keys are computed.
  Var keysLevel() const { return isGrouped() ? queryBlock : funcs->block; }
  void scheduleStore(Translator &translator);
  void scheduleQueries();
  void scheduleKeyBlock();
  void scheduleScores();
  void schedulePartial();
  void scheduleMerge();
  void place(Func func) const;
  void placeCopy(Func copy, Var innermost, int64_t extent) const;
  void placeTile(Func tile, Var columns, int columnCount, Var rows, int rowCount, const RDom &domain) const;
  void placeRows(Func func, Var queries, const RDom &domain) const;
  void placeVectors(Func func, Var queries) const;

  AttentionMatch found;
  MachineModel machine;
  const AttentionDefaults &defaults;
  int lanes;
  int64_t depth, channels, keys, queries;
  bool hasFixedQueries;
  int tileQueries = 0, tileKeys = 0, tileRows = 0, tileChannels = 0;
  int sharing = 1;   // blocks of queries that share a copy of keys and values
  int storeRows = 0; // rows of a tile of the result, a divisor of the query block; tileRows need not divide it
  std::optional<AttentionFuncs> funcs;
  Func store;             // the kernel's result
  Var group, level, tile; // loops of `store` over tasks, over the query blocks of a task, over product tiles
  const Var queryBlock{"query_block"}; // loop over query blocks in the results of a block of keys
};

/// Returns the channel vectors of a product tile: the widest tile among those with the fewest padded vectors.
int64_t wantedVectors(int64_t vectors, int64_t most) {
  int64_t best = 1;
  auto padded = [&](int64_t each) { return (vectors + each - 1) / each * each; };
  for (int64_t each = 2; each <= std::min(vectors, most); ++each)
    if (best == 1 || padded(each) <= padded(best))
      best = each;
  return best;
}

/// Returns the queries of a block. The queries of a large block share one read of the keys, but a causal block reads up
/// to the last key of its last query, and a block is always computed in full.
int64_t Attention::blockOf(int64_t tile) const {
  int64_t most = wantsSharedCausal() && hasOneKeyBlock() ? defaults.causalBlock : defaults.block;
  if (isLong() && !wantsShared())
    most = defaults.longBlock;
  auto padded = [&](int64_t block) { return (queries + block - 1) / block * block; };
  most = std::min(most, padded(tile));
  int64_t block = tile;
  for (int64_t each = tile; each <= most; each += tile)
    if (!hasFixedQueries || padded(each) <= padded(block))
      block = each;
  return block;
}

/// Returns the keys of a block. Every tile of rows traverses the values of the block. They fit the L1 cache, unless
/// several query blocks share a copy.
int64_t Attention::keysOfBlock() const {
  if (!wantsShared())
    return machine.l1Bytes / (int64_t(sizeof(float)) * int64_t(llvm::alignTo(channels, lanes)));
  return wantsSharedCausal() && !hasOneKeyBlock() ? defaults.causalKeys : defaults.keys;
}

/// Rows of keys and values are stored pages apart, so packing them pays off, and more so the more queries share the
/// packed copy (M-0305 to M-0309). All query blocks of a task share it, as long as the results of those blocks stay in
/// the cache.
SearchSpace Attention::searchSpace() const {
  const bool isShared = wantsShared(), isCausalShared = wantsSharedCausal();
  const int64_t vectors = wantedVectors((channels + lanes - 1) / lanes, defaults.channelVectors);
  const int64_t tile = lanes * (isShared ? defaults.queryVectors : queries <= lanes ? 1 : 2);
  const int64_t block = blockOf(tile);
  const int64_t rows = std::min(defaults.rows, (isShared ? defaults.sharedSums : defaults.sums) / vectors);
  const int64_t scoreKeys = isShared && hasOneKeyBlock() ? defaults.sharedScoreKeys : defaults.scoreKeys;
  // Causal attention packs the keys that the last query block needs, and reads few keys in place.
  const int64_t toCopy = isLong() ? defaults.longSharing : isCausalShared ? defaults.causalSharing : defaults.sharing;
  // Narrow keys that are read in place are widened one element at a time.
  const bool packsKeys =
      isOfFewBits(found.scores) || (isShared && (!isCausalShared || keys > defaults.causalKeysInPlace));
  return {makeParameter("queries", {lanes, 2 * lanes, 3 * lanes, 4 * lanes}, tile),
          makeParameter("keys", {2, 4, 6, 8, 12}, scoreKeys),
          makeParameter("query_tiles", {1, 2, 3, 4, 6, 8, 12, 16}, block / tile),
          makeParameter("rows", {1, 2, 4, 6, 8, 12, 16}, rows),
          makeParameter("channels", {lanes, 2 * lanes, 3 * lanes, 4 * lanes, 5 * lanes}, vectors * lanes),
          makeParameter("key_block", {64, 128, 256, 512, 1024}, keysOfBlock()),
          makeParameter("pack_keys", {0, 1}, packsKeys),
          makeParameter("pack_values", {0, 1}, isLong() || hasManyQueries()),
          makeParameter("share", {1, 2, 4, 8, 16}, isShared ? toCopy / block : 1)};
}

/// A block of queries is computed in full, so small numbers of queries get shape-specialised variants: a dedicated
/// strategy compiles one query (DecodeAttention.cpp), and few queries use small blocks. Causal attention also uses
/// small blocks if all its keys, as many as the queries, form one block.
std::vector<ShapeVariant> Attention::shapeVariants() const {
  linalg::GenericOp op = found.scores.op;
  std::optional<unsigned> symbol = symbolOfExtent(op, *found.scores.m);
  if (!symbol)
    return {};
  std::vector<int64_t> bounds{1, defaults.fewQueries};
  if (wantsSharedCausal() && symbolOfExtent(op, found.scores.n) == symbol)
    bounds.push_back(defaults.keys);
  std::vector<ShapeVariant> variants;
  for (int64_t bound : bounds)
    if (smallestExtent(op, *found.scores.m) <= bound && bound < queries)
      variants.push_back({*symbol, bound});
  return variants;
}

void Attention::prepare(Translator &translator, const ScheduleConfig &config) {
  tileQueries = config.at("queries");
  tileKeys = config.at("keys");
  tileChannels = std::min<int64_t>(config.at("channels"), (channels + lanes - 1) / lanes * lanes);
  AttentionSizes sizes;
  sizes.blockQueries = tileQueries * config.at("query_tiles");
  sizes.blockKeys = config.at("key_block");
  sizes.hasKeyBlocks = keys > sizes.blockKeys;
  sharing = config.at("share");
  sizes.hasEmptyBlocks = sharing > 1 && !sizes.hasKeyBlocks;
  sizes.packsKeys = config.at("pack_keys");
  sizes.packsValues = config.at("pack_values") || channels % tileChannels != 0;
  sizes.transposed = lanes > 1 && depth % lanes == 0 ? lanes : 0;
  storeRows = tileRows = std::min<int>(config.at("rows"), sizes.blockQueries);
  while (sizes.blockQueries % storeRows != 0)
    --storeRows;
  if (!sizes.hasKeyBlocks)
    tileRows = storeRows;

  funcs.emplace(found, sizes, translator);
  if (found.ops.readsMaxima)
    translator.setBuilder(found.ops.maxima,
                          [this](linalg::GenericOp) { return funcs->build() ? funcs->largest : Func(); });
  translator.setBuilder(found.ops.sums, [this](linalg::GenericOp) { return funcs->build() ? funcs->sum : Func(); });
  translator.setBuilder(found.products.op,
                        [this](linalg::GenericOp) { return funcs->build() ? funcs->product : Func(); });
  auto pad = [&](linalg::GenericOp op, ArrayRef<unsigned> loops) { translator.setPadded(op, loops); };
  unsigned rank = funcs->rank;
  if (found.ops.masked)
    pad(found.ops.masked, {rank - 2, rank - 1});
  pad(found.ops.inverses, {rank - 2});
}

/// Schedules a register tile of rowCount x columnCount accumulators over the reduction domain.
void Attention::placeTile(Func tile, Var columns, int columnCount, Var rows, int rowCount, const RDom &domain) const {
  tile.bound_extent(columns, columnCount).align_bounds(columns, columnCount).bound_extent(rows, rowCount);
  tile.vectorize(columns, lanes).unroll(columns).unroll(rows);
  tile.update().reorder(columns, rows, domain.x).vectorize(columns, lanes).unroll(columns).unroll(rows);
}

/// Schedules one value per query of the block, reduced over the domain. The queries are unrolled inside the reduction
/// loop, so that Halide sees the block number in each query index and computes one bound of the domain for all of them.
void Attention::placeRows(Func func, Var queries, const RDom &domain) const {
  placeVectors(func, queries);
  func.update().reorder(queries, domain.x).vectorize(queries, lanes).unroll(queries);
}

/// Computes all queries of a block, including those after the last one. If Halide knows the extent of the block, it
/// derives the block number from a query index; key limits and allocation bounds depend on that number.
void Attention::placeVectors(Func func, Var queries) const {
  func.bound_extent(queries, funcs->sizes.blockQueries).vectorize(queries, lanes);
}

/// Schedules the result: channels as vectors, query rows as register tiles, tiles within blocks, and all blocks as
/// parallel tasks.
void Attention::scheduleStore(Translator &translator) {
  const Output &output = translator.outputs.front();
  store = output.func;
  unsigned rank = output.rank(), queryDim = rank - 1 - found.productAt[rank - 2];
  Var within("within"), lane("lane"), row("row"), rowTile("row_tile"), inBlock("in_block");
  tile = Var("channel_tile");
  store.split(dimensionVar(0), tile, within, tileChannels, TailStrategy::GuardWithIf)
      .split(within, within, lane, lanes);
  store.vectorize(lane).unroll(within);
  store.split(dimensionVar(queryDim), rowTile, row, storeRows, TailStrategy::GuardWithIf).unroll(row);
  store.split(rowTile, level, inBlock, funcs->sizes.blockQueries / storeRows, TailStrategy::GuardWithIf);
  std::vector<Halide::VarOrRVar> order{lane, within, row, tile, inBlock, level};
  Var task = level;
  if (sharing > 1) {
    task = Var("group");
    store.split(level, task, level, sharing, TailStrategy::GuardWithIf);
    order.push_back(task);
  }
  for (unsigned dim = 1; dim < rank; ++dim)
    if (dim != queryDim)
      order.push_back(dimensionVar(dim));
  store.reorder(order);
  for (unsigned dim = 1; dim < rank; ++dim)
    if (dim != queryDim) {
      Var fused("task" + std::to_string(dim));
      store.fuse(task, dimensionVar(dim), fused);
      task = fused;
    }
  store.parallel(task);
  if (sharing == 1)
    level = task;
  group = task;
}

void Attention::scheduleQueries() {
  AttentionFuncs &f = *funcs;
  f.packedQuery.compute_at(store, queriesLevel()).store_in(Halide::MemoryType::Heap);
  if (isGrouped())
    f.packedQuery.align_bounds(f.query, f.sizes.blockQueries);
  else
    f.packedQuery.bound_extent(f.query, f.sizes.blockQueries);
  int size = f.sizes.transposed;
  if (!size) {
    f.packedQuery.vectorize(f.query, lanes);
    return;
  }
  Var queryIn("query_in"), depthIn("depth_in");
  f.packedQuery.split(f.query, f.querySquare, queryIn, size).split(f.depth, f.depthSquare, depthIn, size);
  f.packedQuery.reorder(queryIn, depthIn, f.depthSquare, f.querySquare).vectorize(queryIn).unroll(depthIn);
  for (Func &turn : f.turns) {
    bool isFirst = &turn == &f.turns.front();
    turn.compute_at(f.packedQuery, f.depthSquare);
    turn.bound_extent(f.lane, isFirst ? size : 2 * size).bound_extent(f.row, isFirst ? size : size / 2);
    turn.vectorize(f.lane).unroll(f.row);
  }
}

/// Places a Func that is computed for each block of keys.
void Attention::place(Func func) const {
  if (funcs->sizes.hasKeyBlocks)
    func.compute_at(funcs->partial, keysLevel());
  else
    func.compute_at(store, level);
}

/// Places a packed copy of keys or values at the loop that encloses all query blocks that share it.
void Attention::placeCopy(Func copy, Var innermost, int64_t extent) const {
  if (isGrouped())
    copy.compute_at(funcs->partial, funcs->block);
  else if (sharing > 1)
    copy.compute_at(store, group);
  else
    place(copy);
  copy.store_in(Halide::MemoryType::Heap);
  vectorizeGuarded(copy, innermost, int(extent), lanes);
}

void Attention::scheduleScores() {
  AttentionFuncs &f = *funcs;
  Var keyTile("key_tile"), queryTile("query_tile"), keyIn("key_in"), queryIn("query_in");
  place(f.scores);
  f.scores.store_in(Halide::MemoryType::Heap);
  f.scores.bound_extent(f.query, f.sizes.blockQueries);
  f.scores.split(f.key, keyTile, keyIn, tileKeys, TailStrategy::RoundUp)
      .split(f.query, queryTile, queryIn, tileQueries)
      .reorder(queryIn, keyIn, queryTile, keyTile)
      .vectorize(queryIn, lanes)
      .unroll(queryIn)
      .unroll(keyIn);
  if (f.sizes.packsKeys)
    placeCopy(f.packedKeys, f.depth, depth);
  f.scoreTile.compute_at(f.scores, queryTile);
  placeTile(f.scoreTile, f.query, tileQueries, f.key, tileKeys, f.depthDomain);
}

/// Schedules the partial products and softmax statistics of each of several blocks of keys.
void Attention::schedulePartial() {
  AttentionFuncs &f = *funcs;
  Var queryTile("query_tile"), queryIn("query_in"), channelTile("channel_tile"), channelIn("channel_in"),
      inBlock("in_query_block");
  f.statistics.compute_at(store, queriesLevel()).store_in(Halide::MemoryType::Heap);
  f.partial.compute_at(store, queriesLevel()).store_in(Halide::MemoryType::Heap);
  f.partial.align_bounds(f.channel, tileChannels);
  std::vector<Halide::VarOrRVar> order{channelIn, queryIn, channelTile, queryTile};
  Var query = f.query;
  if (isGrouped()) {
    // The loop over blocks of keys is outside the loop over blocks of queries, so that a packed copy stays in the
    // cache.
    const int queries = f.sizes.blockQueries;
    for (Func func : {f.partial, f.statistics})
      func.align_bounds(f.query, queries).split(f.query, queryBlock, inBlock, queries, TailStrategy::RoundUp);
    f.statistics.vectorize(inBlock, lanes);
    order.push_back(queryBlock);
    query = inBlock;
  } else {
    f.partial.bound_extent(f.query, f.sizes.blockQueries);
    placeVectors(f.statistics, f.query);
  }
  order.push_back(f.block);
  f.statistics.compute_with(f.partial, keysLevel());
  f.partial.split(query, queryTile, queryIn, tileRows, TailStrategy::ShiftInwards)
      .split(f.channel, channelTile, channelIn, tileChannels, TailStrategy::RoundUp)
      .reorder(order)
      .vectorize(channelIn, lanes)
      .unroll(channelIn)
      .unroll(queryIn);
  f.productTile.compute_at(f.partial, channelTile);
}

/// Schedules the Funcs that are computed for a block of keys.
void Attention::scheduleKeyBlock() {
  AttentionFuncs &f = *funcs;
  scheduleQueries();
  scheduleScores();
  place(f.maxima.func);
  placeRows(f.maxima.func, f.query, f.maxima.keys);
  place(f.weights);
  f.weights.store_in(Halide::MemoryType::Heap);
  placeVectors(f.weights, f.query);
  place(f.sums.func);
  placeRows(f.sums.func, f.query, f.sums.keys);
  if (f.sizes.packsValues) {
    placeCopy(f.packedValues, f.channel, channels);
    f.packedValues.align_storage(f.channel, tileChannels);
  }
  if (f.sizes.hasKeyBlocks)
    schedulePartial();
  else
    f.productTile.compute_at(store, tile);
  placeTile(f.productTile, f.channel, tileChannels, f.query, tileRows, f.productDomain);
}

/// Schedules the combine step over the blocks of keys.
void Attention::scheduleMerge() {
  AttentionFuncs &f = *funcs;
  f.maximum.compute_at(store, level);
  placeRows(f.maximum, f.query, f.mergedMaxDomain);
  f.factor.compute_at(store, level).store_in(Halide::MemoryType::Heap);
  placeVectors(f.factor, f.query);
  f.sum.compute_at(store, level);
  placeRows(f.sum, dimensionVar(0), f.mergedSumDomain);
  f.product.compute_at(store, tile);
  placeTile(f.product, dimensionVar(0), tileChannels, dimensionVar(1), storeRows, f.mergedProductDomain);
}

void Attention::schedule(Translator &translator, const ScheduleConfig &) {
  if (funcs->sizes.packsKeys)
    askForRows(translator, found.scores, found.scores.n, defaults.rowsAhead);
  if (funcs->sizes.packsValues)
    askForRows(translator, found.products, found.products.reduction[0], defaults.rowsAhead);
  scheduleStore(translator);
  scheduleKeyBlock();
  if (funcs->sizes.hasKeyBlocks)
    scheduleMerge();
  llvm::DenseSet<Operation *> placed{found.scores.op, found.ops.maxima, found.ops.weights, found.ops.sums,
                                     found.products.op};
  if (found.ops.masked)
    placed.insert(found.ops.masked);
  placed.insert(found.ops.inverses);
  Func inverses = translator.stages[found.ops.inverses].funcs.front();
  inverses.compute_at(store, level).vectorize(dimensionVar(0), lanes, TailStrategy::RoundUp);
  // The stages that compute the queries are inlined where the queries are packed.
  for (Value value = found.scores.op.getDpsInputs()[found.scores.a];
       auto op = value.getDefiningOp<linalg::GenericOp>();) {
    if (op.getNumReductionLoops() || op.getNumDpsInputs() == 0 || !value.hasOneUse())
      break;
    placed.insert(op);
    value = op.getDpsInputs().front();
  }
  placeAtRoot(translator, placed, lanes);
}

} // namespace

std::unique_ptr<Strategy> matchAttention(const DecomposedKernel &kernel, const MachineModel &machine) {
  std::optional<AttentionMatch> found = matchAttentionOps(kernel);
  return found ? std::make_unique<Attention>(std::move(*found), machine) : nullptr;
}

} // namespace kiln::halide
