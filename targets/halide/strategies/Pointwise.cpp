// SPDX-License-Identifier: Apache-2.0
//
// The fallback strategy, which applies to every kernel: results are computed element by element with everything inlined
// except for reductions, which are computed at the root before them.
#include "targets/halide/strategies/Placement.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace kiln::halide {

using namespace mlir;

namespace {

class Pointwise : public Strategy {
public:
  Pointwise(func::FuncOp kernel, const MachineModel &machine) : kernel(kernel), machine(machine) {}

  llvm::StringRef name() const override { return "pointwise"; }

  /// Gathered rows are far apart in memory. Either the next ones are prefetched, or several are computed together to
  /// hide the latency of each (M-0250 to M-0252, M-0405).
  SearchSpace searchSpace() const override {
    bool hasRows = llvm::any_of(func::FuncOp(kernel).getResultTypes(),
                                [](Type type) { return cast<RankedTensorType>(type).getRank() > 1; });
    bool gathers =
        func::FuncOp(kernel).walk([](tensor::ExtractOp) { return WalkResult::interrupt(); }).wasInterrupted();
    SearchSpace space = taskParameters(kernel, {4096, 16384, 65536});
    TuningParameter prefetch = prefetchParameter(kernel, machine);
    constexpr int64_t rowsAsked = 2, rowsUnasked = 8;
    space.push_back(makeParameter("rows", hasRows ? std::vector<int64_t>{1, 2, 4, 8, 16} : std::vector<int64_t>{1},
                                  gathers ? (prefetch.defaultValue ? rowsAsked : rowsUnasked) : 1));
    space.push_back(prefetch);
    return space;
  }

  void schedule(Translator &translator, const ScheduleConfig &config) override {
    int lanes = vectorLanes(machine, widestElement(kernel));
    placeAtRoot(translator, {}, lanes);
    for (const Output &output : translator.outputs)
      scheduleStore(output, lanes, tasksOf(config), config.at("rows"));
    prefetchStreams(translator, config.at("prefetch"), 0, config.at("rows"));
  }

private:
  func::FuncOp kernel;
  const MachineModel &machine;
};

} // namespace

std::unique_ptr<Strategy> matchPointwise(func::FuncOp kernel, const MachineModel &machine) {
  return std::make_unique<Pointwise>(kernel, machine);
}

} // namespace kiln::halide
