// SPDX-License-Identifier: Apache-2.0
//
// Edits that make extents smaller, everywhere at once or of one value; that replace named extents by numbers; and that
// reset attributes to their defaults.
#include <algorithm>
#include <cstring>
#include <set>

#include "tests/fuzz/Cuts.h"
#include "tests/fuzz/Edit.h"

namespace kiln::fuzz {

static Dim named(const Symbol &symbol) {
  Dim dim;
  dim.factor = 1;
  dim.symbols[0] = symbol;
  return dim;
}

static Dim withSymbol(const Dim &dim, const char *name, const std::function<Dim(const Symbol &)> &replaced) {
  return substituted(dim, [&](const Symbol &symbol) {
    return std::strcmp(symbol.name, name) == 0 ? replaced(symbol) : named(symbol);
  });
}

/// Replaces a symbol by a number, narrows its bounds, removes its `least`, or replaces 2*T+1 by T.
std::vector<Edit> cutSymbols(const RandomModel &model) {
  std::vector<Edit> edits;
  for (const Symbol &symbol : symbolsOf(model.graph)) {
    const std::string name = symbol.name;
    auto replace = [&](const Dim &by) {
      edits.push_back([=](RandomModel &m) {
        // If another symbol has this one as its `least`, drops that with the name.
        auto freed = [=](const Symbol &other) {
          Symbol result = other;
          if (name == result.least)
            std::memset(result.least, 0, sizeof(result.least));
          return named(result);
        };
        replaceExtents(m, [=](const Dim &dim) {
          Dim result = withSymbol(dim, name.c_str(), [&](const Symbol &) { return by; });
          for (const Symbol &other : result.symbols)
            if (other.present() && by.fixed() && name == other.least)
              return withSymbol(result, other.name, freed);
          return result;
        });
      });
    };
    std::set<std::int64_t> values{symbol.max, symbol.min};
    for (std::int64_t value : {1, 2, 3, 7, 16, 17})
      if (value > symbol.min && value < symbol.max)
        values.insert(value);
    for (std::int64_t value : values)
      replace(Dim(value));
    for (const auto &[min, max] : {std::pair<std::int64_t, std::int64_t>{1, 2},
                                   {1, 3},
                                   {1, 8},
                                   {symbol.min, 17},
                                   {1, symbol.max},
                                   {symbol.min, symbol.max / 2}})
      if (min <= max && (min < symbol.min || max < symbol.max) && min <= symbol.min && max <= symbol.max) {
        Symbol other = symbol;
        other.min = min, other.max = max;
        replace(named(other));
      }
    if (*symbol.least) {
      Symbol other = symbol;
      std::memset(other.least, 0, sizeof(other.least));
      replace(named(other));
    }
  }
  std::vector<Dim> seen;
  for (const Node &node : model.graph.nodes)
    for (const Dim &dim : node.shape)
      if (!dim.fixed() && !dim.named() && std::find(seen.begin(), seen.end(), dim) == seen.end())
        seen.push_back(dim);
  for (const Dim &dim : seen) {
    const Dim plain = named(dim.symbols[0]);
    for (const Dim &by : {Dim(1), plain, dim.term(0)})
      edits.push_back(
          [=](RandomModel &m) { replaceExtents(m, [&](const Dim &other) { return other == dim ? by : other; }); });
  }
  return edits;
}

static void replaceNumber(RandomModel &model, std::int64_t from, std::int64_t to) {
  replaceExtents(model, [=](const Dim &dim) { return dim == Dim(from) ? Dim(to) : dim; });
  for (Node &node : model.graph.nodes) {
    if (node.op == Op::constant && node.element == ElementType::i32)
      for (double &value : node.attributes.values)
        if (value >= static_cast<double>(to) && value < static_cast<double>(from))
          value = static_cast<double>(static_cast<std::int64_t>(value) % to);
    if (node.op == Op::conv2d && node.attributes.groups == from)
      node.attributes.groups = static_cast<int>(to);
  }
}

std::vector<Edit> cutExtents(const RandomModel &model) {
  std::vector<Edit> edits;
  std::set<std::int64_t> numbers;
  for (const Node &node : model.graph.nodes)
    for (const Dim &dim : node.shape)
      if (dim.fixed() && dim.offset > 1)
        numbers.insert(dim.offset);
  for (auto from = numbers.rbegin(); from != numbers.rend(); ++from) {
    std::set<std::int64_t> smaller{1, 2, 3, *from / 2, *from - 1};
    for (std::int64_t to : smaller)
      if (to >= 1 && to < *from)
        edits.push_back([from = *from, to](RandomModel &m) { replaceNumber(m, from, to); });
  }
  // Changes one source node only, since operands that are broadcast need not be as large.
  const Graph &graph = model.graph;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node &node = graph.nodes[i];
    if (node.op != Op::input && node.op != Op::constant && node.op != Op::parameter && node.op != Op::expand &&
        node.op != Op::slice && node.op != Op::resize_bilinear)
      continue;
    for (std::size_t axis = 0; axis < node.shape.size(); ++axis)
      for (std::int64_t to : {std::int64_t{1}, std::int64_t{2}, node.shape[axis].max() - 1})
        if (to >= 1 && node.shape[axis].max() > to)
          edits.push_back([=](RandomModel &m) {
            Node &changed = m.graph.nodes[i];
            changed.shape[axis] = to;
            if (changed.op == Op::parameter)
              m.graph.parameters[changed.attributes.index].shape[axis] = to;
          });
  }
  return edits;
}

namespace {

/// Collects edits of the attributes of one node.
class AttributeCuts {
public:
  AttributeCuts(const Node &node, std::size_t number, std::vector<Edit> &edits)
      : node(node), number(number), edits(edits) {}

  void add() {
    switch (node.op) {
    case Op::linear:
      dropBias();
      change([](Node &n) { n.attributes.weight_order = WeightOrder::out_in; });
      break;
    case Op::grouped_linear:
      if (node.operands.size() == 4)
        change([](Node &n) { n.operands.pop_back(); });
      break;
    case Op::conv2d:
      dropBias();
      change([](Node &n) { n.attributes.window.dilation = 1; });
      change([](Node &n) { n.attributes.groups = 1; });
      cutWindow();
      break;
    case Op::max_pool2d:
    case Op::avg_pool2d:
      cutWindow();
      break;
    case Op::attention:
    case Op::attention_scores:
      cutAttention();
      break;
    case Op::concat:
      for (std::size_t k = 0; k < node.operands.size() && node.operands.size() > 1; ++k)
        change([=](Node &n) { n.operands.erase(n.operands.begin() + static_cast<std::ptrdiff_t>(k)); });
      break;
    case Op::slice:
      change([](Node &n) { n.attributes.at_end = false, n.attributes.start = 0; });
      break;
    case Op::scan:
      change([](Node &n) { n.attributes.reverse = false; });
      break;
    case Op::sinusoidal:
      change([](Node &n) {
        n.attributes.base = 10000;
        if (n.attributes.pair_axes.empty())
          n.attributes.values.clear();
      });
      break;
    case Op::constant:
      for (double value : {0.0, 1.0})
        change([=](Node &n) { std::fill(n.attributes.values.begin(), n.attributes.values.end(), value); });
      break;
    case Op::transpose:
      change([](Node &n) { std::sort(n.attributes.permutation.begin(), n.attributes.permutation.end()); });
      break;
    default:
      break;
    }
  }

private:
  void change(const std::function<void(Node &)> &changed) {
    edits.push_back([changed, number = number](RandomModel &m) { changed(m.graph.nodes[number]); });
  }

  void dropBias() {
    if (node.operands.size() == 3)
      change([](Node &n) { n.operands.pop_back(); });
  }

  void cutWindow() {
    change([](Node &n) { n.attributes.window.padding = 0; });
    change([](Node &n) { n.attributes.window.stride = 1; });
    if (node.op != Op::conv2d)
      for (int kernel : {1, 2})
        change([=](Node &n) {
          n.attributes.window.kernel = {std::min(kernel, n.attributes.window.kernel.height),
                                        std::min(kernel, n.attributes.window.kernel.width)};
        });
    for (bool isHeight : {true, false})
      change([=](Node &n) {
        (isHeight ? n.attributes.window.padding.height : n.attributes.window.padding.width) = 0;
        (isHeight ? n.attributes.window.stride.height : n.attributes.window.stride.width) = 1;
      });
  }

  void cutAttention() {
    const int tensors = node.op == Op::attention ? 3 : 2;
    change([](Node &n) { n.attributes.window_keys = 0; });
    change([](Node &n) { n.attributes.softcap = 0; });
    change([](Node &n) {
      n.attributes.causal = false;
      n.attributes.window_keys = 0;
    });
    if (node.attributes.has_mask)
      change([=](Node &n) {
        n.attributes.has_mask = false;
        n.operands.erase(n.operands.begin() + tensors);
      });
    if (node.attributes.has_sinks)
      change([=](Node &n) {
        n.attributes.has_sinks = false;
        n.operands.erase(n.operands.begin() + tensors + n.attributes.has_mask);
      });
    if (node.attributes.has_lengths)
      change([](Node &n) {
        n.attributes.has_lengths = false;
        n.operands.pop_back();
      });
    change([](Node &n) { n.attributes.heads = n.attributes.key_value_heads = 1; });
    change([](Node &n) { n.attributes.heads = n.attributes.key_value_heads; });
  }

  const Node &node;
  std::size_t number;
  std::vector<Edit> &edits;
};

} // namespace

/// Each edit resets or reduces one attribute of a node.
std::vector<Edit> cutAttributes(const RandomModel &model) {
  std::vector<Edit> edits;
  for (std::size_t i = 0; i < model.graph.nodes.size(); ++i)
    AttributeCuts(model.graph.nodes[i], i, edits).add();
  return edits;
}

} // namespace kiln::fuzz
