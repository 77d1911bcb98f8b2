// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/PassVerifierImpl.h"

#include <fmt/format.h>

#include "compiler/dialect/KilnDialect.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "llvm/ADT/StringSwitch.h"

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

PassVerifier::Impl::Follow PassVerifier::Impl::followOf(StringRef pass) {
  return llvm::StringSwitch<Follow>(pass)
      .Case("kiln-store-weights", &Impl::followStorage)
      .Case("kiln-quantize-rows", &Impl::followRounding)
      .Case("kiln-differentiate", &Impl::followGradients)
      .Case("kiln-accumulate", &Impl::followAccumulation)
      .Case("kiln-add-optimizer", &Impl::followUpdates)
      .Case("kiln-batch-entries", &Impl::followBatches)
      .Default(nullptr);
}

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
    previous = isa<ModuleOp>(op) && followOf(pass->getArgument()) ? module.clone() : ModuleOp();
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
    const Follow follow = followOf(argument);
    if (std::optional<std::string> found = follow ? (this->*follow)() : compareAll())
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
