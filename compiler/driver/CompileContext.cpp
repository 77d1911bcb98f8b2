// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/CompileContext.h"

#include "compiler/driver/CheckKind.h"
#include "compiler/driver/CheckRanks.h"
#include "compiler/library/Bindings.h"
#include "compiler/library/CustomFunctions.h"
#include "compiler/library/Names.h"
#include "compiler/object/ReplaceFile.h"
#include "compiler/package/Archive.h"
#include "runtime/src/core/model.h"
#include "targets/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace mlir;

namespace kiln {

LogicalResult CompileContext::fail(const std::string &message) const {
  errors << "error: " << message << "\n";
  return failure();
}

LogicalResult CompileContext::fail(llvm::Error error) const { return fail(llvm::toString(std::move(error))); }

LogicalResult CompileContext::write(const std::string &path, StringRef text) const {
  llvm::Error error = writeFile(path, text);
  return error ? fail(std::move(error)) : success();
}

/// Returns the triple of the host code: that of the first CPU target. Empty if there are only GPUs, whose host code is
/// then for this machine.
static std::string hostTripleOf(const std::vector<std::string> &names) {
  for (const std::string &name : names)
    if (const Target *target = findTarget(name); target && target->info().memorySpace == KILN_MEMORY_HOST)
      return target->info().hostTriple;
  return "";
}

static llvm::Expected<std::vector<const Target *>> findTargets(const std::vector<std::string> &names) {
  if (names.empty())
    return llvm::createStringError("compile: no target; expected at least one");
  const std::string host = hostTripleOf(names);
  std::vector<const Target *> targets;
  for (const std::string &name : names) {
    const Target *form = findTarget(name, host), *target = form ? form : findTarget(name);
    if (!target)
      return llvm::createStringError(
          fmt::format("target \"{}\": unknown; expected one of {}", name, fmt::join(targetNames(), ", ")));
    targets.push_back(target);
    const TargetInfo &first = targets.front()->info();
    if (target->info().hostTriple != first.hostTriple)
      return llvm::createStringError(
          fmt::format("targets: several architectures or systems; expected one, got {} of {} and {} of {}", first.name,
                      first.hostTriple, name, target->info().hostTriple));
  }
  return targets;
}

/// Returns why no bindings can be written, or an empty string.
static std::string checkBindings(const CompileOptions &options) {
  if (llvm::is_contained(options.bindings, "python") && !options.isShared)
    return "bindings: Python loads a shared object; expected --shared with --bindings python, got an archive";
  return checkBindingName(options.name, options.bindings);
}

FailureOr<CompileContext> beginCompilation(const Graph &graph, const CompileOptions &options, raw_ostream &errors) {
  CompileContext context{graph, options, errors};
  if (std::string wrong = checkModelName(options.name); !wrong.empty())
    return context.fail(wrong);
  FailureOr<std::vector<const Target *>> targets = context.require(findTargets(options.targets));
  if (failed(targets))
    return failure();
  context.targets = std::move(*targets);
  if (std::string wrong = checkRanks(graph, options.lowering); !wrong.empty())
    return context.fail(wrong);
  if (std::string wrong = checkBindings(options); !wrong.empty())
    return context.fail(wrong);
  context.described = describeInterface(graph, options.name);
  if (std::string wrong = checkExtents(context.described, options.extents); !wrong.empty())
    return context.fail(wrong);
  if (std::string wrong = describeCustomFunctions(graph, context.described); !wrong.empty())
    return context.fail(wrong);
  if (std::string wrong = checkKind(context.described, options, context.targets); !wrong.empty())
    return context.fail(wrong);
  context.described.embedsWeights = options.embedded.has_value();
  context.described.hasSelfTest = options.hasSelfTest;
  FailureOr<std::vector<ObjectFile>> runtime = context.require(readRuntime(*context.targets.front()));
  if (failed(runtime))
    return failure();
  context.runtime = std::move(*runtime);
  if (llvm::Error wrong = checkNames(context.described, context.runtime))
    return context.fail(std::move(wrong));
  return context;
}

} // namespace kiln
