// SPDX-License-Identifier: Apache-2.0
//
// The strategy for cumulative sums, which are separate sums of each element in a kernel's IR. It adds each element to
// the sum before it, in the same order, in one pass.
#include "compiler/kernel/CumulativeSum.h"
#include "targets/halide/strategies/Placement.h"

namespace kiln::halide {

using namespace mlir;
using Halide::Expr;
using Halide::Func;
using Halide::RDom;
using Halide::Var;

namespace {

class RunningSum : public Strategy {
public:
  RunningSum(func::FuncOp kernel, SmallVector<CumulativeSum> sums, const MachineModel &machine)
      : kernel(kernel), sums(std::move(sums)), machine(machine) {}

  llvm::StringRef name() const override { return "running_sum"; }
  SearchSpace searchSpace() const override { return taskParameters(kernel, {4096, 16384, 65536}); }

  void prepare(Translator &translator, const ScheduleConfig &) override {
    for (const CumulativeSum &sum : sums)
      translator.setBuilder(sum.op, [this, &translator, &sum](linalg::GenericOp) { return build(translator, sum); });
  }

  void schedule(Translator &translator, const ScheduleConfig &config) override {
    const int lanes = vectorLanes(machine, widestElement(kernel));
    llvm::DenseSet<Operation *> placed;
    for (const CumulativeSum &sum : sums)
      placed.insert(sum.op);
    placeAtRoot(translator, placed, lanes);
    for (const CumulativeSum &sum : sums)
      place(translator, sum, lanes);
    for (const Output &output : translator.outputs)
      scheduleStore(output, lanes, tasksOf(config));
  }

private:
  /// Returns the dimension of the result, counted from the innermost one, that a loop of the op indexes.
  static unsigned dimensionOf(const CumulativeSum &sum, unsigned loop) {
    linalg::GenericOp op = sum.op;
    return op.getNumLoops() - 2 - loop;
  }

  Func build(Translator &translator, const CumulativeSum &sum) {
    linalg::GenericOp op = sum.op;
    const unsigned rank = op.getNumLoops() - 1;
    std::vector<Var> vars;
    for (unsigned i = 0; i < rank; ++i)
      vars.push_back(dimensionVar(i));
    Exprs loops(rank + 1);
    for (unsigned i = 0; i < rank; ++i)
      loops[i] = vars[dimensionOf(sum, i)];
    loops[rank] = loops[sum.axis];
    Exprs terms = translator.evaluate(op, sum.term, loops,
                                      [&](unsigned number) { return translator.readOperand(op, number, loops); });
    if (terms.empty())
      return Func();
    Func func(translator.name("running_sum"));
    func(vars) = terms[0] + Halide::Internal::make_zero(terms[0].type()); // a first element of -0 becomes 0

    const Expr extent = translator.loopExtent(op, rank);
    const RDom rest({{1, extent - 1}}, translator.name("rest"));
    Exprs before(vars.begin(), vars.end()), here = before;
    before[dimensionOf(sum, sum.axis)] = sum.isReverse ? extent - rest.x : rest.x - 1;
    here[dimensionOf(sum, sum.axis)] = sum.isReverse ? extent - 1 - rest.x : Expr(rest.x);
    func(here) = func(before) + func(here);
    return func;
  }

  /// If the axis of the sum is not the innermost one, each iteration is vectorised across lines.
  static void place(Translator &translator, const CumulativeSum &sum, int lanes) {
    linalg::GenericOp op = sum.op;
    Func func = translator.stages[op].funcs.front();
    Exprs extents;
    for (int i = func.dimensions(); i-- > 0;)
      extents.push_back(translator.extent(op.getResult(0), i));
    func.compute_root();
    padStorage(func, extents[0], lanes);
    padOuterStorage(func, extents);
    vectorizeGuarded(func, dimensionVar(0), extents[0], lanes);
    if (dimensionOf(sum, sum.axis) == 0) {
      func.update().unscheduled(); // element by element
      return;
    }
    Halide::RVar rest = func.rvars().front();
    func.update().reorder(dimensionVar(0), rest);
    vectorizeGuarded(func.update(), dimensionVar(0), extents[0], lanes);
  }

  func::FuncOp kernel;
  SmallVector<CumulativeSum> sums;
  const MachineModel &machine;
};

} // namespace

std::unique_ptr<Strategy> matchRunningSum(func::FuncOp kernel, const MachineModel &machine) {
  SmallVector<CumulativeSum> sums;
  for (linalg::GenericOp op : kernel.getOps<linalg::GenericOp>())
    if (std::optional<CumulativeSum> sum = asCumulativeSum(op))
      sums.push_back(*sum);
  if (sums.empty())
    return nullptr;
  return std::make_unique<RunningSum>(kernel, std::move(sums), machine);
}

} // namespace kiln::halide
