// SPDX-License-Identifier: Apache-2.0
//
// Random graphs must be well formed, the same on every machine, and must cover everything that the compiler treats
// differently.
#include "tests/fuzz/RandomGraph.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "tests/dsl/digest.h"
#include "tests/fuzz/Compare.h"
#include "tests/fuzz/Coverage.h"
#include "tests/fuzz/Edit.h"
#include "tests/fuzz/Facts.h"
#include "tests/fuzz/Generator.h"
#include "tests/fuzz/Shapes.h"
#include "tests/fuzz/StoredWeights.h"

namespace kiln::fuzz {
namespace {

constexpr std::uint64_t seeds = 5000;

const Options everything = [] {
  Options options;
  options.hasPatterns = true;
  return options;
}();

TEST(RandomGraphs, AreWellFormed) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const RandomModel model = randomModel(seed, everything);
    SCOPED_TRACE("seed " + std::to_string(seed));
    ASSERT_EQ(check(model.graph), "");
    ASSERT_EQ(checkIndices(model), "");
    ASSERT_EQ(difference(ordered(model.graph), model.graph), ""); // nodes are numbered as in a trace
    ASSERT_EQ(model.inputs.size(), model.graph.entries.size());
    for (std::size_t i = 0; i < model.inputs.size(); ++i)
      ASSERT_EQ(model.inputs[i].size(), model.graph.entries[i].input_names.size());
    for (const Node &node : model.graph.nodes)
      ASSERT_LE(mostElements(node.shape), Options().maxElements);
  }
}

// A graph that breaks a rule is drawn again, which would hide bugs of the generator if it happened often.
TEST(RandomGraphs, AreSeldomDrawnTwice) {
  std::uint64_t again = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const std::string problem = check(Generator(seed, everything).run().graph);
    again += !problem.empty();
    // No node introduces the extent, or the extent whose `least` it is, since these nodes were not needed.
    EXPECT_TRUE(problem.empty() || problem == "dim_c6" || problem.find("nobody states") == 0)
        << seed << ": " << problem;
  }
  EXPECT_LT(again, seeds / 20);
}

TEST(RandomGraphs, HaveEverythingInThem) {
  std::map<std::string, int> things;
  for (std::uint64_t seed = 0; seed < seeds; ++seed)
    count(randomModel(seed, everything).graph, things);
  for (const auto &[thing, least] : expectedThings())
    EXPECT_GE(things[thing], least) << thing;
  for (std::size_t op = 0; op < op_count; ++op)
    if (static_cast<Op>(op) != Op::custom) // the program defines its functions
      EXPECT_GE(things[name_of(static_cast<Op>(op))], 30) << name_of(static_cast<Op>(op));
}

// The numbers are those of g++ 12 and clang 22. A different number means that a draw depends on the machine.
TEST(RandomGraphs, AreTheSameEverywhere) {
  std::uint64_t all = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed)
    all = all * 31 + digest::of(randomModel(seed).graph);
  EXPECT_EQ(all, 16269943422973305628u) << "if the generator was changed, this number is new, too";
}

TEST(RandomGraphs, KeepToTheOptions) {
  Options options;
  options.allowLoops = options.allowStates = false;
  options.maxElements = 500;
  for (std::uint64_t seed = 0; seed < 500; ++seed)
    for (const Node &node : randomModel(seed, options).graph.nodes) {
      EXPECT_FALSE(has_body(node) || uses_state(node));
      EXPECT_LE(mostElements(node.shape), 500);
    }
}

TEST(RandomGraphs, SizesRespectBoundsAndLeast) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Graph graph = randomModel(seed).graph;
    const auto sizes = sizesToTry(graph, seed);
    ASSERT_FALSE(sizes.empty());
    for (const auto &extents : sizes)
      for (const Symbol &symbol : symbolsOf(graph)) {
        const std::int64_t value = extents.at(symbol.name);
        EXPECT_TRUE(value >= symbol.min && value <= symbol.max);
        EXPECT_GE(value, *symbol.least ? extents.at(symbol.least) : 1);
      }
  }
}

TEST(RandomGraphs, LimitsAreReadAsTheyWereWritten) {
  const Dim t("T", 1, 17), b("B", 2, 5);
  const std::vector<Symbol> symbols{t.symbols[0], b.symbols[0]};
  const std::map<std::string, std::int64_t> extents{{"T", 7}, {"B", 3}};
  for (const Dim &dim : {Dim(12), t, t + 1, t - Dim(1) + b * t * 0, b * t, 2 * b * t + 3, t * t, 3 * t - 2}) {
    EXPECT_EQ(limitOf(limitText(dim), extents), valueOf(dim, extents)) << limitText(dim);
    EXPECT_EQ(dimOf(limitText(dim), symbols), dim) << limitText(dim);
  }
}

TEST(RandomGraphs, OneModelInTenHasStoredWeights) {
  std::map<std::string, int> choices;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const RandomModel model = randomModel(seed); // owns the names
    const Graph &graph = model.graph;
    const std::string choice = drawWeights(graph, seed);
    EXPECT_EQ(choice, drawWeights(graph, seed));
    ++choices[choice.substr(0, choice.find(' '))];
    if (const std::size_t at = choice.find("except "); at != std::string::npos) {
      ++choices["except"];
      const std::string name = choice.substr(at + 7, choice.rfind('=') - at - 7);
      const std::vector<std::string> names = storableWeights(graph);
      EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << choice;
    }
  }
  EXPECT_NEAR(choices[""], 0.9 * seeds, 0.02 * seeds);
  for (const char *choice : {"f16", "bf16", "int8", "fp8", "mxfp4", "q8_0", "nvfp4", "fp8_block", "q4_k", "q6_k",
                             "int4<32>", "int4_zero<64>", "except"})
    EXPECT_GE(choices[choice], 30) << choice;
}

// check() must name each rule that a graph can break.
TEST(RandomGraphs, CheckNamesTheRule) {
  RandomModel model;
  for (std::uint64_t seed = 0;; ++seed) {
    model = randomModel(seed);
    if (model.graph.nodes.back().op == Op::softmax && model.graph.entries.size() == 1)
      break;
  }
  const auto problem = [&](const std::function<void(Graph &)> &broken) {
    Graph graph = model.graph;
    broken(graph);
    return check(graph);
  };
  EXPECT_EQ(problem([](Graph &) {}), "");
  EXPECT_NE(problem([](Graph &g) { g.nodes.back().attributes.axis = 7; }).find("softmax_c1"), std::string::npos);
  EXPECT_NE(problem([](Graph &g) { g.nodes.back().shape.push_back(1); }).find("is f32"), std::string::npos);
  EXPECT_NE(problem([](Graph &g) { g.nodes.push_back(g.nodes.back()); }).find("nothing depends on it"),
            std::string::npos);
  EXPECT_EQ(problem([](Graph &g) { g.entries[0].input_names.pop_back(); }), "model_c1");
  EXPECT_EQ(problem([](Graph &g) { g.parameters.push_back({0, "w", ElementType::f32, {1}}); }),
            "a parameter that nothing uses");
}

} // namespace
} // namespace kiln::fuzz
