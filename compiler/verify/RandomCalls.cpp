// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/RandomCalls.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>

#include "compiler/dialect/AffineEval.h"
#include "compiler/dialect/Extents.h"
#include "compiler/dialect/Training.h"
#include "compiler/verify/AffineValue.h"
#include "compiler/verify/NodeOf.h"
#include "compiler/verify/WeightValues.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
namespace kd = mlir::kiln;

namespace kiln::verify {
namespace {

using Random = std::mt19937_64;

double uniform(Random &random, double low, double high) {
  return low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53;
}
std::int64_t whole(Random &random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
}

/// Draws numbers in [low, high). Most integers are small, as indices and lengths are.
SharedTensor draw(Random &random, ElementType element, const TensorShape &shape, double low, double high) {
  std::vector<double> values(static_cast<std::size_t>(interpreter::elementCount(shape)));
  for (double &value : values)
    switch (element) {
    case ElementType::boolean:
      value = static_cast<double>(random() & 1);
      break;
    case ElementType::i8:
    case ElementType::i4:
      value = static_cast<double>(whole(random, std::max<std::int64_t>(info(element).least(), -100),
                                        std::min<std::int64_t>(info(element).most(), 100)));
      break;
    case ElementType::i32:
      value = static_cast<double>(whole(random, 0, 15) ? whole(random, 0, 9) : whole(random, -3, 3000));
      break;
    default:
      value = uniform(random, low, high);
    }
  return std::make_shared<const Tensor>(Tensor::of(element, shape, std::move(values)));
}

TensorShape shapeOf(Type type, ArrayRef<std::int64_t> symbols) {
  TensorShape shape;
  for (AffineExpr extent : kd::getExtents(cast<RankedTensorType>(type)))
    shape.push_back(valueOf(extent, {}, symbols));
  return shape;
}

double elements(Type type, ArrayRef<std::int64_t> symbols) {
  double count = 1;
  for (std::int64_t extent : shapeOf(type, symbols))
    count *= static_cast<double>(extent);
  return count;
}

/// Doubles: at the largest extents 64 bits may not hold a product.
struct DoubleArithmetic {
  using Value = double;
  ArrayRef<std::int64_t> symbols;

  double constant(std::int64_t number) const { return static_cast<double>(number); }
  double dim(unsigned) const { throw std::runtime_error("extent: depends on a loop; expected symbols only"); }
  double symbol(unsigned position) const {
    if (position >= symbols.size())
      throw std::runtime_error("extent: value is missing; expected one for each symbol");
    return static_cast<double>(symbols[position]);
  }
  double add(double a, double b) const { return a + b; }
  double multiply(double a, double b) const { return a * b; }
  double floorDivide(double a, double b) const { return std::floor(a / b); }
  double ceilDivide(double a, double b) const { return std::ceil(a / b); }
  double modulo(double a, double b) const { return std::fmod(a, b); }
};

/// Returns the approximate number of scalar operations of one op.
double operationsOf(Operation &op, ArrayRef<std::int64_t> symbols) {
  double most = 0;
  for (Type type : llvm::concat<const Type>(op.getOperandTypes(), op.getResultTypes()))
    if (isa<RankedTensorType>(type) && !isa<kd::LoopInterface>(op))
      most = std::max(most, elements(type, symbols));
  auto inKernel = dyn_cast<kd::KernelOpInterface>(op);
  if (inKernel && kd::addsProducts(inKernel.getKernelRole()))
    return kd::evaluateAffine(inKernel.getFlops(), DoubleArithmetic{symbols});
  if (auto pair = op.getAttrOfType<DenseI64ArrayAttr>("kernel"))
    return most * static_cast<double>(pair[0] * pair[1]);
  return 4 * most;
}

double operationsOf(Block &block, ArrayRef<std::int64_t> symbols) {
  double sum = 0;
  for (Operation &op : block) {
    auto loop = dyn_cast<kd::LoopInterface>(op);
    sum += loop ? static_cast<double>(valueOf(loop.getTripCount(), {}, symbols)) *
                      operationsOf(loop->getRegion(0).front(), symbols)
                : operationsOf(op, symbols);
  }
  return sum;
}

/// Draws values of the symbolic dimensions.
class Assignments {
public:
  Assignments(ModuleOp module, std::uint64_t seed) : module(module), random(seed) {
    if (auto list = module->getAttrOfType<ArrayAttr>(kd::symbolsAttrName))
      symbols = llvm::map_to_vector(list, [](Attribute attribute) { return cast<kd::SymbolAttr>(attribute); });
    if (std::optional<kd::BatchSymbols> recorded = kd::BatchSymbols::of(module))
      batch = *recorded;
    module.walk([&](kd::EachSequenceOp loop) {
      if (kd::BatchSymbols found = loop.getBatchSymbols(); found.own >= 0)
        batch = found;
    });
  }

  /// Draws values at most `reach` above the smallest ones; 0: the smallest.
  std::vector<std::int64_t> draw(std::int64_t reach) {
    std::vector<std::int64_t> values;
    for (kd::SymbolAttr symbol : symbols)
      values.push_back(whole(random, symbol.getMin(), std::min(symbol.getMax(), symbol.getMin() + reach)));
    raise(values);
    shareRows(values);
    return values;
  }
  std::vector<std::int64_t> largest() const {
    std::vector<std::int64_t> values;
    for (kd::SymbolAttr symbol : symbols)
      values.push_back(symbol.getMax());
    shareRows(values);
    return values;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (kd::SymbolAttr symbol : symbols)
      names.push_back(symbol.getName().str());
    return names;
  }
  double operations(ArrayRef<std::int64_t> values) {
    double sum = 0;
    for (auto entry : module.getOps<func::FuncOp>())
      sum += operationsOf(entry.getBody().front(), values);
    return sum;
  }
  /// Returns "batch=2, tokens=3".
  std::string words(ArrayRef<std::int64_t> values) const {
    std::string text;
    for (auto [symbol, value] : llvm::zip_equal(symbols, values))
      text += (text.empty() ? "" : ", ") + symbol.getName().str() + "=" + std::to_string(value);
    return text;
  }

private:
  /// Raises each symbol to the one that is its lower bound, which may itself be raised.
  void raise(std::vector<std::int64_t> &values) const {
    for (std::size_t round = 0; round < symbols.size(); ++round)
      for (auto [i, symbol] : llvm::enumerate(symbols))
        for (auto [j, other] : llvm::enumerate(symbols))
          if (!symbol.getLeast().empty() && other.getName() == symbol.getLeast())
            values[i] = std::max(values[i], values[j]);
  }

  /// Gives each sequence of a batched entry the same number of rows, with no more in total than the bound allows.
  void shareRows(std::vector<std::int64_t> &values) const {
    if (batch.own < 0)
      return;
    values[batch.count] =
        std::clamp<std::int64_t>(symbols[batch.rows].getMax() / values[batch.own], 1, values[batch.count]);
    values[batch.rows] = values[batch.count] * values[batch.own];
  }

  ModuleOp module;
  Random random;
  SmallVector<kd::SymbolAttr> symbols;
  kd::BatchSymbols batch;
};

/// Draws an input. The numbers of an optimiser's step are those of the first steps of a training.
SharedTensor drawInput(Random &random, func::FuncOp entry, BlockArgument argument, ArrayRef<std::int64_t> extents,
                       bool isPositive) {
  const ElementType element = elementTypeOf(getElementTypeOrSelf(argument.getType()));
  const TensorShape shape = shapeOf(argument.getType(), extents);
  if (argument == kd::getInput(entry, "learning_rate") && element == ElementType::f32)
    return draw(random, element, shape, 0.001, 0.01);
  if (argument == kd::getInput(entry, "step") && element == ElementType::i32 && shape.empty())
    return std::make_shared<const Tensor>(Tensor::of(element, shape, {static_cast<double>(whole(random, 1, 9))}));
  return draw(random, element, shape, isPositive ? 0.05 : -1.5, isPositive ? 0.95 : 1.5);
}

Session drawSession(ModuleOp module, ArrayRef<std::int64_t> extents, const std::string &words, int rounds,
                    Random &random, bool isPositive) {
  Session session;
  for (int round = 0; round < rounds; ++round)
    for (auto entry : module.getOps<func::FuncOp>()) {
      EntryCall call{entry.getName().str(), extents.vec(), {}, words};
      if (round > 0)
        call.words += (words.empty() ? "call " : ", call ") + std::to_string(round + 1);
      for (BlockArgument argument : entry.getArguments())
        if (isa<RankedTensorType>(argument.getType()))
          call.inputs.push_back(drawInput(random, entry, argument, extents, isPositive));
      session.push_back(std::move(call));
    }
  return session;
}

} // namespace

RandomCalls drawCalls(ModuleOp module, std::uint64_t seed, double most) {
  Assignments assignments(module, seed);
  bool hasStates = false;
  module.walk([&](Operation *op) { hasStates |= isa<kd::AppendOp, kd::SlideOp, kd::StateOp, kd::StoreOp>(op); });
  const int rounds = hasStates ? 2 : 1;
  auto isFast = [&](ArrayRef<std::int64_t> values) { return rounds * assignments.operations(values) <= most; };

  std::vector<std::vector<std::int64_t>> chosen{assignments.draw(0)};
  RandomCalls calls;
  calls.symbols = assignments.names();
  const std::vector<std::int64_t> largest = assignments.largest();
  for (std::int64_t reach = 16; reach > 0 && chosen.size() == 1 && largest != chosen[0]; reach /= 2)
    if (std::vector<std::int64_t> between = assignments.draw(reach); isFast(between) && between != chosen[0])
      chosen.push_back(between);
  if (isFast(largest) && !llvm::is_contained(chosen, largest))
    chosen.push_back(largest);
  calls.isSmallestOnly = chosen.size() == 1 && largest != chosen[0];
  Random random(seed ^ 0x9e3779b97f4a7c15U);
  for (auto [i, values] : llvm::enumerate(chosen)) {
    // Every other session has positive numbers, for models with a logarithm or a root.
    const bool isPositive = (seed + i) % 2 == 1;
    calls.sessions.push_back(drawSession(module, values, assignments.words(values), rounds, random, isPositive));
    calls.operations += rounds * assignments.operations(values);
  }
  return calls;
}

RandomWeights::RandomWeights(ModuleOp module, std::uint64_t seed) : seed(seed) { update(module); }

void RandomWeights::update(ModuleOp module) {
  module.walk([&](kd::ParameterOp op) {
    for (auto source : op.getSources().getAsRange<StringAttr>())
      forms[source.getValue()] = {elementTypeOf(getElementTypeOrSelf(op.getType())), shapeOf(op.getType(), {}),
                                  storageOf(op)};
  });
}

SharedTensor RandomWeights::get(const std::string &pattern, const std::string &name) {
  SharedTensor &weight = known[name];
  if (weight)
    return weight;
  auto form = forms.find(pattern);
  if (form == forms.end())
    throw std::runtime_error("parameter: unknown weight; expected one of the model, got " + pattern);
  const TensorShape &shape = form->second.shape;
  Random random(seed ^ llvm::xxh3_64bits(name));
  // Vectors are positive, since they may be variances or scales of rows. Matrices keep the magnitude of values.
  const double inputs = shape.size() < 2 ? 1 : static_cast<double>(interpreter::elementCount(shape) / shape[0]);
  weight = shape.size() < 2 ? draw(random, form->second.element, shape, 0.1, 1.1)
                            : draw(random, form->second.element, shape, -std::sqrt(3 / inputs), std::sqrt(3 / inputs));
  return weight;
}

SharedTensor RandomWeights::getStored(const std::string &pattern, const std::string &name) {
  const SharedTensor weight = get(pattern, name);
  return asStored(weight, forms.find(pattern)->second.storage);
}

} // namespace kiln::verify
