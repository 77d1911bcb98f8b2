// SPDX-License-Identifier: Apache-2.0
//
//   producer, a thread                 rings of stages with two barriers each        consumers, groups of four warps
//   await empty, copy a tile of keys        full:  the bytes have come               scores of 64 queries: wgmma
//   await empty, copy one of values         empty: all warps are done                softmax, in registers
//                                                                                    outputs += weights values: wgmma
//
// While one group has its softmax, another one multiplies. There are as many blocks as multiprocessors, which take
// tiles of queries in turn; the producer is ahead by the stages, also beyond a tile's end. Tiles of keys that no limit
// touches come first: of those nothing is asked of an element.
#include "targets/cuda/AttentionWgmma.h"

#include "targets/cuda/AttentionElements.h"
#include "targets/cuda/AttentionMmaProduct.h"
#include "targets/cuda/HeadTile.h"
#include "targets/cuda/tile/Hopper.h"
#include "targets/cuda/tile/Shared.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr int64_t lineBytes = AttentionWgmmaShape::lineBytes, blockChannels = AttentionWgmmaShape::blockChannels;
constexpr int64_t rowsOfThread = 2;

/// Registers of a thread when producers have given theirs: 65,536 are there for all.
int64_t producerRegisters(const AttentionWgmmaShape &shape) { return shape.groups > 2 ? 32 : 24; }
int64_t consumerRegisters(const AttentionWgmmaShape &shape) { return shape.groups > 2 ? 160 : 240; }

/// What the products' registers are, by the shape of a group.
AttentionShape groupShape(const Attention &attention, const AttentionWgmmaShape &shape) {
  return {64, shape.keys, rowsOfThread, 1, 1, shape.depth, shape.channels, attention.mma->type, shape.stages};
}

/// The tile of queries that a block is at, and which keys it needs.
struct QueryTile {
  Values batch; // coordinates
  Value firstRow;
  Value tiles; // of keys
  Value plain; // of them, from the first one on, those that no limit touches
};

class WgmmaAttention {
public:
  WgmmaAttention(tile::Builder &b, Reader &reader, const StepContext &first, const StepContext &last,
                 const Attention &attention, const AttentionWgmmaShape &shape)
      : b(b), reader(reader), attention(attention), shape(shape), elements(b, reader, first, last, attention),
        lanes(b, groupShape(attention, shape), attention.mma->factor),
        queries(b, reader, first.placement, attention.mma->op, attention.mma->query, std::nullopt,
                attention.mma->channelLoop(attention), tile::elementOf(b, attention.mma->type),
                blockLines(64, shape.depth)),
        ofScores{attention.mma->type, shape.keys, false, false},
        ofOutputs{attention.mma->type, shape.channels, false, true} {}

  LogicalResult run();

private:
  using Body = llvm::function_ref<Value(const QueryTile &tile, Value count)>;
  struct Turn {
    Value stage, parity;
  };

  void begin();
  QueryTile tileOf(Value number);
  void countKeys(QueryTile &tile);
  void eachTile(Body body);
  Turn turnOf(Value count);

  Value barrier(int64_t ring, Value stage) {
    return b.add(barriers, b.mul(b.add(stage, b.integer(ring * shape.stages)), b.integer(8)));
  }
  Value fullKeys(Value stage) { return barrier(0, stage); }
  Value emptyKeys(Value stage) { return barrier(1, stage); }
  Value fullValues(Value stage) { return barrier(2, stage); }
  Value emptyValues(Value stage) { return barrier(3, stage); }
  Value keysAt(Value stage) { return b.add(b.integer(shape.keysAt()), b.mul(stage, b.integer(shape.keyBytes()))); }
  Value valuesAt(Value stage) {
    return b.add(b.integer(shape.valuesAt()), b.mul(stage, b.integer(shape.valueBytes())));
  }

  void produce();
  void copy(linalg::GenericOp op, unsigned number, const Values &loops, unsigned channelLoop, Value map, Value to,
            Value full, int64_t channels);

  void consume();
  void loadQueries(const QueryTile &tile);
  Values beginScores(Value stage);
  Values byRow(ValueRange sums);
  Values masked(Values sums, Value firstKey);
  Values addKeys(const Turn &turn, Value firstKey, bool isPlain, ValueRange state);
  Values soften(Values &scores, Value factor, Values &state);
  void scaleOutputs(Values &state, ValueRange scales);
  Values packed(ValueRange weights);
  Values beginOutputs(ValueRange factors, Value stage, ValueRange state);
  void putOutputs(ValueRange sums, Values &state);
  Values addLate(const Turn &turn, const Turn &before, Value firstKey, bool isPlain, ValueRange state);
  Values addFirst(const Turn &turn, ValueRange state);
  void release(Value empty);
  Values addTiles(const QueryTile &tile, Value count, Values state);
  Values addTilesLate(const QueryTile &tile, Value count, Values state);
  void finish(const QueryTile &tile, Values state);

  tile::Builder &b;
  Reader &reader;
  const Attention &attention;
  AttentionWgmmaShape shape;
  AttentionElements elements;
  AttentionMmaProduct lanes; // which elements a thread has of its warp's 16 rows
  HeadTile queries;
  tile::MatrixProduct ofScores, ofOutputs;
  Value thread, lane, warp, group, mapK, mapV, shared, start, barriers;
  Value rowCount, keyCount, batchCount;
  SmallVector<Values> rows; // coordinates of the thread's rows
};

void WgmmaAttention::begin() {
  mapK = reader.tensorMap(0), mapV = reader.tensorMap(1);
  thread = b.threadId(), lane = b.rem(thread, b.integer(32)), warp = tile::warpOf(b, thread);
  group = b.sub(b.div(warp, b.integer(4)), b.integer(1));
  shared = tile::sharedMemory(b, 1024), start = tile::sharedAddress(b, shared);
  barriers = b.add(start, b.integer(shape.barriersAt()));
  rowCount = elements.rowCount(), keyCount = elements.keyCount(), batchCount = elements.batchCount();
  b.ifThen(b.compare(arith::CmpIPredicate::eq, thread, b.integer(0)), [&] {
    for (int64_t stage = 0; stage < shape.stages; ++stage)
      for (int64_t ring = 0; ring < 4; ++ring)
        tile::initBarrier(b, barrier(ring, b.integer(stage)), ring % 2 ? shape.groups * 4 : 1);
    tile::publishBarriers(b);
  });
  tile::barrier(b);
}

//===- Tiles of queries --------------------------------------------------===//

/// With limits the last rows of all batches come first: under a causal mask they have the most keys. Without, blocks
/// that run together share keys and values.
QueryTile WgmmaAttention::tileOf(Value number) {
  Value tiles = b.div(b.add(rowCount, b.integer(shape.queries() - 1)), b.integer(shape.queries()));
  Value batch, row;
  if (attention.limits.empty()) {
    batch = b.div(number, tiles), row = b.rem(number, tiles);
  } else {
    batch = b.rem(number, batchCount);
    row = b.sub(b.sub(tiles, b.integer(1)), b.div(number, batchCount));
  }
  QueryTile tile{elements.batch(batch), b.mul(row, b.integer(shape.queries())), {}, {}};
  countKeys(tile);
  return tile;
}

/// Each warp asks for all of the block's rows.
void WgmmaAttention::countKeys(QueryTile &tile) {
  Value needed = keyCount, within = keyCount;
  if (!attention.limits.empty()) {
    needed = b.integer(0);
    for (int64_t i = 0; i < shape.queries() / 32; ++i) {
      Value row = b.clamp(b.add(tile.firstRow, b.add(lane, b.integer(i * 32))), rowCount);
      const Values at = elements.row(tile.batch, row);
      needed = b.createOrFold<arith::MaxSIOp>(needed, elements.keysNeeded(at));
      within = b.createOrFold<arith::MinSIOp>(within, elements.keysWithin(at));
    }
    for (int32_t bits = 16; bits > 0; bits /= 2) {
      needed = b.createOrFold<arith::MaxSIOp>(needed, b.shuffleXor(needed, bits));
      within = b.createOrFold<arith::MinSIOp>(within, b.shuffleXor(within, bits));
    }
    within = b.createOrFold<arith::MaxSIOp>(within, b.integer(0));
  }
  tile.tiles = b.div(b.add(needed, b.integer(shape.keys - 1)), b.integer(shape.keys));
  tile.plain = attention.isPlainWithin ? b.div(within, b.integer(shape.keys)) : b.integer(0);
}

/// `count`: of the tiles of keys so far; the body gives that behind it.
void WgmmaAttention::eachTile(Body body) {
  Value blocks = tile::gridSize(b), block = b.blockId();
  Value tiles = b.div(b.add(rowCount, b.integer(shape.queries() - 1)), b.integer(shape.queries()));
  Value all = b.mul(batchCount, tiles);
  Value mine = b.div(b.add(b.sub(all, block), b.sub(blocks, b.integer(1))), blocks);
  b.loop(mine, {b.integer(0)}, [&](Value turn, ValueRange count) {
    return Values{body(tileOf(b.add(block, b.mul(turn, blocks))), count.front())};
  });
}

/// A stage's parity changes with each time round.
WgmmaAttention::Turn WgmmaAttention::turnOf(Value count) {
  Value round = b.div(count, b.integer(shape.stages));
  return {b.sub(count, b.mul(round, b.integer(shape.stages))), b.both(round, b.integer(1))};
}

//===- Producer ----------------------------------------------------------===//

/// A box of the tile for each block of channels.
void WgmmaAttention::copy(linalg::GenericOp op, unsigned number, const Values &loops, unsigned channelLoop, Value map,
                          Value to, Value full, int64_t channels) {
  for (int64_t channel = 0; channel < channels; channel += blockChannels) {
    Values at = loops;
    at[channelLoop] = b.integer(channel);
    at = reader.coordinates(op, number, at);
    std::reverse(at.begin(), at.end());
    tile::copyBox(b, b.add(to, b.integer(channel / blockChannels * shape.keys * lineBytes)), map, at, full);
  }
}

/// Stages are empty at first: the phase before the first one is waited for, which is over.
void WgmmaAttention::produce() {
  tile::setRegisters(b, producerRegisters(shape), /*isMore=*/false);
  b.ifThen(b.compare(arith::CmpIPredicate::eq, warp, b.integer(0)), [&] {
    eachTile([&](const QueryTile &tile, Value count) {
      b.ifThen(b.compare(arith::CmpIPredicate::eq, lane, b.integer(0)), [&] {
        b.loop(tile.tiles, {}, [&](Value number, ValueRange) {
          const Turn turn = turnOf(b.add(count, number));
          Values at = tile.batch;
          at.back() = b.mul(number, b.integer(shape.keys));
          auto bring = [&](Value full, Value empty, int64_t bytes, auto copyTo) {
            tile::awaitPhase(b, empty, b.sub(b.integer(1), turn.parity));
            tile::arriveExpecting(b, full, bytes);
            copyTo(full);
          };
          bring(fullKeys(turn.stage), emptyKeys(turn.stage), shape.keyBytes(), [&](Value full) {
            copy(attention.scores.op, attention.key, elements.scoreLoops(at, {}), attention.scores.depth.front(), mapK,
                 b.add(start, keysAt(turn.stage)), full, shape.depth);
          });
          bring(fullValues(turn.stage), emptyValues(turn.stage), shape.valueBytes(), [&](Value full) {
            copy(attention.outputs.op, attention.value, elements.outputLoops(at, {}), attention.channelLoop, mapV,
                 b.add(start, valuesAt(turn.stage)), full, shape.channels);
          });
          return Values();
        });
      });
      return b.add(count, tile.tiles);
    });
  });
}

//===- Consumers ---------------------------------------------------------===//

/// Those of the group's 64 rows, when all its warps are done with the last ones.
void WgmmaAttention::loadQueries(const QueryTile &tile) {
  Value number = b.add(group, b.integer(1)), ofGroup = b.rem(thread, b.integer(128));
  Value to = tile::advance(b, shared, b.mul(group, b.integer(shape.queryBytes() / 4)));
  queries.begin(ofGroup, 128, rowCount, [this, &tile](Value line) {
    return attention.mma->loopsAt(elements.scoreLoops(elements.row(tile.batch, line), {}));
  });
  tile::barrierAmong(b, number, 128);
  queries.fetch(b.add(tile.firstRow, b.mul(group, b.integer(64))), to);
  tile::commitCopies(b);
  tile::awaitCopies(b, 0);
  tile::orderBeforeCopies(b);
  tile::barrierAmong(b, number, 128);
}

/// A warp arrives once.
void WgmmaAttention::release(Value empty) { tile::arriveWhereZero(b, empty, lane); }

/// Sums of the group's queries by the tile's keys, once they are awaited.
Values WgmmaAttention::beginScores(Value stage) {
  Value a = tile::matrixDescriptor(b, b.add(start, b.mul(group, b.integer(shape.queryBytes()))), 16, 8 * lineBytes);
  Value c = tile::matrixDescriptor(b, b.add(start, keysAt(stage)), 16, 8 * lineBytes);
  tile::beginProducts(b);
  Values sums;
  for (int64_t step = 0; step < shape.depth / 16; ++step) {
    const int64_t block = step / 4, bytes = step % 4 * 32;
    Value ofA = tile::advanceDescriptor(b, a, block * 64 * lineBytes + bytes),
          ofC = tile::advanceDescriptor(b, c, block * shape.keys * lineBytes + bytes);
    sums = sums.empty() ? tile::firstProduct(b, ofScores, ofA, ofC) : tile::addProduct(b, ofScores, ofA, ofC, sums);
  }
  tile::commitProducts(b);
  return sums;
}

/// The place of sum 4 j + 2 row + e among those of rows.
static size_t placeOf(int64_t sum, int64_t ofRow) { return size_t(sum / 2 % 2 * ofRow + sum / 4 * 2 + sum % 2); }

Values WgmmaAttention::byRow(ValueRange sums) {
  Values result(sums.size());
  for (int64_t i = 0; i < int64_t(sums.size()); ++i)
    result[placeOf(i, lanes.keys())] = sums[size_t(i)];
  return result;
}

/// What the kernel's ops make of products; -infinity beyond the last key.
Values WgmmaAttention::masked(Values sums, Value firstKey) {
  for (int64_t j = 0; j < lanes.keys(); ++j) {
    Value key = b.add(firstKey, lanes.key(j)), inside = b.isBelow(key, keyCount), held = b.clamp(key, keyCount);
    for (int64_t i = 0; i < rowsOfThread; ++i) {
      Value &sum = sums[size_t(i * lanes.keys() + j)];
      Value product = b.createOrFold<arith::MulFOp>(sum, elements.number(attention.mma->factor));
      sum = b.select(inside, elements.score(rows[size_t(i)], held, product), elements.number(-infinity));
    }
  }
  return sums;
}

/// Makes weights of scores, which are `factor` times these: 2^(score - maximum). The state to their maxima, but for the
/// outputs: what those are to be scaled by, for each row.
Values WgmmaAttention::soften(Values &scores, Value factor, Values &state) {
  auto maximum = [&](Value x, Value y) { return elements.maximum(x, y); };
  Values scales;
  for (int64_t i = 0; i < rowsOfThread; ++i) {
    Value &last = state[size_t(i)], &sum = state[size_t(rowsOfThread + i)];
    MutableArrayRef<Value> row = MutableArrayRef(scores).slice(size_t(i * lanes.keys()), size_t(lanes.keys()));
    Value highest = row.front();
    for (Value score : row.drop_front())
      highest = maximum(highest, score);
    highest = lanes.joinRow(highest, maximum);
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

/// Four registers for each 16 keys.
Values WgmmaAttention::packed(ValueRange weights) {
  Values factors;
  for (int64_t step = 0; step < shape.keys / 16; ++step)
    factors.append(lanes.weightsOf(weights, 0, step));
  return factors;
}

Values WgmmaAttention::beginOutputs(ValueRange factors, Value stage, ValueRange state) {
  Value c = tile::matrixDescriptor(b, b.add(start, valuesAt(stage)), shape.keys * lineBytes, 8 * lineBytes);
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

Values WgmmaAttention::addKeys(const Turn &turn, Value firstKey, bool isPlain, ValueRange last) {
  Values state(last);
  tile::awaitPhase(b, fullKeys(turn.stage), turn.parity);
  Values sums = byRow(tile::awaitSums(b, beginScores(turn.stage)));
  release(emptyKeys(turn.stage));
  if (!isPlain)
    sums = masked(std::move(sums), firstKey);
  scaleOutputs(state, soften(sums, isPlain ? elements.number(attention.mma->factor) : Value(), state));
  tile::awaitPhase(b, fullValues(turn.stage), turn.parity);
  putOutputs(tile::awaitSums(b, beginOutputs(packed(sums), turn.stage, state)), state);
  release(emptyValues(turn.stage));
  return state;
}

/// The state, and behind it the weights of the first tile, which are not multiplied yet.
Values WgmmaAttention::addFirst(const Turn &turn, ValueRange last) {
  Values state(last);
  tile::awaitPhase(b, fullKeys(turn.stage), turn.parity);
  Values sums = byRow(tile::awaitSums(b, beginScores(turn.stage)));
  release(emptyKeys(turn.stage));
  sums = masked(std::move(sums), b.integer(0));
  soften(sums, Value(), state);
  llvm::copy(packed(sums), state.end() - shape.keys / 4);
  return state;
}

/// A tile's scores while the values of the tile before are added, and its softmax until they are.
Values WgmmaAttention::addLate(const Turn &turn, const Turn &before, Value firstKey, bool isPlain, ValueRange last) {
  Values state(last.drop_back(size_t(shape.keys / 4))), factors(last.take_back(size_t(shape.keys / 4)));
  tile::awaitPhase(b, fullKeys(turn.stage), turn.parity);
  Values sums = beginScores(turn.stage);
  tile::awaitPhase(b, fullValues(before.stage), before.parity);
  Values outputs = beginOutputs(factors, before.stage, state);
  sums = byRow(tile::awaitSums(b, sums, 1));
  release(emptyKeys(turn.stage));
  if (!isPlain)
    sums = masked(std::move(sums), firstKey);
  Values scales = soften(sums, isPlain ? elements.number(attention.mma->factor) : Value(), state);
  tile::keepBefore(b, b.createOrFold<arith::AddFOp>(state[rowsOfThread], state[rowsOfThread + 1]), start);
  putOutputs(tile::awaitSums(b, outputs), state);
  release(emptyValues(before.stage));
  scaleOutputs(state, scales);
  state.append(packed(sums));
  return state;
}

/// Each thread stores what it has: four lanes have eight neighbouring channels.
void WgmmaAttention::finish(const QueryTile &tile, Values state) {
  const int64_t ofRow = lanes.outputsOfRow();
  auto add = [&](Value x, Value y) { return b.createOrFold<arith::AddFOp>(x, y); };
  for (int64_t i = 0; i < rowsOfThread; ++i) {
    Value sum = lanes.joinRow(state[size_t(rowsOfThread + i)], add);
    Value row = b.add(tile.firstRow, b.add(b.mul(group, b.integer(64)), lanes.row(i)));
    b.ifThen(b.isBelow(row, rowCount), [&] {
      for (int64_t c = 0; c < ofRow; ++c)
        elements.finish(rows[size_t(i)], lanes.key(c),
                        {state[size_t(i)], sum, state[size_t(2 * rowsOfThread + i * ofRow + c)]});
    });
  }
}

Values WgmmaAttention::addTiles(const QueryTile &tile, Value count, Values state) {
  auto addFrom = [&](Value firstTile, Value tiles, bool isPlain) {
    state = b.loop(tiles, state, [&](Value turn, ValueRange last) {
      Value number = b.add(firstTile, turn);
      return addKeys(turnOf(b.add(count, number)), b.mul(number, b.integer(shape.keys)), isPlain, last);
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
  state = b.loop(isAny, state, [&](Value, ValueRange last) { return addFirst(turnOf(count), last); });
  auto addFrom = [&](Value firstTile, Value behind, bool isPlain) {
    state = b.loop(b.sub(behind, firstTile), state, [&](Value turn, ValueRange last) {
      Value number = b.add(firstTile, turn), all = b.add(count, number);
      return addLate(turnOf(all), turnOf(b.sub(all, one)), b.mul(number, b.integer(shape.keys)), isPlain, last);
    });
  };
  Value plain = b.createOrFold<arith::MaxSIOp>(tile.plain, one);
  if (attention.isPlainWithin)
    addFrom(one, plain, true);
  addFrom(plain, tile.tiles, false);
  state = b.loop(isAny, state, [&](Value, ValueRange last) {
    const Turn turn = turnOf(b.sub(b.add(count, tile.tiles), one));
    Values next(last);
    tile::awaitPhase(b, fullValues(turn.stage), turn.parity);
    putOutputs(tile::awaitSums(b, beginOutputs(last.drop_front(ofState), turn.stage, last.take_front(ofState))), next);
    release(emptyValues(turn.stage));
    return next;
  });
  state.truncate(ofState);
  return state;
}

void WgmmaAttention::consume() {
  tile::setRegisters(b, consumerRegisters(shape), /*isMore=*/true);
  lanes.begin(b.rem(thread, b.integer(128)));
  eachTile([&](const QueryTile &tile, Value count) {
    rows.clear();
    for (int64_t i = 0; i < rowsOfThread; ++i) {
      Value row = b.add(tile.firstRow, b.add(b.mul(group, b.integer(64)), lanes.row(i)));
      rows.push_back(elements.row(tile.batch, b.clamp(row, rowCount)));
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
  begin();
  b.ifElse(
      b.isBelow(warp, b.integer(4)), TypeRange(),
      [&] {
        produce();
        return Values();
      },
      [&] {
        consume();
        return Values();
      });
  return failure(elements.isBroken() || queries.isBroken());
}

} // namespace

LogicalResult buildAttentionWgmma(tile::Builder &b, const StepContext &first, const StepContext &last,
                                  const Attention &attention, size_t number, const SchedulePoint &point,
                                  DevicePlan &plan) {
  std::optional<AttentionMaps> maps = findAttentionMaps(first, attention);
  if (!maps)
    return success();
  const AttentionWgmmaShape shape = attentionWgmmaShapeOf(attention, point);
  auto boxOf = [&](TensorMap &map, linalg::GenericOp op, unsigned operand, unsigned keyLoop) {
    AffineMap indices = op.getMatchingIndexingMap(&op->getOpOperand(operand));
    for (size_t i = 0; i < map.extents.size(); ++i) {
      AffineExpr index = indices.getResult(unsigned(map.extents.size() - 1 - i));
      const bool isKey = index == getAffineDimExpr(keyLoop, op->getContext());
      map.box.push_back(uint32_t(i == 0 ? blockChannels : isKey ? shape.keys : 1));
    }
  };
  boxOf(maps->keys, attention.scores.op, attention.key, attention.scoreLoops.back());
  boxOf(maps->values, attention.outputs.op, attention.value, attention.outputLoops.back());
  const std::string name = plan.functions[plan.launches[number].function].name;
  b.beginKernel(name, shape.threads(), 1);
  Reader reader(b, first.placement, first.kernel);
  if (failed(WgmmaAttention(b, reader, first, last, attention, shape).run()))
    return failure();
  b.endKernel();
  MLIRContext *ofMaps = first.kernel->getContext();
  AffineExpr tiles = extentOf(attention.batch, ofMaps) * extentOf(attention.rows, ofMaps).ceilDiv(shape.queries());
  plan.launches[number].mapped = {unsigned(plan.launches.size() - number),
                                  unsigned(plan.mappedFunctions.size()),
                                  {std::move(maps->keys), std::move(maps->values)},
                                  reader.parameters,
                                  tiles};
  plan.mappedFunctions.push_back({name, uint32_t(shape.threads()), uint32_t(shape.sharedBytes())});
  return success();
}

} // namespace kiln::cuda
