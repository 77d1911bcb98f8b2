// SPDX-License-Identifier: Apache-2.0
//
// If the weight is contiguous along its columns, SkinnyGemmColumns.cpp builds the kernel. Else:
//
// 1. Each warp computes a few columns of a batch. Its lanes take neighbouring K indices, 16 bytes of the weight each
//    where extents allow, as one vector load if the address is aligned, which is checked once at run time; sums are
//    the same either way.
// 2. A lane accumulates in order of K; then lanes add their sums in a tree, always the same one.
// 3. Each lane finishes one of the sums. It reads everything that it overwrites before it stores.
//
// The input may be a norm of a single row, which each block computes (NormPrologue.h). Then a launch may compute
// several GEMVs of it.
//
// While earlier kernels still run, a block of either kernel loads the first part of its weights, and prefetches the
// others to the L2 cache.
#include "targets/cuda/gemm/SkinnyGemm.h"

#include "compiler/dialect/Extents.h"
#include "compiler/schedule/SearchSpace.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "targets/cuda/gemm/NormPrologue.h"
#include "targets/cuda/gemm/Prefetch.h"
#include "targets/cuda/gemm/SkinnyGemmColumns.h"
#include "targets/cuda/gemm/TileShape.h"
#include "targets/cuda/gemm/WgmmaShape.h"
#include "targets/cuda/ptx/ScalarOps.h"
#include "targets/cuda/tile/Shared.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

int64_t skinnyRowsOf(const Contraction &contraction) {
  return std::max<int64_t>(1, largestExtent(contraction, contraction.rows));
}

namespace {

constexpr int64_t mostRows = 8, lanes = 32;

/// The inputs of a GEMM, and the loops of each row and column.
struct Factors {
  explicit Factors(const RowProduct &product)
      : a(product.context, product.contraction, true), b(product.context, product.contraction, false) {}

  ContractionInput a, b;
  SmallVector<Values> placesA, placesB; // loop indices
};

class SkinnyGemmBuilder {
public:
  /// `norm`: the fused norm that computes the input of all GEMMs, or null if the input is in memory.
  SkinnyGemmBuilder(tile::Builder &b, ElementEmitter &emitter, ArrayRef<RowProduct> products, const NormPrologue *norm,
                    int64_t columns, int64_t warps, int64_t unroll)
      : b(b), emitter(emitter), products(products), contraction(products.front().contraction),
        rows(skinnyRowsOf(contraction)), columns(columns), warps(warps), unroll(unroll) {
    for (const RowProduct &product : products)
      factors.emplace_back(product);
    if (norm)
      row.emplace(b, *norm);
  }

  LogicalResult run();

private:
  using Weights = SmallVector<SmallVector<Values>>; // [iteration][column][neighbour]

  void begin();
  SmallVector<Values> placesOf(const RowProduct &product, ArrayRef<unsigned> which, int64_t count, Value first);
  Value isAligned();
  Value isAlignedAt(const RowProduct &product, const ContractionInput &input);
  SmallVector<Values> addAll(bool isAligned);
  Value isInside(Value kIndex);
  SmallVector<Values> readUnrolled(const RowProduct &product, const ContractionInput &input, ArrayRef<Values> places,
                                   bool isAligned, Value start);
  SmallVector<Weights> readWeights(bool isAligned, Value start);
  Values addUnrolled(size_t number, const Weights &weights, bool isAligned, Value start, Values sums);
  SmallVector<Values> addAllUnrolled(ArrayRef<Weights> weights, bool isAligned, Value start, SmallVector<Values> sums);
  Values read(const RowProduct &product, const ContractionInput &input, const Values &place, bool isAligned,
              Value kIndex);
  Value total(const Values &sums);
  LogicalResult finish(ArrayRef<Values> sums);

  tile::Builder &b;
  ElementEmitter &emitter;
  ArrayRef<RowProduct> products;
  const Contraction &contraction; // the first GEMM's, for what all of them share
  std::vector<Factors> factors;
  std::optional<SharedRow> row;
  int64_t rows, columns, warps, unroll;
  int64_t width = 1; // K indices that a lane takes at a time
  Value lane, firstColumn, rowCount, columnCount, kExtent, batch;
  bool broken = false;
};

/// Returns the loops of `count` rows from the first one on. The last row replaces rows beyond the end, whose sums are
/// not stored.
SmallVector<Values> SkinnyGemmBuilder::placesOf(const RowProduct &product, ArrayRef<unsigned> which, int64_t count,
                                                Value first) {
  const Contraction &c = product.contraction;
  linalg::GenericOp op = c.op;
  Value end = emitter.extent(extentOf(c, which));
  SmallVector<Values> places;
  for (int64_t i = 0; i < count; ++i) {
    places.emplace_back(op.getNumLoops());
    splitIndex(b, emitter, c, c.batch, batch, places.back());
    splitIndex(b, emitter, c, which, b.clamp(b.add(first, b.integer(i)), end), places.back());
  }
  return places;
}

void SkinnyGemmBuilder::begin() {
  Value thread = b.threadId();
  lane = b.rem(thread, b.integer(lanes));
  rowCount = emitter.extent(extentOf(contraction, contraction.rows));
  columnCount = emitter.extent(extentOf(contraction, contraction.columns));
  kExtent = emitter.extent(extentOf(contraction, contraction.reduction));
  const int64_t ofBlock = warps * columns;
  Value across = b.div(b.add(columnCount, b.integer(ofBlock - 1)), b.integer(ofBlock));
  Value block = b.blockId();
  batch = b.div(block, across);
  Value warp = b.add(b.mul(b.rem(block, across), b.integer(warps)), b.div(thread, b.integer(lanes)));
  firstColumn = b.mul(warp, b.integer(columns));
  for (auto [product, own] : llvm::zip_equal(products, factors)) {
    own.placesA = placesOf(product, own.a.rows, rows, b.integer(0));
    own.placesB = placesOf(product, own.b.rows, columns, firstColumn);
  }
}

/// Returns how many neighbouring K indices can be loaded at once.
static int64_t together(const ContractionInput &input) { return input.isKMajor ? input.together : 1; }

/// Returns null if the input is always aligned, or needs no alignment.
Value SkinnyGemmBuilder::isAlignedAt(const RowProduct &product, const ContractionInput &input) {
  if (together(input) == 1 || input.isSureAligned)
    return {};
  return tile::isMultiple(b, emitter.address(product.contraction.op, input.number), together(input) * input.bytes());
}

Value SkinnyGemmBuilder::isAligned() {
  Value all;
  for (auto [product, own] : llvm::zip_equal(products, factors))
    for (const ContractionInput *input : {&own.a, &own.b})
      if (Value one = isAlignedAt(product, *input))
        all = all ? b.both(all, one) : one;
  return all;
}

/// Reads neighbouring K indices, as f32.
Values SkinnyGemmBuilder::read(const RowProduct &product, const ContractionInput &input, const Values &place,
                               bool isAligned, Value kIndex) {
  const Contraction &c = product.contraction;
  Values at = place, values;
  const int64_t count = isAligned ? std::min(width, together(input)) : 1;
  for (int64_t i = 0; i < width; i += count) {
    splitIndex(b, emitter, c, c.reduction, b.add(kIndex, b.integer(i)), at);
    if (count == 1) {
      values.push_back(readInput(b, emitter, c, input.number, at));
      broken |= !values.back();
      continue;
    }
    Type element = deviceType(b, input.element);
    Value address = emitter.address(c.op, input.number);
    Value from = b.addressOf(element, address, emitter.offset(c.op, input.number, at));
    llvm::append_range(values, tile::loadFloats(b, element, count, from));
  }
  return values;
}

Value SkinnyGemmBuilder::isInside(Value kIndex) {
  auto extent = dyn_cast<AffineConstantExpr>(extentOf(contraction, contraction.reduction));
  const bool isWhole = extent && extent.getValue() % (lanes * width * unroll) == 0;
  return isWhole ? b.integer(b.getI1Type(), 1) : b.isBelow(kIndex, kExtent);
}

/// Returns the lane's elements of each place in the iteration that begins at `start`; zeros beyond the end of K.
SmallVector<Values> SkinnyGemmBuilder::readUnrolled(const RowProduct &product, const ContractionInput &input,
                                                    ArrayRef<Values> places, bool isAligned, Value start) {
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  Value kIndex = b.add(start, b.mul(lane, b.integer(width))), inside = isInside(kIndex);
  kIndex = b.select(inside, kIndex, b.integer(0));
  const bool isShared = row && input.number == product.contraction.a;
  SmallVector<Values> all;
  for (const Values &place : places) {
    all.push_back(isShared ? row->read(kIndex, width) : read(product, input, place, isAligned, kIndex));
    for (Value &value : all.back())
      value = broken ? value : b.select(inside, value, zero);
  }
  return all;
}

/// Reads the weights of each GEMM.
SmallVector<SkinnyGemmBuilder::Weights> SkinnyGemmBuilder::readWeights(bool isAligned, Value start) {
  SmallVector<Weights> all;
  for (auto [product, own] : llvm::zip_equal(products, factors)) {
    all.emplace_back();
    for (int64_t unrolled = 0; unrolled < unroll; ++unrolled)
      all.back().push_back(
          readUnrolled(product, own.b, own.placesB, isAligned, b.add(start, b.integer(unrolled * lanes * width))));
  }
  return all;
}

Values SkinnyGemmBuilder::addUnrolled(size_t number, const Weights &weights, bool isAligned, Value start, Values sums) {
  for (int64_t unrolled = 0; unrolled < unroll && !broken; ++unrolled) {
    SmallVector<Values> a = readUnrolled(products[number], factors[number].a, factors[number].placesA, isAligned,
                                         b.add(start, b.integer(unrolled * lanes * width)));
    for (int64_t k = 0; k < width && !broken; ++k)
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < columns; ++column) {
          Value &sum = sums[row * columns + column];
          sum = math::FmaOp::create(b, a[row][k], weights[unrolled][column][k], sum);
        }
  }
  return sums;
}

SmallVector<Values> SkinnyGemmBuilder::addAllUnrolled(ArrayRef<Weights> weights, bool isAligned, Value start,
                                                      SmallVector<Values> sums) {
  for (size_t number = 0; number < products.size(); ++number)
    sums[number] = addUnrolled(number, weights[number], isAligned, start, std::move(sums[number]));
  return sums;
}

/// Computes the sums of each GEMM. The weights of the first iterations are read before the wait for earlier kernels,
/// if that is possible.
SmallVector<Values> SkinnyGemmBuilder::addAll(bool isAligned) {
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  const bool allPrefetched = llvm::all_of(llvm::zip_equal(products, factors), [](const auto &each) {
    const auto &[product, own] = each;
    return isPrefetchable(product.context, product.contraction, own.b);
  });
  const int64_t ofStep = lanes * width * unroll, prefetched = allPrefetched ? 1 : 0, each = rows * columns;
  SmallVector<Values> sums(products.size(), Values(each, zero));
  SmallVector<Weights> first;
  if (prefetched)
    first = readWeights(isAligned, b.integer(0));
  b.waitForDependencies();
  if (row)
    broken |= failed(row->compute(emitter, warps * lanes));
  if (prefetched)
    sums = addAllUnrolled(first, isAligned, b.integer(0), std::move(sums));
  auto join = [](ArrayRef<Values> parts) {
    Values all;
    for (const Values &part : parts)
      llvm::append_range(all, part);
    return all;
  };
  auto split = [&](ValueRange all) {
    SmallVector<Values> parts;
    for (size_t number = 0; number < products.size(); ++number)
      parts.emplace_back(all.slice(number * size_t(each), size_t(each)));
    return parts;
  };
  const Values all =
      b.loop(iterationsAfter(b, kExtent, ofStep, prefetched), join(sums), [&](Value step, ValueRange values) {
        Value start = b.mul(b.add(step, b.integer(prefetched)), b.integer(ofStep));
        return join(addAllUnrolled(readWeights(isAligned, start), isAligned, start, split(values)));
      });
  return split(all);
}

/// Returns the total of the sum that the lane finishes: lane i finishes sum i.
Value SkinnyGemmBuilder::total(const Values &sums) {
  Value mine = sums.front();
  for (auto [i, sum] : llvm::enumerate(sums)) {
    Value total = sum;
    for (int32_t bits = lanes / 2; bits > 0; bits /= 2)
      total = b.createOrFold<arith::AddFOp>(total, b.shuffleXor(total, bits));
    Value isMine = b.compare(arith::CmpIPredicate::eq, lane, b.integer(int64_t(i)));
    mine = i == 0 ? total : b.select(isMine, total, mine);
  }
  return mine;
}

/// Finishes one GEMM after the other; each may read the results of those before it.
LogicalResult SkinnyGemmBuilder::finish(ArrayRef<Values> sums) {
  b.launchDependents();
  const Values totals = llvm::map_to_vector(sums, [&](const Values &own) { return total(own); });
  Value row = b.div(lane, b.integer(columns)), column = b.add(firstColumn, b.rem(lane, b.integer(columns)));
  Value inside = b.both(b.isBelow(row, rowCount), b.isBelow(column, columnCount));
  LogicalResult result = success();
  b.ifThen(inside, [&] {
    for (auto [product, sum] : llvm::zip_equal(products, totals)) {
      const Contraction &c = product.contraction;
      linalg::GenericOp op = c.op;
      Values at(op.getNumLoops());
      splitIndex(b, emitter, c, c.batch, batch, at);
      splitIndex(b, emitter, c, c.rows, row, at);
      splitIndex(b, emitter, c, c.columns, column, at);
      Values results = finishSum(emitter, product.context, c, at, sum);
      if (results.empty())
        return void(result = failure());
      storeResults(emitter, product.context, c, at, results);
      linalg::GenericOp last = product.context.stage.op;
      for (auto [value, element] : llvm::zip_equal(last->getResults(), results))
        if (products.size() > 1)
          emitter.give(value, element);
    }
  });
  return result;
}

LogicalResult SkinnyGemmBuilder::run() {
  begin();
  width = together(factors.front().b);
  for (auto [product, own] : llvm::zip_equal(products, factors)) {
    prefetchWeight(b, emitter, product.contraction, own.b, warps * columns, warps * lanes, lanes * width * unroll);
    prefetchEpilogue(b, emitter, product.context, product.contraction, warps * columns);
  }
  Value aligned = width > 1 ? isAligned() : Value();
  SmallVector<Values> sums;
  if (aligned) {
    const size_t each = size_t(rows * columns);
    SmallVector<Type> ofSums(products.size() * each, b.getF32Type());
    auto add = [&](bool isAligned) {
      Values all;
      for (const Values &own : addAll(isAligned))
        llvm::append_range(all, own);
      return all;
    };
    const Values all = b.ifElse(aligned, ofSums, [&] { return add(true); }, [&] { return add(false); });
    for (size_t number = 0; number < products.size(); ++number)
      sums.emplace_back(ArrayRef(all).slice(number * each, each));
  } else {
    sums = addAll(true);
  }
  return broken ? failure() : finish(sums);
}

/// For one row, returns as many iterations in flight as K has, so that memory latency is paid once, or a divisor of
/// their number.
int64_t defaultUnroll(const Contraction &contraction, const ContractionInput &weight, int64_t columns) {
  constexpr int64_t mostLoads = 12, usual = 8;
  if (skinnyRowsOf(contraction) > 1)
    return 1;
  const auto all =
      int64_t(llvm::divideCeil(largestExtent(contraction, contraction.reduction), lanes * together(weight)));
  const int64_t most = mostLoads / columns;
  for (int64_t unroll = most; 3 * unroll >= most; --unroll)
    if (all % unroll == 0)
      return unroll;
  return std::min({all, usual, most});
}

class SkinnyGemm : public StageStrategy {
public:
  SkinnyGemm(const StageContext &context, Contraction contraction)
      : products(1, RowProduct{context, std::move(contraction)}) {}
  explicit SkinnyGemm(NormPrologue found) : products(found.products), norm(std::move(found)) {}

  StringRef name() const override { return "skinny_gemm"; }
  size_t numStages() const override { return (norm ? norm->run.count : 0) + products.size(); }
  ArrayRef<Value> unstored() const override { return norm ? ArrayRef<Value>(norm->unstored) : ArrayRef<Value>(); }

  /// Two columns share the loads of the rows, and four columns share computed rows; more columns would leave a GPU
  /// with too few warps. Each block computes a norm: eight warps share that work.
  SearchSpace searchSpace() const override {
    const ContractionInput input = weight();
    const Contraction &contraction = products.front().contraction;
    if (!input.isKMajor)
      return skinnyGemmColumnsSpace(contraction, input);
    SearchSpace space;
    const bool isComputed = !norm && !ContractionInput(products.front().context, contraction, true).isPlain;
    const int64_t columns = isComputed ? 4 : skinnyRowsOf(contraction) == 1 ? 1 : 2;
    space.push_back({"columns", {1, 2, 4}, columns});
    space.push_back(makeParameter("unroll", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
                                  defaultUnroll(contraction, input, columns * int64_t(products.size()))));
    space.push_back({"warps", {2, 4, 8}, norm ? 8 : 4});
    return space;
  }

  /// Registers hold sums, the weights of all iterations and the rows of one, in addition to addresses.
  std::optional<BlockNeeds> needs(const ScheduleConfig &config) const override {
    const Contraction &contraction = products.front().contraction;
    const int64_t rows = skinnyRowsOf(contraction), threads = config.at("warps") * lanes;
    if (const ContractionInput input = weight(); !input.isKMajor)
      return skinnyGemmColumnsNeeds(contraction, input, config);
    const int64_t columns = config.at("columns") * int64_t(products.size());
    return BlockNeeds{threads, 32 + rows * columns + 4 * (rows + columns * config.at("unroll")), 0, 0};
  }

  LogicalResult build(tile::Builder &b, const ScheduleConfig &config, LaunchPlan &plan) const override {
    const NormPrologue *row = norm ? &*norm : nullptr;
    const RowProduct &first = products.front();
    if (const ContractionInput input = weight(); !input.isKMajor)
      return buildSkinnyGemmColumns(b, first, row, input, config, plan);
    const int64_t columns = config.at("columns"), warps = config.at("warps");
    const std::string name = "step_" + std::to_string(plan.functions.size());
    const tile::KernelLaunch launch{.threads = warps * lanes, .waitsAtOnce = false};
    b.beginKernel(name, launch);
    ElementEmitter emitter(b, first.context.placement, first.context.kernel);
    if (norm)
      prefetchSmallWeights(b, emitter, first.context.kernel, launch.threads);
    if (failed(SkinnyGemmBuilder(b, emitter, products, row, columns, warps, config.at("unroll")).run()))
      return failure();
    b.endKernel();
    const Contraction &c = first.contraction;
    AffineExpr blocks = extentOf(c, c.batch) * extentOf(c, c.columns).ceilDiv(warps * columns);
    plan.launches.push_back({unsigned(plan.functions.size()), blocks, emitter.parameters});
    plan.functions.push_back(makeFunction(name, launch));
    return success();
  }

private:
  ContractionInput weight() const {
    return ContractionInput(products.front().context, products.front().contraction, false);
  }

  std::vector<RowProduct> products;
  std::optional<NormPrologue> norm;
};

} // namespace

std::unique_ptr<StageStrategy> matchSkinnyGemm(const StageContext &context) {
  if (std::optional<NormPrologue> norm = findNormPrologue(context))
    return std::make_unique<SkinnyGemm>(std::move(*norm));
  std::optional<Contraction> contraction = findContraction(context);
  if (!contraction || largestExtent(*contraction, contraction->rows) > mostRows)
    return nullptr;
  return std::make_unique<SkinnyGemm>(context, std::move(*contraction));
}

std::vector<ShapeVariant> skinnyGemmVariants(func::FuncOp kernel, const Placement &placement) {
  std::vector<ShapeVariant> variants;
  for (const KernelStage &stage : placement.stages) {
    std::optional<Contraction> contraction = findContraction({kernel, placement, stage});
    if (!contraction || contraction->rows.size() != 1 || !contraction->batch.empty())
      continue;
    AffineExpr extent = extentOf(*contraction, contraction->rows);
    auto symbol = dyn_cast<AffineSymbolExpr>(extent);
    SmallVector<int64_t> bounds{1};
    if (isLarge(*contraction)) // a missing row costs as many multiply-adds as others
      bounds.push_back(mostRows / 2);
    bounds.push_back(mostRows);
    const StageContext ofStage{kernel, placement, stage};
    llvm::append_range(bounds,
                       hasWgmma(ofStage, *contraction) ? wgmmaBounds(ofStage, *contraction) : tileBounds(*contraction));
    for (int64_t bound : bounds)
      if (symbol && leastValue(extent, kernel) <= bound && bound < largestValue(extent, kernel))
        variants.push_back({symbol.getPosition(), bound});
    break;
  }
  return variants;
}

} // namespace kiln::cuda
