// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/PassVerifier.h"

#include <fmt/format.h>

#include "compiler/dialect/KilnDialect.h"
#include "compiler/verify/KernelSamples.h"
#include "compiler/verify/Outcome.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
namespace kd = mlir::kiln;

namespace kiln::verify {

class PassVerifier::Impl {
public:
  Impl(ModuleOp module, const VerifyOptions &options);

  void beforePass(Pass *pass, Operation *op);
  void afterPass(Pass *pass, Operation *op);
  void afterFailure(Pass *pass, Operation *op);

  std::string difference, failedPass;
  VerifyCounts counts;
  RandomCalls calls;
  Outcome expected; // with the bounds of correct implementations
  RandomWeights weights;

private:
  /// Runs all calls. `isMoved`: with perturbed constants, weights and inputs.
  Outcome evaluate(bool isMoved = false);
  std::string nameOf(Pass *pass);
  void compare(const std::string &pass);
  void compareKernel(const std::string &pass, func::FuncOp kernel);
  /// Runs the function, and keeps the message of an exception in `difference`.
  template <class Function> void guarded(const std::string &pass, Function function);

  ModuleOp module;
  Outcome narrow;                 // with the bounds of two evaluations in the same arithmetic
  Outcome last;                   // results of the last stage
  bool isOtherArithmetic = false; // since the last stage: passes changed the arithmetic of single kernels
  KernelSamples samples;
  std::optional<OperationFingerPrint> evaluated, before; // the module when it ran last; the op before a nested pass
  llvm::MapVector<Pass *, std::string> names;
  std::vector<std::string> nested; // passes on functions since the last pass on the module
};

PassVerifier::Impl::Impl(ModuleOp module, const VerifyOptions &options)
    : weights(module, options.seed), module(module) {
  try {
    calls = drawCalls(module, options.seed, options.mostOperations);
    expected = evaluate();
    narrow = narrowed(expected, evaluate(/*isMoved=*/true));
    last = expected;
  } catch (const std::exception &error) {
    difference = std::string("the imported model cannot be evaluated: ") + error.what();
  }
}

Outcome PassVerifier::Impl::evaluate(bool isMoved) {
  Outcome outcome;
  samples.clear();
  auto moved = [&](const SharedTensor &tensor) {
    return isMoved ? std::make_shared<const Tensor>(perturbed(*tensor)) : tensor;
  };
  for (std::size_t session = 0; session < calls.sessions.size(); ++session) {
    const EntryCall *current = nullptr;
    ModuleInterpreter interpreter(
        [&](const std::string &pattern, const std::string &name) { return weights.get(pattern, name); },
        [&](func::FuncOp kernel, ArrayRef<std::int64_t> extents, ArrayRef<SharedTensor> arguments) {
          samples.add(kernel, extents, arguments, session, current->entry, current->words);
        });
    if (isMoved)
      interpreter.given = perturbed;
    std::vector<std::vector<SharedTensor>> &results = outcome.results.emplace_back();
    for (const EntryCall &call : calls.sessions[session]) {
      current = &call;
      auto entry = module.lookupSymbol<func::FuncOp>(call.entry);
      if (!entry)
        throw std::runtime_error("there is no entry " + call.entry);
      try {
        results.push_back(interpreter.run(entry, call.extents, llvm::map_to_vector(call.inputs, moved)));
      } catch (const std::exception &error) {
        throw std::runtime_error(call.entry + ": " + error.what() +
                                 (call.words.empty() ? "" : " (" + call.words + ")"));
      }
    }
    outcome.states.push_back(std::move(interpreter.states));
  }
  ++counts.evaluations;
  evaluated = OperationFingerPrint(module);
  return outcome;
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
  if (!function)
    return;
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
      compare(name);
  } else if (isa<ModuleOp>(op)) {
    samples.follow(module);
    compare(isAdaptor(pass, op) ? fmt::format("{}", fmt::join(nested, ", ")) : nameOf(pass));
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

void PassVerifier::Impl::compare(const std::string &pass) {
  if (evaluated && *evaluated == OperationFingerPrint(module))
    return;
  guarded(pass, [&] {
    const KernelSamples kept = samples;
    Outcome actual = evaluate();
    if (samples.empty())
      samples = kept;
    auto find = [&](const Outcome &wanted) {
      return findDifference(wanted, actual, calls, module, counts.elements, counts.undetermined);
    };
    std::optional<std::string> found = find(expected);
    if (!found && !isOtherArithmetic)
      found = find(withBounds(last, narrow));
    if (found)
      difference = pass + " changed " + *found;
    last = std::move(actual);
    isOtherArithmetic = false;
  });
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
const RandomCalls &PassVerifier::calls() const { return impl->calls; }
const std::vector<std::vector<std::vector<SharedTensor>>> &PassVerifier::expected() const {
  return impl->expected.results;
}
SharedTensor PassVerifier::weight(const std::string &pattern, const std::string &name) {
  return impl->weights.getStored(pattern, name);
}

} // namespace kiln::verify
