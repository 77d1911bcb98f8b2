// SPDX-License-Identifier: Apache-2.0
//
// Determines which weights can be quantised: those that only contractions and look-ups read, since their kernels
// dequantise.
#pragma once

#include "kiln/graph.h"

namespace kiln {

namespace detail {
/// Whether only grouped_linears read the node, as weights of [groups * out, in].
constexpr bool is_weight_of_groups(const Graph &graph, const Node &joined) {
  const int number = static_cast<int>(&joined - graph.nodes.data());
  bool is_read = false;
  for (const Node &node : graph.nodes)
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      if (node.operands[i] == number) {
        if (node.op != Op::grouped_linear || i != 1 || node.attributes.weight_order != WeightOrder::out_in)
          return false;
        is_read = true;
      }
  for (const Region &region : graph.regions)
    for (int result : region.results)
      if (result == number)
        return false;
  return is_read;
}
} // namespace detail

/// Whether the node reads this operand, a parameter, as the weight of a contraction or as the table of an embedding.
constexpr bool reads_matrix(const Graph &graph, const Node &node, std::size_t operand) {
  if (node.op == Op::concat)
    return node.attributes.axis == 0 && detail::is_weight_of_groups(graph, node);
  if (operand != 1)
    return false;
  switch (node.op) {
  case Op::linear:
  case Op::embedding:
    return true;
  case Op::grouped_linear:
    return node.attributes.weight_order == WeightOrder::out_in;
  case Op::conv2d:
    return node.attributes.groups == 1;
  case Op::matmul:
    return graph.nodes[node.operands[1]].shape.size() == 2;
  default:
    return false;
  }
}

namespace detail {

/// A use of a quantised parameter by an operation that cannot dequantise it.
struct Misreading {
  int parameter = -1; // none
  Op reader = Op::result;
};

constexpr Misreading find_misreading(const Graph &graph) {
  bool has_stored = false;
  for (const Parameter &parameter : graph.parameters)
    has_stored = has_stored || parameter.storage.has_fewer_bits();
  if (!has_stored)
    return {};
  auto is_stored = [&](int node) {
    return graph.nodes[node].op == Op::parameter &&
           graph.parameters[graph.nodes[node].attributes.index].storage.has_fewer_bits();
  };
  for (const Node &node : graph.nodes) {
    bool joins = false; // looked up once: a concat may have the weights of many experts
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      if (is_stored(node.operands[i]) && !joins) {
        if (!reads_matrix(graph, node, i))
          return {graph.nodes[node.operands[i]].attributes.index, node.op};
        joins = node.op == Op::concat;
      }
  }
  for (const Region &region : graph.regions)
    for (int result : region.results)
      if (is_stored(result))
        return {graph.nodes[result].attributes.index, Op::result};
  return {};
}

} // namespace detail
} // namespace kiln
