// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/attention/WgmmaPipeline.h"

#include "compiler/dialect/Extents.h"
#include "targets/cuda/tile/Shared.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

void WgmmaPipeline::begin() {
  mapK = emitter.tensorMap(0), mapV = emitter.tensorMap(1);
  thread = b.threadId(), lane = b.rem(thread, b.integer(32)), warp = tile::warpOf(b, thread);
  shared = tile::sharedMemory(b, 1024), start = tile::sharedAddress(b, shared);
  barriers = b.add(start, b.integer(shape.barriersAt()));
  rowCount = elements.rowCount(), keyCount = elements.keyCount(), batchCount = elements.batchCount();
  b.ifThen(b.compare(arith::CmpIPredicate::eq, thread, b.integer(0)), [&] {
    for (int64_t stage = 0; stage < shape.stages; ++stage)
      for (int64_t number = 0; number < 4; ++number)
        tile::initBarrier(b, barrier(number, b.integer(stage)), number % 2 ? shape.groups * 4 : 1);
    tile::publishBarriers(b);
  });
  tile::barrier(b);
}

//===- Query tiles -------------------------------------------------------===//

Value WgmmaPipeline::queryTiles() {
  return b.div(b.add(rowCount, b.integer(shape.queries() - 1)), b.integer(shape.queries()));
}

/// With mask limits the last rows of all batches come first: under a causal mask they have the most keys. Without
/// limits, blocks that run concurrently share keys and values.
QueryTile WgmmaPipeline::tileOf(Value number) {
  Value tiles = queryTiles(), batch, row;
  if (attention.limits.empty()) {
    batch = b.div(number, tiles), row = b.rem(number, tiles);
  } else {
    batch = b.rem(number, batchCount);
    row = b.sub(b.sub(tiles, b.integer(1)), b.div(number, batchCount));
  }
  QueryTile tile{elements.batch(batch), b.mul(row, b.integer(shape.queries())), {}, {}, {}};
  countKeys(tile);
  return tile;
}

/// Each warp computes the limits of all of the block's rows.
void WgmmaPipeline::countKeys(QueryTile &tile) {
  Value needed = keyCount, within = keyCount, before = keyCount;
  if (!attention.limits.empty()) {
    needed = b.integer(0);
    for (int64_t i = 0; i < shape.queries() / 32; ++i) {
      Value row = b.clamp(b.add(tile.firstRow, b.add(lane, b.integer(i * 32))), rowCount);
      const Values at = elements.row(tile.batch, row);
      Value ofRow = elements.keysWithin(at);
      needed = b.createOrFold<arith::MaxSIOp>(needed, ofRow);
      within = b.createOrFold<arith::MinSIOp>(within, ofRow);
      if (attention.ops.beforeWindow)
        before = b.createOrFold<arith::MinSIOp>(before, elements.keysBefore(at));
    }
    for (int32_t bits = 16; bits > 0; bits /= 2) {
      needed = b.createOrFold<arith::MaxSIOp>(needed, b.shuffleXor(needed, bits));
      within = b.createOrFold<arith::MinSIOp>(within, b.shuffleXor(within, bits));
      if (attention.ops.beforeWindow)
        before = b.createOrFold<arith::MinSIOp>(before, b.shuffleXor(before, bits));
    }
    within = b.createOrFold<arith::MaxSIOp>(within, b.integer(0));
  }
  tile.tiles = b.div(b.add(needed, b.integer(shape.keys - 1)), b.integer(shape.keys));
  tile.firstKey = b.integer(0);
  if (attention.ops.beforeWindow) {
    Value first = b.div(b.createOrFold<arith::MaxSIOp>(before, b.integer(0)), b.integer(shape.keys));
    tile.firstKey = b.mul(first, b.integer(shape.keys));
    tile.tiles = b.createOrFold<arith::MaxSIOp>(b.sub(tile.tiles, first), b.integer(0));
  }
  tile.plain = attention.isPlainWithin ? b.div(within, b.integer(shape.keys)) : b.integer(0);
}

void WgmmaPipeline::eachTile(Body body) {
  Value blocks = tile::gridSize(b), block = b.blockId();
  Value all = b.mul(batchCount, queryTiles());
  Value mine = b.div(b.add(b.sub(all, block), b.sub(blocks, b.integer(1))), blocks);
  b.loop(mine, {b.integer(0)}, [&](Value iteration, ValueRange count) {
    return Values{body(tileOf(b.add(block, b.mul(iteration, blocks))), count.front())};
  });
}

/// The parity of a stage changes with each pass through the buffer.
WgmmaPipeline::PipelineState WgmmaPipeline::pipelineStateOf(Value count) {
  Value round = b.div(count, b.integer(shape.stages));
  return {b.sub(count, b.mul(round, b.integer(shape.stages))), b.both(round, b.integer(1))};
}

//===- Producer ----------------------------------------------------------===//

/// Returns coordinates in the tensor map of an AttentionMap.
Values WgmmaPipeline::coordinatesOf(Buffer buffer, const Source &source, int64_t channel) {
  Values loops = source.loops;
  loops[source.channelLoop] = b.integer(channel);
  const Values at = emitter.coordinates(source.op, source.number, loops);
  const SmallVector<AffineExpr> extents =
      mlir::kiln::getExtents(cast<RankedTensorType>(source.op->getOperand(source.number).getType()));
  auto together = [&](size_t first, size_t end) {
    Value number = at[first];
    for (size_t i = first + 1; i < end; ++i)
      number = b.add(b.mul(number, emitter.extent(extents[i])), at[i]);
    return number;
  };
  const size_t keys = keyDim[buffer];
  Values result{together(keys + 1, at.size()), at[keys]};
  if (keys > 0)
    result.push_back(together(0, keys));
  return result;
}

/// Copies a box for each block of channels. Stages are empty at first: the first wait is for the phase before the
/// first one, which counts as complete.
void WgmmaPipeline::bring(Buffer buffer, const PipelineState &slot, const Source &source, Value to) {
  constexpr int64_t blockChannels = AttentionWgmmaShape::blockChannels;
  const int64_t boxBytes = shape.keys * AttentionWgmmaShape::lineBytes;
  Value arrived = full(buffer, slot.stage);
  tile::awaitPhase(b, empty(buffer, slot.stage), b.sub(b.integer(1), slot.parity));
  tile::arriveExpecting(b, arrived, source.channels / blockChannels * boxBytes);
  for (int64_t block = 0; block < source.channels / blockChannels; ++block) {
    const Values at = coordinatesOf(buffer, source, block * blockChannels);
    tile::copyBox(b, b.add(to, b.integer(block * boxBytes)), source.map, at, arrived);
  }
}

void WgmmaPipeline::bring(const QueryTile &tile, Value number, const PipelineState &slot) {
  const Contraction &scores = attention.scores, &outputs = attention.outputs;
  Values at = tile.batch;
  at.back() = b.add(tile.firstKey, b.mul(number, b.integer(shape.keys)));
  bring(ofKeys, slot,
        {scores.op, attention.key, scores.reduction.front(), elements.scoreLoops(at, {}), mapK, shape.headDim},
        keysAt(slot.stage));
  bring(ofValues, slot,
        {outputs.op, attention.value, attention.channelLoop, elements.outputLoops(at, {}), mapV, shape.channels},
        valuesAt(slot.stage));
}

void WgmmaPipeline::produce() {
  tile::setRegisters(b, shape.producerRegisters(), /*isMore=*/false);
  b.ifThen(b.compare(arith::CmpIPredicate::eq, warp, b.integer(0)), [&] {
    eachTile([&](const QueryTile &tile, Value count) {
      b.ifThen(b.compare(arith::CmpIPredicate::eq, lane, b.integer(0)), [&] {
        b.loop(tile.tiles, {}, [&](Value number, ValueRange) {
          bring(tile, number, pipelineStateOf(b.add(count, number)));
          return Values();
        });
      });
      return b.add(count, tile.tiles);
    });
  });
}

} // namespace kiln::cuda
