// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/PassVerifier.h"

#include <fmt/format.h>

#include "compiler/dialect/KilnDialect.h"
#include "compiler/dialect/Training.h"
#include "compiler/verify/DerivedCalls.h"
#include "compiler/verify/Gradients.h"
#include "compiler/verify/KernelSamples.h"
#include "compiler/verify/Outcome.h"
#include "kiln/batch.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
namespace kd = mlir::kiln;

namespace kiln::verify {

/// Whether only several processes together have the results of the module.
static bool isDistributed(ModuleOp module) {
  if (kd::getNumRanks(module, kd::Group::Ranks) > 1 || kd::getNumRanks(module, kd::Group::Stages) > 1)
    return true;
  const bool hasReplicas = kd::getNumRanks(module, kd::Group::Replicas) > 1;
  return hasReplicas && (module->hasAttr(kd::reductionPartsAttrName) || module
                                                                            ->walk([](Operation *op) {
                                                                              return isa<kd::FinishOp, kd::RankOp>(op)
                                                                                         ? WalkResult::interrupt()
                                                                                         : WalkResult::advance();
                                                                            })
                                                                            .wasInterrupted());
}

/// Whether the verifier needs the module from before the pass.
static bool changesEntries(Pass *pass) {
  return llvm::is_contained(
      {"kiln-store-weights", "kiln-differentiate", "kiln-accumulate", "kiln-add-optimizer", "kiln-batch-entries"},
      pass->getArgument());
}

/// How a module is evaluated.
struct Manner {
  bool isMoved = false;      // with perturbed constants, weights and inputs
  bool keepsWeights = false; // weights that a call writes are as before in the next call
  bool isStored = false;     // weights have the values of their storage formats, also where no op states one
};

class PassVerifier::Impl {
public:
  Impl(ModuleOp module, const VerifyOptions &options);

  void beforePass(Pass *pass, Operation *op);
  void afterPass(Pass *pass, Operation *op);
  void afterFailure(Pass *pass, Operation *op);

  std::string difference, failedPass, stoppedAt;
  VerifyCounts counts;
  RandomCalls calls;
  Outcome expected; // with the bounds of correct implementations
  RandomWeights weights;

private:
  /// Runs all calls.
  Outcome evaluate(Manner manner = {}) { return evaluate(module, manner); }
  Outcome evaluate(ModuleOp evaluatedModule, Manner manner);
  std::vector<SharedTensor> call(func::FuncOp entry, const EntryCall &call, std::map<std::string, SharedTensor> &states,
                                 const std::map<std::string, SharedTensor> &written = {});
  std::string nameOf(Pass *pass);
  void compare(const std::string &pass, StringRef argument);
  std::optional<std::string> findIn(const Outcome &wanted, const Outcome &actual) {
    return findDifference(wanted, actual, calls, module, counts.elements, counts.undetermined);
  }
  /// Compares all results with those of the last stage, and keeps the new ones.
  std::optional<std::string> compareAll();
  /// Makes the results of the module the expected ones.
  void restart();

  // Passes that change what entries take, return or store. They return a difference, or nothing.
  std::optional<std::string> followStorage();
  std::optional<std::string> followGradients();
  std::optional<std::string> followAccumulation();
  std::optional<std::string> followUpdates();
  std::optional<std::string> followBatches();
  void compareKernel(const std::string &pass, func::FuncOp kernel);
  /// Runs the function, and keeps the message of an exception in `difference`.
  template <class Function> void guarded(const std::string &pass, Function function);

  ModuleOp module;
  const double mostOperations;
  const bool isDistributedFirst;  // only several processes together have the results of the module as it is given
  OwningOpRef<ModuleOp> previous; // the module before a pass that changes its entries
  Outcome narrow;                 // with the bounds of two evaluations in the same arithmetic
  Outcome last;                   // results of the last stage
  bool isOtherArithmetic = false; // since the last stage: passes changed the arithmetic of single kernels
  KernelSamples samples;
  std::optional<OperationFingerPrint> evaluated, before; // the module when it ran last; the op before a nested pass
  llvm::MapVector<Pass *, std::string> names;
  std::vector<std::string> nested; // passes on functions since the last pass on the module
};

PassVerifier::Impl::Impl(ModuleOp module, const VerifyOptions &options)
    : weights(module, options.seed), module(module), mostOperations(options.mostOperations),
      isDistributedFirst(isDistributed(module)) {
  try {
    calls = drawCalls(module, options.seed, options.mostOperations);
    restart();
  } catch (const std::exception &error) {
    difference = std::string("the imported model cannot be evaluated: ") + error.what();
  }
}

Outcome PassVerifier::Impl::evaluate(ModuleOp evaluatedModule, Manner manner) {
  Outcome outcome;
  samples.clear();
  auto moved = [&](const SharedTensor &tensor) {
    return manner.isMoved ? std::make_shared<const Tensor>(perturbed(*tensor)) : tensor;
  };
  for (std::size_t session = 0; session < calls.sessions.size(); ++session) {
    const EntryCall *current = nullptr;
    ModuleInterpreter interpreter(
        [&](const std::string &pattern, const std::string &name) {
          return manner.isStored ? weights.getStored(pattern, name) : weights.get(pattern, name);
        },
        [&](func::FuncOp kernel, ArrayRef<std::int64_t> extents, ArrayRef<SharedTensor> arguments) {
          samples.add(kernel, extents, arguments, session, current->entry, current->words);
        });
    if (manner.isMoved)
      interpreter.given = perturbed;
    std::vector<std::vector<SharedTensor>> &results = outcome.results.emplace_back();
    for (const EntryCall &call : calls.sessions[session]) {
      current = &call;
      auto entry = evaluatedModule.lookupSymbol<func::FuncOp>(call.entry);
      if (!entry)
        throw std::runtime_error("there is no entry " + call.entry);
      try {
        results.push_back(interpreter.run(entry, call.extents, llvm::map_to_vector(call.inputs, moved)));
      } catch (const std::exception &error) {
        throw std::runtime_error(call.entry + ": " + error.what() +
                                 (call.words.empty() ? "" : " (" + call.words + ")"));
      }
      if (manner.keepsWeights)
        interpreter.written.clear();
    }
    outcome.states.push_back(std::move(interpreter.states));
    outcome.written.push_back(std::move(interpreter.written));
  }
  ++counts.evaluations;
  evaluated = OperationFingerPrint(module);
  return outcome;
}

std::vector<SharedTensor> PassVerifier::Impl::call(func::FuncOp entry, const EntryCall &call,
                                                   std::map<std::string, SharedTensor> &states,
                                                   const std::map<std::string, SharedTensor> &written) {
  ModuleInterpreter interpreter(
      [&](const std::string &pattern, const std::string &name) { return weights.get(pattern, name); });
  interpreter.states = states;
  interpreter.written = written;
  std::vector<SharedTensor> results = interpreter.run(entry, call.extents, call.inputs);
  states = std::move(interpreter.states);
  return results;
}

void PassVerifier::Impl::restart() {
  expected = evaluate();
  narrow = narrowed(expected, evaluate({.isMoved = true}));
  last = expected;
  isOtherArithmetic = false;
}

/// Returns the name on the command line, with a number if it is not the first pass of that name.
std::string PassVerifier::Impl::nameOf(Pass *pass) {
  auto [entry, isNew] = names.try_emplace(pass, "");
  if (isNew) {
    const std::string name = pass->getArgument().empty() ? pass->getName().str() : pass->getArgument().str();
    const auto earlier = llvm::count_if(names, [&](const auto &other) {
      return other.second == name || StringRef(other.second).starts_with(name + " (run ");
    });
    entry->second = earlier == 0 ? name : fmt::format("{} (run {})", name, earlier + 1);
  }
  return entry->second;
}

template <class Function> void PassVerifier::Impl::guarded(const std::string &pass, Function function) {
  try {
    function();
  } catch (const std::exception &error) {
    difference = fmt::format("{} left what cannot be evaluated: {}", pass, error.what());
  }
}

/// The adaptor that runs passes on functions is itself a pass without a name on the command line.
static bool isAdaptor(Pass *pass, Operation *op) { return isa<ModuleOp>(op) && pass->getArgument().empty(); }

void PassVerifier::Impl::beforePass(Pass *pass, Operation *op) {
  if (!difference.empty())
    return;
  if (isAdaptor(pass, op)) {
    nested.clear();
    return;
  }
  auto function = dyn_cast<func::FuncOp>(op);
  if (!function) {
    previous = isa<ModuleOp>(op) && changesEntries(pass) ? module.clone() : ModuleOp();
    return;
  }
  before = OperationFingerPrint(op);
  if (function->hasAttr(kd::kernelAttrName))
    guarded("a pass before " + nameOf(pass), [&] { samples.expect(function); });
}

void PassVerifier::Impl::afterPass(Pass *pass, Operation *op) {
  if (!difference.empty())
    return;
  if (auto function = dyn_cast<func::FuncOp>(op)) {
    const std::string name = nameOf(pass);
    if (!llvm::is_contained(nested, name))
      nested.push_back(name);
    if (before == OperationFingerPrint(op))
      return;
    if (function->hasAttr(kd::kernelAttrName))
      compareKernel(name, function);
    else
      compare(name, "");
  } else if (isa<ModuleOp>(op)) {
    samples.follow(module);
    compare(isAdaptor(pass, op) ? fmt::format("{}", fmt::join(nested, ", ")) : nameOf(pass), pass->getArgument());
  }
}

/// If a pass on a function fails, the adaptor that runs it fails, too.
void PassVerifier::Impl::afterFailure(Pass *pass, Operation *op) {
  if (difference.empty() && failedPass.empty() && !isAdaptor(pass, op))
    failedPass = nameOf(pass);
}

void PassVerifier::Impl::compareKernel(const std::string &pass, func::FuncOp kernel) {
  guarded(pass, [&] {
    ++counts.kernels;
    isOtherArithmetic = true;
    if (auto found = samples.compare(kernel, counts.elements, counts.undetermined))
      difference = pass + " changed " + *found;
  });
}

void PassVerifier::Impl::compare(const std::string &pass, StringRef argument) {
  if (!stoppedAt.empty() || (evaluated && *evaluated == OperationFingerPrint(module)))
    return;
  if (!isDistributedFirst && isDistributed(module)) {
    stoppedAt = pass;
    return;
  }
  guarded(pass, [&] {
    std::optional<std::string> found;
    if (argument == "kiln-store-weights")
      found = followStorage();
    else if (argument == "kiln-differentiate")
      found = followGradients();
    else if (argument == "kiln-accumulate")
      found = followAccumulation();
    else if (argument == "kiln-add-optimizer")
      found = followUpdates();
    else if (argument == "kiln-batch-entries")
      found = followBatches();
    else if (argument == "kiln-quantize-rows")
      restart(); // rows are rounded
    else
      found = compareAll();
    if (found)
      difference = pass + " changed " + *found;
  });
}

std::optional<std::string> PassVerifier::Impl::compareAll() {
  const KernelSamples kept = samples;
  Outcome actual = evaluate();
  if (samples.empty())
    samples = kept;
  std::optional<std::string> found = findIn(expected, actual);
  if (!found && !isOtherArithmetic)
    found = findIn(withBounds(last, narrow), actual);
  last = std::move(actual);
  isOtherArithmetic = false;
  return found;
}

/// Weights that are stored in fewer bits have other values than before. The previous module has the same results with
/// these values.
std::optional<std::string> PassVerifier::Impl::followStorage() {
  weights.update(module);
  expected = evaluate(*previous, {.isStored = true});
  narrow = narrowed(expected, evaluate(*previous, {.isMoved = true, .isStored = true}));
  last = expected;
  return compareAll();
}

/// Entries have the same results, followed by gradients.
std::optional<std::string> PassVerifier::Impl::followGradients() {
  Outcome actual = evaluate();
  for (auto [wanted, got] : llvm::zip_equal(expected.results, actual.results))
    for (auto [before, after] : llvm::zip_equal(wanted, got))
      after.resize(std::min(before.size(), after.size()));
  if (auto found = findIn(expected, actual))
    return found;
  for (const EntryCall &call : calls.sessions.front()) {
    auto entry = module.lookupSymbol<func::FuncOp>(call.entry);
    const std::optional<kd::TrainingRequest> request = kd::TrainingRequest::of(entry);
    if (!request || !hasSmoothLoss(previous->lookupSymbol<func::FuncOp>(call.entry)))
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

class PassVerifier::Hook : public PassInstrumentation {
public:
  explicit Hook(Impl &verifier) : verifier(verifier) {}

  void runBeforePass(Pass *pass, Operation *op) override { verifier.beforePass(pass, op); }
  void runAfterPass(Pass *pass, Operation *op) override {
    verifier.afterPass(pass, op);
    if (!verifier.difference.empty())
      signalPassFailure(pass);
  }
  void runAfterPassFailed(Pass *pass, Operation *op) override { verifier.afterFailure(pass, op); }

private:
  Impl &verifier;
};

PassVerifier::PassVerifier(ModuleOp module, const VerifyOptions &options)
    : impl(std::make_unique<Impl>(module, options)) {}
PassVerifier::~PassVerifier() = default;

void PassVerifier::attach(PassManager &passes) { passes.addInstrumentation(std::make_unique<Hook>(*impl)); }

const std::string &PassVerifier::failedPass() const { return impl->failedPass; }
const std::string &PassVerifier::difference() const { return impl->difference; }
const VerifyCounts &PassVerifier::counts() const { return impl->counts; }
const std::string &PassVerifier::stoppedAt() const { return impl->stoppedAt; }
const RandomCalls &PassVerifier::calls() const { return impl->calls; }
const std::vector<std::vector<std::vector<SharedTensor>>> &PassVerifier::expected() const {
  return impl->expected.results;
}
SharedTensor PassVerifier::weight(const std::string &pattern, const std::string &name) {
  return impl->weights.getStored(pattern, name);
}

} // namespace kiln::verify
