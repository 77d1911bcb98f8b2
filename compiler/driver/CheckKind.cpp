// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/CheckKind.h"

#include "runtime/src/core/model.h"
#include "llvm/ADT/STLExtras.h"
#include <fmt/format.h>

namespace kiln {
namespace {

struct Request {
  const ModelInterface &model;
  const CompileOptions &options;
  llvm::ArrayRef<const Target *> targets;

  const RankChoices &ranks() const { return options.lowering.ranks; }
};

/// Each returns why a library is of a kind, or an empty string if it is not.
using Kind = std::string (*)(const Request &);

std::string withFunctions(const Request &request) {
  if (request.model.functions.empty())
    return "";
  return fmt::format("custom: function \"{}\" is defined by the program", request.model.functions.front().name);
}

std::string ofProcesses(const Request &request) {
  const RankChoices &ranks = request.ranks();
  const bool isForOne = ranks.ranks == 1 && ranks.replicas == 1 && ranks.stages == 1;
  return isForOne ? "" : flagsOf(ranks).substr(1) + ": library for several processes";
}

std::string ofReplicas(const Request &request) {
  const int64_t replicas = request.ranks().replicas;
  return replicas == 1 ? "" : fmt::format("--replicas {}: library of replicas", replicas);
}

std::string ofStages(const Request &request) {
  const int64_t stages = request.ranks().stages;
  return stages == 1 ? "" : fmt::format("--stages {}: library of pipeline stages", stages);
}

/// Each returns what a request has of a feature, or an empty string for nothing.
using Feature = std::string (*)(const Request &);

std::string processes(const Request &request) {
  return ofProcesses(request).empty() ? "" : flagsOf(request.ranks()).substr(1);
}

std::string gpu(const Request &request) {
  auto isGpu = [](const Target *target) { return target->info().memorySpace != KILN_MEMORY_HOST; };
  const auto *found = llvm::find_if(request.targets, isGpu);
  return found == request.targets.end() ? "" : (*found)->info().name;
}

std::string selfTest(const Request &request) { return request.options.hasSelfTest ? "one" : ""; }
std::string embeddedWeights(const Request &request) { return request.options.embedded ? "some" : ""; }
std::string sharedObject(const Request &request) { return request.options.isShared ? "a shared object" : ""; }

std::string bindings(const Request &request) {
  return request.options.bindings.empty() ? "" : "those for " + request.options.bindings.front();
}

/// A library of the kind cannot have the feature.
struct Exclusion {
  Kind kind;
  Feature feature;
  const char *expected;
};

constexpr Exclusion exclusions[] = {
    {withFunctions, processes, "one process"},
    {withFunctions, gpu, "CPUs as targets"},
    {withFunctions, selfTest, "no self-test, since the compiler cannot call the function"},
    {withFunctions, sharedObject, "an archive, since nothing defines the function in a shared object"},
    {withFunctions, bindings, "no bindings, since the function is one of C"},
    {ofProcesses, selfTest, "no self-test"},
    {ofProcesses, embeddedWeights, "no embedded weights"},
    {ofProcesses, bindings, "no bindings, since its calls take communicators, which are functions of C"},
    {ofReplicas, gpu, "CPUs as targets"},
    {ofStages, gpu, "CPUs as targets"},
};

} // namespace

std::string checkKind(const ModelInterface &model, const CompileOptions &options,
                      llvm::ArrayRef<const Target *> targets) {
  const Request request{model, options, targets};
  for (const Exclusion &each : exclusions)
    if (const std::string kind = each.kind(request), got = each.feature(request); !kind.empty() && !got.empty())
      return fmt::format("{}; expected {}, got {}", kind, each.expected, got);
  return "";
}

} // namespace kiln
