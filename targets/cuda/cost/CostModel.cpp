// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/cost/CostModel.h"

#include "compiler/dialect/AffineEval.h"
#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"
#include "compiler/kernel/CumulativeSum.h"
#include "compiler/schedule/SearchSpace.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "targets/cuda/halide/ByHalide.h"
#include "targets/cuda/ptx/DeviceModule.h"
#include "llvm/ADT/SetOperations.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"
#include <set>

namespace kiln::cuda {

using namespace mlir;

//===- GPUs --------------------------------------------------------------===//

int64_t mostSharedBytes(int64_t capability) {
  switch (capability) {
  case 80:
  case 87:
    return 163 << 10;
  case 86:
  case 89:
  case 120:
    return 99 << 10;
  default:
    return (capability < 80 ? 48 : 227) << 10;
  }
}

Gpu gpuOf(int64_t capability) {
  Gpu gpu = capability < 90 ? Gpu{"A100", 80, 108, 1.41e9, 1.555e12} : Gpu{"H100", 90, 132, 1.98e9, 3.35e12};
  const bool isSmall = mostSharedBytes(capability) == 99 << 10; // not for data centres
  gpu.capability = capability;
  gpu.lanes = gpuLanes(capability);
  gpu.mmaLanes = isSmall ? 512 : capability < 90 ? 1024 : 2048;
  gpu.threads = isSmall ? 1536 : 2048;
  gpu.blocks = isSmall ? 24 : 32;
  gpu.sharedBytes = mostSharedBytes(capability) + 1024;
  return gpu;
}

StringRef toString(Bound bound) {
  switch (bound) {
  case Bound::Bytes:
    return "bytes";
  case Bound::Operations:
    return "operations";
  case Bound::SharedMemory:
    return "shared memory";
  default:
    return "launch";
  }
}

/// Rounds the registers of a thread up to the hardware's allocation unit.
static int64_t roundRegisters(int64_t registers) { return llvm::alignTo(registers, 8); }

static int64_t blocksAtOnce(const Gpu &gpu, int64_t threads, int64_t registers, int64_t sharedBytes) {
  int64_t count = std::min(gpu.blocks, gpu.threads / std::max<int64_t>(threads, 1));
  if (registers > 0)
    count = std::min(count, gpu.registers / (roundRegisters(registers) * threads));
  return std::min(count, gpu.sharedBytes / (sharedBytes + 1024));
}

//===- What a launch computes and moves -----------------------------------===//

namespace {

/// Follows the ops of a launch's stages back to values in memory.
class LaunchWork {
public:
  LaunchWork(const Placement &placement, ArrayRef<KernelStage> stages, ArrayRef<Value> unstored,
             ArrayRef<int64_t> extents)
      : placement(placement), extents(extents) {
    for (const KernelStage &stage : stages)
      for (const Store &store : stage.stores) {
        made.insert(store.value);
        if (!llvm::is_contained(unstored, store.value))
          moved.insert(store.value);
      }
    for (const KernelStage &stage : stages)
      if (stage.op)
        add(stage.op);
      else
        read(stage.stores.front().value);
  }

  double bytes() const {
    double sum = 0;
    for (Value value : moved) {
      auto type = cast<RankedTensorType>(value.getType());
      double elements = 1;
      for (AffineExpr extent : mlir::kiln::getExtents(type))
        elements *= double(mlir::kiln::evaluateExtent(extent, extents));
      sum += double(mlir::kiln::storedBytes(type.getElementType(), int64_t(elements)));
    }
    return sum;
  }

  double operations = 0;

private:
  void read(Value value) {
    if (made.contains(value)) // by this launch
      return;
    if (placement.find(value))
      moved.insert(value);
    else if (auto op = value.getDefiningOp<linalg::GenericOp>())
      add(op);
  }

  void add(linalg::GenericOp op) {
    if (!seen.insert(op).second)
      return;
    double points = 1;
    for (AffineExpr extent : loopExtents(op))
      points *= double(mlir::kiln::evaluateExtent(extent, extents));
    if (asCumulativeSum(op) && points > 0) // each element is added once
      points /= double(mlir::kiln::evaluateExtent(loopExtents(op).back(), extents));
    for (Operation &inner : *op.getBody()) {
      if (inner.getNumResults() == 1 && isa<FloatType>(inner.getResult(0).getType()) &&
          isa<arith::ArithDialect, math::MathDialect>(inner.getDialect()) && !isa<arith::ConstantOp>(inner))
        operations += points * (isa<math::FmaOp>(inner) ? 2 : 1);
      if (auto extract = dyn_cast<tensor::ExtractOp>(inner))
        read(extract.getTensor());
    }
    for (OpOperand &operand : op->getOpOperands())
      if (!op.getMatchingBlockArgument(&operand).use_empty() && isa<RankedTensorType>(operand.get().getType()))
        read(operand.get());
  }

  const Placement &placement;
  ArrayRef<int64_t> extents;
  llvm::SetVector<Value> made, moved;
  llvm::DenseSet<Operation *> seen;
};

} // namespace

//===- Costs -------------------------------------------------------------===//

/// Bytes of shared memory that a multiprocessor reads per cycle.
static constexpr double sharedBytesPerCycle = 128;

double lanesOf(const Gpu &gpu, const BlockNeeds &needs) {
  return needs.mmaBytes ? 2.0 * double(gpu.mmaLanes) / double(needs.mmaBytes) : double(gpu.lanes);
}

static void finish(LaunchCost &cost, const BlockNeeds &needs, const Gpu &gpu) {
  cost.registers = needs.registers;
  cost.blocksAtOnce = blocksAtOnce(gpu, cost.threads, cost.registers, cost.sharedBytes);
  cost.occupancy = double(cost.blocksAtOnce * cost.threads) / double(gpu.threads);
  if (cost.blocks == 0)
    return;
  // All multiprocessors are busy only in full waves of blocks.
  const double rounds = double(llvm::divideCeil(cost.blocks, gpu.multiprocessors));
  const double busy = double(cost.blocks) / (rounds * double(gpu.multiprocessors));
  const double cycles = gpu.clock * double(gpu.multiprocessors) * busy;
  const double lanes = lanesOf(gpu, needs);
  const double seconds[] = {cost.bytes / (gpu.bytesPerSecond * busy), cost.operations / (2 * lanes * cycles),
                            cost.operations / 2 * needs.sharedTraffic / (sharedBytesPerCycle * cycles), launchSeconds};
  const size_t longest = std::max_element(std::begin(seconds), std::end(seconds)) - std::begin(seconds);
  cost.bound = Bound(longest);
  cost.seconds = seconds[longest];
}

FailureOr<std::vector<LaunchCost>> costOf(func::FuncOp function, const ScheduleConfig *config,
                                          ArrayRef<int64_t> extents, const Gpu &gpu) {
  const DecomposedKernel decomposed(function);
  func::FuncOp kernel = decomposed.get();
  if (failed(checkKernel(kernel)))
    return failure();
  Placement placement(decomposed);
  const StageStrategies strategies = chooseStrategies(kernel, placement);
  const Schedulable schedulable = describe(kernel, placement, strategies);
  std::string error;
  std::optional<ScheduleConfig> resolved = resolve(schedulable.space, config, error);
  if (!resolved)
    return kernel.emitError() << schedulable.strategy << " " << error;
  std::vector<LaunchCost> costs;
  if (isByHalide(*resolved))
    return costs;
  DeviceModule device;
  tile::Builder b(device.get());
  LaunchPlan plan;
  size_t stage = 0;
  for (const auto &strategy : strategies) {
    const size_t first = plan.launches.size();
    if (failed(strategy->build(b, *resolved, plan)))
      return failure();
    const LaunchWork work(placement, ArrayRef(placement.stages).slice(stage, strategy->numStages()),
                          strategy->unstored(), extents);
    stage += strategy->numStages();
    for (size_t i = first; i < plan.launches.size(); ++i) { // several launches share the work of their strategy
      const DeviceFunction &function = plan.functions[plan.launches[i].function];
      const double share = 1.0 / double(plan.launches.size() - first);
      LaunchCost &cost = costs.emplace_back();
      cost.strategy = strategy->name().str();
      cost.blocks = mlir::kiln::evaluateExtent(plan.launches[i].blocks, extents);
      cost.threads = function.threads;
      cost.sharedBytes = function.sharedBytes;
      cost.bytes = work.bytes() * share;
      cost.operations = work.operations * share;
      finish(cost, strategy->needs(*resolved).value_or(BlockNeeds()), gpu);
    }
  }
  return costs;
}

std::string toString(ArrayRef<LaunchCost> costs, const Gpu &gpu) {
  std::string text;
  for (const LaunchCost &cost : costs) {
    text += llvm::formatv("  {0}: {1} blocks of {2} threads", cost.strategy, cost.blocks, cost.threads);
    text += cost.registers ? llvm::formatv(", ~{0} registers", cost.registers).str() : "";
    text += llvm::formatv(", {0:F1} KiB shared, {1} at once, occupancy {2:P0}; {3:F3} MB, {4:F3} GFLOP; ",
                          double(cost.sharedBytes) / 1024, cost.blocksAtOnce, cost.occupancy, cost.bytes * 1e-6,
                          cost.operations * 1e-9);
    text += llvm::formatv("bound by {0}, {1:F1} us on {2} (computed, not measured)\n", toString(cost.bound),
                          cost.seconds * 1e6, gpu.name);
  }
  return text;
}

//===- Limits ------------------------------------------------------------===//

std::vector<TuningRule> limitsOf(func::FuncOp kernel, int64_t capability) {
  // Strategies refer to the placement.
  struct Chosen {
    explicit Chosen(func::FuncOp kernel)
        : kernel(kernel), placement(this->kernel), strategies(chooseStrategies(this->kernel.get(), placement)) {}
    DecomposedKernel kernel;
    Placement placement;
    StageStrategies strategies;
  };
  const auto chosen = std::make_shared<Chosen>(kernel);
  const Gpu gpu = gpuOf(capability);
  const bool hasTma = capability == 90; // where TMA variants are launched
  auto rule = [&](std::string text, auto fits) {
    return TuningRule{std::move(text), [chosen, fits, hasTma](const ScheduleConfig &config) {
                        return llvm::all_of(chosen->strategies, [&](const auto &strategy) {
                          const std::optional<BlockNeeds> needs = strategy->needs(config);
                          const std::optional<BlockNeeds> tma = hasTma ? strategy->tmaNeeds(config) : std::nullopt;
                          return (!needs || fits(*needs)) && (!tma || fits(*tma));
                        });
                      }};
  };
  const int64_t shared = mostSharedBytes(capability), registers = gpu.registers;
  return {rule("blocks of 1024 threads at most", [](const BlockNeeds &needs) { return needs.threads <= 1024; }),
          rule(llvm::formatv("{0} registers at most of a block, by an estimate", registers),
               [registers](const BlockNeeds &needs) {
                 return roundRegisters(needs.registers) * needs.threads <= registers && needs.registers <= 255;
               }),
          rule(llvm::formatv("{0} KiB of shared memory at most of a block, on a GPU of {1}.{2}", shared >> 10,
                             capability / 10, capability % 10),
               [shared](const BlockNeeds &needs) { return needs.sharedBytes <= shared; })};
}

/// A kernel's default configuration tells whether it uses tensor cores.
double multiplyRate(func::FuncOp kernel, int64_t capability) {
  const DecomposedKernel decomposed(kernel);
  Placement placement(decomposed);
  const StageStrategies strategies = chooseStrategies(decomposed.get(), placement);
  const ScheduleConfig config = defaultConfigOf(describe(strategies).space);
  const Gpu gpu = gpuOf(capability);
  double rate = 1;
  for (const auto &strategy : strategies)
    if (const std::optional<BlockNeeds> needs = strategy->needs(config); needs && needs->mmaBytes)
      rate = std::max(rate, lanesOf(gpu, *needs) / double(gpu.lanes));
  return rate;
}

std::vector<std::string> idleParameters(func::FuncOp kernel, int64_t capability) {
  const DecomposedKernel decomposed(kernel);
  Placement placement(decomposed);
  const StageStrategies strategies = chooseStrategies(decomposed.get(), placement);
  std::set<std::string> used, idle;
  for (const auto &strategy : strategies) {
    const SmallVector<std::string> ofStrategy = strategy->idleParameters(capability);
    for (const TuningParameter &parameter : strategy->searchSpace())
      (llvm::is_contained(ofStrategy, parameter.key) ? idle : used).insert(parameter.key);
  }
  llvm::set_subtract(idle, used); // all stages that have a parameter share it
  return {idle.begin(), idle.end()};
}

} // namespace kiln::cuda
