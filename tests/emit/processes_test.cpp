// SPDX-License-Identifier: Apache-2.0
//
// What libraries for several processes cannot have.
#include "compiler/driver/Compile.h"
#include "kiln/dsl.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

struct TrainedLayer : Model {
  Linear<8, 8> fc{"fc"};
  constexpr auto forward(Tensor<f32, 3, 8> x) const { return fc(x); }
  constexpr auto loss(Tensor<f32, 3, 8> x) const { return mse(fc(x), x); }
  static constexpr auto entries() {
    return std::tuple{entry("forward", &TrainedLayer::forward),
                      train("train", &TrainedLayer::loss, {"x"}, {"loss"}, AdamW{})};
  }
};

/// Returns the errors of a compilation with these choices.
std::string errorsOf(const RankChoices &ranks, const std::function<void(CompileOptions &)> &change) {
  CompileOptions options;
  options.name = "net";
  options.targets = {"x86-64-v2"};
  options.form = EmitForm::Ir;
  options.lowering.ranks = ranks;
  change(options);
  std::string errors;
  llvm::raw_string_ostream stream(errors);
  EXPECT_TRUE(failed(compileModel(trace<TrainedLayer>(), options, stream)));
  return errors;
}

TEST(SeveralProcesses, HaveNeitherSelfTestsNorEmbeddedWeightsNorBindings) {
  for (auto [ranks, flags] : {std::pair(RankChoices{.ranks = 2}, "--ranks 2"),
                              {RankChoices{.replicas = 4}, "--replicas 4"},
                              {RankChoices{.ranks = 2, .stages = 3}, "--ranks 2 --stages 3"}}) {
    const std::string begin = "error: " + std::string(flags) + ": library for several processes; expected no ";
    EXPECT_EQ(errorsOf(ranks, [](CompileOptions &options) { options.hasSelfTest = true; }),
              begin + "self-test, got one\n");
    EXPECT_EQ(errorsOf(ranks, [](CompileOptions &options) { options.embedded.emplace(); }),
              begin + "embedded weights, got some\n");
    EXPECT_EQ(errorsOf(ranks, [](CompileOptions &options) { options.bindings = {"rust"}; }),
              begin + "bindings, since its calls take communicators, which are functions of C, got those for rust\n");
  }
}

TEST(SeveralProcesses, OfReplicasOrStagesAreOnCpus) {
  auto onGpu = [](CompileOptions &options) { options.targets = {"cuda"}; };
  EXPECT_EQ(errorsOf({.replicas = 2}, onGpu),
            "error: --replicas 2: library of replicas; expected CPUs as targets, got cuda\n");
  EXPECT_EQ(errorsOf({.stages = 2}, onGpu),
            "error: --stages 2: library of pipeline stages; expected CPUs as targets, got cuda\n");
}

} // namespace
} // namespace kiln
