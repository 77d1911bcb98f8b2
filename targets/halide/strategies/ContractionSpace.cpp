// SPDX-License-Identifier: Apache-2.0
#include "targets/halide/strategies/Contraction.h"

#include "compiler/dialect/PartialIndex.h"
#include "compiler/dialect/StoredParts.h"
#include "compiler/schedule/SearchSpace.h"
#include "targets/halide/strategies/Placement.h"
#include "targets/halide/strategies/SkinnyGemm.h"

namespace kiln::halide {

using namespace mlir;

/// Constants from which the default schedule configuration is computed, one set for machines with few vector registers
/// and one for machines with many. Members with an initialiser are the same for both.
struct ContractionDefaults {
  int64_t tileVectors;  // vectors of a tile's columns (M-0105, M-0110, M-0111, M-0910 to M-0916)
  int64_t lowTileRows;  // most rows of a call for which tiles of four are best, which divide 64 and 128 as six do not
                        // (M-0164, M-0165, M-0175 to M-0177); 0: none
  int64_t steps;        // K iterations to unroll if a weight is prefetched (M-0161, M-0162, M-0217)
  int64_t lowTileSteps; // the same for tiles below six rows
  int64_t blockSteps;   // maximum of both within blocks of rows (M-0115)
  int64_t ahead;        // prefetch distance for rows of b, in K iterations (M-0160, M-0210)
  int64_t packedRows;   // rows of a block, if packed rows would be read from the L3 cache for each panel (M-0150 to
                        // M-0153, M-0167); 0: no blocks

  int64_t tileRows = 8;        // maximum rows of a tile: higher tiles are no faster (M-0105, M-0110, M-0111)
  int64_t blockRows = 256;     // rows of a block, and most rows of a call without row blocks (M-0913)
  int64_t requestedRows = 512; // the latter if the weight is prefetched (M-0163, M-0217, M-0219, M-0228, M-0229)
  int64_t taskRows = 32;       // rows of a task if both rows and columns are split (M-0141 to M-0143)
  int64_t evenTasks = 25;      // column tasks from which an odd number costs two threads a twenty-fifth at most
  int64_t partProducts = 512;  // maximum products of a partial sum (M-0130, M-0134, M-0135)
  int64_t panelShare = 4;      // a panel's block takes one in so many bytes of the L2 cache (M-0104, M-0112, M-0113)
};

static const ContractionDefaults &contractionDefaults(const MachineModel &machine) {
  // tileVectors, lowTileRows, steps, lowTileSteps, blockSteps, ahead, packedRows
  static constexpr ContractionDefaults few{2, 128, 4, 8, 8, 0, 0}, many{3, 0, 2, 2, 1, 8, 128};
  return machine.hasManyRegisters() ? many : few;
}

static std::vector<int64_t> divisors(int64_t number) {
  std::vector<int64_t> result;
  for (int64_t i = 1; i <= number; ++i)
    if (number % i == 0)
      result.push_back(i);
  return result;
}

/// Returns the constraints between parameters. A parameter that the kernel does not have counts as its neutral value:
/// no blocks, no unrolling.
static std::vector<TuningRule> contractionRules(int64_t lanes, int64_t registers, int64_t kExtent, int64_t stored) {
  auto get = [](const ScheduleConfig &config, const char *key, int64_t absent) {
    auto found = config.find(key);
    return found == config.end() ? absent : found->second;
  };
  auto block = [=](const ScheduleConfig &config) { return get(config, "k_block", kExtent); };
  return {
      registersOfTile(lanes, registers),
      {"k_unroll divides the partial_sums of k_block, of two or more",
       [=](const ScheduleConfig &config) {
         int64_t unroll = get(config, "k_unroll", 1), partialSums = get(config, "partial_sums", 1);
         return unroll * partialSums == 1 || block(config) % (unroll * partialSums) == 0;
       }},
      {"rows_block of whole tiles of m rows",
       [=](const ScheduleConfig &config) {
         return get(config, "rows_block", 0) == 0 || get(config, "rows_block", 0) >= config.at("m");
       }},
      {"rows outside of columns (order=1) with whole depths, tasks of rows and nothing to prefetch",
       [=](const ScheduleConfig &config) {
         return get(config, "order", 0) == 0 ||
                (block(config) == kExtent && get(config, "split", 0) == 1 && get(config, "prefetch", 0) == 0);
       }},
      {"tasks of rows (split=1, 2) with blocks of rows, or with rows outside of columns",
       [=](const ScheduleConfig &config) {
         return get(config, "split", 0) == 0 || get(config, "rows_block", 0) > 0 ||
                (get(config, "split", 0) == 1 && get(config, "order", 0) == 1);
       }},
      {"several column tiles a task (task) with tasks of columns (split=0)",
       [=](const ScheduleConfig &config) { return get(config, "task", 1) == 1 || get(config, "split", 0) == 0; }},
      {"prefetch with n the stored tile",
       [=](const ScheduleConfig &config) { return get(config, "prefetch", 0) == 0 || config.at("n") == stored; }},
  };
}

/// Whether a is read in place: its rows are contiguous along k, so packing them would only cost time (M-0120, M-0121).
/// Rows that are a multiple of the page size apart are packed nevertheless, since they compete for one set of the L1
/// cache (M-0124). So are elements narrower than f32, which would be widened one by one for each panel.
static bool readsAlongRows(const Contraction &shape) {
  constexpr int64_t pageBytes = 4096;
  linalg::GenericOp op = shape.op;
  AffineMap map = op.getIndexingMapsArray()[shape.a];
  const int64_t kExtent = staticK(shape);
  // The rows of a slice may start at an offset within the row.
  const AffineExpr inner = mlir::kiln::withoutPartial(map.getResults().back());
  auto isAlong = [&] {
    const AffineExpr start = simplifyAffineExpr(inner - getAffineDimExpr(shape.reduction[0], op->getContext()),
                                                map.getNumDims(), map.getNumSymbols());
    return !start.isFunctionOfDim(shape.reduction[0]);
  };
  return isa<BlockArgument>(op->getOperand(shape.a)) && !ShapedType::isDynamic(kExtent) && isAlong() &&
         bytesOf(op->getOperand(shape.a), 1) >= int64_t(sizeof(float)) &&
         bytesOf(op->getOperand(shape.a), kExtent) % pageBytes != 0;
}

static bool wantsLowTiles(const Contraction &shape, const MachineModel &machine) {
  return machine.hasFusedMultiplyAdd && contractionDefaults(machine).lowTileRows > 0 && readsAlongRows(shape);
}

/// Whether the next panel of a weight is prefetched while the current one is read, which pays off if the weight exceeds
/// the L2 cache (M-0216 to M-0219).
static bool asksAhead(const Contraction &shape, const MachineModel &machine) {
  int64_t columns = staticExtent(shape.op, shape.n);
  int64_t kExtent = staticK(shape);
  if (ShapedType::isDynamic(columns) || ShapedType::isDynamic(kExtent))
    return false;
  return shape.m && shape.tile && largestExtent(shape.op, *shape.m) > mostSkinnyRows &&
         bytesOf(shape.op->getOperand(shape.b), columns * kExtent) >= machine.l2Bytes;
}

namespace {

/// Builds the search space of contractions that share their tile sizes. The defaults of later parameters follow from
/// those of earlier ones.
class ContractionParameters {
public:
  ContractionParameters(ArrayRef<Contraction> contractions, const MachineModel &machine)
      : shape(contractions.front()), machine(machine), defaults(contractionDefaults(machine)),
        lanes(vectorLanes(machine, shape.sumType())), registers(vectorRegisters(machine, shape.sumType())),
        kExtent(staticSteps(shape)), mostRows(shape.m ? largestExtent(shape.op, *shape.m) : 1),
        isSingle(contractions.size() == 1), hasStaticK(isSingle && !ShapedType::isDynamic(kExtent)),
        isBatchInvariant(::kiln::isBatchInvariant(shape.op) || shape.group) {}

  SearchSpace get() &&;

private:
  bool hasUnevenTasks() const;
  TuningParameter tileColumns() const;
  TuningParameter tileRows() const;
  TuningParameter partialSums(int64_t block) const;
  int64_t stepsOfK() const;
  void addKBlocks();
  void addRows();

  const Contraction &shape;
  const MachineModel &machine;
  const ContractionDefaults &defaults;
  int64_t lanes, registers, kExtent /* K iterations */, mostRows;
  bool isSingle, hasStaticK;
  bool isBatchInvariant;         // one sum over k, whatever the schedule configuration
  int64_t columns = 0, rows = 0; // default size of a register tile
  bool hasRequests = false, isUneven = false, hasBlocks = false;
  SearchSpace space;
};

/// Whether there are so few column tasks that an odd number of them costs two threads time. A weight that is read from
/// memory gains more from the prefetch of whole panels than from an even number of tasks (M-0144 and M-0145, compared
/// with M-0147 and M-0156).
bool ContractionParameters::hasUnevenTasks() const {
  int64_t all = staticExtent(shape.op, shape.n);
  int64_t tasks = ShapedType::isDynamic(all) ? 0 : (all + columns - 1) / columns;
  return tasks % 2 == 1 && tasks < defaults.evenTasks;
}

TuningParameter ContractionParameters::tileColumns() const {
  std::vector<int64_t> values;
  for (int64_t n = lanes; n <= 6 * lanes; n += lanes)
    if (shape.tile == 0 || shape.tile % n == 0)
      values.push_back(n);
  if (values.empty())
    values.push_back(lanes);
  const int64_t widest = defaults.tileVectors * lanes;
  return makeParameter("n", values, shape.tile ? std::min(shape.tile, widest) : widest);
}

/// The accumulators, one row of b and two broadcast values must fit the registers.
TuningParameter ContractionParameters::tileRows() const {
  const int64_t vectors = columns / lanes;
  const int64_t fitting = std::max<int64_t>(1, (registers - vectors - 2) / vectors);
  const bool isLow = shape.m && mostRows <= defaults.lowTileRows && wantsLowTiles(shape, machine);
  std::vector<int64_t> values{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16};
  TuningParameter m = makeParameter("m", values, std::min({fitting, mostRows, isLow ? 4 : defaults.tileRows}));
  llvm::erase_if(m.values, [&](int64_t value) { return value + 2 > registers; });
  return m;
}

/// Returns the number of partial sums of a block of k: shorter sums have a smaller rounding error, and cost a little
/// time.
TuningParameter ContractionParameters::partialSums(int64_t block) const {
  std::vector<int64_t> values{1, 2, 4};
  llvm::erase_if(values, [&](int64_t count) { return kExtent % count != 0 || (isBatchInvariant && count > 1); });
  int64_t defaultValue = 1;
  for (int64_t count : values)
    if (!shape.isVnni() && block % count == 0 && block / defaultValue > defaults.partProducts)
      defaultValue = count;
  return makeParameter("partial_sums", values, defaultValue);
}

/// Returns the default number of unrolled K iterations. Products that are not fused wait for registers. Integer sums
/// are reassociated by LLVM, which then keeps accumulators on the stack (M-1122, M-1123).
int64_t ContractionParameters::stepsOfK() const {
  if (!hasRequests || !machine.hasFusedMultiplyAdd || shape.interleave == 2)
    return 1;
  const int64_t steps = rows < 6 ? defaults.lowTileSteps : defaults.steps;
  return hasBlocks ? std::min(steps, defaults.blockSteps) : steps;
}

void ContractionParameters::addKBlocks() {
  std::vector<int64_t> blocks = divisors(kExtent);
  llvm::erase_if(blocks, [&](int64_t block) { return (block < 64 || isBatchInvariant) && block != kExtent; });
  const int64_t wanted = machine.l2Bytes / defaults.panelShare / bytesOfStep(shape, columns);
  space.push_back(makeParameter("k_block", blocks, kExtent <= wanted * 3 / 2 ? kExtent : wanted));
  int64_t sum = space.back().defaultValue;
  if (shape.m) {
    space.push_back(partialSums(sum));
    sum /= space.back().defaultValue;
  }
  const int64_t group = productsOfSum(shape) / std::max<int64_t>(shape.interleave, 1), most = group ? group : kExtent;
  sum = group ? group : sum;
  std::vector<int64_t> unrolls{1, 2, 4, 8};
  llvm::erase_if(unrolls, [&](int64_t unroll) { return most % unroll != 0; });
  const int64_t unroll = stepsOfK();
  space.push_back(makeParameter("k_unroll", unrolls, sum % unroll == 0 ? unroll : 1));
}

void ContractionParameters::addRows() {
  const bool isInPlace = readsAlongRows(shape);
  const int64_t packedRows = hasRequests && !isInPlace ? defaults.packedRows : 0;
  const int64_t block = isUneven ? defaults.taskRows : hasBlocks ? defaults.blockRows : packedRows;
  space.push_back(makeParameter("rows_block", {0, 32, 64, 128, 256, 512}, block));
  if (shape.outer.empty()) {
    space.push_back(makeParameter("order", {0, 1}, 0));
    space.push_back(makeParameter("split", {0, 1, 2}, isUneven ? int64_t(Split::Both) : int64_t(Split::Columns)));
    space.push_back(makeParameter("task", {1, 2, 4}, 1));
  }
  if (!shape.isVnni())
    space.push_back(makeParameter("pack", {0, 1}, isInPlace ? 0 : 1));
  if (!hasStaticK || shape.tile == 0)
    return;
  if (shape.tile == columns)
    space.push_back(makeParameter("prefetch", {0, 1, 2, 3}, hasRequests ? 1 : 0));
  space.push_back(makeParameter("ahead", {0, 4, 8, 16, 32}, defaults.ahead));
}

SearchSpace ContractionParameters::get() && {
  TuningParameter n = tileColumns();
  columns = n.defaultValue;
  TuningParameter m = tileRows();
  rows = m.defaultValue;
  space = {m, n};
  hasRequests = isSingle && columns == shape.tile && asksAhead(shape, machine);
  isUneven = !hasRequests && shape.m && shape.outer.empty() && mostRows > defaults.taskRows && hasUnevenTasks();
  hasBlocks = mostRows > (hasRequests ? defaults.requestedRows : defaults.blockRows);
  if (hasStaticK)
    addKBlocks();
  if (shape.m)
    addRows();
  space.rules = contractionRules(lanes, registers, hasStaticK ? kExtent : 1, shape.tile);
  return std::move(space);
}

} // namespace

int64_t productsOfSum(const Contraction &contraction) {
  auto type = cast<RankedTensorType>(linalg::GenericOp(contraction.op)->getOperand(contraction.b).getType());
  mlir::kiln::StorageAttr storage = mlir::kiln::getStorage(type);
  return storage && contraction.tile && (isBatchInvariant(contraction.op) || contraction.group) ? storage.getGroup()
                                                                                                : 0;
}

SearchSpace contractionSpace(ArrayRef<Contraction> contractions, const MachineModel &machine) {
  return ContractionParameters(contractions, machine).get();
}

std::vector<ShapeVariant> contractionVariants(const Contraction &contraction, const MachineModel &machine) {
  linalg::GenericOp op = contraction.op;
  std::vector<ShapeVariant> variants = skinnyGemmVariants(op->getParentOfType<func::FuncOp>(), machine);
  std::optional<unsigned> symbol =
      contraction.m && contraction.outer.empty() ? symbolOfExtent(op, *contraction.m) : std::nullopt;
  if (!symbol || !asksAhead(contraction, machine))
    return variants;
  const ContractionDefaults &defaults = contractionDefaults(machine);
  SmallVector<int64_t> bounds;
  if (wantsLowTiles(contraction, machine))
    bounds.push_back(defaults.lowTileRows);
  bounds.push_back(defaults.requestedRows);
  for (int64_t bound : bounds)
    if (smallestExtent(op, *contraction.m) <= bound && bound < largestExtent(op, *contraction.m))
      variants.push_back({*symbol, bound});
  return variants;
}

ContractionSchedule readContractionSchedule(const ScheduleConfig &config) {
  auto get = [&](const char *key, int64_t absent) {
    auto found = config.find(key);
    return found == config.end() ? absent : found->second;
  };
  ContractionSchedule schedule;
  schedule.tileRows = config.at("m");
  schedule.tileColumns = config.at("n");
  schedule.unroll = get("k_unroll", 1);
  schedule.blockK = get("k_block", 0);
  schedule.partialSums = get("partial_sums", 1);
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
