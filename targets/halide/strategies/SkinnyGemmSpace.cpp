// SPDX-License-Identifier: Apache-2.0
#include "targets/halide/strategies/SkinnyGemm.h"

#include "compiler/dialect/StoredParts.h"
#include "targets/halide/strategies/Placement.h"
#include "llvm/Support/FormatVariadic.h"

namespace kiln::halide {

using namespace mlir;

namespace {

/// Constants from which the default schedule configuration is computed, one set for machines with few vector registers
/// and one for machines with many. Members with an initialiser are the same for both.
struct SkinnyGemmDefaults {
  int64_t tileRows; // maximum rows of a tile (M-0180 to M-0182, M-0184)
  int64_t steps;    // K iterations to unroll, for several rows (M-0182)
  bool asksForOne;  // whether a GEMV prefetches a weight that is read from memory (M-0208, M-0230, M-0231)
  bool asksForHalf; // whether a GEMV prefetches a weight of 16-bit elements (M-1075, M-1077, M-1166)

  int64_t oneRowSteps = 2;       // K iterations to unroll, for one row (not measured)
  int64_t oneRowPartialSums = 2; // for one row: a single sum waits for each addition (not measured)
  int64_t ahead = 32;            // prefetch distance, in K iterations (M-0182, M-0183, M-0213 to M-0215)
  int64_t fewBitsAhead = 64;     // the same for a weight of fewer than 32 bits per element (M-1074)
  int64_t taskBytes = 256 << 10; // maximum bytes of the weight per task (not measured)
  int64_t tasks = 8;             // minimum number of tasks (not measured)
};

const SkinnyGemmDefaults &skinnyGemmDefaults(const MachineModel &machine) {
  // tileRows, steps, asksForOne, asksForHalf
  static constexpr SkinnyGemmDefaults few{4, 2, false, true}, many{8, 1, true, false};
  return machine.hasManyRegisters() ? many : few;
}

std::vector<int64_t> divisorsOf(int64_t number, std::vector<int64_t> candidates) {
  llvm::erase_if(candidates, [&](int64_t candidate) { return number % candidate != 0; });
  return candidates;
}

/// A GEMV reads the weight at the rate of the caches without prefetches. The accumulations of several rows must not
/// wait for loads, nor must the conversions of narrow elements in a GEMV: both leave a core fewer bytes in flight.
TuningParameter skinnyGemmPrefetch(Value weight, int64_t elements, int64_t interleave, int64_t mostRows,
                                   const MachineModel &machine) {
  const SkinnyGemmDefaults &defaults = skinnyGemmDefaults(machine);
  const int64_t bytes = bytesOf(weight, elements);
  const bool isOfFewBits = bytesOf(weight, 8) < 32, isOfHalf = bytesOf(weight, 8) == 16;
  int64_t ahead = mostRows > 1 || (bytes > machine.l3Bytes && defaults.asksForOne) ? defaults.ahead : 0;
  if (isOfFewBits && bytes > machine.l2Bytes)
    ahead = defaults.fewBitsAhead / std::max<int64_t>(interleave, 1);
  if (isOfHalf && mostRows == 1 && !defaults.asksForHalf)
    ahead = 0;
  return makeParameter("prefetch", {0, 16, 32, 64, 128, 256}, ahead);
}

TuningRule skinnyGemmRegisters(int64_t width, int64_t registers) {
  auto get = [](const ScheduleConfig &config, const char *key) {
    auto found = config.find(key);
    return found == config.end() ? int64_t(1) : found->second;
  };
  return {llvm::formatv("m * n / {0} + n / {0} + 1 registers of {1}, with partial_sums for m if it has more", width,
                        registers)
              .str(),
          [=](const ScheduleConfig &config) {
            int64_t perRow = config.at("n") / width, rows = std::max(get(config, "m"), get(config, "partial_sums"));
            return rows * perRow + perRow + 1 <= registers;
          }};
}

} // namespace

RowRange rowsOf(const Contraction &contraction) {
  if (!contraction.m)
    return {1, 1};
  return {smallestExtent(contraction.op, *contraction.m), largestExtent(contraction.op, *contraction.m)};
}

SearchSpace skinnyGemmSpace(const Contraction &shape, const MachineModel &machine) {
  const SkinnyGemmDefaults &defaults = skinnyGemmDefaults(machine);
  const int lanes = vectorLanes(machine, shape.sumType());
  const int64_t registers = vectorRegisters(machine, shape.sumType());
  const auto [leastRows, mostRows] = rowsOf(shape);
  std::vector<int64_t> columns, rows;
  // Only whole stored tiles: memory after the last tile is not the weight's.
  int64_t stored = (staticExtent(shape.op, shape.n) + shape.tile - 1) / shape.tile * shape.tile;
  for (int64_t n = lanes; n <= 6 * lanes; n += lanes)
    if (shape.tile % n == 0 || (n % shape.tile == 0 && stored % n == 0))
      columns.push_back(n);
  // A GEMV reads two panels at a time, since the hardware prefetcher stops at the end of a page (M-0204, M-0207).
  bool isPaired = mostRows == 1 && llvm::is_contained(columns, 2 * shape.tile);
  TuningParameter n = makeParameter("n", columns, isPaired ? 2 * shape.tile : shape.tile);
  int64_t vectors = n.defaultValue / lanes, most = (registers - vectors - 1) / vectors;
  int64_t kExtent = staticSteps(shape), panels = stored / n.defaultValue;
  const Value weight = shape.op->getOperand(shape.b);
  int64_t panelBytes = bytesOfStep(shape, kExtent * n.defaultValue);
  int64_t task = std::min(defaults.taskBytes / std::max<int64_t>(panelBytes, 1), panels / defaults.tasks);
  for (int64_t m = 1; m <= std::min<int64_t>(mostRows, 16); ++m)
    rows.push_back(m);
  mlir::kiln::StorageAttr storage = mlir::kiln::getStorage(cast<RankedTensorType>(weight.getType()));
  const int64_t group =
      storage && storage.isGrouped() ? storage.getGroup() / std::max<int64_t>(shape.interleave, 1) : 1;
  const int64_t steps = shape.interleave == 2 ? 1 : defaults.steps; // as in ContractionParameters::stepsOfK()
  SearchSpace space{
      n, makeParameter("unroll", divisorsOf(kExtent, {1, 2, 4, 8}), mostRows > 1 ? steps : defaults.oneRowSteps),
      makeParameter("task", {1, 2, 4, 8, 16}, task)};
  if (mostRows > 1)
    space.push_back(makeParameter("m", rows, std::min({defaults.tileRows, most, mostRows})));
  if (leastRows <= 1) {
    const std::vector<int64_t> partialSums =
        isBatchInvariant(shape.op) || shape.group ? std::vector<int64_t>{1} : divisorsOf(kExtent / group, {1, 2, 4, 8});
    space.push_back(makeParameter("partial_sums", partialSums,
                                  isPaired || partialSums.size() == 1 ? 1 : defaults.oneRowPartialSums));
  }
  space.push_back(skinnyGemmPrefetch(weight, stored * staticK(shape), shape.interleave, mostRows, machine));
  space.rules = {skinnyGemmRegisters(lanes, registers)};
  return space;
}

} // namespace kiln::halide
