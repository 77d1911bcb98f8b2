// SPDX-License-Identifier: Apache-2.0
#include "compiler/frontend/Dropout.h"

#include "compiler/dialect/Training.h"

namespace kiln {

using namespace mlir;
namespace kd = mlir::kiln;

void DropoutImporter::begin(func::FuncOp function) {
  seed = kd::getInput(function, "seed");
  step = kd::getInput(function, "step");
  iteration = {};
  streams = 0;
}

Value DropoutImporter::import(Value x, double probability, Location location) {
  return kd::DropoutOp::create(builder, location, x, seed, step, iteration, llvm::APFloat(probability), streams++);
}

Value DropoutImporter::numbers(std::int64_t count, Location location) {
  auto type = RankedTensorType::get({count}, builder.getI32Type());
  auto all = llvm::to_vector(llvm::seq<int32_t>(0, static_cast<int32_t>(count)));
  return kd::ConstantOp::create(builder, location, DenseIntElementsAttr::get(type, ArrayRef(all)));
}

/// The iterations of nested loops are numbered consecutively: the outer iteration times the inner trip count, plus the
/// inner iteration.
DropoutImporter::Iteration::Iteration(DropoutImporter &importer, kd::LoopInterface loop, ValueRange number)
    : importer(importer), outer(importer.iteration) {
  if (number.empty())
    return;
  importer.iteration = number.front();
  if (!outer)
    return;
  OpBuilder &builder = importer.builder;
  const Location location = loop.getLoc();
  Value last = kd::MaxOp::create(builder, location, loop.getSequences().back(), 0);
  auto scalar = RankedTensorType::get({}, builder.getI32Type());
  Value one = kd::ConstantOp::create(builder, location, DenseElementsAttr::get(scalar, builder.getI32IntegerAttr(1)));
  Value count = kd::AddOp::create(builder, location, last, one);
  Value before = kd::MulOp::create(builder, location, outer, count);
  importer.iteration = kd::AddOp::create(builder, location, before, number.front());
}

} // namespace kiln
