// SPDX-License-Identifier: Apache-2.0
//
//   %dx, %dw = kiln.scan (%dy) over (...) reverse layers { ...; kiln.yield %dx, %dw }
//
//   %dx, %dw = kiln.scan (%dy) over (...) reverse layers {
//     ...
//     %begun = kiln.begin_reduce %dw over replicas      goes on while the next layers' gradients are made
//     kiln.yield %dx, %begun
//   }
//   %sum = kiln.finish %dw over replicas
//   %mean = %sum * 1 / 4
#include "compiler/frontend/Replicate.h"

#include "compiler/dialect/gradients/GradientBuilder.h"
#include "compiler/frontend/TrainEntry.h"

namespace kiln {

using namespace mlir;
namespace kd = mlir::kiln;

namespace {

class Replicator {
public:
  Replicator(func::FuncOp function, int64_t replicas)
      : function(function), replicas(replicas), builder(function.getContext()), b(builder, function.getLoc()) {}

  void average(MutableArrayRef<Value> gradients);
  void setStep();

private:
  Value begin(Value gradient);

  func::FuncOp function;
  const int64_t replicas;
  OpBuilder builder;
  kd::GradientBuilder b;
};

/// What a loop over layers stacks, and nothing but the optimiser reads, is begun in the loop.
Value Replicator::begin(Value gradient) {
  auto loop = gradient.getDefiningOp<kd::LoopInterface>();
  const unsigned number = loop ? cast<OpResult>(gradient).getResultNumber() : 0;
  if (loop && loop.isOverLayers() && number >= loop.getNumCarried() && gradient.use_empty()) {
    OpOperand &yielded = loop.getYield()->getOpOperand(number);
    yielded.set(begin(yielded.get()));
    return gradient;
  }
  builder.setInsertionPointAfterValue(gradient);
  return kd::BeginReduceOp::create(builder, gradient.getLoc(), gradient, kd::Group::Replicas, /*scattered=*/false);
}

void Replicator::average(MutableArrayRef<Value> gradients) {
  Operation *end = function.getBody().front().getTerminator();
  SmallVector<Value> begun{begin(end->getOperand(0))};
  for (Value gradient : gradients)
    begun.push_back(begin(gradient));
  builder.setInsertionPoint(end);
  auto finish =
      kd::FinishOp::create(builder, function.getLoc(), ValueRange(begun).getTypes(), begun, kd::Group::Replicas);
  auto mean = [&](Value sum) { return b.scale(sum, 1.0 / static_cast<double>(replicas)); };
  end->setOperand(0, mean(finish.getResult(0)));
  for (auto [gradient, sum] : llvm::zip_equal(gradients, finish.getResults().drop_front()))
    gradient = mean(sum);
}

/// Each replica drops other elements: number i in step t as step t * replicas + i.
void Replicator::setStep() {
  Value step = inputNamed(function, "step");
  if (!step || step.use_empty())
    return;
  builder.setInsertionPointToStart(&function.getBody().front());
  auto type = RankedTensorType::get({}, builder.getI32Type());
  Value count = b.create<kd::ConstantOp>(DenseElementsAttr::get(type, static_cast<int32_t>(replicas)));
  Value first = b.mul(step, count), own = b.add(first, b.createAs<kd::RankOp>(type, kd::Group::Replicas));
  step.replaceAllUsesExcept(own, first.getDefiningOp());
}

} // namespace

void averageOverReplicas(func::FuncOp function, int64_t replicas, MutableArrayRef<Value> gradients) {
  Replicator replicator(function, replicas);
  replicator.setStep();
  replicator.average(gradients);
}

} // namespace kiln
