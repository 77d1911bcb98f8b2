// SPDX-License-Identifier: Apache-2.0
//
//   producer, one thread                  multistage buffer with two mbarriers each    consumers, warpgroups
//   each await empty, expect bytes,           full:  bytes of both tiles have come     await full, multiply by 64 rows,
//   copy a tile of each input                 empty: all warps are done with them      release the stage before
//
// After the end of K, a warp moves its 16 rows of accumulators through shared memory, 32 columns at a time, so that
// lanes finish and store neighbouring elements. Meanwhile input tiles for the block's next output tile arrive. With
// split-K, ClusterSplitK.h finishes the tile, and no input tiles arrive meanwhile.
#include "targets/cuda/gemm/WgmmaKernel.h"

#include "targets/cuda/gemm/ClusterSplitK.h"
#include "targets/cuda/gemm/WgmmaTileScheduler.h"
#include "targets/cuda/tile/Shared.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

namespace {

constexpr int64_t rowBytes = WgmmaShape::rowBytes, blockBytes = WgmmaShape::blockBytes;
// With two consumer warpgroups, each thread has 168 of the 65,536 registers of a multiprocessor at the start, and
// these after producers have given up theirs.
constexpr int64_t producerRegisters = 40, consumerRegisters = 232;

/// Returns the size of the second dimension of the input's box, of which each of `sharers` blocks copies a part.
int64_t boxRows(const WgmmaInput &input, int64_t rows, int64_t sharers) {
  return (input.isKMajor ? rows : 64) / sharers;
}

class WgmmaBuilder {
public:
  WgmmaBuilder(tile::Builder &b, ElementEmitter &emitter, const StageContext &context, const Contraction &contraction,
               const WgmmaProduct &product, const WgmmaShape &shape)
      : b(b), emitter(emitter), contraction(contraction), product(product), shape(shape),
        matrices{product.type, shape.bn, !product.a.isKMajor, !product.b.isKMajor},
        epilogue(b, emitter, context, contraction), tiles(b, this->shape), split(b, this->shape, epilogue) {}

  LogicalResult run();

private:
  void begin();
  Value full(Value stage) { return b.add(barriers, b.mul(stage, b.integer(8))); }
  Value empty(Value stage) { return b.add(full(stage), b.integer(shape.stages * 8)); }
  void advance(Value stage, Value parity, Values &next);
  void copy(const WgmmaInput &input, Value map, int64_t rows, Value row, Value k, Value batch, Value to, Value barrier,
            int64_t sharers);
  Values copyTile(const SumTile &at, ValueRange carried);
  void produce();
  Value descriptorOf(const WgmmaInput &input, Value address);
  Values multiply(Value stage, ValueRange sums);
  void release(Value stage, Value condition);
  void consume();
  void finish(const SumTile &tile, ValueRange sums);

  tile::Builder &b;
  ElementEmitter &emitter;
  const Contraction &contraction;
  const WgmmaProduct &product;
  WgmmaShape shape;
  tile::MatrixProduct matrices;
  WgmmaEpilogue epilogue;
  WgmmaTiles tiles;
  WgmmaSplit split;
  Value thread, lane, warp, mapA, mapB, shared, start, barriers;
  Value firstStep, steps;                  // the block's part of K
  Value warpRow, descriptorA, descriptorB; // for a consumer warp
  LogicalResult result = success();
};

void WgmmaBuilder::begin() {
  mapA = emitter.tensorMap(0), mapB = emitter.tensorMap(1);
  thread = b.threadId(), lane = b.rem(thread, b.integer(32)), warp = tile::warpOf(b, thread);
  shared = tile::sharedMemory(b, 1024), start = tile::sharedAddress(b, shared);
  barriers = b.add(start, b.integer(shape.barriersAt()));
  tiles.begin(emitter, contraction);
  Value k = emitter.extent(extentOf(contraction, contraction.reduction));
  firstStep = b.integer(0);
  steps = b.div(b.add(k, b.integer(product.k() - 1)), b.integer(product.k()));
  if (shape.split > 1) {
    split.begin(tiles.rank, shared, start);
    std::tie(firstStep, steps) = split.partOf(steps);
  }
  b.ifThen(b.compare(arith::CmpIPredicate::eq, thread, b.integer(0)), [&] {
    for (int64_t stage = 0; stage < shape.stages; ++stage) {
      tile::initBarrier(b, full(b.integer(stage)), 1);
      tile::initBarrier(b, empty(b.integer(stage)), shape.groups * 4 * shape.cluster);
    }
    tile::publishBarriers(b);
  });
  shape.cluster > 1 ? tile::clusterBarrier(b) : tile::barrier(b);
}

/// Appends the next stage and its parity, which changes with each pass through the buffer.
void WgmmaBuilder::advance(Value stage, Value parity, Values &next) {
  Value following = b.add(stage, b.integer(1));
  Value isLast = b.compare(arith::CmpIPredicate::eq, following, b.integer(shape.stages));
  next.push_back(b.select(isLast, b.integer(0), following));
  next.push_back(b.select(isLast, b.sub(b.integer(1), parity), parity));
}

//===- Producer ----------------------------------------------------------===//

/// A row of the box is 128 bytes along K, or along 64 rows: then there are several boxes. `sharers`: the number of
/// blocks, each of which multicasts its part of a box's rows to all.
void WgmmaBuilder::copy(const WgmmaInput &input, Value map, int64_t rows, Value row, Value k, Value batch, Value to,
                        Value barrier, int64_t sharers) {
  const int64_t part = boxRows(input, rows, sharers);
  Value first = b.mul(tiles.rank, b.integer(sharers > 1 ? part : 0));
  for (int64_t i = 0; i < (input.isKMajor ? 1 : rows / 64); ++i) {
    Value inner = input.isKMajor ? k : b.add(row, b.integer(i * 64));
    Values at{inner, b.add(input.isKMajor ? row : k, first)};
    if (!contraction.batch.empty())
      at.push_back(batch);
    Value place = b.add(to, b.add(b.integer(i * blockBytes), b.mul(first, b.integer(rowBytes))));
    tile::copyBox(b, place, map, at, barrier, sharers);
  }
}

/// `carried`: the stage and its parity.
Values WgmmaBuilder::copyTile(const SumTile &at, ValueRange carried) {
  return b.loop(steps, carried, [&](Value step, ValueRange values) {
    Value stage = values[0], parity = values[1];
    Value k = b.mul(b.add(firstStep, step), b.integer(product.k()));
    Value to = b.add(start, b.mul(stage, b.integer(shape.stageBytes())));
    tile::awaitPhase(b, empty(stage), parity);
    tile::arriveExpecting(b, full(stage), shape.stageBytes());
    copy(product.a, mapA, shape.bm, at.row, k, at.batch, to, full(stage), 1);
    copy(product.b, mapB, shape.bn, at.column, k, at.batch, b.add(to, b.integer(shape.bm * rowBytes)), full(stage),
         shape.cluster);
    Values next;
    advance(stage, parity, next);
    return next;
  });
}

/// Stages are empty at first: the first wait is for the phase before the first one, which counts as complete.
void WgmmaBuilder::produce() {
  if (shape.groups > 1)
    tile::setRegisters(b, producerRegisters, /*isMore=*/false);
  Value isCopier = b.compare(arith::CmpIPredicate::eq, thread, b.integer(0));
  const Values initial{b.integer(0), b.integer(1)};
  if (shape.split == 1)
    return b.ifThen(isCopier, [&] {
      tiles.each(initial, [&](const SumTile &at, ValueRange carried) { return copyTile(at, carried); });
    });
  tiles.each(initial, [&](const SumTile &at, ValueRange carried) {
    Values next =
        b.ifElse(isCopier, carried.getTypes(), [&] { return copyTile(at, carried); }, [&] { return Values(carried); });
    split.pass();
    return next;
  });
}

//===- Consumers ---------------------------------------------------------===//

Value WgmmaBuilder::descriptorOf(const WgmmaInput &input, Value address) {
  // If K is contiguous, a row ends with the tile's 128 bytes: it continues nowhere.
  return tile::matrixDescriptor(b, address, input.isKMajor ? 16 : blockBytes, 8 * rowBytes);
}

/// Multiplies in steps of 32 bytes of K, or of 16 rows, each of which is a K index.
Values WgmmaBuilder::multiply(Value stage, ValueRange sums) {
  Value offset = b.mul(stage, b.integer(shape.stageBytes()));
  Value fromA = tile::advanceDescriptor(b, descriptorA, offset),
        fromB = tile::advanceDescriptor(b, descriptorB, offset);
  auto step = [](const WgmmaInput &input) { return input.isKMajor ? int64_t(32) : 16 * rowBytes; };
  SmallVector<Values> next;
  for (int64_t block = 0; block < shape.blocksOfGroup(); ++block)
    next.emplace_back(sums.slice(block * matrices.sumsOfThread(), matrices.sumsOfThread()));
  tile::beginProducts(b);
  for (int64_t i = 0; i < rowBytes / 32; ++i)
    for (auto [block, ofBlock] : llvm::enumerate(next))
      ofBlock = tile::addProduct(b, matrices,
                                 tile::advanceDescriptor(b, fromA, i * step(product.a) + int64_t(block) * blockBytes),
                                 tile::advanceDescriptor(b, fromB, i * step(product.b)), ofBlock);
  tile::commitProducts(b);
  Values all;
  for (const Values &ofBlock : next)
    all.append(ofBlock);
  return all;
}

/// A warp arrives once in each block of the cluster, since each block writes to the stages of all.
void WgmmaBuilder::release(Value stage, Value condition) {
  b.ifThen(b.both(condition, b.isBelow(lane, b.integer(shape.cluster))),
           [&] { shape.cluster > 1 ? tile::arriveAt(b, empty(stage), lane) : tile::arrive(b, empty(stage)); });
}

/// One group of wgmma is in flight while the next one waits for its tiles.
void WgmmaBuilder::consume() {
  if (shape.groups > 1)
    tile::setRegisters(b, consumerRegisters, /*isMore=*/true);
  Value group = b.sub(b.div(warp, b.integer(4)), b.integer(1)), inGroup = b.rem(warp, b.integer(4));
  Value firstBlock = b.mul(group, b.integer(shape.blocksOfGroup()));
  warpRow = b.add(b.mul(firstBlock, b.integer(64)), b.mul(inGroup, b.integer(WgmmaShape::warpRows)));
  Value staging = b.mul(b.sub(warp, b.integer(4)), b.integer(WgmmaShape::warpRows * WgmmaShape::chunkPitch));
  epilogue.begin(tiles.rowCount, tiles.columnCount, lane,
                 tile::advance(b, tile::advance(b, shared, shape.stagingAt() / 4), staging));
  descriptorA = descriptorOf(product.a, b.add(start, b.mul(firstBlock, b.integer(blockBytes))));
  descriptorB = descriptorOf(product.b, b.add(start, b.integer(shape.bm * rowBytes)));
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  const size_t count = size_t(shape.sumsOfThread());
  tiles.each({b.integer(0), b.integer(0)}, [&](const SumTile &at, ValueRange carried) {
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
    finish(at, sums);
    return Values{values[count], values[count + 1]};
  });
}

/// Finishes the warpgroup's blocks of 64 rows, one after the other.
void WgmmaBuilder::finish(const SumTile &at, ValueRange sums) {
  if (shape.split > 1) {
    result = split.finish(at, sums, b.sub(warp, b.integer(4)), lane);
    return;
  }
  for (int64_t block = 0; block < shape.blocksOfGroup() && succeeded(result); ++block) {
    Value row = b.add(at.row, b.add(warpRow, b.integer(block * 64)));
    result = epilogue.finish({at.batch, row, at.column},
                             sums.slice(block * matrices.sumsOfThread(), matrices.sumsOfThread()));
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
  if (shape.cluster > 1)
    tile::clusterBarrier(b); // until then other blocks arrive at this block's barriers
  return result;
}

} // namespace

LogicalResult buildWgmma(tile::Builder &b, const StageContext &context, const Contraction &contraction, size_t first,
                         const ScheduleConfig &config, LaunchPlan &plan) {
  if (!hasWgmma(context, contraction))
    return success();
  std::optional<WgmmaProduct> product = findWgmmaProduct(context, contraction);
  const WgmmaShape shape = wgmmaShapeOf(config);
  for (auto [input, rows, sharers] :
       {std::tuple(&product->a, shape.bm, int64_t(1)), std::tuple(&product->b, shape.bn, shape.cluster)})
    for (size_t i = 0; i < input->map.extents.size(); ++i) {
      const int64_t box[] = {rowBytes / (product->k() == 64 ? 2 : 4), boxRows(*input, rows, sharers), 1};
      input->map.box.push_back(uint32_t(box[i]));
    }
  const std::string name = plan.functions[plan.launches[first].function].name;
  const tile::KernelLaunch launch{
      .threads = shape.threads(), .blocks = 1, .cluster = shape.blocks(), .isDependentLaunch = false};
  b.beginKernel(name, launch);
  ElementEmitter emitter(b, context.placement, context.kernel);
  if (failed(WgmmaBuilder(b, emitter, context, contraction, *product, shape).run()))
    return failure();
  b.endKernel();
  AffineExpr tiles = extentOf(contraction, contraction.batch) *
                     extentOf(contraction, contraction.rows).ceilDiv(shape.bm * shape.cluster) *
                     extentOf(contraction, contraction.columns).ceilDiv(shape.bn) * shape.blocks();
  plan.launches[first].tma = {unsigned(plan.launches.size() - first),
                              unsigned(plan.tmaFunctions.size()),
                              {std::move(product->a.map), std::move(product->b.map)},
                              emitter.parameters,
                              tiles};
  plan.tmaFunctions.push_back(makeFunction(name, launch, shape.sharedBytes()));
  return success();
}

} // namespace kiln::cuda
