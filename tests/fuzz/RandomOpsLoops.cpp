// SPDX-License-Identifier: Apache-2.0
//
// Stacks, scans and states. The bounds of carried values and of states are chosen first and enforced, so that they hold
// for any number of steps and calls.
#include <algorithm>
#include <numeric>

#include "kiln/numbered.h"
#include "tests/fuzz/Generator.h"

namespace kiln::fuzz {

/// Returns the bounds of a carried value that begins with this one, or nothing if it is too large.
static std::optional<Facts> carriedFacts(const Facts &facts, ElementType element) {
  if (element == ElementType::boolean)
    return between(0, 1);
  if (!isFloat(element))
    return facts.isWithin(-1000, 1000) ? std::optional(facts) : std::nullopt;
  for (double most : {4.0, 16.0})
    if (facts.isWithin(-most, most))
      return between(-most, most);
  return {};
}

void Generator::body(int operations) {
  for (int i = 0; i < operations; ++i)
    operation();
  if (random.percent(8))
    stack(Op::stack);
  else if (random.percent(5))
    scan(Op::scan);
}

/// A stack or a scan under construction.
struct Generator::Loop {
  int first = -1; // the first sequence of a scan
  Dim length;
  std::vector<int> sequences, states; // operands
  std::vector<Facts> bounds;          // of the states
  std::vector<int> arguments, results;
};

int Generator::stack(Op) {
  if (!options.allowLoops || b.loopDepth() >= 2 || (options.hasOneStack && (hasStack || b.loopDepth() > 0)))
    return -1;
  Loop stack;
  int x = random.percent(75) ? floats() : anything();
  if (x < 0 || !addState(stack, x))
    return -1;
  for (int more = static_cast<int>(random.of({0, 0, 0, 0, 0, 1, 1, 2})); more > 0; --more)
    if (x = anything(); x >= 0)
      addState(stack, x);
  const char *name = b.named("h" + std::to_string(b.graph.scopes.size()));
  const std::int64_t count = options.hasOneStack ? random.of({2, 3, 4, 5, 7}) : random.of({1, 2, 2, 2, 3, 3});
  stack.length = Dim(count);
  hasStack = true;
  if (!options.hasOneStack && random.percent(20))
    drawSequence(stack);
  const int region = b.open(count, name);
  addArguments(stack);
  body(static_cast<int>(random.of({0, 1, 1, 2, 2, 3, 4, 5})));
  drawNextStates(stack);
  if (!options.hasOneStack && random.percent(15))
    drawOutputs(stack, static_cast<int>(random.of({1, 1, 2})));
  b.graph.regions[region].results = stack.results;
  const int stackScope = b.scope;
  b.close();
  const int outer = b.scope;
  b.scope = stackScope; // as in the DSL
  const int result = addLoop(Op::stack, stack, region);
  b.scope = outer;
  return result;
}

/// Draws layers of one type in a pattern, `run` of them from number `first` of a period on; returns the carried value.
int Generator::patternPart(int x, std::int64_t run, std::int64_t first, int parent) {
  Loop layers;
  layers.length = Dim(run);
  if (!addState(layers, x))
    return -1;
  const int region = b.open(run, b.named(detail::number_part(first, false).data()), parent);
  addArguments(layers);
  body(static_cast<int>(random.of({1, 1, 2, 3})));
  drawNextStates(layers);
  b.graph.regions[region].results = layers.results;
  const int partScope = b.scope;
  b.close();
  const int outer = b.scope;
  b.scope = partScope;
  const int result = addLoop(Op::stack, layers, region);
  b.scope = outer;
  return result;
}

/// Draws a stack of layers of two or three types that follow each other periodically, as kiln::Pattern traces it: a
/// loop over periods, in whose body each type has a loop, and perhaps the first layers of one more period.
int Generator::pattern(Op) {
  if (!options.hasPatterns || !options.allowLoops || options.hasOneStack || b.loopDepth() > 0)
    return -1;
  Loop all;
  const int x = floats();
  if (x < 0 || !addState(all, x))
    return -1;
  std::vector<std::int64_t> runs{random.between(1, 3), random.between(1, 2)};
  if (random.percent(25))
    runs.push_back(1);
  const std::int64_t period = std::accumulate(runs.begin(), runs.end(), std::int64_t(0)),
                     periods = random.of({1, 2, 2, 3});
  const int list = b.addScope(b.named("h" + std::to_string(b.graph.scopes.size())));
  const int region = b.open(periods, b.named(detail::number_part(period, true).data()), list);
  addArguments(all);
  int value = all.arguments[0];
  std::int64_t first = 0;
  for (std::int64_t run : runs) {
    const int next = patternPart(value, run, first, b.ownerScope());
    value = next < 0 ? value : next;
    first += run;
  }
  all.results = b.graph.regions[region].results = {value};
  const int periodScope = b.scope;
  b.close();
  const int outer = b.scope;
  b.scope = periodScope;
  int result = addLoop(Op::stack, all, region);
  b.scope = list;
  if (random.percent(50))
    if (const int rest = patternPart(result, random.between(1, runs[0]), periods * period, list); rest >= 0)
      result = rest;
  b.scope = outer;
  return result;
}

int Generator::scan(Op) {
  if (!options.allowLoops || b.loopDepth() >= 2)
    return -1;
  Loop scan;
  scan.first = anything(1, 8);
  if (scan.first < 0)
    return -1;
  scan.length = shapeOf(scan.first)[0];
  drawSequences(scan);
  drawStates(scan);
  const int region = b.open(0, "");
  addArguments(scan);
  body(static_cast<int>(random.of({0, 1, 2, 2, 3, 3, 4, 5})));
  drawNextStates(scan);
  int outputs = static_cast<int>(random.of({0, 1, 1, 1, 1, 2, 2, 3}));
  if (scan.states.empty() && outputs == 0)
    outputs = 1;
  drawOutputs(scan, outputs);
  b.graph.regions[region].results = scan.results;
  b.close();
  return addLoop(Op::scan, scan, region);
}

void Generator::drawSequences(Loop &scan) {
  scan.sequences = {scan.first};
  for (int i = static_cast<int>(random.of({0, 0, 0, 1, 1, 2})); i > 0; --i) {
    if (random.percent(25))
      scan.sequences.push_back(make(Op::positions, {scan.first}, alongAxis(0)));
    else
      drawSequence(scan);
  }
}

/// Adds a sequence of the loop's length, unless it is too large.
void Generator::drawSequence(Loop &loop) {
  Extents extents = shape(0, 3);
  extents.insert(extents.begin(), loop.length);
  if (mostElements(extents) > options.maxElements)
    return;
  const ElementType element =
      random.percent(80) ? options.element : random.of({ElementType::i32, ElementType::boolean});
  const int sequence = ofType({element, extents});
  if (sequence >= 0)
    loop.sequences.push_back(sequence);
}

static Type sliceOf(Type sequence) {
  sequence.shape.erase(sequence.shape.begin());
  return sequence;
}

/// Returns the initial value of a state, often of the type of a slice.
int Generator::initialState(const Loop &scan) {
  if (!random.percent(45) || shapeOf(scan.first).empty())
    return anything();
  const Type slice = sliceOf(b.type(scan.first));
  if (random.percent(50))
    return make(Op::expand, {number(0, slice.element)}, {}, slice);
  return ofType(slice);
}

void Generator::drawStates(Loop &scan) {
  for (int i = static_cast<int>(random.of({0, 1, 1, 1, 1, 2, 2, 3})); i > 0; --i)
    if (const int initial = initialState(scan); initial >= 0)
      addState(scan, initial);
}

/// Adds a carried value that begins with this one; returns whether its bounds can be kept.
bool Generator::addState(Loop &loop, int initial) {
  std::optional<Facts> facts = carriedFacts(b.facts(initial), b.node(initial).element);
  if (!facts && isFloat(b.node(initial).element)) {
    initial = make(Op::tanh, {initial});
    facts = between(-4, 4);
  } else if (facts && b.node(initial).element == ElementType::i32 && facts->isWithin(0, 0))
    facts = between(0, static_cast<double>(random.between(1, 9))); // a carried index
  if (!facts)
    return false;
  loop.states.push_back(initial);
  loop.bounds.push_back(*facts);
  return true;
}

void Generator::addArguments(Loop &scan) {
  for (std::size_t i = 0; i < scan.states.size(); ++i)
    scan.arguments.push_back(b.argument(b.type(scan.states[i]), scan.bounds[i]));
  for (int sequence : scan.sequences)
    scan.arguments.push_back(b.argument(sliceOf(b.type(sequence)), b.facts(sequence)));
}

void Generator::drawNextStates(Loop &scan) {
  for (std::size_t i = 0; i < scan.states.size(); ++i) {
    const Type type = b.type(scan.states[i]);
    const int before = scan.arguments[i];
    int next = random.percent(12) ? choose([&](int id) { return b.type(id) == type; })
                                  : choose([&](int id) { return b.isHere(id) && id != before; });
    if (next >= 0)
      next = converted(next, type);
    if (next >= 0 && type.element != ElementType::boolean && random.percent(45))
      next = make(Op::add, {before, next});
    if (next >= 0)
      next = bounded(next, type, scan.bounds[i]);
    scan.results.push_back(next < 0 ? before : next);
  }
}

void Generator::drawOutputs(Loop &scan, int outputs) {
  for (; outputs > 0; --outputs) {
    const auto fits = [&](int id) {
      return shapeOf(id).size() <= 5 && mostElements(shapeOf(id)) * scan.length.max() <= options.maxElements;
    };
    int output = random.percent(80) ? choose([&](int id) { return b.isHere(id) && fits(id); }) : choose(fits);
    if (output < 0)
      output = number(1, options.element);
    scan.results.push_back(output);
  }
}

/// Adds the loop and its results, of which a stack's first one is the stack; returns the last result.
int Generator::addLoop(Op op, const Loop &scan, int region) {
  Node node;
  node.op = op;
  if (op == Op::stack) {
    node.element = b.node(scan.states[0]).element;
    node.shape = shapeOf(scan.states[0]);
  }
  node.operands = scan.states;
  node.operands.insert(node.operands.end(), scan.sequences.begin(), scan.sequences.end());
  node.attributes.index = region;
  node.attributes.states = static_cast<int>(scan.states.size());
  node.attributes.reverse = op == Op::scan && random.percent(30);
  const int loop = b.add(std::move(node), op == Op::stack ? scan.bounds[0] : Facts());
  int last = loop;
  for (std::size_t i = op == Op::stack ? 1 : 0; i < scan.results.size(); ++i) {
    const int inside = scan.results[i];
    const bool isState = i < scan.states.size();
    Node result;
    result.op = Op::result;
    result.element = b.node(inside).element;
    result.shape = shapeOf(inside);
    if (!isState)
      result.shape.insert(result.shape.begin(), scan.length);
    result.operands = {loop};
    result.attributes.index = static_cast<int>(i);
    last = b.add(std::move(result), isState ? scan.bounds[i] : b.facts(inside));
  }
  return last;
}

/// Returns a state of this shape that the operation may use here, or a new one; -1 if none is permitted.
int Generator::stateFor(Op op, const Extents &shape, ElementType element) {
  if (!options.allowStates || b.isInsideScan() || (options.hasOneStack && b.loopDepth() == 0) || !isFixed(shape) ||
      shape.empty() || mostElements(shape) > options.maxElements / 5)
    return -1;
  std::vector<std::int64_t> extents;
  for (const Dim &dim : shape)
    extents.push_back(dim.offset);
  std::vector<int> known;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const Kept &state = kept[i];
    const bool isFree = !state.isAppended && (op != Op::append || (!state.isRead && !state.isStored)) &&
                        (op != Op::store || !state.isStored);
    if (isFree && state.scope == b.ownerScope() && b.graph.states[i].element == element &&
        b.graph.states[i].shape == extents)
      known.push_back(static_cast<int>(i));
  }
  int state = -1;
  if (!known.empty() && random.percent(80)) {
    state = random.from(known);
  } else {
    if (kept.size() >= 6)
      return -1;
    state = static_cast<int>(kept.size());
    StateTensor made;
    made.scope = b.ownerScope();
    made.leaf = b.named("s" + std::to_string(state));
    made.element = element;
    made.shape = extents;
    b.graph.states.push_back(std::move(made));
    Facts facts = isFloat(element) ? between(-4, 4) : between(0, 1);
    if (element == ElementType::i32)
      facts = between(0, static_cast<double>(random.between(1, 9)));
    kept.push_back({facts, b.ownerScope()});
  }
  return state;
}

int Generator::readState(Op) {
  Extents whole = shape(1, 3, true);
  const bool isKnown = !kept.empty() && random.percent(60);
  ElementType element = random.percent(85) ? options.element : ElementType::i32;
  if (isKnown) {
    const StateTensor &some =
        b.graph.states[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(kept.size())))];
    whole.assign(some.shape.begin(), some.shape.end());
    element = some.element;
  }
  const int state = stateFor(Op::state, whole, element);
  if (state < 0)
    return -1;
  const std::int64_t rows = b.graph.states[state].shape[0];
  Node node;
  node.op = Op::state;
  node.element = b.graph.states[state].element;
  node.shape = whole;
  node.attributes.index = state;
  if (random.percent(25))
    node.shape[0] = random.between(1, rows);
  else if (const Dim some = random.percent(40) ? namedExtent() : Dim(rows); some.max() <= rows)
    node.shape[0] = some;
  kept[state].isRead = true;
  return b.add(std::move(node), kept[state].facts);
}

int Generator::append(Op) {
  int x = choose([&](int id) {
    const Extents &extents = shapeOf(id);
    return !extents.empty() && isFixed({extents.begin() + 1, extents.end()}) && extents[0].max() <= 130;
  });
  if (x < 0) {
    Extents extents = shape(0, 2, true);
    extents.insert(extents.begin(), extent());
    x = fresh(floatType(extents));
  }
  if (x < 0)
    return -1;
  return appended(x, rowsWith(shapeOf(x)[0]));
}

/// Returns the number of rows of a state after `rows` are appended.
Dim Generator::rowsWith(const Dim &rows) {
  Dim all = rows;
  if (const Dim some = namedExtent(); random.percent(60) && atLeast(some, rows) && some.max() <= 200)
    all = some;
  else if (random.percent(50))
    all = rows + Dim(random.between(1, 5));
  for (const Symbol &symbol : symbols) {
    Dim some;
    some.factor = 1;
    some.symbols[0] = symbol;
    if (*symbol.least && some.declared_at_least(rows) && random.percent(80))
      all = some;
  }
  return all;
}

int Generator::appended(int x, const Dim &all) {
  if (x < 0)
    return -1;
  Extents whole = shapeOf(x);
  whole[0] = all.max() + random.of({0, 0, 1, 2});
  for (std::size_t i = 0; i < kept.size(); ++i) { // another call may append to the same state
    const std::vector<std::int64_t> &known = b.graph.states[i].shape;
    if (known.size() == whole.size() && known[0] >= all.max() &&
        Extents(known.begin() + 1, known.end()) == Extents(whole.begin() + 1, whole.end()))
      whole[0] = known[0];
  }
  if (mostElements(whole) > options.maxElements)
    return -1;
  const int state = stateFor(Op::append, whole, b.node(x).element);
  if (state < 0)
    return -1;
  x = bounded(x, b.type(x), kept[state].facts);
  if (x < 0)
    return -1;
  Node node;
  node.op = Op::append;
  node.element = b.node(x).element;
  node.shape = whole;
  node.shape[0] = all;
  node.operands = {x};
  node.attributes.index = state;
  kept[state].isAppended = true;
  return b.add(std::move(node), kept[state].facts);
}

int Generator::store(Op) {
  int x = choose([&](int id) {
    return !shapeOf(id).empty() && isFixed(shapeOf(id)) &&
           std::any_of(kept.begin(), kept.end(), [&](const Kept &state) {
             const std::vector<std::int64_t> &known =
                 b.graph.states[static_cast<std::size_t>(&state - kept.data())].shape;
             return state.scope == b.ownerScope() && Extents(known.begin(), known.end()) == shapeOf(id);
           });
  });
  if (x < 0)
    x = choose([&](int id) { return !shapeOf(id).empty() && isFixed(shapeOf(id)); });
  if (x < 0)
    return -1;
  const int state = stateFor(Op::store, shapeOf(x), b.node(x).element);
  if (state < 0)
    return -1;
  x = bounded(x, b.type(x), kept[state].facts);
  if (x < 0)
    return -1;
  Node node;
  node.op = Op::store;
  node.element = b.node(x).element;
  node.operands = {x};
  node.attributes.index = state;
  kept[state].isStored = true;
  b.add(std::move(node), {});
  return x;
}

} // namespace kiln::fuzz
