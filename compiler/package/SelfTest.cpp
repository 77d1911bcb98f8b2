// SPDX-License-Identifier: Apache-2.0
#include "compiler/package/SelfTest.h"

#include "compiler/dialect/ElementTypes.h"
#include "compiler/dialect/KilnDialect.h"
#include "compiler/verify/Outcome.h"
#include "compiler/verify/RandomCalls.h"
#include "runtime/src/core/selftest.h"

#include "mlir/IR/TypeUtilities.h"
#include <fmt/format.h>
#include <limits>

using namespace mlir;
namespace kd = mlir::kiln;

namespace kiln {
namespace {

/// The approximate number of elements that are compared per output.
constexpr uint64_t mostNumbers = 256;
/// Limits on the evaluated weights, which take 16 bytes each and some copies, and on the scalar operations of a
/// session: with larger extents, and with the smallest extents.
constexpr int64_t mostParameters = 250'000'000;
constexpr double mostOperations = 5e7, mostOfSmallest = 3e9;
/// The errors of f32 are at most this factor times the difference between a session's evaluations with and without
/// perturbed numbers.
constexpr double roundings = 4;
/// To these errors rows of int8 add at most this factor times the difference to an evaluation that moves an integer of
/// each row.
constexpr double steps = 2;

uint64_t keyOf(StringRef name, uint64_t seed = 0) { return kiln_selftest_digest(seed, name.data(), name.size()); }

/// The weights, which are computed on first use.
class Weights {
public:
  explicit Weights(const ModelInterface &model) {
    for (const WeightInterface &weight : model.weights)
      forms[weight.name] = &weight;
  }

  verify::SharedTensor get(const std::string &pattern, const std::string &name) {
    verify::SharedTensor &tensor = known[name];
    if (tensor)
      return tensor;
    auto found = forms.find(pattern);
    if (found == forms.end())
      throw std::runtime_error("the model has no weight " + pattern);
    const WeightInterface &form = *found->second;
    const auto elements = static_cast<uint64_t>(interpreter::elementCount(form.shape));
    const float scale = kiln_selftest_scale(elements, form.shape.empty() ? 1 : static_cast<uint64_t>(form.shape[0]));
    const auto rank = static_cast<uint32_t>(form.shape.size());
    const uint64_t key = keyOf(name);
    std::vector<double> values(elements);
    for (auto [i, value] : llvm::enumerate(values))
      value = kiln_selftest_weight(key, i, rank, scale);
    tensor = std::make_shared<const verify::Tensor>(verify::Tensor::of(form.element, form.shape, std::move(values)));
    return tensor;
  }

private:
  llvm::StringMap<const WeightInterface *> forms;
  llvm::StringMap<verify::SharedTensor> known;
};

/// Returns the value of a limit, which unlike an extent may be any number of 64 bits.
int64_t limitValue(const ValueCheck &range, const interpreter::Extents &extents) {
  const int64_t limit = range.limit.fixed() ? range.limit.offset : interpreter::evaluate(range.limit, extents);
  if (limit <= range.minimum)
    throw std::runtime_error(
        fmt::format("an input has no valid value; expected a limit above {}, got {}", range.minimum, limit));
  return limit;
}

/// Creates an input with the values that the runtime uses.
verify::SharedTensor makeInput(const ArgumentInterface &argument, const interpreter::Extents &extents, uint64_t seed) {
  interpreter::TensorShape shape = interpreter::evaluate(argument.shape, extents);
  std::vector<double> values(static_cast<size_t>(interpreter::elementCount(shape)));
  const uint64_t key = keyOf(argument.name, seed);
  const ValueCheck range = argument.check.value_or(ValueCheck{1, Dim(10)});
  const int64_t limit = limitValue(range, extents);
  for (auto [i, value] : llvm::enumerate(values))
    switch (argument.element) {
    case ElementType::i32:
      value = static_cast<double>(kiln_selftest_integer(key, i, range.minimum, limit));
      break;
    case ElementType::i8:
      value = static_cast<double>(kiln_selftest_integer(key, i, -100, 101));
      break;
    case ElementType::boolean:
      value = static_cast<double>(kiln_selftest_integer(key, i, 0, 2));
      break;
    default:
      value = kiln_selftest_float(key, i);
    }
  return std::make_shared<const verify::Tensor>(
      verify::Tensor::of(argument.element, std::move(shape), std::move(values)));
}

/// Converts the drawn calls of entries that are not batched to trials, with the values of the self-test: those of the
/// entries that train, or of the others. A call of one of these ends the other's session in an arena.
verify::Session prepare(const verify::Session &drawn, bool trains, const std::vector<std::string> &symbols,
                        const ModelInterface &model, std::vector<SelfTestTrial> &trials) {
  verify::Session session;
  for (const verify::EntryCall &call : drawn) {
    const auto entry = llvm::find_if(model.entries, [&](const EntryInterface &e) { return e.name == call.entry; });
    if (entry->isBatch() || entry->changesWeights != trains)
      continue;
    interpreter::Extents extents;
    for (auto [symbol, value] : llvm::zip_equal(symbols, call.extents))
      extents[symbol] = value;
    SelfTestTrial trial;
    trial.entry = static_cast<uint32_t>(entry - model.entries.begin());
    trial.seed = static_cast<uint32_t>(trials.size() + 1);
    trial.isFirst = session.empty();
    for (const Symbol &symbol : entry->symbols)
      trial.extents.push_back(extents.at(symbol.name));
    trials.push_back(std::move(trial));
    verify::EntryCall prepared{call.entry, call.extents, {}, call.words};
    for (const ArgumentInterface &argument : entry->arguments)
      if (!argument.isOutput)
        prepared.inputs.push_back(makeInput(argument, extents, trials.back().seed));
    session.push_back(std::move(prepared));
  }
  return session;
}

/// What an evaluation changes: weights, constants and inputs by one rounding of f32, or integers of quantised rows.
enum class Moved { nothing, numbers, integers };

/// Moves one integer of each row by a step, as another order of operations does in a few rows.
void moveIntegers(verify::Tensor &rows) {
  const auto width = static_cast<size_t>(rows.shape.back());
  for (size_t row = 0; row * width < rows.values.size(); ++row) {
    double &value = rows.values[row * width + row % width];
    value += value > 0 ? -1 : 1;
  }
}

verify::Outcome evaluate(ModuleOp module, const std::vector<verify::Session> &sessions, Weights &weights, Moved moved) {
  verify::Outcome outcome;
  for (const verify::Session &session : sessions) {
    verify::ModuleInterpreter interpreter(
        [&](const std::string &pattern, const std::string &name) { return weights.get(pattern, name); });
    if (moved == Moved::numbers)
      interpreter.given = verify::perturbed;
    if (moved == Moved::integers)
      interpreter.quantized = moveIntegers;
    std::vector<std::vector<verify::SharedTensor>> &results = outcome.results.emplace_back();
    for (const verify::EntryCall &call : session) {
      std::vector<verify::SharedTensor> inputs = call.inputs;
      if (moved == Moved::numbers)
        for (verify::SharedTensor &input : inputs)
          input = std::make_shared<const verify::Tensor>(verify::perturbed(*input));
      results.push_back(interpreter.run(module.lookupSymbol<func::FuncOp>(call.entry), call.extents, inputs));
    }
    outcome.states.push_back(std::move(interpreter.states));
  }
  return outcome;
}

bool quantizesRows(ModuleOp module) {
  return module.walk([](kd::QuantizeRowsOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// Whether some values between ops are rounded to few bits: 16-bit floats, and caches of int8. A difference of one
/// rounding of f32 then seldom shows what a difference of another order of operations does.
bool hasFewBits(ModuleOp module) {
  return module
      .walk([](Operation *op) {
        return !isa<kd::QuantizeRowsOp>(op) && llvm::any_of(op->getResultTypes(),
                                                            [](Type type) {
                                                              Type element = getElementTypeOrSelf(type);
                                                              return element.isF16() || element.isBF16() ||
                                                                     element.isInteger(8);
                                                            })
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

SelfTestOutput sample(const verify::Tensor &wanted, double factor) {
  SelfTestOutput output;
  const auto count = static_cast<uint64_t>(wanted.size());
  output.stride = (count + mostNumbers - 1) / mostNumbers | 1; // odd, so that the samples reach all columns
  for (uint64_t i = 0; i < count; i += output.stride) {
    output.values.push_back(wanted.values[i]);
    output.tolerances.push_back(wanted.errors[i] * factor);
  }
  return output;
}

llvm::Error check(const ModelInterface &model, const verify::RandomCalls &calls) {
  for (const WeightInterface &weight : model.weights)
    if (!floating(weight.element))
      return llvm::createStringError(
          fmt::format("self-test: unsupported element type; expected weights of floats, got {} of \"{}\"",
                      name_of(weight.element), weight.name));
  if (model.parameters > mostParameters)
    return llvm::createStringError(
        fmt::format("self-test: too many parameters; expected at most {}, got {}", mostParameters, model.parameters));
  if (calls.operations > mostOfSmallest)
    return llvm::createStringError(
        fmt::format("self-test: smallest calls are too large; expected at most {:.0e} operations, got {:.0e}",
                    mostOfSmallest, calls.operations));
  return llvm::Error::success();
}

double largestDifference(const verify::Tensor &a, const verify::Tensor &b) {
  double largest = 0;
  for (auto [x, y] : llvm::zip_equal(a.values, b.values))
    if (std::isfinite(x) && std::isfinite(y))
      largest = std::max(largest, std::abs(x - y));
  return largest;
}

/// Evaluates the trials with their error bounds. Throws std::runtime_error for what the interpreter cannot hold.
verify::Outcome evaluateWithBounds(ModuleOp module, const std::vector<verify::Session> &sessions, Weights &weights,
                                   bool isNarrow) {
  verify::Outcome expected = evaluate(module, sessions, weights, Moved::nothing);
  if (!isNarrow)
    return expected;
  const verify::Outcome bounds = expected;
  auto changeErrors = [&](const verify::Outcome &other, auto errorOf) {
    expected.zip(other, [&](verify::SharedTensor &tensor, const verify::SharedTensor &counterpart) {
      verify::Tensor changed = *tensor;
      errorOf(changed, *counterpart);
      tensor = std::make_shared<const verify::Tensor>(std::move(changed));
    });
  };
  expected = verify::narrowed(expected, evaluate(module, sessions, weights, Moved::numbers));
  changeErrors(bounds, [](verify::Tensor &tensor, const verify::Tensor &) {
    for (double &error : tensor.errors)
      error *= roundings;
  });
  if (quantizesRows(module))
    changeErrors(evaluate(module, sessions, weights, Moved::integers),
                 [](verify::Tensor &tensor, const verify::Tensor &stepped) {
                   const double most = largestDifference(tensor, stepped);
                   for (double &error : tensor.errors)
                     error += steps * most;
                 });
  changeErrors(bounds, [](verify::Tensor &tensor, const verify::Tensor &bound) {
    for (auto [error, most] : llvm::zip_equal(tensor.errors, bound.errors))
      error = std::min(error, most);
  });
  return expected;
}

/// Records samples of the results; returns whether some of them has a finite tolerance.
bool addSamples(const verify::Outcome &expected, bool tf32, std::vector<SelfTestTrial> &trials) {
  size_t next = 0;
  bool finds = false;
  for (const auto &session : expected.results)
    for (const auto &results : session) {
      SelfTestTrial &trial = trials[next++];
      for (const verify::SharedTensor &result : results) {
        trial.outputs.push_back(sample(*result, tf32 ? 0x1p13 : 1)); // tf32 has 13 bits fewer
        finds |= llvm::any_of(trial.outputs.back().tolerances,
                              [](double tolerance) { return tolerance < std::numeric_limits<double>::infinity(); });
      }
    }
  return finds;
}

llvm::Expected<std::vector<SelfTestTrial>> evaluateTrials(ModuleOp module, const ModelInterface &model, bool tf32) {
  const verify::RandomCalls calls = verify::drawCalls(module, /*seed=*/1, mostOperations);
  if (llvm::Error wrong = check(model, calls))
    return std::move(wrong);
  std::vector<SelfTestTrial> trials;
  std::vector<verify::Session> sessions;
  for (const verify::Session &drawn : calls.sessions)
    for (const bool trains : {false, true})
      sessions.push_back(prepare(drawn, trains, calls.symbols, model, trials));
  Weights weights(model);
  // The error bounds assume f32 with one rounding per operation. With few roundings they become too wide after many
  // layers; the effect of perturbed numbers is then a tighter bound.
  const bool isNarrow = !hasFewBits(module) && !tf32;
  if (!addSamples(evaluateWithBounds(module, sessions, weights, isNarrow), tf32, trials))
    return llvm::createStringError("self-test: no determined output; expected at least one, got none");
  return std::move(trials);
}

} // namespace

llvm::Expected<std::vector<SelfTestTrial>> evaluateSelfTest(ModuleOp module, const ModelInterface &model, bool tf32) {
  try {
    return evaluateTrials(module, model, tf32);
  } catch (const std::exception &error) {
    return llvm::createStringError(fmt::format("the self-test cannot be evaluated: {}", error.what()));
  }
}

} // namespace kiln
