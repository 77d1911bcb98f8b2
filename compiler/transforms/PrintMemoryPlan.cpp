// SPDX-License-Identifier: Apache-2.0
//
// Prints the plan as text: one line per buffer, then a diagram whose columns are steps and whose rows are slices of the
// arena.
#include "compiler/transforms/PlanMemory.h"

#include "compiler/dialect/KilnDialect.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::kiln {

StringRef getWriter(Value value) {
  if (auto call = value.getDefiningOp<CallOp>())
    return call.getCallee();
  if (Operation *op = value.getDefiningOp(); isa_and_nonnull<AllReduceOp, AllGatherOp, ArgsortOp, ConcatOp, CustomOp,
                                                             IndexAddOp, ReceiveOp, ReduceScatterOp, ScatterAddOp>(op))
    return op->getName().stripDialect();
  auto loop = value.getDefiningOp<LoopInterface>();
  return loop && llvm::is_contained(loop.getStacked(), value) ? "stacked" : "carried";
}

namespace {

constexpr int pictureRows = 24, pictureColumns = 96;

std::string describe(Value value) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << getWriter(value) << ' ';
  auto type = cast<RankedTensorType>(value.getType());
  llvm::interleave(
      type.getShape(), stream,
      [&](int64_t extent) {
        if (ShapedType::isDynamic(extent))
          stream << '?';
        else
          stream << extent;
      },
      "x");
  stream << (type.getRank() ? "x" : "") << type.getElementType();
  return text;
}

char labelOf(size_t buffer) {
  constexpr llvm::StringLiteral labels = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  return labels[buffer % labels.size()];
}

} // namespace

std::string printMemoryPlan(func::FuncOp entry, const MemoryPlan &plan) {
  std::string text;
  llvm::raw_string_ostream out(text);
  double ratio = plan.lowerBound() ? static_cast<double>(plan.arenaBytes()) / plan.lowerBound() : 1;
  out << "memory plan of \"" << entry.getName() << "\": " << plan.arenaBytes() << " bytes, lower bound "
      << plan.lowerBound() << llvm::format(" (%.3fx), ", ratio) << plan.getBuffers().size() << " buffers, "
      << plan.getSteps().size() << " steps\n";
  if (plan.getBuffers().empty())
    return text;
  out << "  buffer       offset        bytes    steps  values\n";
  for (auto [i, buffer] : llvm::enumerate(plan.getBuffers())) {
    out << llvm::format("  %6c %12lld %12lld  %3d-%-3d  ", labelOf(i), static_cast<long long>(buffer.offset),
                        static_cast<long long>(buffer.bytes), buffer.first, buffer.last);
    llvm::interleave(buffer.values, out, [&](Value value) { out << describe(value); }, ", ");
    out << '\n';
  }

  const int steps = plan.getSteps().size(), columns = std::min(steps, pictureColumns);
  for (int row = 0; row < pictureRows; ++row) {
    int64_t offset = plan.arenaBytes() * (2 * row + 1) / (2 * pictureRows); // the middle of the slice
    out << llvm::format("  %12lld ", static_cast<long long>(plan.arenaBytes() * row / pictureRows));
    for (int column = 0; column < columns; ++column) {
      int step = static_cast<int64_t>(column) * steps / columns;
      char mark = '.';
      for (auto [i, buffer] : llvm::enumerate(plan.getBuffers()))
        if (buffer.first <= step && step <= buffer.last && buffer.offset <= offset &&
            offset < buffer.offset + buffer.bytes)
          mark = labelOf(i);
      out << mark;
    }
    out << '\n';
  }
  return text;
}

} // namespace mlir::kiln
