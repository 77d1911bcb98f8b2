// SPDX-License-Identifier: Apache-2.0
//
// Which inputs the run time checks: those that ops use as indices or lengths, through any data movement, and no others.
#include "compiler/hostcode/ValueChecks.h"
#include "compiler/library/Names.h"
#include "compiler/pipeline/ImportModel.h"
#include "kiln/dsl.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include <gtest/gtest.h>

namespace kiln {
namespace {

constexpr Dim checkedBatch{"batch", 1, 4}, checkedTokens{"tokens", 1, 64},
    checkedContext{"context", checkedTokens, 128};

struct Checked : Model {
  Embedding<29, 8> table{"table"};
  Gru<4, 3, RecurrentOptions{.bidirectional = true}> gru{"gru"};
  Lstm<4, 3> lstm{"lstm"};

  constexpr auto looked_up(Tensor<i32, checkedBatch, checkedTokens> tokens) const { return table(tokens); }
  constexpr auto moved(Tensor<i32, checkedBatch, checkedTokens> tokens) const {
    return table(slice<0, 0, 1>(transpose<1, 0>(reshape<checkedTokens, checkedBatch>(tokens))));
  }
  constexpr auto computed(Tensor<i32, checkedTokens> tokens) const { return table(tokens + 1); }
  /// The limit is that of the smaller of two tables.
  constexpr auto gathered(Tensor<f32, 5, 7> x, Tensor<i32, checkedTokens> places) const {
    return ::kiln::outputs(table(places), gather<0>(x, places));
  }
  constexpr auto attended(Tensor<f32, checkedBatch, checkedTokens, 8> q, Tensor<f32, checkedBatch, checkedContext, 8> k,
                          Tensor<i32, checkedBatch> n) const {
    return attention<2>(q, k, k, lengths(n));
  }
  constexpr auto scored(Tensor<f32, checkedBatch, checkedTokens, 8> q, Tensor<f32, checkedBatch, checkedContext, 8> k,
                        Tensor<i32, checkedBatch> n) const {
    return attention_scores<2>(q, k, lengths(n));
  }
  /// One token at a time, together with a carried token, which is computed.
  constexpr auto stepped(Tensor<i32, checkedTokens, checkedBatch> tokens, Tensor<i32, checkedBatch> first) const {
    auto [last, all] = scan(first, tokens, [this](auto before, auto here) {
      return std::pair{argmax(table(here) + table(before)), table(before)};
    });
    return ::kiln::outputs(last, all);
  }
  /// Recurrent layers with sequence lengths, which may be 0.
  constexpr auto ended(Tensor<f32, checkedTokens, checkedBatch, 4> x, Tensor<i32, checkedBatch> n) const {
    return gru(x, None(), n).outputs;
  }
  constexpr auto ended_alone(Tensor<f32, 5, 4> x, Tensor<i32> n) const { return lstm(x, None(), n).outputs; }
  constexpr auto positioned(Tensor<i32, checkedTokens> at) const { return sinusoidal<8>(at); }

  static constexpr auto entries() {
    return std::tuple{entry("looked_up", &Checked::looked_up), entry("moved", &Checked::moved),
                      entry("computed", &Checked::computed),   entry("gathered", &Checked::gathered),
                      entry("attended", &Checked::attended),   entry("scored", &Checked::scored),
                      entry("stepped", &Checked::stepped),     entry("positioned", &Checked::positioned),
                      entry("ended", &Checked::ended),         entry("ended_alone", &Checked::ended_alone)};
  }
};

/// Returns "0 .. 29" for each input that is checked, "any" for the others.
std::string checksOf(const ModelInterface &model, const std::string &entry) {
  std::string text;
  for (const EntryInterface &each : model.entries)
    if (each.name == entry)
      for (const ArgumentInterface &argument : each.arguments)
        if (!argument.isOutput)
          text += (text.empty() ? "" : ", ") + (argument.check
                                                    ? std::to_string(argument.check->minimum) + " .. " +
                                                          ParameterNames(model, each).expression(argument.check->limit)
                                                    : "any");
  return text;
}

TEST(ValueChecks, FollowFromTheOps) {
  const Graph graph = trace<Checked>();
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module = importModel(graph, &context, "checked");
  ASSERT_TRUE(module);
  ModelInterface model = describeInterface(graph, "checked");
  addValueChecks(*module, model);
  EXPECT_EQ(checksOf(model, "looked_up"), "0 .. 29");
  EXPECT_EQ(checksOf(model, "moved"), "0 .. 29");
  EXPECT_EQ(checksOf(model, "computed"), "any");
  EXPECT_EQ(checksOf(model, "gathered"), "any, 0 .. 5");
  EXPECT_EQ(checksOf(model, "attended"), "any, any, 0 .. context + 1");
  EXPECT_EQ(checksOf(model, "scored"), "any, any, 0 .. context + 1");
  EXPECT_EQ(checksOf(model, "stepped"), "0 .. 29, any");
  EXPECT_EQ(checksOf(model, "positioned"), "any");
  EXPECT_EQ(checksOf(model, "ended"), "any, 0 .. tokens + 1");
  EXPECT_EQ(checksOf(model, "ended_alone"), "any, 0 .. 6");
}

// The limit is one of the entry's own dimensions, with its bounds: the descriptor looks it up by these.
TEST(ValueChecks, LimitsAreExtentsOfTheEntry) {
  const Graph graph = trace<Checked>();
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module = importModel(graph, &context, "checked");
  ASSERT_TRUE(module);
  ModelInterface model = describeInterface(graph, "checked");
  addValueChecks(*module, model);
  const EntryInterface &scored = model.entries[5];
  ASSERT_TRUE(scored.arguments[2].check);
  EXPECT_EQ(scored.arguments[2].check->limit, checkedContext + 1);
}

} // namespace
} // namespace kiln
