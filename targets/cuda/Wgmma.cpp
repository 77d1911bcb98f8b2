// SPDX-License-Identifier: Apache-2.0
//
//   producer, a thread            ring of stages, each with two barriers             consumers, 2 x 4 warps, 64 rows
//   each await empty, expect bytes,    full:  bytes of both tiles have come               await full, four wgmma, copy
//   a tile of each input     empty: eight warps are done with them              release the stage before this one
//
// Behind the depth's end, a warp brings its 16 rows of sums through shared memory, 32 columns at a time, so that lanes
// finish and store neighbours. Meanwhile tiles for the block's next sums come.
#include "targets/cuda/Wgmma.h"

#include "targets/cuda/WgmmaMatch.h"
#include "targets/cuda/tile/Shared.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

namespace {

constexpr int64_t rasterRows = 8;             // tiles of rows that blocks go through first
constexpr int64_t mostShared = 227 << 10;     // bytes of a block
constexpr int64_t multiprocessors = 132;      // at least so many tiles are wanted
constexpr int64_t leastRows = 64;             // that there are to be at most
constexpr int64_t consumers = 2;              // of four warps and 64 rows each
constexpr int64_t rowBytes = 128;             // of a tile in shared memory
constexpr int64_t blockBytes = 64 * rowBytes; // of 64 rows, or of 64 steps of the depth
constexpr int64_t warpRows = 16, chunk = 32;  // sums that a warp finishes at a time
constexpr int64_t chunkPitch = chunk + 8;     // f32: rows that a warp stores to lie in different banks
constexpr int64_t elementsAtOnce = 4;         // that a lane finishes at a time
// 65,536 of a multiprocessor: so many are a thread's at the start, and after producers have given theirs.
constexpr int64_t producerRegisters = 40, consumerRegisters = 232;

struct WgmmaShape {
  int64_t bm = consumers * 64, bn, stages;

  int64_t stageBytes() const { return (bm + bn) * rowBytes; }
  int64_t stagingAt() const { return stages * stageBytes(); }
  int64_t barriersAt() const { return stagingAt() + consumers * 4 * warpRows * chunkPitch * 4; }
  int64_t sharedBytes() const { return barriersAt() + stages * 16; }
  static int64_t threads() { return (consumers + 1) * 128; }
};

WgmmaShape shapeOf(const Contraction &c) {
  const int64_t columns = largestExtent(c, c.columns);
  WgmmaShape shape;
  shape.bn = columns <= 64 ? 64 : columns <= 128 ? 128 : 256;
  auto tiles = [&] {
    return double(largestExtent(c, c.batch)) * double(llvm::divideCeil(largestExtent(c, c.rows), shape.bm)) *
           double(llvm::divideCeil(columns, shape.bn));
  };
  while (shape.bn > 64 && tiles() < multiprocessors)
    shape.bn /= 2;
  shape.stages = 2;
  for (WgmmaShape more = shape; ++more.stages <= 7 && more.sharedBytes() <= mostShared;)
    shape = more;
  return shape;
}

class WgmmaBuilder {
public:
  WgmmaBuilder(tile::Builder &b, Reader &reader, const StepContext &context, const Contraction &contraction,
               const WgmmaProduct &product, const WgmmaShape &shape)
      : b(b), reader(reader), context(context), contraction(contraction), product(product), shape(shape),
        matrices{product.type, shape.bn, !product.a.isAlongDepth, !product.b.isAlongDepth} {}

  LogicalResult run();

private:
  /// A tile of the sums.
  struct Tile {
    Value batch, row, column; // its number, and its first ones
  };
  using Body = llvm::function_ref<Values(const Tile &, ValueRange)>;

  void begin();
  Value full(Value stage) { return b.add(barriers, b.mul(stage, b.integer(8))); }
  Value empty(Value stage) { return b.add(full(stage), b.integer(shape.stages * 8)); }
  Tile tileOf(Value number);
  Values eachTile(ValueRange carried, Body body);
  void advance(Value stage, Value parity, Values &next);
  void copy(const WgmmaInput &input, Value map, int64_t rows, Value row, Value depth, Value batch, Value to,
            Value barrier);
  void produce();
  Value descriptorOf(const WgmmaInput &input, Value address);
  Values multiply(Value stage, ValueRange sums);
  void release(Value stage, Value condition);
  void consume();
  void putChunk(const Values &sums, int64_t first);
  void finish(const Tile &tile, const Values &sums);
  void finishChunk(const Tile &tile, int64_t first);

  tile::Builder &b;
  Reader &reader;
  const StepContext &context;
  const Contraction &contraction;
  const WgmmaProduct &product;
  WgmmaShape shape;
  tile::MatrixProduct matrices;
  Value thread, lane, warp, mapA, mapB, shared, start, barriers;
  Value rowCount, columnCount, steps, down, across, batchCount;
  Value staging, descriptorA, descriptorB; // of a consumer's warp
  LogicalResult result = success();
};

void WgmmaBuilder::begin() {
  mapA = reader.tensorMap(0), mapB = reader.tensorMap(1);
  thread = b.threadId(), lane = b.rem(thread, b.integer(32)), warp = tile::warpOf(b, thread);
  shared = tile::sharedMemory(b, 1024), start = tile::sharedAddress(b, shared);
  barriers = b.add(start, b.integer(shape.barriersAt()));
  auto tiles = [&](Value count, int64_t size) { return b.div(b.add(count, b.integer(size - 1)), b.integer(size)); };
  rowCount = reader.extent(extentOf(contraction, contraction.rows));
  columnCount = reader.extent(extentOf(contraction, contraction.columns));
  batchCount = reader.extent(extentOf(contraction, contraction.batch));
  down = tiles(rowCount, shape.bm), across = tiles(columnCount, shape.bn);
  steps = tiles(reader.extent(extentOf(contraction, contraction.depth)), product.depth());
  b.ifThen(b.compare(arith::CmpIPredicate::eq, thread, b.integer(0)), [&] {
    for (int64_t stage = 0; stage < shape.stages; ++stage) {
      tile::initBarrier(b, full(b.integer(stage)), 1);
      tile::initBarrier(b, empty(b.integer(stage)), consumers * 4);
    }
    tile::publishBarriers(b);
  });
  tile::barrier(b);
}

/// Neighbouring numbers share inputs: they go through eight tiles of rows before the next tile of columns.
WgmmaBuilder::Tile WgmmaBuilder::tileOf(Value number) {
  Value ofBatch = b.mul(down, across), inBatch = b.rem(number, ofBatch);
  Value ofGroup = b.mul(across, b.integer(rasterRows)), inGroup = b.rem(inBatch, ofGroup);
  Value first = b.mul(b.div(inBatch, ofGroup), b.integer(rasterRows));
  Value height = b.createOrFold<arith::MinSIOp>(b.sub(down, first), b.integer(rasterRows));
  return {b.div(number, ofBatch), b.mul(b.add(first, b.rem(inGroup, height)), b.integer(shape.bm)),
          b.mul(b.div(inGroup, height), b.integer(shape.bn))};
}

/// The block's tiles, which are as far apart as there are blocks.
Values WgmmaBuilder::eachTile(ValueRange carried, Body body) {
  Value block = b.blockId(), blocks = tile::gridSize(b);
  Value all = b.mul(batchCount, b.mul(down, across));
  Value mine = b.div(b.add(b.sub(all, block), b.sub(blocks, b.integer(1))), blocks);
  return b.loop(mine, carried,
                [&](Value turn, ValueRange values) { return body(tileOf(b.add(block, b.mul(turn, blocks))), values); });
}

/// The next stage, whose parity changes with each time round.
void WgmmaBuilder::advance(Value stage, Value parity, Values &next) {
  Value following = b.add(stage, b.integer(1));
  Value isLast = b.compare(arith::CmpIPredicate::eq, following, b.integer(shape.stages));
  next.push_back(b.select(isLast, b.integer(0), following));
  next.push_back(b.select(isLast, b.sub(b.integer(1), parity), parity));
}

//===- Producer ----------------------------------------------------------===//

/// A row of the box is 128 bytes of depth, or of 64 rows: then there are several boxes.
void WgmmaBuilder::copy(const WgmmaInput &input, Value map, int64_t rows, Value row, Value depth, Value batch, Value to,
                        Value barrier) {
  for (int64_t i = 0; i < (input.isAlongDepth ? 1 : rows / 64); ++i) {
    Value first = b.add(row, b.integer(i * 64));
    Values at = input.isAlongDepth ? Values{depth, first} : Values{first, depth};
    if (!contraction.batch.empty())
      at.push_back(batch);
    tile::copyBox(b, b.add(to, b.integer(i * blockBytes)), map, at, barrier);
  }
}

/// A stage is empty at first: the phase before the first one is waited for, which is over.
void WgmmaBuilder::produce() {
  tile::setRegisters(b, producerRegisters, /*isMore=*/false);
  b.ifThen(b.compare(arith::CmpIPredicate::eq, thread, b.integer(0)), [&] {
    eachTile({b.integer(0), b.integer(1)}, [&](const Tile &at, ValueRange carried) {
      return b.loop(steps, carried, [&](Value step, ValueRange values) {
        Value stage = values[0], parity = values[1], depth = b.mul(step, b.integer(product.depth()));
        Value to = b.add(start, b.mul(stage, b.integer(shape.stageBytes())));
        tile::awaitPhase(b, empty(stage), parity);
        tile::arriveExpecting(b, full(stage), shape.stageBytes());
        copy(product.a, mapA, shape.bm, at.row, depth, at.batch, to, full(stage));
        copy(product.b, mapB, shape.bn, at.column, depth, at.batch, b.add(to, b.integer(shape.bm * rowBytes)),
             full(stage));
        Values next;
        advance(stage, parity, next);
        return next;
      });
    });
  });
}

//===- Consumers ---------------------------------------------------------===//

Value WgmmaBuilder::descriptorOf(const WgmmaInput &input, Value address) {
  // Along the depth a row is as long as the tile is deep: it goes on nowhere.
  return tile::matrixDescriptor(b, address, input.isAlongDepth ? 16 : blockBytes, 8 * rowBytes);
}

/// Steps of 32 bytes of the depth, or of 16 rows of which each is a step.
Values WgmmaBuilder::multiply(Value stage, ValueRange sums) {
  Value offset = b.mul(stage, b.integer(shape.stageBytes()));
  Value fromA = tile::advanceDescriptor(b, descriptorA, offset),
        fromB = tile::advanceDescriptor(b, descriptorB, offset);
  auto step = [](const WgmmaInput &input) { return input.isAlongDepth ? int64_t(32) : 16 * rowBytes; };
  Values next(sums);
  tile::beginProducts(b);
  for (int64_t i = 0; i < rowBytes / 32; ++i)
    next = tile::addProduct(b, matrices, tile::advanceDescriptor(b, fromA, i * step(product.a)),
                            tile::advanceDescriptor(b, fromB, i * step(product.b)), next);
  tile::commitProducts(b);
  return next;
}

/// A warp arrives once.
void WgmmaBuilder::release(Value stage, Value condition) {
  b.ifThen(b.both(condition, b.compare(arith::CmpIPredicate::eq, lane, b.integer(0))),
           [&] { tile::arrive(b, empty(stage)); });
}

/// One product is under way while the next one waits for its tiles.
void WgmmaBuilder::consume() {
  tile::setRegisters(b, consumerRegisters, /*isMore=*/true);
  Value number = b.sub(b.div(warp, b.integer(4)), b.integer(1));
  staging = tile::advance(b, tile::advance(b, shared, shape.stagingAt() / 4),
                          b.mul(b.sub(warp, b.integer(4)), b.integer(warpRows * chunkPitch)));
  descriptorA = descriptorOf(product.a, b.add(start, b.mul(number, b.integer(blockBytes))));
  descriptorB = descriptorOf(product.b, b.add(start, b.integer(shape.bm * rowBytes)));
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  const size_t count = size_t(matrices.sumsOfThread());
  eachTile({b.integer(0), b.integer(0)}, [&](const Tile &at, ValueRange carried) {
    Values initial(count, zero);
    initial.append({carried[0], carried[1], b.integer(0)}); // stage, parity, and the stage before
    Values values = b.loop(steps, initial, [&](Value step, ValueRange values) {
      Value stage = values[count], parity = values[count + 1];
      tile::awaitPhase(b, full(stage), parity);
      Values next = multiply(stage, values.take_front(count));
      tile::awaitProducts(b, 1);
      release(values[count + 2], b.compare(arith::CmpIPredicate::ne, step, b.integer(0)));
      advance(stage, parity, next);
      next.push_back(stage);
      return next;
    });
    Values sums = tile::awaitSums(b, ValueRange(values).take_front(count));
    release(values[count + 2], b.compare(arith::CmpIPredicate::ne, steps, b.integer(0)));
    finish({at.batch, b.add(at.row, b.mul(b.sub(warp, b.integer(4)), b.integer(warpRows))), at.column}, sums);
    return Values{values[count], values[count + 1]};
  });
}

//===- Epilogue ----------------------------------------------------------===//

/// The sums of a warp's columns from `first` on, as [row][column].
void WgmmaBuilder::putChunk(const Values &sums, int64_t first) {
  Value row = b.div(lane, b.integer(4)), column = b.mul(b.rem(lane, b.integer(4)), b.integer(2));
  Value place = tile::advance(b, staging, b.add(b.mul(row, b.integer(chunkPitch)), column));
  for (int64_t j = 0; j < chunk / 8; ++j)
    for (int64_t i = 0; i < 4; ++i)
      tile::storeOne(b, sums[(first / 8 + j) * 4 + i], tile::advance(b, place, j * 8 + i / 2 * 8 * chunkPitch + i % 2));
}

/// A lane has a column.
void WgmmaBuilder::finishChunk(const Tile &tile, int64_t first) {
  Value column = b.add(tile.column, b.add(lane, b.integer(first)));
  Value isColumn = b.isBelow(column, columnCount);
  linalg::GenericOp op = contraction.op;
  const unsigned numLoops = op.getNumLoops();
  b.loop(b.integer(warpRows / elementsAtOnce), {}, [&](Value turn, ValueRange) {
    Values inside;
    SmallVector<Values> at, results;
    for (int64_t i = 0; i < elementsAtOnce && succeeded(result); ++i) {
      Value rowOfWarp = b.add(b.mul(turn, b.integer(elementsAtOnce)), b.integer(i));
      Value sum = tile::loadOne(b, tile::advance(b, staging, b.add(b.mul(rowOfWarp, b.integer(chunkPitch)), lane)));
      Value row = b.add(tile.row, rowOfWarp);
      inside.push_back(b.both(b.isBelow(row, rowCount), isColumn));
      at.emplace_back(numLoops);
      splitIndex(b, reader, contraction, contraction.batch, tile.batch, at.back());
      splitIndex(b, reader, contraction, contraction.rows, b.clamp(row, rowCount), at.back());
      splitIndex(b, reader, contraction, contraction.columns, b.clamp(column, columnCount), at.back());
      results.push_back(finishSum(reader, context, contraction, at.back(), sum));
      result = success(!results.back().empty());
    }
    for (int64_t i = 0; i < elementsAtOnce && succeeded(result); ++i)
      b.ifThen(inside[i], [&] { storeResults(reader, context, contraction, at[i], results[i]); });
    return Values();
  });
}

void WgmmaBuilder::finish(const Tile &tile, const Values &sums) {
  for (int64_t first = 0; first < shape.bn && succeeded(result); first += chunk) {
    Value isRow = b.isBelow(tile.row, rowCount); // the warp's first one
    b.ifThen(b.both(isRow, b.isBelow(b.add(tile.column, b.integer(first)), columnCount)), [&] {
      putChunk(sums, first);
      tile::syncWarp(b);
      finishChunk(tile, first);
      tile::syncWarp(b);
    });
  }
}

LogicalResult WgmmaBuilder::run() {
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
  return result;
}

} // namespace

LogicalResult buildWgmma(tile::Builder &b, const StepContext &context, const Contraction &contraction, size_t first,
                         DevicePlan &plan) {
  std::optional<WgmmaProduct> product = findWgmmaProduct(context, contraction);
  if (!product || largestExtent(contraction, contraction.rows) < leastRows)
    return success();
  const WgmmaShape shape = shapeOf(contraction);
  for (auto [input, rows] : {std::pair(&product->a, shape.bm), std::pair(&product->b, shape.bn)})
    for (size_t i = 0; i < input->map.extents.size(); ++i) {
      const int64_t box[] = {rowBytes / (product->depth() == 64 ? 2 : 4), input->isAlongDepth ? rows : 64, 1};
      input->map.box.push_back(uint32_t(box[i]));
    }
  const std::string name = plan.functions[plan.launches[first].function].name;
  b.beginKernel(name, WgmmaShape::threads(), 1);
  Reader reader(b, context.placement, context.kernel);
  if (failed(WgmmaBuilder(b, reader, context, contraction, *product, shape).run()))
    return failure();
  b.endKernel();
  AffineExpr tiles = extentOf(contraction, contraction.batch) *
                     extentOf(contraction, contraction.rows).ceilDiv(shape.bm) *
                     extentOf(contraction, contraction.columns).ceilDiv(shape.bn);
  plan.launches[first].mapped = {unsigned(plan.launches.size() - first),
                                 unsigned(plan.mappedFunctions.size()),
                                 {std::move(product->a.map), std::move(product->b.map)},
                                 reader.parameters,
                                 tiles};
  plan.mappedFunctions.push_back({name, uint32_t(WgmmaShape::threads()), uint32_t(shape.sharedBytes())});
  return success();
}

} // namespace kiln::cuda
