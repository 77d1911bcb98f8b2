// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/plan/Strategy.h"

#include "targets/cuda/Loops.h"
#include "targets/cuda/attention/Attention.h"
#include "targets/cuda/gemm/SkinnyGemm.h"
#include "targets/cuda/gemm/TiledGemm.h"
#include "targets/cuda/rows/ColumnReduction.h"
#include "targets/cuda/rows/RowReduction.h"
#include "targets/cuda/rows/RunningSum.h"

namespace kiln::cuda {

namespace {

struct Way {
  llvm::StringLiteral name;
  std::unique_ptr<StageStrategy> (*match)(const StageContext &);
};

/// The strategies with the most work come first.
constexpr Way ways[] = {{"attention", matchAttention},
                        {"skinny_gemm", matchSkinnyGemm},
                        {"contraction", matchContraction},
                        {"running_sum", matchRunningSum},
                        {"rows", matchRows},
                        {"columns", matchColumns},
                        {"loops", matchLoops}};

size_t rank(llvm::StringRef name) {
  return llvm::find_if(ways, [&](const Way &way) { return way.name == name; }) - std::begin(ways);
}

} // namespace

StageStrategies chooseStrategies(mlir::func::FuncOp kernel, Placement &placement) {
  StageStrategies strategies;
  llvm::SmallVector<size_t> launches; // the launch of each stage
  llvm::SmallVector<mlir::Value> unstored;
  while (launches.size() < placement.stages.size()) {
    const size_t number = launches.size();
    for (const Way &way : ways)
      if (std::unique_ptr<StageStrategy> strategy = way.match({kernel, placement, placement.stages[number], number})) {
        launches.append(strategy->numStages(), strategies.size());
        llvm::append_range(unstored, strategy->unstored());
        strategies.push_back(std::move(strategy));
        break;
      }
  }
  placement.assignLaunches(launches, unstored);
  return strategies;
}

Schedulable describe(const StageStrategies &strategies) {
  Schedulable result;
  for (const auto &strategy : strategies) {
    if (result.strategy.empty() || rank(strategy->name()) < rank(result.strategy))
      result.strategy = strategy->name().str();
    SearchSpace space = strategy->searchSpace();
    for (TuningParameter &parameter : space)
      if (llvm::none_of(result.space, [&](const TuningParameter &known) { return known.key == parameter.key; }))
        result.space.push_back(std::move(parameter));
    llvm::append_range(result.space.rules, space.rules);
  }
  return result;
}

} // namespace kiln::cuda
