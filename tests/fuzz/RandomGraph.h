// SPDX-License-Identifier: Apache-2.0
//
// Random models: graphs as the DSL traces them, with every operation and attribute of dsl/SPEC.md, and the data that a
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

/// A graph with its owned names, and the ranges of its inputs.
struct RandomModel {
  Graph graph; // names point into `names`, which is shared and never moves
  std::shared_ptr<std::deque<std::string>> names;

  /// The range of random values. With a limit, they are integers in [low, the limit's value), and `high` is the largest
  /// one for any extents: the runtime refuses other values, or they are meaningless.
  struct Input {
    double low = -2, high = 2;
    bool isInteger = false;   // i32, and 0 or 1 for booleans
    std::string limit{};      // an extent such as "T" or "2*B*T+1", see limitOf
    bool hasSpecials = false; // NaN and infinities among floats
  };
  std::vector<std::vector<Input>> inputs;  // by entry, by argument
  std::map<std::string, Input> parameters; // by name, such as "h0.{}.w3"; [-1, 1] by default
};

struct Options {
  int nodes = 12;          // maximum for nine models of ten; the others have up to 2.5 times as many
  int maxElements = 20000; // of a tensor, with the largest extents
  bool allowStates = true;
  bool allowLoops = true;
  bool specialValues = false; // NaN and infinities among constants and inputs
  ElementType element = ElementType::f32;
  bool splits = false;      // many layers that tensor parallelism can split
  int rowsOf = 1;           // if > 1: layers whose rows this number of ranks can split (sequence parallelism)
  bool hasPatterns = false; // stacks of layers of several types, whose names a printed spec cannot have
  bool hasOneStack = false; // one stack per entry, as pipeline stages require, and states only in the stack
};

RandomModel randomModel(std::uint64_t seed, const Options &options = {});

/// Returns all named extents of the graph, in the order in which the nodes use them.
std::vector<Symbol> symbolsOf(const Graph &graph);
/// Returns three assignments of extents: smallest, largest, in between, all of which satisfy `least`; one assignment if
/// there is no named extent.
std::vector<std::map<std::string, std::int64_t>> sizesToTry(const Graph &graph, std::uint64_t seed);

std::int64_t valueOf(const Dim &dim, const std::map<std::string, std::int64_t> &extents);
/// Evaluates Input::limit.
std::int64_t limitOf(const std::string &limit, const std::map<std::string, std::int64_t> &extents);
/// Prints an extent in the form that limitOf reads: "2*B*T+1".
std::string limitText(const Dim &dim);

} // namespace kiln::fuzz
