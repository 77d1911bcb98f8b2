// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/attention/Elements.h"

#include "targets/cuda/ptx/Combiner.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

static constexpr float infinity = std::numeric_limits<float>::infinity();

Value AttentionElements::number(float value) { return arith::ConstantOp::create(b, b.getF32FloatAttr(value)); }

Value AttentionElements::orZero(Value value) {
  broken |= !value;
  return value ? value : number(0);
}

//===- Coordinates -------------------------------------------------------===//

/// Adds the coordinates of an index of the flattened axes, of which the last one is innermost.
Values AttentionElements::split(ArrayRef<AttentionAxis> axes, Value number, Values at) {
  for (size_t i = axes.size(); i-- > 0;) {
    const AttentionAxis &axis = axes[i];
    Value coordinate = number;
    if (i > 0) {
      Value extent = emitter.extent(axis.extent);
      if (leastValue(axis.extent, first.kernel) < 1)
        extent = b.createOrFold<arith::MaxSIOp>(extent, b.integer(1)); // no block runs then, but this divides by it
      coordinate = b.rem(number, extent);
      number = b.div(number, extent);
    }
    coordinate = b.mul(coordinate, b.integer(axis.scale));
    at[axis.dim] = at[axis.dim] ? b.add(at[axis.dim], coordinate) : coordinate;
  }
  return at;
}

Values AttentionElements::batch(Value number) {
  return split(attention.batch, number, Values(attention.scoreLoops.size()));
}

Values AttentionElements::row(const Values &batch, Value number) { return split(attention.rows, number, batch); }

static Values loopsAt(linalg::GenericOp op, ArrayRef<unsigned> loops, const Values &at, unsigned last, Value index) {
  Values result(op.getNumLoops());
  for (auto [loop, coordinate] : llvm::zip_equal(loops, at))
    result[loop] = coordinate;
  result[last] = index;
  return result;
}

Values AttentionElements::scoreLoops(const Values &at, Value dim) {
  return loopsAt(attention.scores.op, attention.scoreLoops, at, attention.scores.reduction.front(), dim);
}

Values AttentionElements::outputLoops(const Values &at, Value channel) {
  return loopsAt(attention.outputs.op, attention.outputLoops, at, attention.channelLoop, channel);
}

//===- Elements ----------------------------------------------------------===//

Value AttentionElements::query(const Values &row, Value dim) {
  return orZero(readInput(b, emitter, attention.scores, attention.query, scoreLoops(row, dim)));
}

Value AttentionElements::score(const Values &row, Value key, Value sum) {
  Values at = row;
  at.back() = key;
  Values results = finishSum(emitter, first, attention.scores, scoreLoops(at, {}), sum);
  return orZero(results.empty() ? Value() : results.front());
}

Value AttentionElements::limit(mlir::Value value, const Values &row) {
  Values loops = scoreLoops(row, {}), ofStage;
  for (unsigned loop : attention.scores.stageLoops)
    ofStage.push_back(loops[loop]);
  Value result = emitter.evaluate(first.stage.op, value, ofStage);
  broken |= !result;
  return result;
}

Value AttentionElements::keysBefore(const Values &row) {
  Value last = limit(attention.ops.beforeWindow, row);
  return last ? b.add(last, b.integer(1)) : b.integer(0);
}

Value AttentionElements::keysWithin(const Values &row) {
  Value all = keyCount(), within = all;
  for (const KeyLimit &limit : attention.limits) {
    Value count = this->limit(limit.value, row);
    if (!count)
      return all;
    count = limit.isInclusive ? b.add(count, b.integer(1)) : count;
    within = b.createOrFold<arith::MinSIOp>(within, count);
  }
  return within;
}

Value AttentionElements::maximum(Value x, Value y) {
  return Combiner::of(attention.ops.maxima)->combine(b, {x}, {y}).front();
}

Value AttentionElements::reference(Value maximum) {
  Value isNone = b.createOrFold<arith::CmpFOp>(arith::CmpFPredicate::OEQ, maximum, number(-infinity));
  return b.select(isNone, number(0), maximum);
}

Value AttentionElements::weight(Value score, Value reference) {
  linalg::GenericOp maxima = attention.ops.maxima, weights = attention.ops.weights;
  linalg::GenericOp scores = first.stage.op;
  emitter.give(scores->getResult(0), score);
  emitter.give(maxima->getResult(0), reference);
  Values results = emitter.evaluate(weights, Values(weights.getNumLoops()));
  return orZero(results.empty() ? Value() : results.front());
}

void AttentionElements::finish(const Values &row, Value channel, const AttentionPart &part) {
  linalg::GenericOp maxima = attention.ops.maxima, sums = attention.ops.sums;
  Value isNone = b.createOrFold<arith::CmpFOp>(arith::CmpFPredicate::OEQ, part.maximum, number(-infinity));
  Value nothing = number(std::numeric_limits<float>::quiet_NaN());
  emitter.give(maxima->getResult(0), part.maximum);
  emitter.give(sums->getResult(0), b.select(isNone, nothing, part.sum));
  Values loops = outputLoops(row, channel);
  Values results = finishSum(emitter, last, attention.outputs, loops, part.output);
  broken |= results.empty();
  if (!results.empty())
    storeResults(emitter, last, attention.outputs, loops, results);
}

} // namespace kiln::cuda
