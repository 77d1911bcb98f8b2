// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/StoredWeights.h"

#include "kiln/stored_weights.h"
#include "tests/fuzz/Random.h"

namespace kiln::fuzz {

/// Returns the numbers of those parameters.
static std::vector<std::size_t> storableParameters(const Graph &graph) {
  std::vector<int> uses(graph.parameters.size()), others(graph.parameters.size()); // by parameter
  auto count = [&](int id, std::vector<int> &counts) {
    if (const Node &node = graph.nodes[id]; node.op == Op::parameter)
      ++counts[node.attributes.index];
  };
  for (const Node &node : graph.nodes)
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      count(node.operands[i], reads_matrix(graph, node, i) ? uses : others);
  for (const Region &region : graph.regions)
    for (int result : region.results)
      count(result, others);

  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
    const Parameter &parameter = graph.parameters[i];
    if (uses[i] > 0 && others[i] == 0 && parameter.element == ElementType::f32 && parameter.shape.size() >= 2 &&
        !parameter.is_variable)
      numbers.push_back(i);
  }
  return numbers;
}

std::vector<std::string> storableWeights(const Graph &graph) {
  std::vector<std::string> names;
  for (std::size_t number : storableParameters(graph))
    names.push_back(graph.written(graph.parameters[number]));
  return names;
}

std::string drawWeights(const Graph &graph, std::uint64_t seed) {
  Random random(seed ^ 0x57a7ed);
  const std::vector<std::string> names = storableWeights(graph);
  if (names.empty() || !random.percent(46))
    return "";
  const std::vector<std::string> choices = {"f16",   "bf16",      "int8", "fp8",  "mxfp4",    "q8_0",
                                            "nvfp4", "fp8_block", "q4_k", "q6_k", "int4<32>", "int4_zero<64>"};
  const auto kind = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(choices.size()) + 1));
  if (kind < choices.size())
    return choices[kind];
  return "int8 except " + random.from(names) + "=f16";
}

bool drawInt8Rows(std::uint64_t seed) { return Random(seed ^ 0x1278).percent(67); }

void drawStorages(Graph &graph, std::uint64_t seed) {
  Random random(seed ^ 0x5bec);
  const std::vector<Storage> storages = {int8, stored<ElementType::f16>, stored<ElementType::bf16>,
                                         stored<ElementType::f32>};
  for (std::size_t number : storableParameters(graph))
    if (random.percent(75))
      graph.parameters[number].storage = random.from(storages);
}

} // namespace kiln::fuzz
