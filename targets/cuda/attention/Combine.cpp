// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/attention/Combine.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

static constexpr int64_t combineThreads = 128, alignment = 128;

/// The loop over the parts is unrolled, so that the loads of all parts are in flight together.
AttentionPart combineParts(tile::Builder &b, AttentionElements &elements, int64_t count,
                           function_ref<AttentionPart(Value)> read) {
  SmallVector<AttentionPart> parts;
  for (int64_t i = 0; i < count; ++i)
    parts.push_back(read(b.integer(i)));
  if (count == 1)
    return parts.front();
  Value maximum = elements.number(-std::numeric_limits<float>::infinity());
  for (const AttentionPart &part : parts)
    maximum = elements.maximum(maximum, part.maximum);
  Value reference = elements.reference(maximum), sum = elements.number(0), output = sum;
  for (const AttentionPart &part : parts) {
    Value factor = elements.weight(part.maximum, reference);
    auto add = [&](Value to, Value x) {
      return b.createOrFold<arith::AddFOp>(to, b.createOrFold<arith::MulFOp>(x, factor));
    };
    sum = add(sum, part.sum), output = add(output, part.output);
  }
  return {maximum, sum, output};
}

AttentionPartials::AttentionPartials(const StageContext &context, const Attention &attention,
                                     const AttentionShape &shape, LaunchPlan &plan)
    : kvSplits(shape.kvSplits), channels(attention.channels) {
  MLIRContext *ofMaps = context.kernel->getContext();
  const int64_t rows =
      largestValue(extentOf(attention.batch, ofMaps) * extentOf(attention.rows, ofMaps), context.kernel);
  auto place = [&](int64_t count) {
    const int64_t offset = int64_t(llvm::alignTo(plan.scratchBytes, alignment));
    plan.scratchBytes = offset + 4 * count;
    return offset;
  };
  maxima = place(rows * kvSplits);
  sums = place(rows * kvSplits);
  outputs = place(rows * kvSplits * channels);
}

static Value partOf(tile::Builder &b, Value row, Value split, int64_t kvSplits) {
  return b.add(b.mul(b.widen(row), b.integer(b.getI64Type(), kvSplits)), b.widen(split));
}

static Value outputOf(tile::Builder &b, Value part, Value channel, int64_t channels) {
  return b.add(b.mul(part, b.integer(b.getI64Type(), channels)), b.widen(channel));
}

void AttentionPartials::store(tile::Builder &b, ElementEmitter &emitter, Value row, Value split, Value channel,
                              const AttentionPart &part) const {
  Value number = partOf(b, row, split, kvSplits);
  b.store(part.output, emitter.scratch(outputs), outputOf(b, number, channel, channels));
  b.ifThen(b.compare(arith::CmpIPredicate::eq, channel, b.integer(0)), [&] {
    b.store(part.maximum, emitter.scratch(maxima), number);
    b.store(part.sum, emitter.scratch(sums), number);
  });
}

AttentionPart AttentionPartials::load(tile::Builder &b, ElementEmitter &emitter, Value row, Value split,
                                      Value channel) const {
  Value number = partOf(b, row, split, kvSplits);
  auto read = [&](int64_t place, Value offset) { return b.load(b.getF32Type(), emitter.scratch(place), offset); };
  return {read(maxima, number), read(sums, number), read(outputs, outputOf(b, number, channel, channels))};
}

LogicalResult buildAttentionCombine(tile::Builder &b, const StageContext &first, const StageContext &last,
                                    const Attention &attention, const AttentionShape &shape,
                                    const AttentionPartials &partials, LaunchPlan &plan) {
  const std::string name = "attention_" + std::to_string(plan.functions.size());
  MLIRContext *ofMaps = first.kernel->getContext();
  AffineExpr count = extentOf(attention.batch, ofMaps) * extentOf(attention.rows, ofMaps) * attention.channels;
  const tile::KernelLaunch launch{.threads = combineThreads};
  b.beginKernel(name, launch);
  b.launchDependents();
  ElementEmitter emitter(b, first.placement, first.kernel);
  AttentionElements elements(b, emitter, first, last, attention);
  Value element = b.add(b.mul(b.blockId(), b.integer(combineThreads)), b.threadId());
  b.ifThen(b.isBelow(element, emitter.extent(count)), [&] {
    Value row = b.div(element, b.integer(attention.channels)), channel = b.rem(element, b.integer(attention.channels));
    const AttentionPart part = combineParts(
        b, elements, shape.kvSplits, [&](Value split) { return partials.load(b, emitter, row, split, channel); });
    Value rows = elements.rowCount();
    elements.finish(elements.row(elements.batch(b.div(row, rows)), b.rem(row, rows)), channel, part);
  });
  if (elements.isBroken())
    return failure();
  b.endKernel();
  plan.launches.push_back({unsigned(plan.functions.size()), count.ceilDiv(combineThreads), emitter.parameters});
  plan.functions.push_back(makeFunction(name, launch));
  return success();
}

} // namespace kiln::cuda
