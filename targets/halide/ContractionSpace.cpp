// SPDX-License-Identifier: Apache-2.0
#include "targets/halide/Contraction.h"

#include "compiler/schedule/SearchSpace.h"
#include "targets/halide/FewRows.h"
#include "targets/halide/Placement.h"

namespace kiln::halide {

using namespace mlir;

static std::vector<int64_t> divisors(int64_t number) {
  std::vector<int64_t> result;
  for (int64_t i = 1; i <= number; ++i)
    if (number % i == 0)
      result.push_back(i);
  return result;
}

/// The rules that join parameters. A parameter that the kernel does not have counts as its absence: no blocks, one
/// step.
static std::vector<TuningRule> contractionRules(int64_t lanes, int64_t registers, int64_t depth, int64_t stored) {
  auto get = [](const SchedulePoint &point, const char *key, int64_t absent) {
    auto found = point.find(key);
    return found == point.end() ? absent : found->second;
  };
  auto block = [=](const SchedulePoint &point) { return get(point, "k_block", depth); };
  return {
      registersOfTile(lanes, registers),
      {"k_unroll divides the parts of k_block, of two or more",
       [=](const SchedulePoint &point) {
         int64_t unroll = get(point, "k_unroll", 1), parts = get(point, "parts", 1);
         return unroll * parts == 1 || block(point) % (unroll * parts) == 0;
       }},
      {"rows_block of whole tiles of m rows",
       [=](const SchedulePoint &point) {
         return get(point, "rows_block", 0) == 0 || get(point, "rows_block", 0) >= point.at("m");
       }},
      {"rows outside of columns (order=1) with whole depths, tasks of rows and nothing to prefetch",
       [=](const SchedulePoint &point) {
         return get(point, "order", 0) == 0 ||
                (block(point) == depth && get(point, "split", 0) == 1 && get(point, "prefetch", 0) == 0);
       }},
      {"tasks of rows (split=1, 2) with blocks of rows, or with rows outside of columns",
       [=](const SchedulePoint &point) {
         return get(point, "split", 0) == 0 || get(point, "rows_block", 0) > 0 ||
                (get(point, "split", 0) == 1 && get(point, "order", 0) == 1);
       }},
      {"several column tiles a task (task) with tasks of columns (split=0)",
       [=](const SchedulePoint &point) { return get(point, "task", 1) == 1 || get(point, "split", 0) == 0; }},
      {"prefetch with n the stored tile",
       [=](const SchedulePoint &point) { return get(point, "prefetch", 0) == 0 || point.at("n") == stored; }},
  };
}

/// Whether the rows of a lie in memory as they are read: then packing them only costs (98 % of the FMA rate in place,
/// 97 % packed at (128, 768, 768); 95 % and 92 % with weights out of cache; Zen 4, November 2026). But rows whole pages
/// apart share the few places of one set of the first cache: packed, a depth of 3072 takes 0.93 of the time (128 to 512
/// rows, Cascade Lake, November 2026).
static bool readsAlongRows(const Contraction &shape) {
  constexpr int64_t pageBytes = 4096;
  linalg::GenericOp op = shape.op;
  AffineMap map = op.getIndexingMapsArray()[shape.a];
  const int64_t depth = staticDepth(shape);
  return isa<BlockArgument>(op->getOperand(shape.a)) && !ShapedType::isDynamic(depth) &&
         map.getResult(map.getNumResults() - 1) == getAffineDimExpr(shape.reduction[0], op->getContext()) &&
         depth * int64_t(sizeof(float)) % pageBytes != 0;
}

/// Whether there are so few tasks of columns that an odd one costs two threads more than a twenty-fifth of their time.
/// A weight that comes from memory gains more from being asked for panel by panel than from even tasks: 512 x 512 out
/// of cache 0.78 to 0.88 of the time with one thread, 0.83 to 0.92 with two, in the cache 1.00 and 1.06 (64 to 128
/// rows, Cascade Lake, November 2026).
static bool hasUnevenTasks(const Contraction &shape, int64_t tileColumns) {
  int64_t columns = staticExtent(shape.op, shape.n);
  int64_t tasks = ShapedType::isDynamic(columns) ? 0 : (columns + tileColumns - 1) / tileColumns;
  return tasks % 2 == 1 && tasks < 25;
}

/// The parameter "parts", in how many sums a block of k is added up. Sums of 384 instead of 768 products take two
/// fifths off the rounding error of ViT-B/16 (1.22e-5 to 7.1e-6), and cost 1 to 2 % of the time (128 to 512 rows,
/// Cascade Lake, November 2026).
static TuningParameter partsParameter(int64_t depth, int64_t block) {
  constexpr int64_t mostProducts = 512;
  std::vector<int64_t> values{1, 2, 4};
  llvm::erase_if(values, [&](int64_t parts) { return depth % parts != 0; });
  int64_t preset = 1;
  for (int64_t parts : values)
    if (block % parts == 0 && block / preset > mostProducts)
      preset = parts;
  return makeParameter("parts", values, preset);
}

/// Rows up to which a weight passes them once, without blocks of rows.
constexpr int64_t mostWithoutBlocks = 512;

/// Rows up to which tiles of four are the default with 16 registers, since six divide neither 64 nor 128: 0.97 to 0.98
/// of the time there, 1.00 at 100 rows, 1.01 to 1.03 at 126; packed rows 1.02 to 1.04 (Zen 3, November 2026).
constexpr int64_t mostOfLowTiles = 128;

static bool wantsLowTiles(const Contraction &shape, const MachineModel &machine) {
  return machine.hasFusedMultiplyAdd && !machine.hasManyRegisters() && readsAlongRows(shape);
}

/// Whether the next panel of a weight is asked for while this one is read, which pays where the second cache does not
/// hold the weight: at (128, 3072, 768) 0.88 of the time, with two steps of k at a time 0.85, at 512 rows 0.97 and
/// 0.95. With more rows the blocks of rows count for more than the steps: 0.96 at 4096, without blocks 1.08 (one
/// thread, Cascade Lake, November 2026).
static bool asksAhead(const Contraction &shape, const MachineModel &machine) {
  int64_t columns = staticExtent(shape.op, shape.n);
  int64_t depth = staticDepth(shape);
  if (ShapedType::isDynamic(columns) || ShapedType::isDynamic(depth))
    return false;
  return shape.m && shape.tile && largestExtent(shape.op, *shape.m) > 32 &&
         columns * depth * int64_t(sizeof(float)) >= machine.l2Bytes;
}

/// How many steps of k a tile takes at a time where its weight is asked for. With 16 registers 24 rows of products and
/// more take 0.95 to 0.98 of the time of one step (128 to 512 rows, Zen 3, November 2026), and are too long for LLVM to
/// unroll the parts, whose sums it would then keep on the stack: 1.5 times as long with GELU. Products that are not
/// fused wait for registers.
static int64_t stepsOfDepth(int64_t tileRows, bool hasBlocks, const MachineModel &machine) {
  if (!machine.hasFusedMultiplyAdd)
    return 1;
  if (machine.hasManyRegisters())
    return hasBlocks ? 1 : 2;
  return tileRows < 6 ? 8 : 4;
}

SearchSpace contractionSpace(ArrayRef<Contraction> contractions, int64_t panel, const MachineModel &machine) {
  const Contraction &first = contractions.front();
  const int64_t lanes = vectorLanes(machine), registers = machine.vectorRegisters;
  const int64_t stored = first.tile, widest = machine.hasManyRegisters() ? 3 * lanes : 2 * lanes;
  std::vector<int64_t> columns, rows{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16};
  for (int64_t n = lanes; n <= 6 * lanes; n += lanes)
    if (panel ? n == panel : stored == 0 || stored % n == 0)
      columns.push_back(n);
  if (columns.empty())
    columns.push_back(lanes);
  TuningParameter n = makeParameter("n", columns, stored ? std::min(stored, widest) : widest);
  // The accumulators, one row of b and two broadcast values share the registers.
  int64_t perRow = n.preset / lanes, m = std::max<int64_t>(1, (registers - perRow - 2) / perRow);
  int64_t mostRows = first.m ? largestExtent(first.op, *first.m) : 1;
  const int64_t mostHigh = first.m && mostRows <= mostOfLowTiles && wantsLowTiles(first, machine) ? 4 : 8;
  TuningParameter tileRows = makeParameter("m", rows, std::min({m, mostRows, mostHigh}));
  llvm::erase_if(tileRows.values, [&](int64_t value) { return value * 1 + 2 > registers; });

  SearchSpace space{tileRows, n};
  int64_t depth = staticDepth(first);
  bool hasStaticDepth = !ShapedType::isDynamic(depth) && contractions.size() == 1;
  bool hasRequests = contractions.size() == 1 && n.preset == stored && asksAhead(first, machine);
  // Halide loses the bounds of a panel's reductions in a loop that is made of two.
  bool isUneven =
      !hasRequests && !panel && first.m && first.batch.empty() && mostRows > 32 && hasUnevenTasks(first, n.preset);
  bool hasBlocks = mostRows > (hasRequests ? mostWithoutBlocks : 256);
  if (hasStaticDepth) {
    // A panel block of b takes up to a quarter of the second level cache.
    std::vector<int64_t> blocks = divisors(depth);
    llvm::erase_if(blocks, [&](int64_t block) { return block < 64 && block != depth; });
    int64_t wanted = machine.l2Bytes / 4 / int64_t(sizeof(float)) / n.preset;
    space.push_back(makeParameter("k_block", blocks, depth <= wanted * 3 / 2 ? depth : wanted));
    int64_t block = space.back().preset, parts = 1;
    if (first.m) {
      TuningParameter sums = partsParameter(depth, block);
      parts = sums.preset;
      space.push_back(sums);
    }
    std::vector<int64_t> unrolls{1, 2, 4, 8};
    llvm::erase_if(unrolls, [&](int64_t unroll) { return depth % unroll != 0; });
    const int64_t unroll = hasRequests ? stepsOfDepth(tileRows.preset, hasBlocks, machine) : 1;
    space.push_back(makeParameter("k_unroll", unrolls, block / parts % unroll == 0 ? unroll : 1));
  }
  if (first.m) {
    // Packed rows of a long depth pass each panel from the third cache, unless in blocks: at (512, 768, 3072) 0.59 to
    // 0.61 of the time while neighbours use that cache as well, at 128 and 197 rows 0.96 to 1.02 (one thread, Cascade
    // Lake, November 2026).
    const bool isFromThirdCache = hasRequests && machine.hasManyRegisters() && !readsAlongRows(first);
    const int64_t rowsBlock = isUneven ? 32 : hasBlocks ? 256 : isFromThirdCache ? 128 : 0;
    space.push_back(makeParameter("rows_block", {0, 32, 64, 128, 256, 512}, rowsBlock));
    if (first.batch.empty()) {
      space.push_back(makeParameter("order", {0, 1}, 0));
      space.push_back(
          makeParameter("split", panel ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0, 1, 2}, isUneven ? 2 : 0));
      space.push_back(makeParameter("task", {1, 2, 4}, 1));
    }
    space.push_back(makeParameter("pack", {0, 1}, readsAlongRows(first) ? 0 : 1));
    if (hasStaticDepth && stored > 0 && stored == n.preset)
      space.push_back(makeParameter("prefetch", {0, 1, 2, 3}, hasRequests ? 1 : 0));
    if (hasStaticDepth && stored > 0)
      space.push_back(makeParameter("ahead", {0, 4, 8, 16, 32}, machine.hasManyRegisters() ? 8 : 0));
  }
  space.rules = contractionRules(lanes, registers, hasStaticDepth ? depth : 1, stored);
  return space;
}

std::vector<RowVariant> contractionVariants(const Contraction &contraction, const MachineModel &machine) {
  linalg::GenericOp op = contraction.op;
  std::vector<RowVariant> variants = fewRowsVariants(op->getParentOfType<func::FuncOp>(), machine);
  std::optional<unsigned> symbol =
      contraction.m && contraction.batch.empty() ? symbolOfExtent(op, *contraction.m) : std::nullopt;
  if (!symbol || !asksAhead(contraction, machine))
    return variants;
  SmallVector<int64_t> bounds;
  if (wantsLowTiles(contraction, machine))
    bounds.push_back(mostOfLowTiles);
  bounds.push_back(mostWithoutBlocks);
  for (int64_t bound : bounds)
    if (smallestExtent(op, *contraction.m) <= bound && bound < largestExtent(op, *contraction.m))
      variants.push_back({*symbol, bound});
  return variants;
}

ContractionSchedule readContractionSchedule(const SchedulePoint &point) {
  auto get = [&](const char *key, int64_t absent) {
    auto found = point.find(key);
    return found == point.end() ? absent : found->second;
  };
  ContractionSchedule schedule;
  schedule.tileRows = point.at("m");
  schedule.tileColumns = point.at("n");
  schedule.unroll = get("k_unroll", 1);
  schedule.blockDepth = get("k_block", 0);
  schedule.parts = get("parts", 1);
  schedule.blockRows = get("rows_block", 0) / schedule.tileRows * schedule.tileRows;
  schedule.task = get("task", 1);
  schedule.prefetch = get("prefetch", 0);
  schedule.ahead = get("ahead", 0);
  schedule.isPacked = get("pack", 1) != 0;
  schedule.isRowsOuter = get("order", 0) != 0;
  schedule.split = Split(get("split", 0));
  return schedule;
}

} // namespace kiln::halide
