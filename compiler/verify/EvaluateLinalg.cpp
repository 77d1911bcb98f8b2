// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/EvaluateLinalg.h"

#include <optional>

#include "compiler/dialect/AffineEval.h"
#include "compiler/verify/AffineValue.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/AffineMap.h"

using namespace mlir;

namespace kiln::verify {
namespace {

using Loops = SmallVector<std::int64_t>;

/// offset + the sum of factors times loops.
struct Linear {
  std::int64_t offset = 0;
  Loops factors;

  bool isFixed() const {
    return llvm::all_of(factors, [](std::int64_t factor) { return factor == 0; });
  }
  void add(const Linear &other, std::int64_t times) {
    offset += times * other.offset;
    for (auto [mine, theirs] : llvm::zip_equal(factors, other.factors))
      mine += times * theirs;
  }
};

/// Linear functions of the loops; nullopt for an expression that is not linear.
struct LinearArithmetic {
  using Value = std::optional<Linear>;
  unsigned loops;

  Value constant(std::int64_t number) const { return Linear{number, Loops(loops, 0)}; }
  Value dim(unsigned position) const {
    Linear result{0, Loops(loops, 0)};
    result.factors[position] = 1;
    return result;
  }
  Value symbol(unsigned) const { return std::nullopt; }
  Value add(Value a, const Value &b) const {
    if (!a || !b)
      return std::nullopt;
    a->add(*b, 1);
    return a;
  }
  Value multiply(Value a, Value b) const {
    if (!a || !b)
      return std::nullopt;
    if (!b->isFixed())
      std::swap(a, b);
    if (!b->isFixed())
      return std::nullopt;
    Linear product{0, Loops(loops, 0)};
    product.add(*a, b->offset);
    return product;
  }
  Value floorDivide(const Value &, const Value &) const { return std::nullopt; }
  Value ceilDivide(const Value &, const Value &) const { return std::nullopt; }
  Value modulo(const Value &, const Value &) const { return std::nullopt; }
};

/// Where an operand is read for given values of the loops.
class Access {
public:
  Access(AffineMap map, const Tensor &tensor, ArrayRef<std::int64_t> extents) : map(map), tensor(tensor) {
    Linear flat{0, Loops(extents.size(), 0)};
    std::int64_t stride = tensor.size();
    for (auto [expr, extent] : llvm::zip_equal(map.getResults(), tensor.shape)) {
      stride /= extent;
      std::optional<Linear> coordinate =
          mlir::kiln::evaluateAffine(expr, LinearArithmetic{static_cast<unsigned>(extents.size())});
      if (!coordinate)
        return;
      check(*coordinate, extent, extents);
      flat.add(*coordinate, stride);
    }
    linear = std::move(flat);
  }

  std::int64_t at(ArrayRef<std::int64_t> loops) const {
    std::int64_t flat = 0;
    if (linear) {
      flat = linear->offset;
      for (std::size_t i = 0; i < loops.size(); ++i)
        flat += linear->factors[i] * loops[i];
      return flat;
    }
    for (auto [expr, extent] : llvm::zip_equal(map.getResults(), tensor.shape)) {
      const std::int64_t coordinate = valueOf(expr, loops, {});
      if (coordinate < 0 || coordinate >= extent)
        fail();
      flat = flat * extent + coordinate;
    }
    return flat;
  }

  /// Returns the distance between two iterations of the last loop; nothing if it varies.
  std::optional<std::int64_t> step() const {
    return linear ? std::optional(linear->factors.empty() ? 0 : linear->factors.back()) : std::nullopt;
  }

private:
  static void fail() {
    throw std::runtime_error("linalg.generic: map leaves an operand; expected elements that exist");
  }

  static void check(const Linear &coordinate, std::int64_t extent, ArrayRef<std::int64_t> loops) {
    std::int64_t low = coordinate.offset, high = coordinate.offset;
    for (auto [factor, loop] : llvm::zip_equal(coordinate.factors, loops))
      (factor < 0 ? low : high) += factor * (loop - 1);
    if (low < 0 || high >= extent)
      fail();
  }

  AffineMap map;
  const Tensor &tensor;
  std::optional<Linear> linear;
};

/// Returns the extents of the loops. A loop that is a whole result of a map has the operand's extent.
Loops extentsOf(ArrayRef<AffineMap> maps, ArrayRef<const Tensor *> operands, unsigned count) {
  Loops extents(count, 0);
  for (auto [map, operand] : llvm::zip_equal(maps, operands)) {
    if (static_cast<int>(map.getNumResults()) != operand->rank() || map.getNumSymbols() != 0)
      throw std::runtime_error("linalg.generic: wrong results of a map; expected a coordinate for each axis");
    for (auto [expr, extent] : llvm::zip_equal(map.getResults(), operand->shape))
      if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
        std::int64_t &loop = extents[dim.getPosition()];
        if (loop != 0 && loop != extent)
          throw std::runtime_error("linalg.generic: sizes of a loop differ; expected one, got " + std::to_string(loop) +
                                   " and " + std::to_string(extent));
        loop = extent;
      }
  }
  if (llvm::is_contained(extents, 0))
    throw std::runtime_error("linalg.generic: unknown size of a loop; expected an operand that has it");
  return extents;
}

/// Advances all loops except the last; returns false after the last iteration.
bool advance(Loops &at, ArrayRef<std::int64_t> extents) {
  for (std::size_t loop = extents.size(); loop-- > 1;) {
    if (++at[loop - 1] < extents[loop - 1])
      return true;
    at[loop - 1] = 0;
  }
  return false;
}

} // namespace

std::vector<Tensor> evaluateGeneric(linalg::GenericOp op, ArrayRef<const Tensor *> operands, const Outside &outside) {
  const SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  const Loops extents = extentsOf(maps, operands, op.getNumLoops());
  const auto inputs = static_cast<std::size_t>(op.getNumDpsInputs());
  std::vector<Tensor> results;
  for (const Tensor *output : operands.drop_front(inputs))
    results.push_back(*output);
  SmallVector<const Tensor *> tensors(operands.take_front(inputs));
  for (const Tensor &result : results)
    tensors.push_back(&result);
  SmallVector<Access> accesses;
  for (auto [map, tensor] : llvm::zip_equal(maps, tensors))
    accesses.emplace_back(map, *tensor, extents);

  ScalarProgram program(op, outside);
  SmallVector<bool> isRead; // an operand may only be used for its shape
  for (BlockArgument argument : op.getBlock()->getArguments())
    isRead.push_back(!argument.use_empty());
  const std::int64_t last = extents.empty() ? 1 : extents.back();
  const unsigned lastLoop = extents.empty() ? 0 : static_cast<unsigned>(extents.size() - 1);
  Loops at(extents.size(), 0);
  SmallVector<std::int64_t> flat(tensors.size(), 0);
  do {
    for (unsigned loop = 0; loop < lastLoop; ++loop)
      program.setLoop(loop, at[loop]);
    for (std::int64_t i = 0; i < last; ++i) {
      if (!extents.empty()) {
        at.back() = i;
        program.setLoop(lastLoop, i);
      }
      for (std::size_t operand = 0; operand < tensors.size(); ++operand) {
        const std::optional<std::int64_t> step = accesses[operand].step();
        flat[operand] = i > 0 && step ? flat[operand] + *step : accesses[operand].at(at);
        if (isRead[operand])
          program.arguments()[operand] = toCell(*tensors[operand], flat[operand]);
      }
      program.run();
      for (std::size_t output = 0; output < results.size(); ++output)
        results[output].values[flat[inputs + output]] =
            toNumber(program.yielded(output), floating(results[output].element));
    }
    if (!extents.empty())
      at.back() = 0;
  } while (advance(at, extents));
  return results;
}

} // namespace kiln::verify
