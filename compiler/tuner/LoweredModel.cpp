// SPDX-License-Identifier: Apache-2.0
#include "compiler/tuner/LoweredModel.h"

#include "compiler/pipeline/ImportModel.h"
#include "compiler/pipeline/Pipeline.h"
#include <fmt/format.h>

namespace kiln {

llvm::Expected<std::unique_ptr<LoweredModel>> lowerModel(const Graph &graph, const std::string &name,
                                                         llvm::StringRef target, const LoweringOptions &options) {
  auto model = std::make_unique<LoweredModel>();
  model->target = findTarget(target);
  assert(model->target && "targets are checked before");
  loadDialects(model->context);
  model->module = importModel(graph, &model->context, name, options.weights, options.ranks);
  if (!model->module || failed(lowerToKernels(*model->module, *model->target, options)))
    return llvm::createStringError(fmt::format("the model's kernels could not be formed for {}", target.str()));
  model->forms = addShapeVariants(*model->module, *model->target);
  return model;
}

llvm::Expected<std::vector<std::unique_ptr<LoweredModel>>> lowerMeasured(const Graph &graph, const std::string &name,
                                                                         const TuningDatabase &database,
                                                                         const LoweringOptions &options) {
  std::vector<std::unique_ptr<LoweredModel>> models;
  for (const Target *target : allTargets()) {
    auto isOfTarget = [&](const auto &record) { return record.first.machine.isa == target->name(); };
    if (llvm::none_of(database.records(), isOfTarget))
      continue;
    auto model = lowerModel(graph, name, target->name(), options);
    if (!model)
      return model.takeError();
    models.push_back(std::move(*model));
  }
  return models;
}

} // namespace kiln
