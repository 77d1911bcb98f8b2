// SPDX-License-Identifier: Apache-2.0
//
// Random models: graphs as a trace of the DSL leaves them, of every operation and attribute of dsl/SPEC.md, with what a
// caller needs in order to run them. The same seed gives the same graph on every machine.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kiln/graph.h"

namespace kiln::fuzz {

/// A graph with what owns its names, and what its inputs may hold.
struct RandomModel {
  Graph graph; // names point into `names`, which is shared and never moves
  std::shared_ptr<std::deque<std::string>> names;

  /// Where random values are drawn. With a limit they are integers in [low, the limit's value), and `high` is the
  /// largest for any extents: the run time refuses other ones, or they mean nothing.
  struct Input {
    double low = -2, high = 2;
    bool isInteger = false;   // i32, and 0 or 1 for booleans
    std::string limit{};      // "T", "2*B*T+1": an extent, see limitOf
    bool hasSpecials = false; // NaN and infinities among floats
  };
  std::vector<std::vector<Input>> inputs;  // by entry, by argument
  std::map<std::string, Input> parameters; // by name, "h0.{}.w3"; [-1, 1] where there is none
};

struct Options {
  int nodes = 12;          // operations at most in nine models of ten; up to 2.5 times as many in the others
  int maxElements = 20000; // of a tensor, with the largest extents
  bool allowStates = true;
  bool allowLoops = true;
  bool specialValues = false; // NaN and infinities among constants and inputs
  ElementType element = ElementType::f32;
  bool splits = false;      // many layers that ranks can split
  int rowsOf = 1;           // layers of many rows, of which each of so many ranks can have its share
  bool hasOneStack = false; // in each entry one, as stages want it, and states in it alone
};

RandomModel randomModel(std::uint64_t seed, const Options &options = {});

/// All named extents of the graph, in the order in which the nodes have them.
std::vector<Symbol> symbolsOf(const Graph &graph);
/// Three assignments of extents to try: smallest, largest, something between; `least` holds in each. One if nothing is
/// named.
std::vector<std::map<std::string, std::int64_t>> sizesToTry(const Graph &graph, std::uint64_t seed);

std::int64_t valueOf(const Dim &dim, const std::map<std::string, std::int64_t> &extents);
/// The value of Input::limit.
std::int64_t limitOf(const std::string &limit, const std::map<std::string, std::int64_t> &extents);
/// How limitOf reads an extent: "2*B*T+1".
std::string limitText(const Dim &dim);

} // namespace kiln::fuzz
