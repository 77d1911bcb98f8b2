// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/gemm/Prefetch.h"

#include "compiler/dialect/Extents.h"
#include "targets/cuda/Kernel.h"
#include "targets/cuda/ptx/ScalarOps.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

static constexpr int64_t lineBytes = 128, mostPrefetched = 25 << 20, smallBytes = 32 << 10;

bool isWeight(Value tensor) {
  auto argument = dyn_cast<BlockArgument>(tensor);
  auto kernel = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
  return kernel && KernelFunction(kernel).isWeight(argument.getArgNumber() - KernelFunction(kernel).numSymbols());
}

static bool isPlainWeight(const Contraction &contraction, const ContractionInput &input) {
  linalg::GenericOp op = contraction.op;
  return input.isPlain && isWeight(op->getOperand(input.number));
}

bool isPrefetchable(const StageContext &context, const Contraction &contraction, const ContractionInput &input) {
  return isPlainWeight(contraction, input) &&
         leastValue(extentOf(contraction, contraction.reduction), context.kernel) > 0;
}

Value iterationsAfter(tile::Builder &b, Value k, int64_t ofStep, int64_t done) {
  Value rest = b.createOrFold<arith::MaxSIOp>(b.sub(k, b.integer(done * ofStep)), b.integer(0));
  return b.div(b.add(rest, b.integer(ofStep - 1)), b.integer(ofStep));
}

/// Calls body(number) for all numbers below `count`, which the block's threads share.
static void forEachOfBlock(tile::Builder &b, Value count, int64_t threads, llvm::function_ref<void(Value)> body) {
  Value thread = b.threadId();
  Value iterations = b.div(b.add(count, b.integer(threads - 1)), b.integer(threads));
  b.loop(iterations, {}, [&](Value iteration, ValueRange) {
    Value number = b.add(b.mul(iteration, b.integer(threads)), thread);
    b.ifThen(b.isBelow(number, count), [&] { body(number); });
    return Values();
  });
}

/// Returns the loops of a column, given its number in the block; the last column replaces those beyond it.
static Values blockColumn(tile::Builder &b, ElementEmitter &emitter, const Contraction &contraction, int64_t ofBlock,
                          Value number) {
  Value columns = emitter.extent(extentOf(contraction, contraction.columns)), block = b.blockId();
  Value across = b.div(b.add(columns, b.integer(ofBlock - 1)), b.integer(ofBlock));
  linalg::GenericOp op = contraction.op;
  Values loops(op.getNumLoops());
  splitIndex(b, emitter, contraction, contraction.batch, b.div(block, across), loops);
  Value column = b.add(b.mul(b.rem(block, across), b.integer(ofBlock)), number);
  splitIndex(b, emitter, contraction, contraction.columns, b.clamp(column, columns), loops);
  return loops;
}

void prefetchWeight(tile::Builder &b, ElementEmitter &emitter, const Contraction &contraction,
                    const ContractionInput &weight, int64_t columns, int64_t threads, int64_t first) {
  linalg::GenericOp op = contraction.op;
  const int64_t most = mostElements(op->getOperand(weight.number).getType(), op->getParentOfType<func::FuncOp>());
  if (!isPlainWeight(contraction, weight) || most * weight.bytes() > mostPrefetched)
    return;
  const int64_t inLine = lineBytes / weight.bytes(), together = weight.isKMajor ? inLine : 1;
  const int64_t lines = weight.isKMajor ? columns : int64_t(llvm::divideCeil(columns, inLine));
  Value k = b.sub(emitter.extent(extentOf(contraction, contraction.reduction)), b.integer(first));
  Value steps =
      b.div(b.add(b.createOrFold<arith::MaxSIOp>(k, b.integer(0)), b.integer(together - 1)), b.integer(together));
  forEachOfBlock(b, b.mul(steps, b.integer(lines)), threads, [&](Value number) {
    Value line = b.rem(number, b.integer(lines)), step = b.div(number, b.integer(lines));
    Value column = weight.isKMajor ? line : b.mul(line, b.integer(inLine));
    Values loops = blockColumn(b, emitter, contraction, columns, column);
    splitIndex(b, emitter, contraction, contraction.reduction,
               b.add(b.mul(step, b.integer(together)), b.integer(first)), loops);
    Value address = emitter.address(op, weight.number), offset = emitter.offset(op, weight.number, loops);
    b.prefetch(b.addressOf(deviceType(b, weight.element), address, offset));
  });
}

void prefetchEpilogue(tile::Builder &b, ElementEmitter &emitter, const StageContext &context,
                      const Contraction &contraction, int64_t columns) {
  linalg::GenericOp op = context.stage.op;
  SmallVector<unsigned> numbers = operandsAlongColumns(context, contraction);
  llvm::erase_if(numbers, [&](unsigned number) { return !isWeight(op->getOperand(number)); });
  for (unsigned number : numbers) {
    Type element = deviceType(b, getElementTypeOrSelf(op->getOperand(number)));
    const int64_t inLine = lineBytes * 8 / element.getIntOrFloatBitWidth();
    forEachOfBlock(b, b.integer(llvm::divideCeil(columns, inLine)), columns, [&](Value line) {
      Values loops = blockColumn(b, emitter, contraction, columns, b.mul(line, b.integer(inLine)));
      for (unsigned row : contraction.rows)
        loops[row] = b.integer(0);
      Value offset = emitter.offset(op, number, loopsOfStage(contraction, loops));
      b.prefetch(b.addressOf(element, emitter.address(op, number), offset));
    });
  }
}

void prefetchSmallWeights(tile::Builder &b, ElementEmitter &emitter, func::FuncOp kernel, int64_t threads) {
  for (BlockArgument argument : kernel.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type || !isWeight(argument))
      continue;
    Type element = deviceType(b, type.getElementType());
    const int64_t bytes = int64_t(llvm::divideCeil(element.getIntOrFloatBitWidth(), 8)), inLine = lineBytes / bytes;
    if (mostElements(type, kernel) * bytes > smallBytes)
      continue;
    Value count = emitter.extent(mlir::kiln::getProduct(mlir::kiln::getExtents(type), type.getContext()));
    Value lines = b.div(b.add(count, b.integer(inLine - 1)), b.integer(inLine));
    forEachOfBlock(b, lines, threads, [&](Value line) {
      b.prefetch(b.addressOf(element, emitter.tensor(argument), b.mul(line, b.integer(inLine))));
    });
  }
}

} // namespace kiln::cuda
