// SPDX-License-Identifier: Apache-2.0
//
// A graph in the making, node by node, with the bookkeeping of kiln::Tracer: the scope, the region and the owner of
// each thing. Unlike there, types are values, and an input can be asked for inside a loop.
#pragma once

#include <functional>

#include "tests/fuzz/Facts.h"
#include "tests/fuzz/RandomGraph.h"

namespace kiln::fuzz {

class Builder {
public:
  Builder(std::int64_t maxElements) : names(std::make_shared<std::deque<std::string>>()), maxElements(maxElements) {
    graph.scopes.push_back({});
  }

  const Node &node(int id) const { return graph.nodes[id]; }
  Type type(int id) const { return typeOf(graph.nodes[id]); }
  const Extents &shape(int id) const { return graph.nodes[id].shape; }
  Facts &facts(int id) { return known[id]; }
  int uses(int id) const { return used[id]; }
  bool isHere(int id) const { return home[id] == region; }

  /// The operation's result; -1 if that breaks a rule or has too many elements. `stated` is what the operation leaves
  /// to its result.
  int make(Op op, std::vector<int> operands, Attributes attributes = {}, Type stated = {});
  /// Without any check.
  int add(Node node, const Facts &facts);

  /// An argument of the entry; -1 if it has too many elements, as of a parameter.
  int input(const Type &type, const RandomModel::Input &range, const Facts &facts);
  /// An argument of the loop's body that is open.
  int argument(const Type &type, const Facts &facts);
  /// A new parameter of the innermost stack or of one around it; `levels` further out than the innermost.
  int parameter(const Type &type, const RandomModel::Input &range, int levels);
  /// The parameter of that number, in sight from here; -1 if it is not.
  int useParameter(int number);

  int openEntry();
  /// Another region with copies of all nodes of an entry, their extents as `replaced` has them.
  int openCopy(int entryRegion, const std::function<Dim(const Dim &)> &replaced);
  void closeEntry(const char *name, const std::vector<int> &results);
  /// Opens the body of a scan, or of a stack of `count` > 0 layers in a scope of its own.
  int open(std::int64_t count, const char *name);
  void close();

  /// Nodes that an operation here may use.
  std::vector<int> visible() const;
  int loopDepth() const;
  bool isInsideScan() const;
  int entryRegion() const;
  /// The body of the innermost stack, or the entry.
  int bodyRegion() const;
  int ownerScope() const { return graph.regions[bodyRegion()].scope < 0 ? 0 : graph.regions[bodyRegion()].scope; }

  const char *named(std::string name) { return names->emplace_back(std::move(name)).c_str(); }

  Graph graph;
  std::shared_ptr<std::deque<std::string>> names;
  std::map<int, RandomModel::Input> ranges;                  // by node: of inputs
  std::map<std::string, RandomModel::Input> parameterRanges; // by leaf
  int region = -1, scope = 0;

private:
  int copyRegion(int from, int enclosedBy, int outer, const std::function<Dim(const Dim &)> &replaced,
                 std::map<int, int> &copies);

  std::int64_t maxElements;
  std::vector<Facts> known;    // by node
  std::vector<int> used, home; // by node
  std::vector<int> enclosing;  // by region
  std::vector<int> outerScope; // by region: the scope to return to
};

} // namespace kiln::fuzz
