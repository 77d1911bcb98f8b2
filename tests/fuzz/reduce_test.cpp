// SPDX-License-Identifier: Apache-2.0
//
// Reductions of planted failures must find the graphs that a person would have written.
#include "tests/fuzz/Reduce.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/fuzz/Facts.h"
#include "tests/fuzz/PrintNode.h"
#include "tests/fuzz/PrintSpec.h"
#include "tests/fuzz/Shapes.h"

namespace kiln::fuzz {
namespace {

/// A gather of integers can reach floats through a loop only, in which reductions leave it.
bool isAfterGather(const Graph &graph, int node) {
  return std::any_of(graph.nodes[node].operands.begin(), graph.nodes[node].operands.end(), [&](int operand) {
    const Node &from = graph.nodes[operand];
    return (from.op == Op::gather && floating(from.element)) || isAfterGather(graph, operand);
  });
}

bool has(const Graph &graph, const std::function<bool(const Node &)> &property) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), property);
}

/// Reduces the first `count` models that fail, of some minimum size.
void forFailures(const std::function<bool(const RandomModel &)> &fails, int count,
                 const std::function<void(const RandomModel &)> &reduced) {
  int found = 0;
  for (std::uint64_t seed = 0; found < count && seed < 50000; ++seed) {
    const RandomModel model = randomModel(seed);
    if (model.graph.nodes.size() < 12 || !fails(model))
      continue;
    ++found;
    SCOPED_TRACE("seed " + std::to_string(seed));
    int tries = 0;
    const RandomModel small = reduce(model, [&](const RandomModel &candidate) {
      ++tries;
      EXPECT_EQ(check(candidate.graph), "");
      EXPECT_EQ(checkIndices(candidate), "");
      return fails(candidate);
    });
    SCOPED_TRACE(printModel(small.graph, "Reduced"));
    EXPECT_TRUE(fails(small));
    EXPECT_LE(tries, 400);
    reduced(small);
  }
  EXPECT_EQ(found, count);
}

TEST(Reduce, LeavesASoftmaxAfterAGather) {
  auto fails = [](const RandomModel &model) {
    for (std::size_t i = 0; i < model.graph.nodes.size(); ++i)
      if (model.graph.nodes[i].op == Op::softmax && isAfterGather(model.graph, static_cast<int>(i)))
        return true;
    return false;
  };
  forFailures(fails, 10, [](const RandomModel &small) {
    EXPECT_EQ(small.graph.nodes.size(), 4u); // a table, indices, gather, softmax
    for (const Node &node : small.graph.nodes)
      EXPECT_EQ(mostElements(node.shape), 1);
  });
}

// Only an operation and its operands are left, whether it is inside loops or in other entries.
TEST(Reduce, LeavesOneOperation) {
  for (Op op :
       {Op::matmul, Op::conv2d, Op::attention, Op::concat, Op::layer_norm, Op::where, Op::append, Op::sinusoidal}) {
    SCOPED_TRACE(name_of(op));
    auto fails = [op](const RandomModel &model) {
      return has(model.graph, [&](const Node &node) { return node.op == op; });
    };
    std::size_t nodes = 0;
    forFailures(fails, 6, [&](const RandomModel &small) { nodes += small.graph.nodes.size(); });
    EXPECT_LE(nodes, 6 * 5u);
  }
}

TEST(Reduce, KeepsWhatTheFailureNeeds) {
  auto fails = [](const RandomModel &model) {
    return has(model.graph, [](const Node &node) {
      return node.op == Op::scan && node.attributes.reverse && node.attributes.states > 0;
    });
  };
  forFailures(fails, 5, [](const RandomModel &small) {
    EXPECT_LE(small.graph.nodes.size(), 8u);
    EXPECT_EQ(small.graph.entries.size(), 1u);
  });
}

TEST(Reduce, NamedExtentsBecomeNumbersUnlessTheyMatter) {
  auto concat = [](const RandomModel &model) {
    return has(model.graph, [](const Node &node) { return node.op == Op::concat; });
  };
  forFailures([&](const RandomModel &model) { return concat(model) && !symbolsOf(model.graph).empty(); }, 3,
              [](const RandomModel &small) { EXPECT_EQ(symbolsOf(small.graph).size(), 1u); });
  forFailures(concat, 5, [](const RandomModel &small) { EXPECT_TRUE(symbolsOf(small.graph).empty()); });
}

TEST(Reduce, StopsAtTheLimitOfTries) {
  int tries = 0;
  const RandomModel model = randomModel(509);
  reduce(model, [&](const RandomModel &) { return ++tries, true; }, 7);
  EXPECT_LE(tries, 7);
  const RandomModel same = reduce(model, [](const RandomModel &) { return false; }, 20);
  EXPECT_EQ(printSpec(same.graph), printSpec(model.graph));
}

} // namespace
} // namespace kiln::fuzz
