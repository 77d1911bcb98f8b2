// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/CheckCustom.h"

#include "runtime/src/core/model.h"
#include <fmt/format.h>

namespace kiln {

std::string checkCustom(const ModelInterface &model, const CompileOptions &options,
                        llvm::ArrayRef<const Target *> targets) {
  if (model.functions.empty())
    return "";
  auto wrong = [&](const std::string &problem) {
    return fmt::format("custom: function \"{}\" is defined by the program; expected {}", model.functions.front().name,
                       problem);
  };
  const RankChoices &ranks = options.lowering.ranks;
  if (ranks.ranks > 1 || ranks.replicas > 1 || ranks.stages > 1)
    return wrong(fmt::format("one rank, one replica and one stage, got {}, {} and {}", ranks.ranks, ranks.replicas,
                             ranks.stages));
  for (const Target *target : targets)
    if (target->info().memorySpace != KILN_MEMORY_HOST)
      return wrong("CPUs as targets, got " + target->info().name);
  if (options.hasSelfTest)
    return wrong("no self-test, since the compiler cannot call the function, got one");
  if (options.isShared)
    return wrong("an archive, since nothing defines the function in a shared object, got a shared object");
  if (!options.bindings.empty())
    return wrong("no bindings, since the function is one of C, got those for " + options.bindings.front());
  return "";
}

} // namespace kiln
