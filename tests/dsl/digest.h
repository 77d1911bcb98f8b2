// SPDX-License-Identifier: Apache-2.0
//
// A hash that two graphs share only if they are equal in everything that the compiler reads: constant expressions
// cannot return a Graph, but they can return a hash.
#pragma once

#include <bit>

#include "kiln/graph.h"

namespace digest {

class Hash {
public:
  constexpr void number(std::int64_t value) {
    for (int i = 0; i < 8; ++i)
      byte(static_cast<unsigned char>(static_cast<std::uint64_t>(value) >> (8 * i)));
  }
  constexpr void text(const char *text) {
    for (; *text; ++text)
      byte(static_cast<unsigned char>(*text));
    byte(0);
  }
  constexpr void numbers(const auto &list) {
    number(static_cast<std::int64_t>(list.size()));
    for (auto value : list)
      number(value);
  }
  constexpr std::uint64_t value() const { return state; }

private:
  constexpr void byte(unsigned char value) { state = (state ^ value) * 1099511628211u; } // FNV-1a

  std::uint64_t state = 14695981039346656037u;
};

constexpr void add(Hash &hash, const kiln::Dim &dim) {
  hash.number(dim.offset);
  hash.number(dim.factor);
  hash.text(dim.symbols[0].name);
  hash.text(dim.symbols[1].name);
  hash.text(dim.symbols[0].least);
  if (dim.second != 0) { // hashes of graphs without such sums are unchanged
    hash.number(dim.second);
    hash.text(dim.symbols[2].name);
    hash.text(dim.symbols[3].name);
  }
}

constexpr void add(Hash &hash, const kiln::CustomFunction &function) {
  hash.text(function.name);
  for (const auto &tensors : {function.operands, function.results})
    for (const kiln::TensorType &tensor : tensors) {
      hash.number(static_cast<int>(tensor.element));
      for (const kiln::Dim &dim : tensor.shape)
        add(hash, dim);
    }
  add(hash, function.workspace);
  hash.text(function.derivative);
}

constexpr void add(Hash &hash, const kiln::Node &node) {
  hash.number(static_cast<int>(node.op));
  hash.number(static_cast<int>(node.element));
  for (const kiln::Dim &dim : node.shape)
    add(hash, dim);
  hash.numbers(node.operands);
  const kiln::Attributes &a = node.attributes;
  for (std::int64_t value :
       {std::int64_t{a.index}, std::int64_t{a.axis}, a.start, std::int64_t{a.heads}, std::int64_t{a.causal},
        std::int64_t{a.states}, std::int64_t{a.at_end}, std::int64_t{a.reverse} + 2 * a.until, std::int64_t{a.has_mask},
        std::int64_t{a.has_lengths}, static_cast<std::int64_t>(a.weight_order), std::bit_cast<std::int64_t>(a.scale),
        std::bit_cast<std::int64_t>(a.epsilon)})
    hash.number(value);
  for (const kiln::Pair &pair : {a.window.kernel, a.window.stride, a.window.padding, a.window.dilation}) {
    hash.number(pair.height);
    hash.number(pair.width);
  }
  hash.number(a.groups);
  hash.numbers(a.permutation);
  for (double value : a.values)
    hash.number(std::bit_cast<std::int64_t>(value));
  if (a.window_keys != 0 || a.softcap != 0 || a.has_sinks) // hashes of graphs without these options are unchanged
    for (std::int64_t value : {a.window_keys, std::bit_cast<std::int64_t>(a.softcap), std::int64_t{a.has_sinks}})
      hash.number(value);
  if (a.shifted)
    hash.number(1);
  hash.number(node.scope);
}

constexpr std::uint64_t of(const kiln::Graph &graph) {
  Hash hash;
  for (const kiln::Node &node : graph.nodes)
    add(hash, node);
  for (const kiln::Scope &scope : graph.scopes) {
    hash.number(scope.parent);
    hash.text(scope.name);
    hash.number(scope.copies);
    hash.numbers(scope.parameters);
  }
  for (const kiln::Parameter &parameter : graph.parameters) {
    hash.number(parameter.scope);
    hash.text(parameter.leaf);
    hash.numbers(parameter.shape);
    if (parameter.storage.is_stated) // hashes of graphs without a stated storage are unchanged
      hash.text(name_of(parameter.storage));
  }
  for (const kiln::StateTensor &state : graph.states) {
    hash.number(state.scope);
    hash.text(state.leaf);
    hash.numbers(state.shape);
  }
  for (const kiln::CustomFunction &function : graph.functions)
    add(hash, function);
  for (const kiln::Region &region : graph.regions) {
    hash.numbers(region.nodes);
    hash.numbers(region.arguments);
    hash.numbers(region.results);
    hash.numbers(region.effects);
    hash.number(region.count);
  }
  for (const kiln::Entry &entry : graph.entries) {
    hash.text(entry.name);
    hash.number(entry.region);
    for (const char *name : entry.input_names)
      hash.text(name);
    for (const char *name : entry.output_names)
      hash.text(name);
  }
  return hash.value();
}

} // namespace digest
