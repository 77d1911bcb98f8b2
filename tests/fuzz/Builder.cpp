// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/Builder.h"

#include <algorithm>

#include "kiln/numbered.h"

namespace kiln::fuzz {

int Builder::make(Op op, std::vector<int> operands, Attributes attributes, Type stated) {
  Node node;
  node.op = op;
  node.element = stated.element;
  node.shape = std::move(stated.shape);
  node.operands = std::move(operands);
  node.attributes = std::move(attributes);
  std::vector<Type> types;
  std::vector<Facts> facts;
  for (int operand : node.operands) {
    if (operand < 0)
      return -1;
    types.push_back(type(operand));
    facts.push_back(known[operand]);
  }
  std::string why;
  const std::optional<Type> result = inferType(node, types, why);
  if (!result || mostElements(result->shape) > maxElements)
    return -1;
  for (const Dim &dim : result->shape)
    if (dim.min() < 1)
      return -1;
  node.element = result->element;
  node.shape = result->shape;
  const Facts of = factsOf(node, types, facts);
  if (node.element == ElementType::i32 && !of.isWithin(-1e6, 1e6))
    return -1; // would soon overflow
  return add(std::move(node), of);
}

int Builder::add(Node node, const Facts &facts) {
  node.scope = node.op == Op::parameter ? graph.parameters[node.attributes.index].scope : scope;
  const int id = static_cast<int>(graph.nodes.size()),
            owner = node.op == Op::parameter ? bodyRegion() : region; // the caller sets that of an argument
  for (int operand : node.operands)
    ++used[operand];
  if (node.op != Op::input)
    graph.regions[owner].nodes.push_back(id);
  if (node.op == Op::append || node.op == Op::store)
    graph.regions[owner].effects.push_back(id);
  graph.nodes.push_back(std::move(node));
  known.push_back(facts);
  used.push_back(0);
  home.push_back(owner);
  return id;
}

int Builder::input(const Type &type, const RandomModel::Input &range, const Facts &facts) {
  if (mostElements(type.shape) > maxElements)
    return -1;
  const int entry = entryRegion(), inner = scope;
  Node node;
  node.op = Op::input;
  node.element = type.element;
  node.shape = type.shape;
  node.attributes.index = static_cast<int>(graph.regions[entry].arguments.size());
  scope = 0;
  const int id = add(std::move(node), facts);
  scope = inner;
  home[id] = entry;
  graph.regions[entry].arguments.push_back(id);
  ranges[id] = range;
  return id;
}

int Builder::argument(const Type &type, const Facts &facts) {
  Node node;
  node.op = Op::input;
  node.element = type.element;
  node.shape = type.shape;
  node.attributes.index = static_cast<int>(graph.regions[region].arguments.size());
  const int id = add(std::move(node), facts);
  graph.regions[region].arguments.push_back(id);
  return id;
}

int Builder::parameter(const Type &type, const RandomModel::Input &range, int levels) {
  if (mostElements(type.shape) > maxElements)
    return -1;
  int owner = ownerScope();
  // The number of a layer in a pattern is complete in the body of its type only.
  const auto isPartial = [&](int at) {
    const char *name = graph.scopes[at].name;
    return at > 0 && (graph.scopes[at].copies == 0 || (detail::is_number_part(name) && !detail::ends_number(name)));
  };
  for (; levels > 0 && owner > 0; --levels)
    owner = graph.scopes[owner].parent;
  while (isPartial(owner))
    owner = graph.scopes[owner].parent;
  Parameter made;
  made.scope = owner;
  made.leaf = named("w" + std::to_string(graph.parameters.size()));
  made.element = type.element;
  for (const Dim &dim : type.shape)
    made.shape.push_back(dim.offset);
  parameterRanges[made.leaf] = range;
  graph.parameters.push_back(std::move(made));
  return useParameter(static_cast<int>(graph.parameters.size()) - 1);
}

int Builder::useParameter(int number) {
  const Parameter &parameter = graph.parameters[number];
  // The region that has the owner's values: the body of the stack that owns the parameter, or the entry.
  int owner = region;
  while (owner >= 0 && (parameter.scope > 0 ? graph.regions[owner].scope != parameter.scope : enclosing[owner] >= 0))
    owner = enclosing[owner];
  if (owner < 0)
    return -1;
  for (int id : graph.regions[owner].nodes)
    if (graph.nodes[id].op == Op::parameter && graph.nodes[id].attributes.index == number)
      return id;
  Node node;
  node.op = Op::parameter;
  node.element = parameter.element;
  node.shape.assign(parameter.shape.begin(), parameter.shape.end());
  node.attributes.index = number;
  const RandomModel::Input &range = parameterRanges[parameter.leaf];
  const int inner = region;
  region = owner;
  const int id = add(std::move(node), between(range.low, range.high));
  region = inner;
  return id;
}

int Builder::openEntry() {
  const int id = static_cast<int>(graph.regions.size());
  graph.regions.push_back({});
  enclosing.push_back(-1);
  outerScope.push_back(0);
  scope = 0;
  return region = id;
}

void Builder::closeEntry(const char *name, const std::vector<int> &results) {
  Entry entry;
  entry.name = named(name);
  entry.region = region;
  Region &body = graph.regions[region];
  body.results = results;
  for (std::size_t i = 0; i < body.arguments.size(); ++i)
    entry.input_names.push_back(named("x" + std::to_string(i)));
  for (std::size_t i = 0; i < results.size(); ++i) {
    ++used[results[i]];
    entry.output_names.push_back(named("y" + std::to_string(i)));
  }
  graph.entries.push_back(std::move(entry));
  region = -1;
}

int Builder::openCopy(int entryRegion, const std::function<Dim(const Dim &)> &replaced) {
  std::map<int, int> copies;
  scope = 0;
  return region = copyRegion(entryRegion, -1, 0, replaced, copies);
}

int Builder::copyRegion(int from, int enclosedBy, int outer, const std::function<Dim(const Dim &)> &replaced,
                        std::map<int, int> &copies) {
  const int id = static_cast<int>(graph.regions.size());
  const Region original = graph.regions[from];
  Region made;
  made.count = original.count;
  made.scope = original.scope;
  graph.regions.push_back(made);
  enclosing.push_back(enclosedBy);
  outerScope.push_back(outer);
  auto copied = [&](int number) {
    Node node = graph.nodes[number];
    Facts facts = known[number];
    for (Dim &dim : node.shape)
      dim = node.op == Op::parameter ? dim : replaced(dim);
    if (facts.below)
      facts.below = replaced(*facts.below);
    for (int &operand : node.operands)
      operand = copies.at(operand);
    if (has_body(node))
      node.attributes.index = copyRegion(node.attributes.index, id, node.scope, replaced, copies);
    const int copy = static_cast<int>(graph.nodes.size());
    graph.nodes.push_back(std::move(node));
    known.push_back(facts);
    used.push_back(used[number]);
    home.push_back(id);
    if (ranges.count(number)) {
      RandomModel::Input range = ranges[number];
      if (facts.below && !range.limit.empty())
        range.limit = limitText(*facts.below), range.high = static_cast<double>(facts.below->max() - 1);
      ranges[copy] = range;
    }
    return copies[number] = copy;
  };
  for (int argument : original.arguments) {
    const int copy = copied(argument);
    graph.regions[id].arguments.push_back(copy);
  }
  // A parameter is created at its first use, but loops before it may use it too, so parameters come first.
  for (bool isParameter : {true, false})
    for (int node : original.nodes)
      if ((graph.nodes[node].op == Op::parameter) == isParameter) {
        const int copy = copied(node);
        graph.regions[id].nodes.push_back(copy);
      }
  for (int result : original.results)
    graph.regions[id].results.push_back(copies.at(result));
  for (int effect : original.effects)
    graph.regions[id].effects.push_back(copies.at(effect));
  return id;
}

int Builder::addScope(const char *name) {
  Scope made;
  made.parent = ownerScope();
  made.name = name;
  graph.scopes.push_back(std::move(made));
  return static_cast<int>(graph.scopes.size()) - 1;
}

int Builder::open(std::int64_t count, const char *name, int parent) {
  const int id = static_cast<int>(graph.regions.size());
  graph.regions.push_back({});
  enclosing.push_back(region);
  outerScope.push_back(scope);
  if (count > 0) {
    Scope made;
    made.parent = parent < 0 ? ownerScope() : parent;
    made.name = name;
    made.copies = count;
    graph.scopes.push_back(std::move(made));
    scope = static_cast<int>(graph.scopes.size()) - 1;
    graph.regions[id].scope = scope;
    graph.regions[id].count = count;
  }
  return region = id;
}

void Builder::close() {
  for (int result : graph.regions[region].results)
    ++used[result];
  scope = outerScope[region];
  region = enclosing[region];
}

std::vector<int> Builder::visible() const {
  std::vector<bool> isAround(graph.regions.size());
  for (int at = region; at >= 0; at = enclosing[at])
    isAround[at] = true;
  std::vector<int> result;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    if (isAround[home[i]] && graph.nodes[i].op != Op::scan && graph.nodes[i].op != Op::store)
      result.push_back(static_cast<int>(i));
  return result;
}

int Builder::loopDepth() const {
  int depth = 0;
  for (int at = region; enclosing[at] >= 0; at = enclosing[at])
    ++depth;
  return depth;
}

bool Builder::isInsideScan() const {
  for (int at = region; enclosing[at] >= 0; at = enclosing[at])
    if (graph.regions[at].scope < 0)
      return true;
  return false;
}

int Builder::entryRegion() const {
  int at = region;
  while (enclosing[at] >= 0)
    at = enclosing[at];
  return at;
}

int Builder::bodyRegion() const {
  int at = region;
  while (enclosing[at] >= 0 && graph.regions[at].scope < 0)
    at = enclosing[at];
  return at;
}

} // namespace kiln::fuzz
