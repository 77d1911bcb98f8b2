// SPDX-License-Identifier: Apache-2.0
//
// The strategy that applies to every kernel: results are computed element by element with everything inlined but
// reductions, which are computed at the root before them.
#include "targets/halide/Placement.h"

namespace kiln::halide {

namespace {

class Pointwise : public Strategy {
public:
  explicit Pointwise(const MachineModel &machine) : lanes(vectorLanes(machine)) {}

  llvm::StringRef name() const override { return "pointwise"; }

  SearchSpace searchSpace() const override { return {makeParameter("task", {4096, 16384, 65536}, 16384)}; }

  void schedule(Translator &translator, const SchedulePoint &point) override {
    protectInPlaceArguments(translator);
    placeAtRoot(translator, {}, lanes);
    for (const Output &output : translator.outputs)
      scheduleStore(output, lanes, point.at("task"));
  }

private:
  int lanes;
};

} // namespace

std::unique_ptr<Strategy> matchPointwise(mlir::func::FuncOp, const MachineModel &machine) {
  return std::make_unique<Pointwise>(machine);
}

} // namespace kiln::halide
