// SPDX-License-Identifier: Apache-2.0
//
//   producer, one thread               multistage buffers with two mbarriers each    consumers, warpgroups
//   await empty, copy a tile of keys        full:  the bytes have arrived            scores of 64 queries: wgmma
//   await empty, copy one of values         empty: all warps are done                softmax, in registers
//                                                                                    outputs += weights values: wgmma
//
// While one warpgroup computes its softmax, another one multiplies. There are as many blocks as multiprocessors, which
// take query tiles in turn; the producer is ahead by the number of stages, also across the end of a query tile. Key
// tiles that no mask limit touches come first: their elements need no mask.
#include "targets/cuda/attention/WgmmaKernel.h"

#include "targets/cuda/attention/HeadTile.h"
#include "targets/cuda/attention/MmaProduct.h"
#include "targets/cuda/attention/WgmmaPipeline.h"
#include "targets/cuda/tile/Shared.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr int64_t lineBytes = AttentionWgmmaShape::lineBytes, blockChannels = AttentionWgmmaShape::blockChannels;
constexpr int64_t rowsOfThread = 2;

/// Returns the shape of a warpgroup, which determines the register layout of the matrix products.
AttentionShape groupShape(const Attention &attention, const AttentionWgmmaShape &shape) {
  return {64, shape.keys, rowsOfThread, 1, 1, shape.headDim, shape.channels, attention.mma->type, shape.stages};
}

class WgmmaAttention {
public:
  WgmmaAttention(tile::Builder &b, ElementEmitter &emitter, const StageContext &first, const StageContext &last,
                 const Attention &attention, const AttentionMaps &maps, const AttentionWgmmaShape &shape)
      : b(b), attention(attention), shape(shape), elements(b, emitter, first, last, attention),
        pipeline(b, emitter, attention, maps, shape, elements),
        lanes(b, groupShape(attention, shape), attention.mma->factor),
        queries(b, emitter, first.placement, attention.mma->op, attention.mma->query, std::nullopt,
                attention.mma->channelLoop(attention), tile::elementOf(b, attention.mma->type),
                blockLines(64, shape.headDim)),
        ofScores{attention.mma->type, shape.keys, false, false},
        ofOutputs{attention.mma->type, shape.channels, false, true} {}

  LogicalResult run();

private:
  void consume();
  void loadQueries(const QueryTile &tile);
  Value keyOf(const QueryTile &tile, Value number) {
    return b.add(tile.firstKey, b.mul(number, b.integer(shape.keys)));
  }
  Values beginScores(Value stage);
  Values byRow(ValueRange sums);
  Values masked(Values sums, Value firstKey);
  using PipelineState = WgmmaPipeline::PipelineState;
  Values addKeys(const PipelineState &slot, Value firstKey, bool isPlain, ValueRange state);
  Values soften(Values &scores, Value factor, Values &state);
  void scaleOutputs(Values &state, ValueRange scales);
  Values packed(ValueRange weights);
  Values beginOutputs(ValueRange factors, Value stage, ValueRange state);
  void putOutputs(ValueRange sums, Values &state);
  Values addLate(const PipelineState &slot, const PipelineState &before, Value firstKey, bool isPlain,
                 ValueRange state);
  Values addFirst(const PipelineState &slot, Value firstKey, ValueRange state);
  Values addTiles(const QueryTile &tile, Value count, Values state);
  Values addTilesLate(const QueryTile &tile, Value count, Values state);
  void finish(const QueryTile &tile, Values state);

  tile::Builder &b;
  const Attention &attention;
  AttentionWgmmaShape shape;
  AttentionElements elements;
  WgmmaPipeline pipeline;
  AttentionMmaProduct lanes; // which elements of its warp's 16 rows a thread has
  HeadTile queries;
  tile::MatrixProduct ofScores, ofOutputs;
  Value group;              // consumer warpgroup
  SmallVector<Values> rows; // coordinates of the thread's rows
};

//===- Consumers ---------------------------------------------------------===//

/// Loads the queries of the warpgroup's 64 rows once all its warps have finished with the previous ones.
void WgmmaAttention::loadQueries(const QueryTile &tile) {
  Value number = b.add(group, b.integer(1)), ofGroup = b.rem(pipeline.thread, b.integer(128));
  Value to = tile::advance(b, pipeline.shared, b.mul(group, b.integer(shape.queryBytes() / 4)));
  queries.begin(ofGroup, 128, pipeline.rowCount, [this, &tile](Value line) {
    return attention.mma->loopsAt(elements.scoreLoops(elements.row(tile.batch, line), {}));
  });
  tile::barrierAmong(b, number, 128);
  queries.fetch(b.add(tile.firstRow, b.mul(group, b.integer(64))), to);
  tile::commitCopies(b);
  tile::awaitCopies(b, 0);
  tile::orderBeforeCopies(b);
  tile::barrierAmong(b, number, 128);
}

/// Starts QK^T for the warpgroup's queries and the tile's keys, which must have been awaited.
Values WgmmaAttention::beginScores(Value stage) {
  Value a =
      tile::matrixDescriptor(b, b.add(pipeline.start, b.mul(group, b.integer(shape.queryBytes()))), 16, 8 * lineBytes);
  Value c = tile::matrixDescriptor(b, pipeline.keysAt(stage), 16, 8 * lineBytes);
  tile::beginProducts(b);
  Values sums;
  for (int64_t step = 0; step < shape.headDim / 16; ++step) {
    const int64_t block = step / 4, bytes = step % 4 * 32;
    Value ofA = tile::advanceDescriptor(b, a, block * 64 * lineBytes + bytes),
          ofC = tile::advanceDescriptor(b, c, block * shape.keys * lineBytes + bytes);
    sums = sums.empty() ? tile::firstProduct(b, ofScores, ofA, ofC) : tile::addProduct(b, ofScores, ofA, ofC, sums);
  }
  tile::commitProducts(b);
  return sums;
}

/// Returns the index of accumulator 4 j + 2 row + e in row-major order.
static size_t placeOf(int64_t sum, int64_t ofRow) { return size_t(sum / 2 % 2 * ofRow + sum / 4 * 2 + sum % 2); }

Values WgmmaAttention::byRow(ValueRange sums) {
  Values result(sums.size());
  for (int64_t i = 0; i < int64_t(sums.size()); ++i)
    result[placeOf(i, lanes.keys())] = sums[size_t(i)];
  return result;
}

/// Applies the kernel's ops to the dot products; -infinity beyond the last key.
Values WgmmaAttention::masked(Values sums, Value firstKey) {
  for (int64_t j = 0; j < lanes.keys(); ++j) {
    Value key = b.add(firstKey, lanes.key(j)), inside = b.isBelow(key, pipeline.keyCount),
          held = b.clamp(key, pipeline.keyCount);
    for (int64_t i = 0; i < rowsOfThread; ++i) {
      Value &sum = sums[size_t(i * lanes.keys() + j)];
      Value product = b.createOrFold<arith::MulFOp>(sum, elements.number(attention.mma->factor));
      sum = b.select(inside, elements.score(rows[size_t(i)], held, product), elements.number(-infinity));
    }
  }
  return sums;
}

/// Turns scores, which are `factor` times the given ones, into weights 2^(score - maximum). Updates the maxima and
/// sums of the state, but not its outputs: returns what those are to be scaled by, for each row.
Values WgmmaAttention::soften(Values &scores, Value factor, Values &state) {
  auto maximum = [&](Value x, Value y) { return elements.maximum(x, y); };
  Values scales;
  for (int64_t i = 0; i < rowsOfThread; ++i) {
    Value &last = state[size_t(i)], &sum = state[size_t(rowsOfThread + i)];
    MutableArrayRef<Value> row = MutableArrayRef(scores).slice(size_t(i * lanes.keys()), size_t(lanes.keys()));
    Value highest = row.front();
    for (Value score : row.drop_front())
      highest = maximum(highest, score);
    highest = lanes.reduceRow(highest, maximum);
    if (factor)
      highest = b.createOrFold<arith::MulFOp>(highest, factor);
    highest = maximum(last, highest);
    Value reference = elements.reference(highest), by = factor ? factor : elements.number(1);
    Value negative = b.createOrFold<arith::NegFOp>(reference);
    scales.push_back(tile::exponential2(b, b.createOrFold<arith::SubFOp>(last, reference)));
    last = highest, sum = b.createOrFold<arith::MulFOp>(sum, scales.back());
    for (Value &score : row) {
      score = tile::exponential2(b, LLVM::FMAOp::create(b, score, by, negative));
      sum = b.createOrFold<arith::AddFOp>(sum, score);
    }
  }
  return scales;
}

void WgmmaAttention::scaleOutputs(Values &state, ValueRange scales) {
  const int64_t ofRow = lanes.outputsOfRow();
  for (auto [i, output] : llvm::enumerate(MutableArrayRef(state).drop_front(2 * rowsOfThread)))
    output = b.createOrFold<arith::MulFOp>(output, scales[i / size_t(ofRow)]);
}

/// Packs four registers for each 16 keys.
Values WgmmaAttention::packed(ValueRange weights) {
  Values factors;
  for (int64_t step = 0; step < shape.keys / 16; ++step)
    factors.append(lanes.weightsOf(weights, 0, step));
  return factors;
}

Values WgmmaAttention::beginOutputs(ValueRange factors, Value stage, ValueRange state) {
  Value c = tile::matrixDescriptor(b, pipeline.valuesAt(stage), shape.keys * lineBytes, 8 * lineBytes);
  ValueRange outputs = state.drop_front(2 * rowsOfThread);
  Values sums;
  for (int64_t i = 0; i < rowsOfThread * lanes.outputsOfRow(); ++i)
    sums.push_back(outputs[placeOf(i, lanes.outputsOfRow())]);
  tile::beginProducts(b);
  for (int64_t step = 0; step < shape.keys / 16; ++step)
    sums = tile::addProduct(b, ofOutputs, Values(factors.slice(size_t(4 * step), 4)),
                            tile::advanceDescriptor(b, c, step * 16 * lineBytes), sums);
  tile::commitProducts(b);
  return sums;
}

void WgmmaAttention::putOutputs(ValueRange sums, Values &state) {
  for (int64_t i = 0; i < int64_t(sums.size()); ++i)
    state[2 * rowsOfThread + placeOf(i, lanes.outputsOfRow())] = sums[size_t(i)];
}

Values WgmmaAttention::addKeys(const PipelineState &slot, Value firstKey, bool isPlain, ValueRange last) {
  Values state(last);
  pipeline.awaitKeys(slot);
  Values sums = byRow(tile::awaitSums(b, beginScores(slot.stage)));
  pipeline.releaseKeys(slot);
  if (!isPlain)
    sums = masked(std::move(sums), firstKey);
  scaleOutputs(state, soften(sums, isPlain ? elements.number(attention.mma->factor) : Value(), state));
  pipeline.awaitValues(slot);
  putOutputs(tile::awaitSums(b, beginOutputs(packed(sums), slot.stage, state)), state);
  pipeline.releaseValues(slot);
  return state;
}

/// Returns the state, followed by the weights of the first tile, which are not multiplied yet.
Values WgmmaAttention::addFirst(const PipelineState &slot, Value firstKey, ValueRange last) {
  Values state(last);
  pipeline.awaitKeys(slot);
  Values sums = byRow(tile::awaitSums(b, beginScores(slot.stage)));
  pipeline.releaseKeys(slot);
  sums = masked(std::move(sums), firstKey);
  soften(sums, Value(), state);
  llvm::copy(packed(sums), state.end() - shape.keys / 4);
  return state;
}

/// Computes a tile's scores while the values of the previous tile are added, and the tile's softmax until they have
/// been.
Values WgmmaAttention::addLate(const PipelineState &slot, const PipelineState &before, Value firstKey, bool isPlain,
                               ValueRange last) {
  Values state(last.drop_back(size_t(shape.keys / 4))), factors(last.take_back(size_t(shape.keys / 4)));
  pipeline.awaitKeys(slot);
  Values sums = beginScores(slot.stage);
  pipeline.awaitValues(before);
  Values outputs = beginOutputs(factors, before.stage, state);
  sums = byRow(tile::awaitSums(b, sums, 1));
  pipeline.releaseKeys(slot);
  if (!isPlain)
    sums = masked(std::move(sums), firstKey);
  Values scales = soften(sums, isPlain ? elements.number(attention.mma->factor) : Value(), state);
  tile::keepBefore(b, b.createOrFold<arith::AddFOp>(state[rowsOfThread], state[rowsOfThread + 1]), pipeline.start);
  putOutputs(tile::awaitSums(b, outputs), state);
  pipeline.releaseValues(before);
  scaleOutputs(state, scales);
  state.append(packed(sums));
  return state;
}

/// Each thread stores its outputs: four lanes have eight neighbouring channels.
void WgmmaAttention::finish(const QueryTile &tile, Values state) {
  const int64_t ofRow = lanes.outputsOfRow();
  auto add = [&](Value x, Value y) { return b.createOrFold<arith::AddFOp>(x, y); };
  for (int64_t i = 0; i < rowsOfThread; ++i) {
    Value sum = lanes.reduceRow(state[size_t(rowsOfThread + i)], add);
    Value row = b.add(tile.firstRow, b.add(b.mul(group, b.integer(64)), lanes.row(i)));
    b.ifThen(b.isBelow(row, pipeline.rowCount), [&] {
      for (int64_t c = 0; c < ofRow; ++c)
        elements.finish(rows[size_t(i)], lanes.key(c),
                        {state[size_t(i)], sum, state[size_t(2 * rowsOfThread + i * ofRow + c)]});
    });
  }
}

Values WgmmaAttention::addTiles(const QueryTile &tile, Value count, Values state) {
  auto addFrom = [&](Value firstTile, Value tiles, bool isPlain) {
    state = b.loop(tiles, state, [&](Value iteration, ValueRange last) {
      Value number = b.add(firstTile, iteration);
      return addKeys(pipeline.pipelineStateOf(b.add(count, number)), keyOf(tile, number), isPlain, last);
    });
  };
  if (attention.isPlainWithin)
    addFrom(b.integer(0), tile.plain, true);
  addFrom(tile.plain, b.sub(tile.tiles, tile.plain), false);
  return state;
}

Values WgmmaAttention::addTilesLate(const QueryTile &tile, Value count, Values state) {
  const size_t ofState = state.size();
  state.append(size_t(shape.keys / 4), b.integer(0));
  Value one = b.integer(1), isAny = b.createOrFold<arith::MinSIOp>(tile.tiles, one);
  state = b.loop(isAny, state, [&](Value, ValueRange last) {
    return addFirst(pipeline.pipelineStateOf(count), tile.firstKey, last);
  });
  auto addFrom = [&](Value firstTile, Value end, bool isPlain) {
    state = b.loop(b.sub(end, firstTile), state, [&](Value iteration, ValueRange last) {
      Value number = b.add(firstTile, iteration), all = b.add(count, number);
      return addLate(pipeline.pipelineStateOf(all), pipeline.pipelineStateOf(b.sub(all, one)), keyOf(tile, number),
                     isPlain, last);
    });
  };
  Value plain = b.createOrFold<arith::MaxSIOp>(tile.plain, one);
  if (attention.isPlainWithin)
    addFrom(one, plain, true);
  addFrom(plain, tile.tiles, false);
  state = b.loop(isAny, state, [&](Value, ValueRange last) {
    const PipelineState slot = pipeline.pipelineStateOf(b.sub(b.add(count, tile.tiles), one));
    Values next(last);
    pipeline.awaitValues(slot);
    putOutputs(tile::awaitSums(b, beginOutputs(last.drop_front(ofState), slot.stage, last.take_front(ofState))), next);
    pipeline.releaseValues(slot);
    return next;
  });
  state.truncate(ofState);
  return state;
}

void WgmmaAttention::consume() {
  tile::setRegisters(b, shape.consumerRegisters(), /*isMore=*/true);
  lanes.begin(b.rem(pipeline.thread, b.integer(128)));
  pipeline.eachTile([&](const QueryTile &tile, Value count) {
    rows.clear();
    for (int64_t i = 0; i < rowsOfThread; ++i) {
      Value row = b.add(tile.firstRow, b.add(b.mul(group, b.integer(64)), lanes.row(i)));
      rows.push_back(elements.row(tile.batch, b.clamp(row, pipeline.rowCount)));
    }
    loadQueries(tile);
    Values state(rowsOfThread, elements.number(-infinity));
    state.append(size_t(rowsOfThread * (1 + lanes.outputsOfRow())), elements.number(0));
    state = shape.isLate ? addTilesLate(tile, count, state) : addTiles(tile, count, state);
    finish(tile, state);
    return b.add(count, tile.tiles);
  });
}

LogicalResult WgmmaAttention::run() {
  pipeline.begin();
  group = b.sub(b.div(pipeline.warp, b.integer(4)), b.integer(1));
  b.ifElse(
      b.isBelow(pipeline.warp, b.integer(4)), TypeRange(),
      [&] {
        pipeline.produce();
        return Values();
      },
      [&] {
        consume();
        return Values();
      });
  return failure(elements.isBroken() || queries.isBroken());
}

} // namespace

LogicalResult buildAttentionWgmma(tile::Builder &b, const StageContext &first, const StageContext &last,
                                  const Attention &attention, size_t number, const ScheduleConfig &config,
                                  LaunchPlan &plan) {
  std::optional<AttentionMaps> maps = findAttentionMaps(first, attention);
  if (!maps)
    return success();
  const AttentionWgmmaShape shape = attentionWgmmaShapeOf(attention, config);
  for (AttentionMap *map : {&maps->keys, &maps->values})
    for (size_t i = 0; i < map->map.extents.size(); ++i)
      map->map.box.push_back(uint32_t(i == 0 ? blockChannels : i == 1 ? shape.keys : 1));
  const std::string name = plan.functions[plan.launches[number].function].name;
  const tile::KernelLaunch launch{.threads = shape.threads(), .blocks = 1, .isDependentLaunch = false};
  b.beginKernel(name, launch);
  ElementEmitter emitter(b, first.placement, first.kernel);
  if (failed(WgmmaAttention(b, emitter, first, last, attention, *maps, shape).run()))
    return failure();
  b.endKernel();
  MLIRContext *ofMaps = first.kernel->getContext();
  AffineExpr tiles = extentOf(attention.batch, ofMaps) * extentOf(attention.rows, ofMaps).ceilDiv(shape.queries());
  plan.launches[number].tma = {unsigned(plan.launches.size() - number),
                               unsigned(plan.tmaFunctions.size()),
                               {std::move(maps->keys.map), std::move(maps->values.map)},
                               emitter.parameters,
                               tiles};
  plan.tmaFunctions.push_back(makeFunction(name, launch, shape.sharedBytes()));
  return success();
}

} // namespace kiln::cuda
