// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/gemm/SplitK.h"

#include "llvm/Support/MathExtras.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

static constexpr double mostBytes = 64 << 20;
static constexpr int64_t threads = 256; // per block of the second launch, one for each element

int64_t partialSumsAt(const StepContext &context) {
  return int64_t(llvm::alignTo(context.placement.scratchBytes, 128));
}

AffineExpr SplitDepth::elements() const {
  return extentOf(contraction, contraction.batch) * extentOf(contraction, contraction.rows) *
         extentOf(contraction, contraction.columns);
}

static double largestBytes(const Contraction &c) {
  return 4.0 * double(largestExtent(c, c.batch)) * double(largestExtent(c, c.rows)) *
         double(largestExtent(c, c.columns));
}

SplitDepth::SplitDepth(const StepContext &context, const Contraction &contraction, int64_t wanted, int64_t stepDepth)
    : context(context), contraction(contraction), count(wanted) {
  const int64_t depth = largestExtent(contraction, contraction.depth);
  while (count > 1 && (double(count) * largestBytes(contraction) > mostBytes || depth < count * stepDepth))
    count /= 2;
}

Value SplitDepth::partial(tile::Builder &b, Reader &reader, Value part, Value element) const {
  return b.add(b.mul(part, reader.extent(elements())), element);
}

void SplitDepth::store(tile::Builder &b, Reader &reader, Value part, Value batch, Value row, Value column,
                       Value sum) const {
  Value rows = reader.extent(extentOf(contraction, contraction.rows));
  Value columns = reader.extent(extentOf(contraction, contraction.columns));
  Value element = b.add(b.mul(b.add(b.mul(batch, rows), row), columns), column);
  b.store(sum, reader.scratch(partialSumsAt(context)), partial(b, reader, part, element));
}

LogicalResult SplitDepth::buildSecond(tile::Builder &b, DevicePlan &plan) const {
  const std::string name = "step_" + std::to_string(plan.functions.size());
  const tile::KernelLaunch launch{.threads = threads};
  b.beginKernel(name, launch);
  b.letNextBegin();
  Reader reader(b, context.placement, context.kernel);
  Value element = b.add(b.mul(b.blockId(), b.integer(threads)), b.threadId());
  LogicalResult result = success();
  b.ifThen(b.isBelow(element, reader.extent(elements())), [&] {
    Values sums;
    for (int64_t part = 0; part < count; ++part)
      sums.push_back(
          b.load(b.getF32Type(), reader.scratch(partialSumsAt(context)), partial(b, reader, b.integer(part), element)));
    Value sum = sums.front();
    for (Value next : ArrayRef(sums).drop_front())
      sum = b.createOrFold<arith::AddFOp>(sum, next);
    Value columns = reader.extent(extentOf(contraction, contraction.columns));
    Value rows = reader.extent(extentOf(contraction, contraction.rows));
    Value line = b.div(element, columns);
    result = finishElement(b, reader, context, contraction, b.div(line, rows), b.rem(line, rows),
                           b.rem(element, columns), sum);
  });
  b.endKernel();
  plan.launches.push_back({unsigned(plan.functions.size()), elements().ceilDiv(threads), reader.parameters});
  plan.functions.push_back(makeFunction(name, launch));
  plan.scratchBytes = std::max(plan.scratchBytes, partialSumsAt(context) + count * int64_t(largestBytes(contraction)));
  return result;
}

} // namespace kiln::cuda
