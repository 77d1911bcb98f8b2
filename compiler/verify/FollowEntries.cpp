// SPDX-License-Identifier: Apache-2.0
//
// Passes that change what entries take, return or store. Each function compares what entries had before with what they
// have now, and new results with what they are derived from; then the results of the module are the expected ones.
#include "compiler/dialect/KilnDialect.h"
#include "compiler/dialect/Training.h"
#include "compiler/verify/DerivedCalls.h"
#include "compiler/verify/Gradients.h"
#include "compiler/verify/PassVerifierImpl.h"
#include "kiln/batch.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
namespace kd = mlir::kiln;

namespace kiln::verify {

/// Weights that are stored in fewer bits have other values than before. The previous module has the same results with
/// these values.
std::optional<std::string> PassVerifier::Impl::followStorage() {
  weights.update(module);
  expected = evaluate(*previous, {.isStored = true});
  narrow = narrowed(expected, evaluate(*previous, {.isMoved = true, .isStored = true}));
  last = expected;
  return compareAll();
}

/// Rows are rounded to int8: results are others, and not compared.
std::optional<std::string> PassVerifier::Impl::followRounding() {
  restart();
  return std::nullopt;
}

/// Entries have the same results, followed by gradients.
std::optional<std::string> PassVerifier::Impl::followGradients() {
  Outcome actual = evaluate();
  for (auto [wanted, got] : llvm::zip_equal(expected.results, actual.results))
    for (auto [before, after] : llvm::zip_equal(wanted, got))
      after.resize(std::min(before.size(), after.size()));
  if (auto found = findIn(expected, actual))
    return found;
  llvm::StringSet<> checked;
  for (const EntryCall &call : calls.sessions.front()) {
    auto entry = module.lookupSymbol<func::FuncOp>(call.entry);
    const std::optional<kd::TrainingRequest> request = kd::TrainingRequest::of(entry);
    if (!request || !checked.insert(call.entry).second ||
        !hasSmoothLoss(previous->lookupSymbol<func::FuncOp>(call.entry)))
      continue;
    const bool isSlow = 4 * static_cast<double>(request->parameters.size()) * calls.operations > 2 * mostOperations;
    GradientCheck check = checkGradients(entry, call, weights, /*isJoint=*/isSlow);
    counts.gradients += check.compared;
    counts.undetermined += check.kinks;
    if (!check.difference.empty())
      return check.difference;
  }
  restart();
  return std::nullopt;
}

/// Entries take several micro-batches, and return what a call for each of them returns: means of the loss and the
/// gradients, all other results.
std::optional<std::string> PassVerifier::Impl::followAccumulation() {
  Outcome wanted = expected;
  for (auto [session, results] : llvm::zip_equal(calls.sessions, wanted.results))
    for (auto [call, result] : llvm::zip_equal(session, results)) {
      auto before = previous->lookupSymbol<func::FuncOp>(call.entry),
           after = module.lookupSymbol<func::FuncOp>(call.entry);
      if (before.getArgumentTypes() == after.getArgumentTypes())
        continue;
      DerivedCall derived = accumulatedCall(
          before, *kd::TrainingRequest::of(before), call,
          [&](func::FuncOp entry, const EntryCall &one, auto &states) { return this->call(entry, one, states); });
      call = std::move(derived.call);
      result = std::move(derived.results);
    }
  if (auto found = findIn(wanted, evaluate()))
    return found;
  restart();
  return std::nullopt;
}

/// Keeps the results of an entry that callers get, by their names.
static std::vector<SharedTensor> namedResults(func::FuncOp entry, func::FuncOp other, ArrayRef<SharedTensor> results) {
  llvm::StringMap<bool> known;
  auto nameOf = [](func::FuncOp function, unsigned i) {
    auto name = function.getResultAttrOfType<StringAttr>(i, kd::nameAttrName);
    return name ? name.getValue() : StringRef();
  };
  for (unsigned i = 0; i < other.getNumResults(); ++i)
    known[nameOf(other, i)] = true;
  std::vector<SharedTensor> kept;
  for (unsigned i = 0; i < entry.getNumResults(); ++i)
    if (StringRef name = nameOf(entry, i); !name.empty() && known.contains(name))
      kept.push_back(results[i]);
  return kept;
}

/// A call has the results that callers get as before, if no call has updated weights before it.
std::optional<std::string> PassVerifier::Impl::followUpdates() {
  Outcome wanted = expected, actual = evaluate({.keepsWeights = true});
  for (auto [session, before, after] : llvm::zip_equal(calls.sessions, wanted.results, actual.results))
    for (auto [call, old, now] : llvm::zip_equal(session, before, after)) {
      auto given = previous->lookupSymbol<func::FuncOp>(call.entry),
           entry = module.lookupSymbol<func::FuncOp>(call.entry);
      if (!given->hasAttr(kd::trainingAttrName))
        continue;
      old = namedResults(given, entry, old);
      now = namedResults(entry, given, now);
    }
  if (auto found = findIn(wanted, actual))
    return found;
  restart();
  return std::nullopt;
}

/// The function of a batched entry returns what a call for each sequence returns.
std::optional<std::string> PassVerifier::Impl::followBatches() {
  const std::optional<kd::BatchSymbols> symbols = kd::BatchSymbols::of(*previous);
  if (auto found = compareAll())
    return found;
  Outcome wanted = last;
  for (auto [number, session] : llvm::enumerate(calls.sessions))
    for (const EntryCall &call : std::vector<EntryCall>(session)) {
      auto entry = module.lookupSymbol<func::FuncOp>(call.entry),
           batched = module.lookupSymbol<func::FuncOp>(batch_name(call.entry));
      if (!symbols || !batched || !batched->hasAttr(kd::batchAttrName))
        continue;
      DerivedCall derived = batchedCall(entry, batched, call.extents[symbols->count], call, wanted.states[number],
                                        [&](func::FuncOp one, const EntryCall &own, auto &states) {
                                          return this->call(one, own, states, wanted.written[number]);
                                        });
      session.push_back(std::move(derived.call));
      wanted.results[number].push_back(std::move(derived.results));
    }
  if (auto found = findIn(wanted, evaluate()))
    return found;
  restart();
  return std::nullopt;
}

} // namespace kiln::verify
