// SPDX-License-Identifier: Apache-2.0
#include "compiler/tuner/OldKeys.h"

#include "compiler/schedule/KernelKey.h"
#include "compiler/tuner/LoweredModel.h"

namespace kiln {

using namespace mlir;

/// Returns the structure of an old key: that of the kernel as the target compiles it.
static std::string oldStructure(func::FuncOp kernel) { return hashText(structureText(kernel), 16); }

RenamedKeys renameStructures(const TuningDatabase &database, const NewStructures &newStructures) {
  std::set<std::string> current;
  for (const auto &[old, structures] : newStructures)
    current.insert(structures.begin(), structures.end());
  RenamedKeys keys;
  auto add = [&](const TuningCase &of, const TuningResult &result) {
    TuningDatabase single;
    single.put(of, result);
    keys.database.merge(single);
  };
  for (const auto &[of, result] : database.records()) {
    auto found = newStructures.find(of.structure);
    if (found == newStructures.end()) {
      ++(current.count(of.structure) ? keys.current : keys.unknown);
      add(of, result);
      continue;
    }
    for (const std::string &structure : found->second) {
      TuningCase renamed = of;
      renamed.structure = structure;
      add(renamed, result);
      ++(structure == of.structure ? keys.current : keys.renamed[{of.structure, structure}]);
    }
  }
  return keys;
}

llvm::Expected<RenamedKeys> renameOldKeys(const Graph &graph, const std::string &name, const LoweringOptions &options,
                                          const TuningDatabase &database) {
  auto models = lowerMeasured(graph, name, database, options);
  if (!models)
    return models.takeError();
  NewStructures structures;
  for (const std::unique_ptr<LoweredModel> &model : *models)
    for (func::FuncOp kernel : model->kernels())
      structures[oldStructure(kernel)].insert(keyOf(kernel).structure);
  return renameStructures(database, structures);
}

} // namespace kiln
