// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/RandomGraph.h"

#include <algorithm>
#include <cstring>

#include "tests/fuzz/Generator.h"

namespace kiln::fuzz {

/// A random graph may still break a rule, mostly because no result needs the node that introduces a named extent. The
/// next attempt then counts.
RandomModel randomModel(std::uint64_t seed, const Options &options) {
  for (std::uint64_t attempt = 0;; ++attempt) {
    RandomModel model = Generator(seed + attempt * 0x9e3779b97f4a7c15u, options).run();
    if (check(model.graph).empty())
      return model;
  }
}

std::vector<Symbol> symbolsOf(const Graph &graph) {
  std::vector<Symbol> result;
  for (const Node &node : graph.nodes)
    for (const Dim &dim : node.shape)
      for (const Symbol &symbol : dim.symbols)
        if (symbol.present() && std::find(result.begin(), result.end(), symbol) == result.end())
          result.push_back(symbol);
  return result;
}

std::vector<std::map<std::string, std::int64_t>> sizesToTry(const Graph &graph, std::uint64_t seed) {
  const std::vector<Symbol> symbols = symbolsOf(graph);
  std::map<std::string, std::int64_t> smallest, largest, between;
  Random random(seed);
  for (const Symbol &symbol : symbols) {
    smallest[symbol.name] = symbol.min;
    largest[symbol.name] = symbol.max;
    between[symbol.name] = random.between(symbol.min, symbol.max);
  }
  // A chain of symbols that bound each other is at most as long as the number of symbols.
  for (std::size_t i = 0; i < symbols.size(); ++i)
    for (const Symbol &symbol : symbols)
      for (auto *sizes : {&smallest, &largest, &between})
        if (*symbol.least && sizes->count(symbol.least))
          (*sizes)[symbol.name] = std::max((*sizes)[symbol.name], (*sizes)[symbol.least]);
  if (symbols.empty())
    return {smallest};
  std::vector<std::map<std::string, std::int64_t>> result{smallest, largest, between};
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

std::int64_t valueOf(const Dim &dim, const std::map<std::string, std::int64_t> &extents) {
  return dim.value([&](const Symbol &symbol) { return extents.at(symbol.name); });
}

std::string limitText(const Dim &dim) {
  if (dim.fixed())
    return std::to_string(dim.offset);
  auto textOfTerm = [](std::int64_t factor, const Symbol *symbols) {
    std::string term = factor == 1 ? symbols[0].name : std::to_string(factor) + "*" + symbols[0].name;
    return symbols[1].present() ? term + "*" + symbols[1].name : term;
  };
  std::string text = textOfTerm(dim.factor, dim.symbols);
  if (dim.second != 0)
    text += (dim.second > 0 ? "+" : "") + textOfTerm(dim.second, dim.symbols + 2);
  if (dim.offset == 0)
    return text;
  return text + (dim.offset > 0 ? "+" : "") + std::to_string(dim.offset);
}

std::int64_t limitOf(const std::string &limit, const std::map<std::string, std::int64_t> &extents) {
  std::int64_t sum = 0, product = 1;
  bool isFirst = true;
  for (std::size_t at = 0; at < limit.size();) {
    if (limit[at] == '*') {
      ++at;
      continue;
    }
    const bool isSign = limit[at] == '+' || limit[at] == '-';
    if (isSign && !isFirst) {
      sum += product;
      product = 1;
    }
    const std::size_t end = std::min(limit.find_first_of("*+-", at + isSign), limit.size());
    const std::string word = limit.substr(at, end - at);
    product *= extents.count(word) ? extents.at(word) : std::strtoll(word.c_str(), nullptr, 10);
    isFirst = false;
    at = end;
  }
  return sum + product;
}

} // namespace kiln::fuzz
