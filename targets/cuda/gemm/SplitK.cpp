// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/gemm/SplitK.h"

#include "llvm/Support/MathExtras.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

static constexpr double mostBytes = 64 << 20;
static constexpr int64_t threads = 256; // per block of the second launch, one for each element

int64_t partialSumsAt(const StageContext &context) {
  return int64_t(llvm::alignTo(context.placement.scratchBytes, 128));
}

AffineExpr SplitK::elements() const {
  return extentOf(contraction, contraction.batch) * extentOf(contraction, contraction.rows) *
         extentOf(contraction, contraction.columns);
}

static double largestBytes(const Contraction &c) {
  return 4.0 * double(largestExtent(c, c.batch)) * double(largestExtent(c, c.rows)) *
         double(largestExtent(c, c.columns));
}

SplitK::SplitK(const StageContext &context, const Contraction &contraction, int64_t wanted, int64_t leastK)
    : context(context), contraction(contraction), count(wanted) {
  const int64_t k = largestExtent(contraction, contraction.reduction);
  while (count > 1 && (double(count) * largestBytes(contraction) > mostBytes || k < count * leastK))
    count /= 2;
}

Value SplitK::partial(tile::Builder &b, ElementEmitter &emitter, Value part, Value element) const {
  return b.add(b.mul(part, emitter.extent(elements())), element);
}

void SplitK::store(tile::Builder &b, ElementEmitter &emitter, Value part, Value batch, Value row, Value column,
                   Value sum) const {
  Value rows = emitter.extent(extentOf(contraction, contraction.rows));
  Value columns = emitter.extent(extentOf(contraction, contraction.columns));
  Value element = b.add(b.mul(b.add(b.mul(batch, rows), row), columns), column);
  b.store(sum, emitter.scratch(partialSumsAt(context)), partial(b, emitter, part, element));
}

LogicalResult SplitK::buildSecond(tile::Builder &b, LaunchPlan &plan) const {
  const std::string name = "step_" + std::to_string(plan.functions.size());
  const tile::KernelLaunch launch{.threads = threads};
  b.beginKernel(name, launch);
  b.launchDependents();
  ElementEmitter emitter(b, context.placement, context.kernel);
  Value element = b.add(b.mul(b.blockId(), b.integer(threads)), b.threadId());
  LogicalResult result = success();
  b.ifThen(b.isBelow(element, emitter.extent(elements())), [&] {
    Values sums;
    for (int64_t part = 0; part < count; ++part)
      sums.push_back(b.load(b.getF32Type(), emitter.scratch(partialSumsAt(context)),
                            partial(b, emitter, b.integer(part), element)));
    Value sum = sums.front();
    for (Value next : ArrayRef(sums).drop_front())
      sum = b.createOrFold<arith::AddFOp>(sum, next);
    Value columns = emitter.extent(extentOf(contraction, contraction.columns));
    Value rows = emitter.extent(extentOf(contraction, contraction.rows));
    Value line = b.div(element, columns);
    result = finishElement(b, emitter, context, contraction, b.div(line, rows), b.rem(line, rows),
                           b.rem(element, columns), sum);
  });
  b.endKernel();
  plan.launches.push_back({unsigned(plan.functions.size()), elements().ceilDiv(threads), emitter.parameters});
  plan.functions.push_back(makeFunction(name, launch));
  plan.scratchBytes = std::max(plan.scratchBytes, partialSumsAt(context) + count * int64_t(largestBytes(contraction)));
  return result;
}

} // namespace kiln::cuda
