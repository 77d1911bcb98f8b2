// SPDX-License-Identifier: Apache-2.0
//
// Entries of gradients: which parameters they give those by, and what the results are called.
#pragma once

#include <string>
#include <vector>

#include "kiln/graph.h"

namespace kiln {

/// "grad_h_mlp_weight" for "h.{}.mlp.weight".
inline std::string gradient_name(const std::string &parameter) {
  std::string name = "grad_";
  for (char letter : parameter)
    if (letter == '.')
      name += '_';
    else if (letter != '{' && letter != '}')
      name += letter;
  for (std::size_t at; (at = name.find("__")) != std::string::npos;)
    name.erase(at, 1);
  return name;
}

namespace detail {
constexpr void mark_parameters(const Graph &graph, int region, std::vector<bool> &read) {
  for (int number : graph.regions[region].nodes) {
    const Node &node = graph.nodes[number];
    if (node.op == Op::parameter)
      read[node.attributes.index] = true;
    if (has_body(node))
      mark_parameters(graph, node.attributes.index, read);
  }
}
} // namespace detail

/// The parameters that an entry of gradients gives those by, after its own results: all floats that it reads, in the
/// graph's order.
constexpr std::vector<int> gradient_parameters(const Graph &graph, const Entry &entry) {
  std::vector<int> result;
  if (!entry.gradients)
    return result;
  std::vector<bool> read(graph.parameters.size());
  detail::mark_parameters(graph, entry.region, read);
  for (std::size_t i = 0; i < read.size(); ++i)
    if (read[i] && floating(graph.parameters[i].element))
      result.push_back(static_cast<int>(i));
  return result;
}

/// The shape of such a gradient: of a parameter in stacks with the numbers of their layers before it.
constexpr std::vector<std::int64_t> gradient_shape(const Graph &graph, const Parameter &parameter) {
  std::vector<std::int64_t> shape(parameter.shape.begin(), parameter.shape.end());
  for (int at = parameter.scope; at > 0; at = graph.scopes[at].parent)
    if (graph.scopes[at].copies > 0)
      shape.insert(shape.begin(), graph.scopes[at].copies);
  return shape;
}

} // namespace kiln
