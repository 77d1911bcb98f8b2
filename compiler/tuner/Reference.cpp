// SPDX-License-Identifier: Apache-2.0
#include "compiler/tuner/Reference.h"

#include "compiler/dialect/StoredParts.h"
#include "compiler/kernel/Attention.h"
#include "compiler/kernel/KernelKey.h"
#include "compiler/verify/ModuleInterpreter.h"
#include "compiler/verify/NodeOf.h"
#include "compiler/verify/Outcome.h"
#include "runtime/src/weights/format.h"

#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

namespace kiln {

using namespace mlir;
using verify::SharedTensor;
using Tensors = std::vector<SharedTensor>;

//===- Extents ---===//

static double interpretedOperations(func::FuncOp kernel, ArrayRef<int64_t> extents) {
  double sum = 0;
  const DecomposedKernel decomposed(kernel);
  decomposed.get().walk([&](linalg::GenericOp op) {
    double points = 1;
    for (int64_t extent : loopExtents(op, extents))
      points *= double(extent);
    sum += points * double(op.getBody()->getOperations().size());
  });
  return sum;
}

std::optional<std::vector<int64_t>> referenceExtents(func::FuncOp kernel, std::vector<int64_t> extents,
                                                     const ReferenceLimits &limits) {
  const std::vector<Bounds> bounds = keyOf(kernel).bounds;
  while (interpretedOperations(kernel, extents) > limits.enough) {
    std::vector<int64_t> smaller;
    for (auto [extent, bound] : llvm::zip_equal(extents, bounds))
      smaller.push_back(std::max(bound.min, extent / 2 | 1)); // keeps which of two is larger
    if (smaller == extents)
      break;
    extents = smaller;
  }
  if (interpretedOperations(kernel, extents) > limits.most)
    return std::nullopt;
  return extents;
}

//===- Conversion of stored tensors for the interpreter ---===//

/// Returns the data of a tensor's part.
using Parts = llvm::function_ref<const char *(size_t part)>;

/// Reads an element of a tiled tensor; `flat`: its linear index in row-major order.
static double readTiled(RankedTensorType type, mlir::kiln::TiledAttr layout, Parts parts, int64_t flat) {
  int64_t inner = 1, others = 1;
  for (auto [dim, extent] : llvm::enumerate(type.getShape())) {
    inner *= int64_t(dim) > layout.getDim() ? extent : 1;
    others *= int64_t(dim) != layout.getDim() ? extent : 1;
  }
  const int64_t extent = type.getDimSize(layout.getDim()), at = flat / inner % extent, size = layout.getSize();
  const int64_t other = flat / inner / extent * inner + flat % inner;
  if (!layout.getStorage())
    return readElement(type.getElementType(), parts(0), (at / size * others + other) * size + at % size);
  const auto arrays = mlir::kiln::getFormatArrays(layout);
  std::array<const char *, KILN_FORMAT_ARRAYS> items{};
  for (auto [number, array] : llvm::enumerate(arrays))
    if (array.bytes)
      items[number] = parts(number) + kiln_format_item(&array, size, others, at, other) * array.bytes;
  return kiln_format_decode(&mlir::kiln::getFormat(layout.getStorage()), items.data(), size_t(size) * arrays[0].bytes,
                            other % arrays[0].each);
}

static SharedTensor toTensor(RankedTensorType type, ArrayRef<int64_t> extents, Parts parts) {
  auto layout = dyn_cast_if_present<mlir::kiln::TiledAttr>(type.getEncoding());
  auto tensor = verify::Tensor::zeros(verify::elementTypeOf(type.getElementType()), shapeOf(type, extents));
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.values[i] = layout ? readTiled(type, layout, parts, i) : readElement(type.getElementType(), parts(0), i);
  return std::make_shared<const verify::Tensor>(std::move(tensor));
}

/// Returns the tensors among the arguments of a call.
static Tensors argumentsOf(func::FuncOp kernel, ArrayRef<int64_t> extents, const KernelData &data) {
  Tensors tensors;
  for (auto [number, type] : llvm::enumerate(kernel.getArgumentTypes().drop_front(extents.size())))
    tensors.push_back(toTensor(cast<RankedTensorType>(type), extents,
                               [&, number = number](size_t part) { return data.input(number, part); }));
  return tensors;
}

static Tensors resultsOf(func::FuncOp kernel, ArrayRef<int64_t> extents, const std::string &saved) {
  Tensors tensors;
  const char *at = saved.data();
  for (Type type : kernel.getResultTypes()) {
    tensors.push_back(toTensor(cast<RankedTensorType>(type), extents, [&](size_t) { return at; }));
    at += storedBytes(cast<RankedTensorType>(type), extents);
  }
  return tensors;
}

//===- Comparing ---===//

namespace {

/// Counts elements of a result that differ by more than `slack` from finite ones.
struct Differences {
  size_t count = 0, compared = 0;
  int64_t first = 0;
  double largest = 0; // over all finite differences

  Differences(const verify::Tensor &expected, const verify::Tensor &actual, double slack) {
    for (int64_t i = 0; i < expected.size(); ++i) {
      if (!std::isfinite(expected.values[i]))
        continue;
      ++compared;
      const double difference = std::abs(actual.values[i] - expected.values[i]);
      if (std::isfinite(difference))
        largest = std::max(largest, difference);
      if (!(difference <= slack) && count++ == 0)
        first = i;
    }
  }
};

} // namespace

static constexpr double tolerance = 1e-4; // relative to the largest number
static constexpr double mostRoundings = 64;

static double slackOf(const verify::Tensor &expected) {
  if (expected.element != ElementType::f32)
    return 0;
  double largest = 0;
  for (double value : expected.values)
    if (std::isfinite(value))
      largest = std::max(largest, std::abs(value));
  return std::max(tolerance * largest, 0x1p-126);
}

/// Whether a 16-bit result is consistent with a kernel that also rounds an intermediate once, such as attention weights
/// on tensor cores: the root-mean-square difference is at most two roundings.
static bool isRoundedTwice(const verify::Tensor &expected, const verify::Tensor &actual) {
  const double rounding = expected.element == ElementType::f16    ? 0x1p-10
                          : expected.element == ElementType::bf16 ? 0x1p-7
                                                                  : 0;
  double squares = 0, ofDifferences = 0;
  for (int64_t i = 0; i < expected.size(); ++i) {
    if (!std::isfinite(expected.values[i]))
      continue;
    const double difference = actual.values[i] - expected.values[i];
    squares += expected.values[i] * expected.values[i], ofDifferences += difference * difference;
  }
  return ofDifferences <= rounding * rounding * squares; // false for NaN
}

/// `moved`: the interpreter's results for arguments perturbed by a rounding.
static bool isRounding(const Differences &differences, const verify::Tensor &expected, const verify::Tensor &actual,
                       const verify::Tensor &moved) {
  const Differences ofMoved(expected, moved, 0);
  if (expected.element != ElementType::f32)
    return double(differences.count) <= mostRoundings * double(ofMoved.count) || isRoundedTwice(expected, actual);
  return Differences(expected, actual, slackOf(expected) + mostRoundings * ofMoved.largest).count == 0;
}

/// Throws std::runtime_error if the interpreter does not support the kernel.
static ReferenceResult compareResults(func::FuncOp kernel, const std::vector<int64_t> &extents,
                                      const Tensors &arguments, const Tensors &actual) {
  auto interpret = [&](const Tensors &from) { return verify::ModuleInterpreter(nullptr).run(kernel, extents, from); };
  const Tensors expected = interpret(arguments);
  Tensors moved;
  size_t compared = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const Differences differences(*expected[i], *actual[i], slackOf(*expected[i]));
    compared += differences.compared;
    if (differences.count == 0)
      continue;
    if (moved.empty()) {
      Tensors changed;
      for (const SharedTensor &argument : arguments)
        changed.push_back(std::make_shared<const verify::Tensor>(verify::perturbed(*argument)));
      moved = interpret(changed);
    }
    if (!isRounding(differences, *expected[i], *actual[i], *moved[i]))
      return {fmt::format("gives {:.9g} where the interpreter gives {:.9g}: element {} of result {}, {} of {} differ",
                          actual[i]->values[differences.first], expected[i]->values[differences.first],
                          differences.first, i, differences.count, differences.compared),
              ""};
  }
  return {"", compared ? "" : "the interpreter gives no finite number"};
}

//===- Running ---===//

static llvm::Expected<std::string> runOnce(Caller &caller, KernelData &data) {
  data.poisonResults();
  if (llvm::Error error = caller.call(data))
    return error;
  return data.saveResults();
}

llvm::Expected<ReferenceResult> compareWithInterpreter(Session &session, const KernelUse &use, const KernelCode &code,
                                                       llvm::ArrayRef<std::vector<int64_t>> workloads,
                                                       const KernelAbi &abi, const ReferenceLimits &limits) {
  llvm::Expected<std::unique_ptr<Caller>> caller = session.load(code, abi);
  if (!caller)
    return caller.takeError();
  ReferenceResult all;
  std::set<std::vector<int64_t>> seen;
  for (const std::vector<int64_t> &workload : workloads) {
    std::optional<std::vector<int64_t>> extents = referenceExtents(use.kernel, workload, limits);
    if (!extents) {
      all.unchecked = fmt::format("the interpreter would take more than {:g} operations", limits.most);
      continue;
    }
    if (!seen.insert(*extents).second)
      continue;
    KernelData data(use, *extents, /*rotatedBytes=*/0, abi);
    llvm::Expected<std::string> saved = runOnce(**caller, data);
    if (!saved)
      return saved.takeError();
    const std::string at = extents->empty() ? "" : fmt::format(" at extents {}", fmt::join(*extents, ","));
    try {
      ReferenceResult one = compareResults(use.kernel, *extents, argumentsOf(use.kernel, *extents, data),
                                           resultsOf(use.kernel, *extents, *saved));
      if (!one.wrong.empty())
        return ReferenceResult{one.wrong + at, ""};
      if (!one.unchecked.empty())
        all.unchecked = one.unchecked + at;
    } catch (const std::runtime_error &error) {
      all.unchecked = fmt::format("the interpreter stopped{}: {}", at, error.what());
    } catch (const std::bad_alloc &) {
      all.unchecked = "the interpreter had too little memory" + at;
    }
  }
  return all;
}

} // namespace kiln
