// SPDX-License-Identifier: Apache-2.0
//
// 1. The queries of a block are packed as [depth][queries], so that the lanes of a vector are queries. Keys and values
//    are read in place or from a packed copy: an element of a key is broadcast, and the lanes of a vector of values are
//    channels.
// 2. Scores, maxima, weights, sums and products are computed for each block of keys. Loops over keys end after the last
//    key that any query of the block attends to.
// 3. The products and sums of the blocks of keys are combined with the factors e^(maximum of the block - maximum).
// Blocks
//    before the window of all queries of a block are neither computed nor combined.
//
// Queries and keys after the last one repeat it. The elementwise ops in between read their arguments at clamped
// indices.
#include "targets/halide/strategies/AttentionFuncs.h"

#include <limits>

namespace kiln::halide {

using namespace mlir;
using Halide::Expr;
using Halide::Func;
using Halide::RDom;
using Halide::Var;

/// The initial value of the maxima. It is finite, so that a block of keys whose scores are all -infinity has weights of
/// 0.
static constexpr float lowest = -3.402823466e38f;

/// Returns the values of the op's loops for the given indices of its result; reduction loops stay undefined.
static Exprs loopsAt(linalg::GenericOp op, const Exprs &innermostFirst) {
  Exprs loops(op.getNumLoops());
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  for (unsigned i = 0; i < map.getNumResults(); ++i)
    loops[map.getDimPosition(i)] = innermostFirst[map.getNumResults() - 1 - i];
  return loops;
}

void askForRows(Translator &translator, const Contraction &of, unsigned rowLoop, int64_t rowsAhead) {
  linalg::GenericOp op = of.op;
  auto type = cast<RankedTensorType>(op->getOperand(of.b).getType());
  AffineMap map = op.getIndexingMapsArray()[of.b];
  int64_t stride = 1;
  for (unsigned i = map.getNumResults(); i-- > 0 && !map.getResult(i).isFunctionOfDim(rowLoop);)
    stride *= type.getDimSize(i);
  if (isa<BlockArgument>(op->getOperand(of.b)) && !ShapedType::isDynamic(stride))
    translator.prefetch(op, of.b, rowsAhead * stride);
}

AttentionFuncs::AttentionFuncs(AttentionMatch match, AttentionSizes sizes, Translator &translator)
    : match(std::move(match)), sizes(sizes), translator(translator) {
  rank = cast<RankedTensorType>(linalg::GenericOp(this->match.scores.op).getResult(0).getType()).getRank();
}

/// Returns `inner` followed by the outer dimensions, the innermost of which is dimension `firstOuter`.
std::vector<Var> AttentionFuncs::vars(std::vector<Var> inner, unsigned firstOuter) const {
  for (unsigned i = 0; i + 2 < rank; ++i)
    inner.push_back(dimensionVar(firstOuter + i));
  return inner;
}

Exprs AttentionFuncs::at(Exprs inner, unsigned firstOuter) const {
  for (unsigned i = 0; i + 2 < rank; ++i)
    inner.push_back(dimensionVar(firstOuter + i));
  return inner;
}

Func AttentionFuncs::start(const char *name, const std::vector<Var> &vars, const Expr &value) {
  Func func(translator.name(name));
  func(vars) = value;
  return func;
}

/// Defines the domain [first, count) within [0, extent) and returns its index, which is promised to Halide to be in it.
Expr AttentionFuncs::domainUpTo(RDom &domain, const Expr &count, const Expr &extent, const char *name,
                                const Expr &first) {
  domain = RDom(0, extent, translator.name(name));
  domain.where(domain.x < count);
  if (!Halide::Internal::is_const_zero(first))
    domain.where(domain.x >= first);
  return Halide::unsafe_promise_clamped(domain.x, first, count - 1);
}

bool AttentionFuncs::build() {
  if (product.defined())
    return true;
  linalg::GenericOp op = match.scores.op;
  queryCount = translator.loopExtent(op, *match.scores.m);
  keyCount = translator.loopExtent(op, match.scores.n);
  blockCount = neededKeys(query, 2);
  blockExtent = keyCount;
  if (sizes.hasKeyBlocks) {
    blockCount = Halide::clamp(blockCount - block * sizes.blockKeys, 0, sizes.blockKeys);
    if (match.ops.beforeWindow) // blocks that are in the window of other queries only
      blockCount = Halide::select(block < firstBlock(query, 2), 0, blockCount);
    blockExtent = sizes.blockKeys;
  }
  buildQueries();
  return buildScores() && buildWeights() && buildProducts() && buildMerge();
}

/// Returns an element of keys or values as a float with its scale applied, which the conversions in the op's region
/// leave unchanged.
Expr AttentionFuncs::decoded(const Contraction &of, const Exprs &loops) {
  Expr value = translator.readWide(of.op, of.b, loops);
  return of.scale ? Halide::cast<float>(value) * translator.readWide(of.op, *of.scale, loops) : value;
}

/// Transposes squares of n x n elements. Interleaving the two halves of the row-major sequence rotates the bits of an
/// element's position by one. After log2(n) interleavings they are rotated by half their number, which is the
/// transposition.
void AttentionFuncs::buildQueries() {
  const Contraction &shape = match.scores;
  int size = sizes.transposed;
  auto read = [&](const Expr &query, const Expr &depth) {
    Exprs loops = loopsAt(shape.op, at({0, sizes.isOneQuery ? Expr(0) : Halide::min(query, queryCount - 1)}));
    loops[shape.reduction[0]] = depth;
    return translator.readWide(shape.op, shape.a, loops);
  };
  if (!size) {
    packedQuery = start("packed_query", vars({query, depth}), read(query, depth));
    return;
  }
  auto square = [&](const Expr &lane, const Expr &row) { return at({lane, row, depthSquare, querySquare}); };
  std::vector<Var> squareVars = vars({lane, row, depthSquare, querySquare});
  turns.push_back(start("queries", squareVars, read(querySquare * size + row, depthSquare * size + lane)));
  for (int done = 1; done < size; done *= 2) {
    Func last = turns.back();
    auto from = [&](const Expr &row) -> Expr {
      return done == 1 ? last(square(lane / 2, row)) : last(square(row % 2 * size + lane / 2, row / 2));
    };
    turns.push_back(start("turned", squareVars, Halide::select(lane % 2 == 0, from(row), from(row + size / 2))));
  }
  Expr inRow = depth % 2 * size + query % size;
  packedQuery = start("packed_query", vars({query, depth}),
                      turns.back()(at({inRow, depth % size / 2, depth / size, query / size})));
}

bool AttentionFuncs::buildScores() {
  const Contraction &shape = match.scores;
  linalg::GenericOp op = shape.op, masked = match.ops.masked;
  Expr atKey = block * sizes.blockKeys + key;
  depthDomain = RDom(0, translator.loopExtent(op, shape.reduction[0]), translator.name("depth"));

  scoreTile = start("score_tile", vars({query, key, block}), 0.0f);
  Expr score = scoreTile(at({query, key, block}));
  auto keyAt = [&](const Expr &key, const Expr &depth) {
    Exprs place = loopsAt(op, at({heldBelow(key, keyCount), query}));
    place[shape.reduction[0]] = depth;
    return decoded(shape, place);
  };
  if (sizes.packsKeys)
    packedKeys = start("packed_keys", vars({depth, key}), keyAt(key, depth));
  Exprs loops = loopsAt(op, at({atKey, query}));
  loops[shape.reduction[0]] = depthDomain.x;
  Exprs values = translator.body(op, loops, [&](unsigned number) -> Expr {
    if (number == shape.a)
      return packedQuery(at({query, depthDomain.x}));
    if (number == shape.scale)
      return 1.0f;
    if (number != shape.b)
      return score;
    return sizes.packsKeys ? Expr(packedKeys(at({depthDomain.x, atKey}))) : keyAt(atKey, depthDomain.x);
  });
  if (values.empty())
    return false;
  scoreTile(at({query, key, block})) = values[0];

  if (masked) {
    loops = loopsAt(masked, at({atKey, query}));
    values = translator.body(masked, loops, [&](unsigned number) {
      return number == AttentionOps::scoreOfMasked ? score : translator.readOperand(masked, number, loops);
    });
    if (values.empty())
      return false;
    score = values[0];
  }
  if (sizes.keyLanes) // Full vectors are computed: Halide must not see the condition.
    score = Halide::select(Halide::cast<uint8_t>(key < blockCount) != 0, score, lowest);
  scores = start("scores", vars({query, key, block}), score);
  return true;
}

/// Returns values of the mask's region for the query, which do not depend on the key.
Exprs AttentionFuncs::limitsOf(ArrayRef<Value> wanted, const Expr &query, unsigned firstOuter) {
  linalg::GenericOp masked = match.ops.masked;
  Exprs loops = loopsAt(masked, at({0, query}, firstOuter));
  return translator.evaluate(masked, wanted, loops, [&](unsigned number) {
    return number == AttentionOps::scoreOfMasked ? Expr(0.0f) : translator.readOperand(masked, number, loops);
  });
}

/// Returns how many keys the limits of the mask allow for the query.
Expr AttentionFuncs::smallestLimit(const Expr &query, unsigned firstOuter) {
  SmallVector<Value> wanted;
  for (const KeyLimit &limit : match.ops.limits)
    wanted.push_back(limit.value);
  Exprs values = limitsOf(wanted, query, firstOuter);
  Expr result = keyCount;
  for (auto [limit, value] : llvm::zip(match.ops.limits, values)) {
    if (!limit.growsWithQuery) // a sequence length that the model computes may have any value
      value = Halide::clamp(value, limit.isInclusive ? -1 : 0, keyCount);
    result = Halide::min(result, limit.isInclusive ? value + 1 : value);
  }
  return result;
}

Expr AttentionFuncs::firstQuery(const Expr &query) const {
  return sizes.isOneQuery ? Expr(0) : query / sizes.blockQueries * sizes.blockQueries;
}

/// Returns the first block of keys that the block of this query needs. The first query of the block has the first key.
Expr AttentionFuncs::firstBlock(const Expr &query, unsigned firstOuter) {
  if (!match.ops.beforeWindow)
    return 0;
  Expr before = limitsOf(match.ops.beforeWindow, Halide::min(firstQuery(query), queryCount - 1), firstOuter)[0];
  return Halide::max(before + 1, 0) / sizes.blockKeys;
}

/// Returns the number of keys that the block of this query needs. The last query of the block has the highest limit.
Expr AttentionFuncs::neededKeys(const Expr &query, unsigned firstOuter) {
  Expr first = firstQuery(query);
  Expr needed = keyCount;
  if (!match.ops.limits.empty()) {
    Expr last = Halide::min(first + sizes.blockQueries, queryCount) - 1;
    needed = smallestLimit(last, firstOuter);
  }
  return sizes.hasEmptyBlocks ? Halide::select(first < queryCount, needed, 0) : needed;
}

/// Returns the value that the weights op computes from a score and a maximum.
Expr AttentionFuncs::weight(const Expr &score, const Expr &maximum) {
  Exprs values = translator.body(match.ops.weights, Exprs(rank, Expr(0)), [&](unsigned number) {
    return number == AttentionOps::scoreOfWeights     ? score
           : number == AttentionOps::maximumOfWeights ? maximum
                                                      : Expr(0.0f);
  });
  return values.empty() ? Expr() : values[0];
}

void AttentionFuncs::reduceKeys(KeyReduction &reduction, const std::string &name, float initial,
                                llvm::function_ref<Expr(Expr sofar, Expr next)> combine, Func values) {
  auto [ofLane, func, keys, lanes] = std::tie(reduction.ofLane, reduction.func, reduction.keys, reduction.lanes);
  Exprs place = at({query, block});
  func = start(name.c_str(), vars({query, block}), initial);
  if (int width = sizes.keyLanes) {
    Expr vector = domainUpTo(keys, (blockCount + (width - 1)) / width, (blockExtent + (width - 1)) / width,
                             (name + "_keys").c_str());
    ofLane = start((name + "_of_lane").c_str(), vars({lane, query, block}), initial);
    Exprs laneAt = at({lane, query, block});
    ofLane(laneAt) = combine(ofLane(laneAt), values(at({query, vector * width + lane, block})));
    lanes = RDom(0, width, translator.name(name + "_lanes"));
    func(place) = combine(func(place), ofLane(at({lanes.x, query, block})));
  } else {
    Expr index = domainUpTo(keys, blockCount, blockExtent, (name + "_keys").c_str());
    func(place) = combine(func(place), values(at({query, index, block})));
  }
}

bool AttentionFuncs::buildWeights() {
  reduceKeys(maxima, "maxima", lowest, [](Expr sofar, Expr next) { return Halide::max(sofar, next); }, scores);
  Expr value = weight(scores(at({query, key, block})), maxima.func(at({query, block})));
  if (!value.defined())
    return false;
  weights = start("weights", vars({query, key, block}), value);
  reduceKeys(sums, "sums", 0.0f, [](Expr sofar, Expr next) { return sofar + next; }, weights);
  productIndex = domainUpTo(productDomain, blockCount, blockExtent, "keys");
  return true;
}

bool AttentionFuncs::buildProducts() {
  const Contraction &shape = match.products;
  linalg::GenericOp op = shape.op;
  auto loops = [&](const Expr &key) {
    Exprs result = loopsAt(op, at({channel, query}));
    result[shape.reduction[0]] = key;
    return result;
  };
  Expr atKey = block * sizes.blockKeys + productIndex;
  if (sizes.packsValues)
    packedValues = start("packed_values", vars({channel, key}), decoded(shape, loops(heldBelow(key, keyCount))));
  productTile = start("product_tile", vars({channel, query, block}), 0.0f);
  Expr accumulator = productTile(at({channel, query, block}));
  // Packed rows have room for the channels of full tiles; values after the last channel are not used.
  Expr last = translator.loopExtent(op, shape.n) - 1, within = Halide::unsafe_promise_clamped(channel, 0, last);
  Exprs values = translator.body(op, loops(atKey), [&](unsigned number) -> Expr {
    if (number == shape.a)
      return weights(at({query, productIndex, block}));
    if (number == shape.scale)
      return 1.0f;
    if (number != shape.b)
      return accumulator;
    return sizes.packsValues ? Expr(packedValues(at({within, atKey}))) : decoded(shape, loops(atKey));
  });
  if (values.empty())
    return false;
  productTile(at({channel, query, block})) = values[0];
  return true;
}

bool AttentionFuncs::buildMerge() {
  Var d0 = dimensionVar(0), d1 = dimensionVar(1);
  if (!sizes.hasKeyBlocks) {
    sum = start("sum", vars({d0}, 1), sums.func(at({d0, 0}, 1)));
    if (match.ops.readsMaxima)
      largest = start("largest", vars({d0}, 1), maxima.func(at({d0, 0}, 1)));
    product = start("product", vars({d0, d1}), productTile(at({d0, d1, 0})));
    return true;
  }
  partial = start("partial", vars({channel, query, block}), productTile(at({channel, query, block})));
  statistics = Func(translator.name("statistics"));
  statistics(vars({query, block})) = Halide::Tuple(maxima.func(at({query, block})), sums.func(at({query, block})));

  Expr extent = (keyCount + sizes.blockKeys - 1) / sizes.blockKeys;
  auto domain = [&](RDom &domain, const Expr &query, unsigned firstOuter, const char *name) {
    Expr count = (neededKeys(query, firstOuter) + sizes.blockKeys - 1) / sizes.blockKeys;
    if (!match.ops.beforeWindow)
      return domainUpTo(domain, count, extent, name);
    // A sequence may end before the window.
    Expr first = Halide::max(Halide::min(firstBlock(query, firstOuter), count - 1), 0);
    return domainUpTo(domain, count, extent, name, first);
  };
  Expr index = domain(mergedMaxDomain, query, 2, "max_blocks");
  maximum = start("maximum", vars({query}), lowest);
  maximum(at({query})) = Halide::max(maximum(at({query})), statistics(at({query, index}))[0]);

  if (match.ops.readsMaxima)
    largest = start("largest", vars({d0}, 1), maximum(at({d0}, 1)));

  Expr value = weight(statistics(at({query, block}))[0], maximum(at({query})));
  if (!value.defined())
    return false;
  factor = start("factor", vars({query, block}), value);

  index = domain(mergedSumDomain, d0, 1, "sum_blocks");
  sum = start("sum", vars({d0}, 1), 0.0f);
  sum(at({d0}, 1)) += factor(at({d0, index}, 1)) * statistics(at({d0, index}, 1))[1];

  index = domain(mergedProductDomain, d1, 2, "blocks");
  product = start("product", vars({d0, d1}), 0.0f);
  product(at({d0, d1})) += factor(at({d1, index})) * partial(at({d0, d1, index}));
  return true;
}

} // namespace kiln::halide
