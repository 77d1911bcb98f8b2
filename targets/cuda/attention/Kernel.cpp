// SPDX-License-Identifier: Apache-2.0
//
// 1. A block has some rows of a batch, whose queries it keeps in shared memory. The last rows begin first: under a
//    causal mask they have the most keys.
// 2. Keys and values arrive tile by tile (FlashAttention-2, Dao 2023). The next tiles are copied while the current
//    ones are in use (Pipeline.h).
// 3. Each row keeps its running maximum, and the sum of weights and the outputs relative to that maximum, which are
//    rescaled when it grows (Milakov and Gimelshein 2018). If the maximum is -infinity there are no weights; they are
//    computed relative to 0, so that each of them is 0.
// 4. Thread groups, which are warps or blocks, take tiles in turn. Their results are combined in the block, then by a
//    second launch.
#include "targets/cuda/attention/Kernel.h"

#include "targets/cuda/attention/Pipeline.h"
#include "targets/cuda/attention/Product.h"
#include "targets/cuda/tile/Shared.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

namespace {

/// Blocks of more rows are few and long: with programmatic dependent launch they would be distributed unevenly.
constexpr int64_t mostDependentRows = 16;
constexpr float infinity = std::numeric_limits<float>::infinity();

class AttentionBuilder {
public:
  AttentionBuilder(tile::Builder &b, ElementEmitter &emitter, const StageContext &first, const StageContext &last,
                   const Attention &attention, const AttentionShape &shape, const AttentionPartials *partials)
      : b(b), emitter(emitter), attention(attention), shape(shape), partials(partials),
        elements(b, emitter, first, last, attention), product(createAttentionProduct(b, attention, shape)),
        tiles(createAttentionTiles(b, emitter, first, attention, shape, elements)) {}

  LogicalResult run();

private:
  void begin();
  void beginThreadGroup();
  Value tilesBefore();
  Value tilesNeeded();
  Value largestOfBlock(Value count);
  Values addTiles();
  Values addTile(Value firstKey, ValueRange last);
  Values scoresOf(Value firstKey, Value keysAt);
  Values scaled(Values &scores, ValueRange last);
  void storeResult(Values state);
  void finish();
  Value firstKeyOf(Value iteration) {
    Value tile = b.add(threadGroup, b.mul(iteration, b.integer(shape.parts * shape.kvSplits)));
    return b.mul(b.add(firstTile, tile), b.integer(shape.keys));
  }

  tile::Builder &b;
  ElementEmitter &emitter;
  const Attention &attention;
  AttentionShape shape;
  const AttentionPartials *partials; // null: there is one split
  AttentionElements elements;
  std::unique_ptr<AttentionProduct> product;
  std::unique_ptr<AttentionTiles> tiles;
  Value thread, split, threadGroup, batch, firstRow, rowCount,
      keyCount;               // threadGroup: index among those of the same rows
  Value firstTile;            // of keys that one of the rows needs
  Value queriesAt, weightsAt; // in shared memory
  Values ofBatch;             // coordinates
  SmallVector<Values> rows;   // the thread's rows
};

//===- Before the keys ---------------------------------------------------===//

void AttentionBuilder::begin() {
  thread = b.threadId();
  rowCount = elements.rowCount();
  keyCount = elements.keyCount();
  Value tiles = b.div(b.add(rowCount, b.integer(shape.rows - 1)), b.integer(shape.rows));
  Value block = b.blockId();
  split = b.rem(block, b.integer(shape.kvSplits));
  block = b.div(block, b.integer(shape.kvSplits));
  batch = b.div(block, tiles);
  firstRow = b.mul(b.sub(b.sub(tiles, b.integer(1)), b.rem(block, tiles)), b.integer(shape.rows));
  ofBatch = elements.batch(batch);
  queriesAt = tile::sharedMemory(b);
  beginThreadGroup();
}

void AttentionBuilder::beginThreadGroup() {
  Value part = b.div(thread, b.integer(shape.threadsOfGroup())),
        member = b.rem(thread, b.integer(shape.threadsOfGroup()));
  threadGroup = b.add(b.mul(part, b.integer(shape.kvSplits)), split); // spreads few tiles over as many blocks
  Value own = tile::advance(b, queriesAt, shape.queryLines().size());
  Value tilesAt = tile::advance(b, own, b.mul(part, b.integer(shape.threadGroupSize())));
  weightsAt = tile::advance(b, tilesAt, shape.stages * shape.stageSize());
  tiles->begin({thread, member, firstRow, rowCount, ofBatch, queriesAt, tilesAt},
               [this](Value iteration) { return firstKeyOf(iteration); });
  product->begin(member);
  for (int64_t i = 0; i < product->rows(); ++i)
    rows.push_back(elements.row(ofBatch, b.clamp(b.add(firstRow, product->row(i)), rowCount)));
}

/// Returns the maximum over the block. All threads of the block must call this.
Value AttentionBuilder::largestOfBlock(Value count) {
  for (int32_t bits = 16; bits > 0; bits /= 2)
    count = b.createOrFold<arith::MaxSIOp>(count, b.shuffleXor(count, bits));
  const int64_t warps = shape.threadsOfGroup() / 32;
  if (warps == 1) // then all warps have the same rows
    return count;
  Value room = tile::addShared(b, b.getI32Type(), warps);
  Value isFirst = b.compare(arith::CmpIPredicate::eq, b.rem(thread, b.integer(32)), b.integer(0));
  b.ifThen(isFirst, [&] { b.store(count, room, b.div(thread, b.integer(32))); });
  tile::barrier(b);
  for (int64_t warp = 0; warp < warps; ++warp)
    count = b.createOrFold<arith::MaxSIOp>(count, b.load(b.getI32Type(), room, b.integer(warp)));
  return count;
}

/// Returns the number of leading key tiles that are before the windows of all rows.
Value AttentionBuilder::tilesBefore() {
  if (!attention.ops.beforeWindow)
    return b.integer(0);
  Value count; // the negated number of keys
  for (const Values &row : rows) {
    Value ofRow = b.sub(b.integer(0), elements.keysBefore(row));
    count = count ? b.createOrFold<arith::MaxSIOp>(count, ofRow) : ofRow;
  }
  count = b.sub(b.integer(0), largestOfBlock(count));
  return b.div(b.createOrFold<arith::MaxSIOp>(count, b.integer(0)), b.integer(shape.keys));
}

/// Returns the number of leading key tiles up to the last one that one of the rows needs.
Value AttentionBuilder::tilesNeeded() {
  Value count = keyCount;
  if (!attention.limits.empty()) {
    count = b.integer(0);
    for (const Values &row : rows)
      count = b.createOrFold<arith::MaxSIOp>(count, elements.keysWithin(row));
    count = largestOfBlock(count);
  }
  return b.div(b.add(count, b.integer(shape.keys - 1)), b.integer(shape.keys));
}

//===- Keys and values ---------------------------------------------------===//

/// Returns the thread's scores, with -infinity beyond the last key.
Values AttentionBuilder::scoresOf(Value firstKey, Value keysAt) {
  Values sums = product->scores(queriesAt, keysAt);
  for (int64_t j = 0; j < product->keys(); ++j) {
    Value key = b.add(firstKey, product->key(j)), inside = b.isBelow(key, keyCount), held = b.clamp(key, keyCount);
    for (int64_t i = 0; i < product->rows(); ++i) {
      Value &sum = sums[i * product->keys() + j];
      sum = b.select(inside, elements.score(rows[i], held, sum), elements.number(-infinity));
    }
  }
  return sums;
}

/// Turns scores into attention weights. Returns the state relative to the new maxima, with the new sums: the maximum
/// of each row, then the thread's part of the sum of each row, then the outputs.
Values AttentionBuilder::scaled(Values &scores, ValueRange last) {
  const int64_t count = product->rows(), ofRow = product->outputsOfRow();
  auto maximum = [&](Value x, Value y) { return elements.maximum(x, y); };
  Values state(last);
  for (int64_t i = 0; i < count; ++i) {
    MutableArrayRef<Value> row = MutableArrayRef(scores).slice(i * product->keys(), product->keys());
    Value highest = row.front();
    for (Value score : row.drop_front())
      highest = maximum(highest, score);
    highest = maximum(last[i], product->reduceRow(highest, maximum));
    Value reference = elements.reference(highest), factor = elements.weight(last[i], reference);
    Value sum = b.createOrFold<arith::MulFOp>(last[count + i], factor);
    for (Value &score : row) {
      score = elements.weight(score, reference);
      sum = b.createOrFold<arith::AddFOp>(sum, score);
    }
    state[i] = highest, state[count + i] = sum;
    for (Value &output : MutableArrayRef(state).slice(2 * count + i * ofRow, ofRow))
      output = b.createOrFold<arith::MulFOp>(output, factor);
  }
  return state;
}

Values AttentionBuilder::addTile(Value iteration, ValueRange last) {
  const int64_t count = product->rows();
  Value firstKey = firstKeyOf(iteration), next = firstKeyOf(b.add(iteration, b.integer(1)));
  Values scores = scoresOf(firstKey, tiles->awaitKeys(iteration));
  tiles->releaseKeys(next);
  Values state = scaled(scores, last);
  Value valuesAt = tiles->awaitValues(iteration);
  Values outputs = product->add(scores, weightsAt, valuesAt, ValueRange(state).drop_front(2 * count));
  tiles->releaseValues(next);
  llvm::copy(outputs, state.begin() + 2 * count);
  return state;
}

Values AttentionBuilder::addTiles() {
  const int64_t count = product->rows(), stride = shape.parts * shape.kvSplits;
  firstTile = tilesBefore();
  tiles->start();
  Value needed = b.createOrFold<arith::MaxSIOp>(b.sub(tilesNeeded(), firstTile), b.integer(0));
  tile::barrier(b);
  Values state(count, elements.number(-infinity));
  state.append(count + count * product->outputsOfRow(), elements.number(0));
  Value iterations = b.div(b.sub(b.add(needed, b.integer(stride - 1)), threadGroup), b.integer(stride));
  state = b.loop(iterations, state, [&](Value iteration, ValueRange last) { return addTile(iteration, last); });
  tile::awaitCopies(b, 0);
  return state;
}

//===- Results -----------------------------------------------------------===//

/// Writes the thread group's maxima, sums and outputs over the shared memory of queries, keys and values.
void AttentionBuilder::storeResult(Values state) {
  const int64_t count = product->rows();
  Value part = b.div(thread, b.integer(shape.threadsOfGroup()));
  Value to = tile::advance(b, queriesAt, b.mul(part, b.integer(shape.resultSize())));
  auto add = [&](Value x, Value y) { return b.createOrFold<arith::AddFOp>(x, y); };
  for (int64_t i = 0; i < count; ++i)
    state[count + i] = product->reduceRow(state[count + i], add);
  tile::barrier(b);
  b.ifThen(product->isFirstOfRow(), [&] {
    for (int64_t i = 0; i < count; ++i) {
      tile::storeOne(b, state[i], tile::advance(b, to, product->row(i)));
      tile::storeOne(b, state[count + i], tile::advance(b, to, b.add(product->row(i), b.integer(shape.rows))));
    }
  });
  product->store(ValueRange(state).drop_front(2 * count), tile::advance(b, to, 2 * shape.rows));
  tile::barrier(b);
}

/// Neighbouring threads finish neighbouring channels.
void AttentionBuilder::finish() {
  const int64_t count = shape.rows * shape.channels;
  b.loop(b.integer(llvm::divideCeil(count, shape.threads())), {}, [&](Value iteration, ValueRange) {
    Value index = b.add(b.mul(iteration, b.integer(shape.threads())), thread);
    Value line = b.div(index, b.integer(shape.channels)), channel = b.rem(index, b.integer(shape.channels));
    Value row = b.add(firstRow, line);
    b.ifThen(b.both(b.isBelow(row, rowCount), b.isBelow(index, b.integer(count))), [&] {
      const AttentionPart combined = combineParts(b, elements, shape.parts, [&](Value part) {
        Value from = tile::advance(b, queriesAt, b.mul(part, b.integer(shape.resultSize())));
        Value output = b.add(b.mul(line, b.integer(shape.outputPitch())), channel);
        return AttentionPart{tile::loadOne(b, tile::advance(b, from, line)),
                             tile::loadOne(b, tile::advance(b, from, b.add(line, b.integer(shape.rows)))),
                             tile::loadOne(b, tile::advance(b, from, b.add(output, b.integer(2 * shape.rows))))};
      });
      if (partials)
        partials->store(b, emitter, b.add(b.mul(batch, rowCount), row), split, channel, combined);
      else
        elements.finish(elements.row(ofBatch, row), channel, combined);
    });
    return Values();
  });
}

LogicalResult AttentionBuilder::run() {
  if (shape.rows <= mostDependentRows)
    b.launchDependents();
  begin();
  Values state = addTiles();
  if (shape.rows > mostDependentRows)
    b.launchDependents();
  storeResult(std::move(state));
  finish();
  return failure(tiles->isBroken() || elements.isBroken());
}

} // namespace

LogicalResult buildAttention(tile::Builder &b, const StageContext &first, const StageContext &last,
                             const Attention &attention, const AttentionShape &shape, LaunchPlan &plan) {
  std::optional<AttentionPartials> partials;
  if (shape.kvSplits > 1)
    partials.emplace(first, attention, shape, plan);
  const std::string name = "attention_" + std::to_string(plan.functions.size());
  const tile::KernelLaunch launch{.threads = shape.threads(), .isDependentLaunch = shape.rows <= mostDependentRows};
  b.beginKernel(name, launch);
  ElementEmitter emitter(b, first.placement, first.kernel);
  if (failed(AttentionBuilder(b, emitter, first, last, attention, shape, partials ? &*partials : nullptr).run()))
    return failure();
  b.endKernel();
  MLIRContext *ofMaps = first.kernel->getContext();
  AffineExpr blocks =
      extentOf(attention.batch, ofMaps) * extentOf(attention.rows, ofMaps).ceilDiv(shape.rows) * shape.kvSplits;
  plan.launches.push_back({unsigned(plan.functions.size()), blocks, emitter.parameters});
  plan.functions.push_back(makeFunction(name, launch, shape.sharedBytes()));
  return partials ? buildAttentionCombine(b, first, last, attention, shape, *partials, plan) : success();
}

} // namespace kiln::cuda
