// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/ScalarProgram.h"

#include <algorithm>

#include "compiler/verify/ScalarOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace kiln::verify {

Cell toCell(const Tensor &tensor, std::int64_t flat) {
  Cell cell;
  if (floating(tensor.element))
    cell.number = static_cast<float>(tensor.values[flat]);
  else
    cell.integer = static_cast<std::int64_t>(tensor.values[flat]);
  return cell;
}

double toNumber(Cell cell, bool isFloating) {
  return isFloating ? static_cast<double>(cell.number) : static_cast<double>(cell.integer);
}

ScalarProgram::ScalarProgram(linalg::GenericOp op, const Outside &outside)
    : block(op.getBlock()), loopRegisters(op.getNumLoops()) {
  for (BlockArgument argument : block->getArguments()) {
    known[argument] = static_cast<unsigned>(registers.size());
    registers.emplace_back();
  }
  for (Operation &inner : block->without_terminator())
    addStep(inner, outside);
  for (Value value : block->getTerminator()->getOperands())
    results.push_back(registerOf(value, outside));
}

unsigned ScalarProgram::registerOf(Value value, const Outside &outside) {
  auto [entry, isNew] = known.try_emplace(value, static_cast<unsigned>(registers.size()));
  if (isNew) {
    const bool isInside = value.getDefiningOp() && value.getDefiningOp()->getBlock() == block;
    registers.push_back(isInside ? Cell() : outside.scalar(value));
  }
  return entry->second;
}

void ScalarProgram::addStep(Operation &op, const Outside &outside) {
  const unsigned result = registerOf(op.getResult(0), outside);
  if (auto index = dyn_cast<linalg::IndexOp>(op)) {
    loopRegisters[index.getDim()].push_back(result);
    return;
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    registers[result] = cellOf(constant.getValue());
    return;
  }
  Step step;
  step.result = result;
  if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    step.table = &outside.tensor(extract.getTensor());
    for (Value index : extract.getIndices())
      step.indices.push_back(registerOf(index, outside));
    if (static_cast<int>(step.indices.size()) != step.table->rank())
      throw std::runtime_error("tensor.extract: wrong number of indices; expected one for each axis");
  } else {
    step.function = functionOf(&op);
    step.unused = unusedBits(op.getResult(0).getType());
    for (auto [i, operand] : llvm::enumerate(op.getOperands()))
      step.operands[i] = registerOf(operand, outside);
  }
  steps.push_back(std::move(step));
}

void ScalarProgram::run() {
  for (const Step &step : steps) {
    if (step.function) {
      registers[step.result] = signExtended(
          step.function(registers[step.operands[0]], registers[step.operands[1]], registers[step.operands[2]]),
          step.unused);
      continue;
    }
    std::int64_t flat = 0;
    for (std::size_t axis = 0; axis < step.indices.size(); ++axis) {
      const std::int64_t extent = step.table->shape[axis];
      flat = flat * extent + std::clamp<std::int64_t>(registers[step.indices[axis]].integer, 0, extent - 1);
    }
    registers[step.result] = toCell(*step.table, flat);
  }
}

} // namespace kiln::verify
