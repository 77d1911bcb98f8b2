// SPDX-License-Identifier: Apache-2.0
//
// The storage formats that a trial chooses for the weights of a random model.
#include "StoredWeights.h"
#include "Trial.h"
#include "llvm/ADT/STLExtras.h"

namespace kiln::fuzz {

std::string weightsFor(const Graph &graph, const std::string &choice) {
  std::string error;
  std::optional<StorageChoices> choices = parseStorageChoices(choice, error);
  if (!choices)
    return choice;
  const std::vector<std::string> names = storableWeights(graph);
  llvm::erase_if(choices->exceptions, [&](const StorageChoices::Exception &exception) {
    return llvm::none_of(
        names, [&](const std::string &name) { return detail::matches(exception.pattern.c_str(), name.c_str()); });
  });
  return toString(*choices);
}

bool multipliesInt8(const Graph &graph, const std::string &choice) {
  std::string error;
  const std::optional<StorageChoices> choices = parseStorageChoices(choice, error);
  const std::vector<std::string> names = storableWeights(graph);
  return choices && llvm::any_of(graph.nodes, [&](const Node &node) {
           if (node.op != Op::linear || graph.nodes[node.operands[1]].op != Op::parameter)
             return false;
           const Parameter &weight = graph.parameters[graph.nodes[node.operands[1]].attributes.index];
           const std::string name = graph.written(weight);
           const std::int64_t kExtent = weight.shape[node.attributes.weight_order == WeightOrder::in_out ? 0 : 1];
           Storage storage = choices->defaultFormat;
           for (const StorageChoices::Exception &exception : choices->exceptions)
             if (detail::matches(exception.pattern.c_str(), name.c_str()))
               storage = exception.storage;
           return takes_int8_rows(storage.element, storage.group) && kExtent % whole_of(storage) == 0 &&
                  llvm::is_contained(names, name);
         });
}

} // namespace kiln::fuzz
