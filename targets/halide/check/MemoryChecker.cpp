// SPDX-License-Identifier: Apache-2.0
//
// 1. Arguments and results become dense buffers, whose extents follow from the index arguments.
// 2. The checker runs the statement. Integer inputs are random and include extreme values, so a kernel that reads
//    integers runs several times.
#include "targets/halide/check/MemoryChecker.h"

#include "compiler/dialect/AffineEval.h"
#include "compiler/dialect/Extents.h"
#include "compiler/dialect/StoredParts.h"
#include "compiler/kernel/KernelFunction.h"
#include "targets/halide/translate/Translator.h"
#include <fmt/format.h>

namespace kiln::halide {

using namespace mlir;

/// The number of runs of a kernel that has integer inputs.
constexpr int drawsOfIntegers = 3;

/// Returns the extents of a stored part of a tensor.
static std::vector<int64_t> shapeOf(RankedTensorType type, ArrayRef<int64_t> symbols) {
  std::vector<int64_t> shape;
  for (AffineExpr extent : mlir::kiln::getExtents(type))
    shape.push_back(mlir::kiln::evaluateExtent(extent, symbols));
  return shape;
}

namespace {

/// A kernel with values for its index arguments.
struct CheckedKernel {
  func::FuncOp kernel;
  std::string prefix;
  StatementRun run;
  std::vector<std::pair<std::string, std::string>> inPlace; // pairs of an argument and a result that share memory; the
                                                            // first pair is empty
  std::string values;                                       // "s0=5, s1=7"
  bool hasIntegers = false;

  CheckedKernel(func::FuncOp kernel, StringRef symbol, ArrayRef<std::string> results, const MemoryCase &given)
      : kernel(kernel), prefix(symbol.str() + "_"), inPlace{{"", ""}} {
    run.prefix = prefix;
    run.seed = given.seed;
    run.stepLimit = given.stepLimit;
    for (auto [i, value] : llvm::enumerate(given.extents)) {
      run.scalars[fmt::format("{}s{}", prefix, i)] = value;
      values += fmt::format("{}s{}={}", i ? ", " : "", i, value);
    }
    for (BlockArgument argument : kernel.getArguments())
      if (auto type = dyn_cast<RankedTensorType>(argument.getType())) {
        add(fmt::format("{}in{}", prefix, argument.getArgNumber()), fmt::format("argument {}", argument.getArgNumber()),
            false, type, given.extents);
        hasIntegers |= !isa<FloatType>(type.getElementType());
      }
    for (auto [i, type] : llvm::enumerate(kernel.getResultTypes()))
      add(results[i], fmt::format("result {}", i), true, cast<RankedTensorType>(type), given.extents);

    auto numbers = kernel->getAttrOfType<DenseI64ArrayAttr>("kiln.inplace");
    for (int64_t number : numbers ? numbers.asArrayRef() : ArrayRef<int64_t>())
      for (auto [i, type] : llvm::enumerate(kernel.getResultTypes()))
        if (size_t argument = given.extents.size() + number; kernel.getArgumentTypes()[argument] == type)
          inPlace.emplace_back(fmt::format("{}in{}", prefix, argument), results[i]);
  }

  void add(const std::string &name, const std::string &title, bool isResult, RankedTensorType type,
           ArrayRef<int64_t> extents) {
    for (auto [number, part] : llvm::enumerate(mlir::kiln::getStoredParts(type)))
      run.buffers.push_back(
          {name + partSuffix(number), title, isResult, partElement(type, number), shapeOf(part.type, extents)});
  }
};

} // namespace

/// Returns what is wrong with one case, or an empty string. Throws StepsExceeded.
static std::string checkCase(const Halide::Internal::Stmt &stmt, CheckedKernel checked) {
  const uint64_t seed = checked.run.seed;
  const int draws = checked.hasIntegers ? drawsOfIntegers : 1;
  checked.run.stepLimit /= int64_t(checked.inPlace.size()) * draws;
  for (const auto &[argument, result] : checked.inPlace)
    for (int draw = 0; draw < draws; ++draw) {
      checked.run.overwritten = argument;
      checked.run.overwriting = result;
      checked.run.seed = seed + uint64_t(draw);
      if (std::string fault = checkStatement(stmt, checked.run); !fault.empty()) {
        std::string where = checked.values + (argument.empty()         ? ""
                                              : checked.values.empty() ? "in place"
                                                                       : ", in place");
        return fmt::format("{}: {}{}", checked.kernel.getName().str(), fault,
                           where.empty() ? "" : fmt::format(" ({})", where));
      }
    }
  return "";
}

MemoryCheck checkKernelMemory(const Halide::Internal::Stmt &stmt, func::FuncOp kernel, StringRef symbol,
                              ArrayRef<std::string> results, ArrayRef<MemoryCase> cases) {
  MemoryCheck result;
  SmallVector<const MemoryCase *> tooLarge;
  auto isLarger = [](const MemoryCase &a, const MemoryCase &b) {
    return a.stepLimit <= b.stepLimit &&
           llvm::all_of(llvm::zip_equal(a.extents, b.extents), [](auto pair) { return get<0>(pair) >= get<1>(pair); });
  };
  for (const MemoryCase &each : cases)
    try {
      if (llvm::any_of(tooLarge, [&](const MemoryCase *known) { return isLarger(each, *known); }))
        throw StepsExceeded();
      result.fault = checkCase(stmt, CheckedKernel(kernel, symbol, results, each));
      if (!result.fault.empty())
        return result;
      ++result.checked;
    } catch (const StepsExceeded &) {
      tooLarge.push_back(&each);
      ++result.tooLarge;
    }
  return result;
}

std::vector<MemoryCase> usualMemoryCases(func::FuncOp kernel) {
  SmallVector<mlir::kiln::Interval> bounds = KernelFunction(kernel).bounds();
  // Distances from the least value within the bounds: an odd extent, one past a tile, the middle and the largest value.
  // All index arguments grow together, which preserves the order between them.
  std::vector<MemoryCase> cases;
  auto add = [&](llvm::function_ref<int64_t(const mlir::kiln::Interval &)> valueOf) {
    MemoryCase next;
    for (const mlir::kiln::Interval &each : bounds)
      next.extents.push_back(valueOf(each));
    if (cases.empty() || cases.back().extents != next.extents)
      cases.push_back(std::move(next));
  };
  for (int64_t step : {0, 4, 16})
    add([&](const auto &each) { return std::min(each.max, each.min + step); });
  add([](const auto &each) { return std::min(each.max, each.min + (each.max - each.min) / 2); });
  add([](const auto &each) { return each.max; });
  return cases;
}

} // namespace kiln::halide
