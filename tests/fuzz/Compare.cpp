// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/Compare.h"

#include <bit>

namespace kiln::fuzz {

static bool same(const std::vector<double> &a, const std::vector<double> &b) {
  bool isSame = a.size() == b.size();
  for (std::size_t i = 0; isSame && i < a.size(); ++i) // compares bits: NaN equals itself, -0 differs from 0
    isSame = std::bit_cast<std::uint64_t>(a[i]) == std::bit_cast<std::uint64_t>(b[i]);
  return isSame;
}

static bool same(const std::vector<const char *> &a, const std::vector<const char *> &b) {
  bool isSame = a.size() == b.size();
  for (std::size_t i = 0; isSame && i < a.size(); ++i)
    isSame = std::string(a[i]) == b[i];
  return isSame;
}

static const char *difference(const Attributes &a, const Attributes &b) {
  if (a.index != b.index || a.axis != b.axis)
    return "index or axis";
  if (a.start != b.start || a.at_end != b.at_end)
    return "start";
  if (a.states != b.states || a.reverse != b.reverse || a.until != b.until)
    return "states or direction";
  if (a.heads != b.heads || a.key_value_heads != b.key_value_heads || a.causal != b.causal ||
      a.window_keys != b.window_keys || a.softcap != b.softcap || a.has_mask != b.has_mask ||
      a.has_sinks != b.has_sinks || a.has_lengths != b.has_lengths || a.scale != b.scale)
    return "attention's attributes";
  if (a.epsilon != b.epsilon || a.base != b.base || a.probability != b.probability)
    return "epsilon, base or probability";
  if (a.weight_order != b.weight_order || a.groups != b.groups || !(a.window == b.window))
    return "weight order, groups or window";
  if (a.permutation != b.permutation || a.pair_axes != b.pair_axes)
    return "permutation or axes of pairs";
  return same(a.values, b.values) ? nullptr : "values";
}

std::string difference(const Graph &a, const Graph &b) {
  if (a.nodes.size() != b.nodes.size())
    return std::to_string(a.nodes.size()) + " and " + std::to_string(b.nodes.size()) + " nodes";
  for (std::size_t i = 0; i < a.nodes.size(); ++i) {
    const Node &x = a.nodes[i], &y = b.nodes[i];
    const std::string node = "node " + std::to_string(i) + ": ";
    if (x.op != y.op)
      return node + "operation";
    if (x.op != Op::scan && (x.element != y.element || x.shape != y.shape))
      return node + "type";
    if (x.operands != y.operands)
      return node + "operands";
    if (x.scope != y.scope)
      return node + "scope";
    if (const char *attribute = difference(x.attributes, y.attributes))
      return node + attribute;
  }
  if (a.scopes.size() != b.scopes.size() || a.parameters.size() != b.parameters.size() ||
      a.states.size() != b.states.size() || a.regions.size() != b.regions.size() ||
      a.entries.size() != b.entries.size())
    return "as many scopes, parameters, states, regions, entries";
  for (std::size_t i = 0; i < a.scopes.size(); ++i)
    if (std::string(a.scopes[i].name) != b.scopes[i].name || a.scopes[i].copies != b.scopes[i].copies ||
        a.scopes[i].parent != b.scopes[i].parent)
      return "scope " + std::to_string(i);
  for (std::size_t i = 0; i < a.parameters.size(); ++i)
    if (a.name(a.parameters[i]) != b.name(b.parameters[i]) || a.parameters[i].shape != b.parameters[i].shape ||
        a.parameters[i].element != b.parameters[i].element || a.parameters[i].storage != b.parameters[i].storage)
      return "parameter " + std::to_string(i);
  for (std::size_t i = 0; i < a.states.size(); ++i)
    if (a.name(a.states[i]) != b.name(b.states[i]) || a.states[i].shape != b.states[i].shape ||
        a.states[i].element != b.states[i].element)
      return "state " + std::to_string(i);
  for (std::size_t i = 0; i < a.regions.size(); ++i) {
    const Region &x = a.regions[i], &y = b.regions[i];
    if (x.nodes != y.nodes || x.arguments != y.arguments || x.results != y.results || x.count != y.count ||
        x.scope != y.scope || x.effects != y.effects)
      return "region " + std::to_string(i);
  }
  for (std::size_t i = 0; i < a.entries.size(); ++i) {
    const Entry &x = a.entries[i], &y = b.entries[i];
    if (std::string(x.name) != y.name || x.region != y.region || !same(x.input_names, y.input_names) ||
        !same(x.output_names, y.output_names))
      return "entry " + std::to_string(i);
  }
  return "";
}

} // namespace kiln::fuzz
