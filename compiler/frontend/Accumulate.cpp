// SPDX-License-Identifier: Apache-2.0
//
//   func @train(%tokens: tensor<32xi32>) { ...; return %loss, %y }
//
//   func @train(%tokens: tensor<4x32xi32>) {
//     %sum, %dw..., %ys = kiln.scan (zeros) over (%number = 0, 1, 2, 3, %t = %tokens) {
//       ...
//       kiln.yield %sum + %loss, %dw + its gradient, %y
//     }
//     return %sum / 4, %ys
//   }
#include "compiler/frontend/Accumulate.h"

#include "compiler/dialect/gradients/GradientBuilder.h"
#include "compiler/frontend/TrainEntry.h"

namespace kiln {

using namespace mlir;
namespace kd = mlir::kiln;

namespace {

class Accumulator {
public:
  Accumulator(func::FuncOp function, int64_t count)
      : function(function), count(count), block(function.getBody().front()), builder(function.getContext()),
        b(builder, function.getLoc()) {}

  void run(unsigned firstInput, unsigned inputs, MutableArrayRef<Value> gradients);

private:
  RankedTensorType stacked(Type type) {
    auto tensor = cast<RankedTensorType>(type);
    SmallVector<AffineExpr> extents = kd::getExtents(tensor);
    extents.insert(extents.begin(), builder.getAffineConstantExpr(count));
    return kd::getTensorType(extents, tensor.getElementType(), kd::getNumSymbols(tensor));
  }
  Value integers(ArrayRef<int32_t> values, ArrayRef<int64_t> shape) {
    return b.create<kd::ConstantOp>(
        DenseIntElementsAttr::get(RankedTensorType::get(shape, builder.getI32Type()), values));
  }
  void setStep(Block &body, Value number);

  func::FuncOp function;
  const int64_t count;
  Block &block;
  OpBuilder builder;
  kd::GradientBuilder b;
};

/// Each micro-batch drops other elements: that of number i in step t is as step t * count + i.
void Accumulator::setStep(Block &body, Value number) {
  Value step = inputNamed(function, "step");
  if (!step || step.use_empty())
    return;
  builder.setInsertionPointToStart(&body);
  Value first = b.mul(step, integers(static_cast<int32_t>(count), {})), own = b.add(first, number);
  step.replaceAllUsesExcept(own, first.getDefiningOp());
}

void Accumulator::run(unsigned firstInput, unsigned inputs, MutableArrayRef<Value> gradients) {
  Operation *end = block.getTerminator();
  SmallVector<Value> sums{end->getOperand(0)}, others(llvm::drop_begin(end->getOperands()));
  llvm::append_range(sums, gradients);
  auto moved = llvm::map_to_vector(block.without_terminator(), [](Operation &op) { return &op; });

  builder.setInsertionPointToStart(&block);
  SmallVector<Value> zeros, sequences{integers(llvm::to_vector(llvm::seq<int32_t>(0, count)), {count})};
  for (Value sum : sums)
    zeros.push_back(b.zeros(kd::rankedType(sum)));
  SmallVector<BlockArgument> own;
  for (unsigned i = firstInput; i < firstInput + inputs; ++i) {
    own.push_back(block.getArgument(i));
    sequences.push_back(own.back());
  }
  const auto slices = llvm::map_to_vector(own, [](BlockArgument input) { return input.getType(); });
  for (BlockArgument input : own)
    input.setType(stacked(input.getType()));
  auto types = llvm::map_to_vector(others, [&](Value value) -> Type { return stacked(value.getType()); });
  auto loop = kd::ScanOp::create(builder, function.getLoc(), zeros, sequences, types, /*reverse=*/false);
  Block &body = loop.getBody().front();
  for (auto [input, slice] : llvm::zip_equal(own, body.getArguments().take_back(inputs)))
    input.replaceAllUsesExcept(slice, loop);
  for (Operation *op : moved)
    op->moveBefore(&body, body.end());
  for (auto [i, value] : llvm::enumerate(others)) // which may have been an input
    value = end->getOperand(i + 1);
  builder.setInsertionPointToEnd(&body);
  SmallVector<Value> yielded;
  for (auto [before, sum] : llvm::zip_equal(body.getArguments().take_front(sums.size()), sums))
    yielded.push_back(b.add(before, sum));
  llvm::append_range(yielded, others);
  kd::YieldOp::create(builder, function.getLoc(), yielded);
  setStep(body, body.getArgument(sums.size()));

  builder.setInsertionPoint(end);
  auto mean = [&](Value sum) { return b.scale(sum, 1.0 / static_cast<double>(count)); };
  end->setOperand(0, mean(loop.getLast()[0]));
  for (auto [i, value] : llvm::enumerate(loop.getStacked()))
    end->setOperand(i + 1, value);
  for (auto [gradient, sum] : llvm::zip_equal(gradients, loop.getLast().drop_front()))
    gradient = mean(sum);
  function.setType(builder.getFunctionType(block.getArgumentTypes(), end->getOperandTypes()));
}

} // namespace

void accumulate(func::FuncOp function, const Graph &graph, const Entry &entry, MutableArrayRef<Value> gradients) {
  const auto inputs = static_cast<unsigned>(graph.regions[entry.region].arguments.size());
  unsigned symbols = 0;
  while (function.getArgument(symbols).getType().isIndex())
    ++symbols;
  Accumulator(function, entry.training.micro_batches).run(symbols, inputs, gradients);
}

} // namespace kiln
