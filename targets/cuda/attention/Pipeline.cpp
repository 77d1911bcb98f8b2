// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/attention/Pipeline.h"

#include "targets/cuda/tile/Shared.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

static Type elementOf(tile::Builder &b, const AttentionShape &shape) {
  return shape.mma ? tile::elementOf(b, *shape.mma) : b.getF32Type();
}

AttentionTiles::AttentionTiles(tile::Builder &b, ElementEmitter &emitter, const StageContext &first,
                               const Attention &attention, const AttentionShape &shape, AttentionElements &elements)
    : b(b), attention(attention), shape(shape), elements(elements),
      keys(b, emitter, first.placement, attention.scores.op, attention.key, attention.scoreLoops.back(),
           attention.scores.reduction.front(), elementOf(b, shape), shape.keyLines()),
      values(b, emitter, first.placement, attention.outputs.op, attention.value, attention.outputLoops.back(),
             attention.channelLoop, elementOf(b, shape), shape.valueLines()) {}

void AttentionTiles::begin(const AttentionPlace &at, FirstKey keyOf) {
  place = at, firstKey = std::move(keyOf);
  keys.begin(place.member, shape.threadsOfGroup(), elements.scoreLoops(place.batch, {}));
  values.begin(place.member, shape.threadsOfGroup(), elements.outputLoops(place.batch, {}));
  beginQueries();
}

namespace {

//===- For CUDA cores ----------------------------------------------------===//

/// Copy groups alternate: keys, values, the next keys, .. Queries are computed by threads.
class AlternatingTiles : public AttentionTiles {
public:
  using AttentionTiles::AttentionTiles;

  void start() override {
    Value first = firstKey(b.integer(0));
    keys.fetch(first, keysAt());
    tile::commitCopies(b);
    values.fetch(first, valuesAt);
    tile::commitCopies(b);
    loadQueries();
  }
  Value awaitKeys(Value) override { return await(keysAt()); }
  Value awaitValues(Value) override { return await(valuesAt); }
  void releaseKeys(Value next) override { release(keys, next, keysAt()); }
  void releaseValues(Value next) override { release(values, next, valuesAt); }

private:
  void beginQueries() override { valuesAt = tile::advance(b, place.threadGroup, shape.keyLines().size()); }
  Value keysAt() const { return place.threadGroup; }
  void sync() { shape.threadsOfGroup() == 32 ? tile::syncWarp(b) : tile::barrier(b); }
  Value await(Value at) {
    tile::awaitCopies(b, 1);
    sync();
    return at;
  }
  void release(HeadTile &tile, Value next, Value to) {
    sync();
    tile.fetch(next, to);
    tile::commitCopies(b);
  }
  void loadQueries();

  Value valuesAt;
};

/// Writes zeros beyond the last row and the end of K. A thread reads several elements before it stores them.
void AlternatingTiles::loadQueries() {
  constexpr int64_t together = 4;
  const LineShape lines = shape.queryLines();
  const int64_t count = lines.lines * lines.width;
  b.loop(b.integer(llvm::divideCeil(count, shape.threads() * together)), {}, [&](Value iteration, ValueRange) {
    Values read, to, inTile;
    for (int64_t i = 0; i < together; ++i) {
      Value number = b.add(b.mul(iteration, b.integer(together)), b.integer(i));
      Value index = b.add(b.mul(number, b.integer(shape.threads())), place.thread);
      Value line = b.div(index, b.integer(lines.width)), dim = b.rem(index, b.integer(lines.width));
      Value row = b.add(place.firstRow, line);
      inTile.push_back(b.isBelow(index, b.integer(count)));
      Value inside = b.both(b.isBelow(row, place.rowCount), b.isBelow(dim, b.integer(shape.headDim)));
      read.push_back(b.ifElse(
          b.both(inside, inTile.back()), b.getF32Type(),
          [&] { return elements.query(elements.row(place.batch, row), dim); }, [&] { return elements.number(0); }));
      to.push_back(tile::advance(b, place.queries, b.add(b.mul(line, b.integer(lines.pitch)), dim)));
    }
    for (int64_t i = 0; i < together; ++i)
      b.ifThen(inTile[i], [&] { tile::storeOne(b, read[i], to[i]); });
    return Values();
  });
}

//===- For tensor cores --------------------------------------------------===//

/// A copy group is a pipeline stage of keys and values. 16-bit queries belong to the first group, tf32 queries are a
/// group by themselves. In each iteration all threads have finished with the previous stage, which then receives the
/// copy of the last tile in flight. tf32 operands are rounded once when they have arrived, for all warps.
class StagedTiles : public AttentionTiles {
public:
  StagedTiles(tile::Builder &b, ElementEmitter &emitter, const StageContext &first, const Attention &attention,
              const AttentionShape &shape, AttentionElements &elements)
      : AttentionTiles(b, emitter, first, attention, shape, elements),
        queries(b, emitter, first.placement, attention.mma->op, attention.mma->query, std::nullopt,
                attention.mma->channelLoop(attention), elementOf(b, shape), shape.queryLines()) {}

  void start() override {
    queries.fetch(place.firstRow, place.queries);
    if (!shape.isHalf())
      tile::commitCopies(b);
    for (int64_t stage = 0; stage + 1 < shape.stages; ++stage)
      fetch(b.integer(stage));
    if (shape.isHalf())
      return;
    tile::awaitCopies(b, shape.stages - 1);
    tile::barrier(b);
    round(shape.queryLines(), place.queries);
  }
  Value awaitKeys(Value iteration) override {
    tile::awaitCopies(b, shape.stages - 2);
    tile::barrier(b);
    fetch(b.add(iteration, b.integer(shape.stages - 1)));
    if (!shape.isHalf()) {
      round(shape.keyLines(), stageOf(iteration));
      round(shape.valueLines(), valuesOf(iteration));
      tile::barrier(b);
    }
    return stageOf(iteration);
  }
  Value awaitValues(Value iteration) override { return valuesOf(iteration); }
  void releaseKeys(Value) override {}
  void releaseValues(Value) override {}
  bool isBroken() const override { return AttentionTiles::isBroken() || queries.isBroken(); }

private:
  void beginQueries() override {
    queries.begin(place.thread, shape.threads(), place.rowCount, [this](Value line) {
      return attention.mma->loopsAt(elements.scoreLoops(elements.row(place.batch, line), {}));
    });
  }
  Value stageOf(Value iteration) {
    return tile::advance(b, place.threadGroup,
                         b.mul(b.rem(iteration, b.integer(shape.stages)), b.integer(shape.stageSize())));
  }
  Value valuesOf(Value iteration) { return tile::advance(b, stageOf(iteration), shape.keyLines().size()); }
  void fetch(Value iteration) {
    Value first = firstKey(iteration);
    keys.fetch(first, stageOf(iteration));
    values.fetch(first, valuesOf(iteration));
    tile::commitCopies(b);
  }
  void round(const LineShape &lines, Value at) { roundToTf32(b, lines, at, place.thread, shape.threads()); }

  HeadTile queries;
};

} // namespace

std::unique_ptr<AttentionTiles> createAttentionTiles(tile::Builder &b, ElementEmitter &emitter,
                                                     const StageContext &first, const Attention &attention,
                                                     const AttentionShape &shape, AttentionElements &elements) {
  if (shape.mma)
    return std::make_unique<StagedTiles>(b, emitter, first, attention, shape, elements);
  return std::make_unique<AlternatingTiles>(b, emitter, first, attention, shape, elements);
}

} // namespace kiln::cuda
