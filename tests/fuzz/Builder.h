// SPDX-License-Identifier: Apache-2.0
//
// Builds a graph node by node, with the bookkeeping of kiln::Tracer: the scope, the region and the owner of each node
// and parameter. In contrast to the tracer, types are run-time values, and an input can be created inside a loop.
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

  /// Adds an operation and returns its result, or -1 if the operation breaks a rule or has too many elements. `stated`
  /// is the part of the result type that operands do not determine.
  int make(Op op, std::vector<int> operands, Attributes attributes = {}, Type stated = {});
  /// Adds a node without any check.
  int add(Node node, const Facts &facts);

  /// Adds an argument of the entry; returns -1 if it has too many elements, as `parameter` does.
  int input(const Type &type, const RandomModel::Input &range, const Facts &facts);
  /// Adds an argument of the loop body that is being built.
  int argument(const Type &type, const Facts &facts);
  /// Adds a parameter of an enclosing stack, `levels` further out than the innermost one.
  int parameter(const Type &type, const RandomModel::Input &range, int levels);
  /// Returns the value of the parameter of that number, or -1 if it is not visible here.
  int useParameter(int number);

  int openEntry();
  /// Opens another region with copies of all nodes of an entry, whose extents `replaced` maps.
  int openCopy(int entryRegion, const std::function<Dim(const Dim &)> &replaced);
  void closeEntry(const char *name, const std::vector<int> &results);
  /// Opens the body of a scan, or, if `count` > 0, of a stack of `count` layers in a new scope, within
  /// `parent` if that is given.
  int open(std::int64_t count, const char *name, int parent = -1);
  /// Adds a scope without layers to that of the enclosing stack.
  int addScope(const char *name);
  void close();

  /// Returns the nodes that an operation may use here.
  std::vector<int> visible() const;
  int loopDepth() const;
  bool isInsideScan() const;
  int entryRegion() const;
  /// Returns the body of the innermost stack, or the entry's region.
  int bodyRegion() const;
  int ownerScope() const { return graph.regions[bodyRegion()].scope < 0 ? 0 : graph.regions[bodyRegion()].scope; }

  const char *named(std::string name) { return names->emplace_back(std::move(name)).c_str(); }

  Graph graph;
  std::shared_ptr<std::deque<std::string>> names;
  std::map<int, RandomModel::Input> ranges;                  // of inputs, by node
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
