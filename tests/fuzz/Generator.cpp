// SPDX-License-Identifier: Apache-2.0
//
// Draws a model: named extents, entries of operations, and results; then removes nodes on which no result depends.
#include "tests/fuzz/Generator.h"

#include <algorithm>
#include <cstring>

#include "tests/fuzz/Edit.h"

namespace kiln::fuzz {

Generator::Generator(std::uint64_t seed, const Options &options)
    : options(options), random(seed), b(options.maxElements) {}

const std::vector<Generator::Choice> &Generator::choices() {
  using G = Generator;
  static const std::vector<Choice> all = {
#define KILN_UNARY(name) {Op::name, &G::unary},
#define KILN_BINARY(name) {Op::name, &G::binary},
#define KILN_COMPARISON(name) {Op::name, &G::comparison},
#define KILN_LOGIC(name) {Op::name, &G::logic},
#include "kiln/ops.def"
      {Op::input, &G::sourceOf},
      {Op::parameter, &G::sourceOf},
      {Op::constant, &G::sourceOf},
      {Op::embedding, &G::embedding},
      {Op::embedding, &G::tiedLogits},
      {Op::positions, &G::positions},
      {Op::positions, &G::countedUp},
      {Op::sinusoidal, &G::sinusoidal},
      {Op::linear, &G::linear},
      {Op::linear, &G::linear},
      {Op::grouped_linear, &G::groupedLinear},
      {Op::matmul, &G::matmul},
      {Op::matmul, &G::matmul},
      {Op::abs, &G::unary},
      {Op::cast, &G::cast},
      {Op::where, &G::where},
      {Op::softmax, &G::softmax},
      {Op::log_softmax, &G::softmax},
      {Op::layer_norm, &G::norm},
      {Op::rms_norm, &G::norm},
      {Op::conv2d, &G::conv2d},
      {Op::conv2d, &G::conv2d},
      {Op::attention, &G::attention},
      {Op::attention, &G::writtenOutAttention},
      {Op::attention, &G::selfAttention},
      {Op::attention_scores, &G::attention},
      {Op::reshape, &G::reshape},
      {Op::reshape, &G::reshape},
      {Op::expand, &G::expand},
      {Op::transpose, &G::transpose},
      {Op::transpose, &G::transpose},
      {Op::concat, &G::concat},
      {Op::concat, &G::concat},
      {Op::slice, &G::slice},
      {Op::slice, &G::slice},
      {Op::gather, &G::gather},
      {Op::gather, &G::gather},
      {Op::argsort, &G::argsort},
      {Op::index_add, &G::indexAdd},
      {Op::mean, &G::reduction},
      {Op::max, &G::reduction},
      {Op::sum, &G::reduction},
      {Op::argmax, &G::reduction},
      {Op::cumsum, &G::reduction},
      {Op::max_pool2d, &G::pool},
      {Op::avg_pool2d, &G::pool},
      {Op::resize_bilinear, &G::resize},
      {Op::dropout, &G::dropout},
      {Op::stack, &G::stack},
      {Op::stack, &G::stack},
      {Op::stack, &G::pattern},
      {Op::scan, &G::scan},
      {Op::scan, &G::scan},
      {Op::state, &G::readState},
      {Op::append, &G::append},
      {Op::store, &G::store},
  };
  return all;
}

int Generator::operation() {
  for (int tries = 0; tries < 5; ++tries) {
    int made = -1;
    if (options.splits && random.percent(40)) {
      made = splittable();
    } else {
      const Choice &choice = random.from(choices());
      made = (this->*choice.recipe)(choice.op);
    }
    if (made >= 0)
      return made;
  }
  return -1;
}

void Generator::drawExtents() {
  const char *names[] = {"T", "B", "S", "N"};
  const int count = static_cast<int>(random.of({0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3}));
  for (int i = 0; i < count; ++i) {
    Symbol symbol;
    std::strcpy(symbol.name, names[i]);
    const std::vector<std::pair<int, int>> bounds = {{1, 17}, {1, 17}, {1, 1},  {3, 40}, {1, 8}, {2, 5},
                                                     {1, 33}, {5, 5},  {1, 64}, {8, 16}, {1, 2}, {4, 9}};
    const auto [min, max] = random.from(bounds);
    symbol.min = min;
    symbol.max = i > 0 && max > 20 ? std::max(min, 12) : max;
    symbols.push_back(symbol);
  }
  if (count > 0 && random.percent(20)) {
    Symbol symbol = symbols[0];
    std::strcpy(symbol.name, "context");
    std::strcpy(symbol.least, symbols[0].name);
    symbol.max += random.of({0, 5, 30});
    symbols.push_back(symbol);
  }
  if (random.percent(4)) {
    palette = {1};
    return;
  }
  for (int i = static_cast<int>(random.between(2, 4)); i > 0; --i)
    palette.push_back(fixedExtent());
  for (int i = symbols.empty() ? 0 : static_cast<int>(random.between(1, 3)); i > 0; --i)
    palette.push_back(namedExtent());
}

/// Draws the results: mostly unused values; now and then a used value, the same value twice, or an input.
std::vector<int> Generator::results() {
  std::vector<int> unused, all, results;
  for (int id : b.visible()) {
    all.push_back(id);
    const Op op = b.node(id).op;
    if (b.uses(id) == 0 && op != Op::input && op != Op::parameter)
      unused.push_back(id);
  }
  const std::int64_t most = random.of({1, 2, 3, 4, 4, 6});
  for (std::size_t i = unused.size(); i > 0 && static_cast<std::int64_t>(results.size()) < most; --i)
    if (i == unused.size() || random.percent(75))
      results.push_back(unused[i - 1]);
  if (!all.empty()) {
    if (results.empty() || random.percent(8))
      results.push_back(random.from(all));
    if (random.percent(5))
      results.push_back(all.front());
  }
  if (!results.empty() && random.percent(6))
    results.push_back(random.from(results));
  if (results.size() > 1 && random.percent(25))
    std::swap(results.front(), results.back());
  return results;
}

void Generator::forwardEntry(const char *name, int operations) {
  b.openEntry();
  for (Kept &state : kept)
    state.isRead = state.isAppended = state.isStored = false;
  if (random.percent(85)) {
    const Type first = floatType(shape(0, 4));
    if (random.percent(80))
      b.input(first, {}, {});
    else
      fresh(first);
  }
  hasStack = false;
  for (int i = 0; i < operations; ++i) {
    operation();
    if (options.hasOneStack && i == operations / 2)
      stack(Op::stack);
  }
  const bool hasEffects = !b.graph.regions[b.region].effects.empty();
  const std::vector<int> given = hasEffects && random.percent(4) ? std::vector<int>() : results();
  if (b.graph.regions[b.region].arguments.empty()) // an entry requires an argument, even an unused one
    b.input(floatType({}), {}, {});
  b.closeEntry(name, given.empty() && !hasEffects ? b.graph.regions[b.region].arguments : given);
}

/// Adds a modified copy of the last entry, as `decode` is one of `prefill`: weights and states are shared, a named
/// extent gets a value, there are more operations and other results.
bool Generator::similarEntry(const char *name) {
  Dim from, to;
  if (!symbols.empty() && random.percent(60)) {
    const Symbol symbol = symbols[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(symbols.size())))];
    from.factor = 1;
    from.symbols[0] = symbol;
    to = random.between(symbol.min, std::min(symbol.max, symbol.min + 3));
  }
  auto replaced = [&](const Dim &dim) {
    return substituted(dim, [&](const Symbol &symbol) {
      Dim factor;
      factor.factor = 1;
      factor.symbols[0] = symbol;
      return factor == from ? to : factor;
    });
  };
  const std::vector<int> before = b.graph.regions[b.graph.entries.back().region].results;
  b.openCopy(b.graph.entries.back().region, replaced);
  const std::vector<int> same = b.graph.regions[b.region].results;
  for (std::size_t i = 0; i < kept.size(); ++i) { // no more use: a read state may not be appended to, say
    kept[i].isRead = kept[i].isAppended = kept[i].isStored = true;
  }
  for (int i = static_cast<int>(random.below(3)); i > 0; --i)
    operation();
  b.closeEntry(name, random.percent(50) ? same : results());
  return true;
}

RandomModel Generator::run() {
  drawExtents();
  int operations = 0;
  const std::int64_t size = random.below(100);
  if (size >= 4)
    operations = static_cast<int>(random.between(1, std::max(1, options.nodes * 2 / 3)));
  if (size >= 70)
    operations = static_cast<int>(random.between(1, options.nodes));
  if (size >= 92)
    operations = static_cast<int>(random.between(options.nodes, options.nodes * 5 / 2));
  forwardEntry("forward", operations);
  const char *names[] = {"second", "third"};
  for (int i = 0; i < 2 && random.percent(i == 0 ? 18 : 30); ++i) {
    const Builder saved = b;
    const std::vector<Kept> savedStates = kept;
    if (random.percent(50))
      similarEntry(names[i]);
    else
      forwardEntry(names[i], static_cast<int>(random.between(1, std::max(1, options.nodes / 2))));
    if (!check(ordered(b.graph)).empty()) {
      b = saved;
      kept = savedStates;
    }
  }

  RandomModel model;
  model.names = b.names;
  // Node numbers change, but the order of the arguments does not.
  for (const Entry &entry : b.graph.entries) {
    auto &inputs = model.inputs.emplace_back();
    for (int argument : b.graph.regions[entry.region].arguments) {
      inputs.push_back(b.ranges[argument]);
      inputs.back().hasSpecials = options.specialValues && inputs.back().low < 0;
    }
  }
  model.graph = ordered(b.graph);
  const bool keepsUnused = random.percent(6);
  std::vector<bool> isUsed(model.graph.nodes.size());
  for (const Node &node : model.graph.nodes)
    for (int operand : node.operands)
      isUsed[operand] = true;
  for (const Region &region : model.graph.regions)
    for (int result : region.results)
      isUsed[result] = true;
  for (std::size_t e = 0; e < model.graph.entries.size() && !keepsUnused; ++e) {
    Entry &entry = model.graph.entries[e];
    std::vector<int> &arguments = model.graph.regions[entry.region].arguments;
    for (std::size_t i = arguments.size(); i > 0 && arguments.size() > 1; --i)
      if (!isUsed[arguments[i - 1]]) {
        arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(i) - 1);
        entry.input_names.erase(entry.input_names.begin() + static_cast<std::ptrdiff_t>(i) - 1);
        model.inputs[e].erase(model.inputs[e].begin() + static_cast<std::ptrdiff_t>(i) - 1);
      }
    for (std::size_t i = 0; i < arguments.size(); ++i)
      model.graph.nodes[arguments[i]].attributes.index = static_cast<int>(i);
  }
  model.graph = ordered(std::move(model.graph));
  for (const Parameter &parameter : model.graph.parameters)
    model.parameters[model.graph.written(parameter)] = b.parameterRanges[parameter.leaf];
  return model;
}

} // namespace kiln::fuzz
