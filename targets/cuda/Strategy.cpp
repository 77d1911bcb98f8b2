// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/Strategy.h"

#include "targets/cuda/Contraction.h"
#include "targets/cuda/FewRows.h"
#include "targets/cuda/Loops.h"
#include "targets/cuda/Rows.h"

namespace kiln::cuda {

using Match = std::unique_ptr<StepStrategy> (*)(const StepContext &);

/// Those of the most work first.
static constexpr Match matches[] = {matchFewRows, matchContraction, matchRows, matchLoops};

StepStrategies chooseStrategies(mlir::func::FuncOp kernel, Placement &placement) {
  StepStrategies strategies;
  llvm::SmallVector<size_t> launches; // of each step
  llvm::SmallVector<mlir::Value> unstored;
  while (launches.size() < placement.steps.size()) {
    const size_t number = launches.size();
    for (Match match : matches)
      if (std::unique_ptr<StepStrategy> strategy = match({kernel, placement, placement.steps[number], number})) {
        launches.append(strategy->numSteps(), strategies.size());
        llvm::append_range(unstored, strategy->unstored());
        strategies.push_back(std::move(strategy));
        break;
      }
  }
  placement.join(launches, unstored);
  return strategies;
}

/// The position of a strategy in the order of work; names are few.
static size_t rank(llvm::StringRef name) {
  constexpr llvm::StringLiteral names[] = {"contraction", "few_rows", "rows", "loops"};
  return llvm::find(names, name) - std::begin(names);
}

Schedulable describe(const StepStrategies &strategies) {
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
