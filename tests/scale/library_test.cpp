// SPDX-License-Identifier: Apache-2.0
// Predictions for libraries: counts by hand, the compiler's counts for a GPT, and the command.
#include "tests/package/command.h"
#include "tools/scale/Gpt.h"
#include "tools/scale/Library.h"

#include <cmath>

namespace kiln {
namespace {

using testing::readFile;
using testing::run;

/// A device with 1e9 operations and 1e8 bytes per second; a message takes 1 ms plus 1e-6 s per byte.
Cluster slow() {
  Cluster cluster;
  cluster.name = "slow";
  cluster.device = {"d", {{"f32", 1e9}}, 1, 1000, 1e8, 1};
  cluster.devicesInNode = 4;
  cluster.node = {1e-3, 1e6};
  cluster.network = {1e-2, 1e6};
  return cluster;
}

InspectedStep step(const char *kind, double times, double bytes) {
  InspectedStep step;
  step.kind = kind;
  step.times = times;
  step.operandBytes = bytes;
  return step;
}

/// Two ranks: three layers with a kernel of 1e7 operations and an all-reduce of 4000 bytes; 400 bytes of weights are
/// trained.
Inspection tiny(bool isTraining) {
  Inspection inspection;
  inspection.name = "tiny";
  inspection.ranks = 2;
  inspection.packedBytes = 600;
  InspectedEntry &entry = inspection.entries.emplace_back();
  entry.name = "forward";
  entry.arenaFixed = 300;
  entry.stateBytes = 100;
  entry.steps.push_back(step("loop", 3, 5000));
  InspectedStep &kernel = entry.steps.emplace_back(step("kernel", 3, 0));
  kernel.kernel = "linear_0";
  kernel.operations = 1e7;
  kernel.bytesRead = 100;
  entry.steps.push_back(step("all_reduce", 3, 4000));
  entry.steps.push_back(step("end", 1, 0));
  if (isTraining)
    entry.steps.push_back(step("assign", 1, 800));
  return inspection;
}

EntryCost predict(const Inspection &inspection, const Placement &placement) {
  llvm::Expected<std::vector<EntryCost>> costs = predictLibrary(inspection, slow(), placement);
  if (costs)
    return costs->front();
  ADD_FAILURE() << llvm::toString(costs.takeError());
  return {};
}

TEST(Library, CountedByHand) {
  const EntryCost cost = predict(tiny(false), {});
  EXPECT_DOUBLE_EQ(cost.kernels, 3 * 1e7 / 1e9);
  EXPECT_DOUBLE_EQ(cost.exchanges, 3 * (1e-3 + 4e-3)) << "two ranks send each other all of it";
  EXPECT_DOUBLE_EQ(cost.exchangedBytes, 3 * 4000);
  EXPECT_EQ(cost.sends + cost.bubble + cost.gradients, 0);
  EXPECT_DOUBLE_EQ(cost.operations, 2 * 3e7) << "of both ranks";
  EXPECT_DOUBLE_EQ(cost.memoryBytes, 600 + 300);
  EXPECT_EQ(cost.devices, 2);
}

TEST(Library, StagesWaitAndSend) {
  const EntryCost cost = predict(tiny(false), {.stages = 3, .microbatches = 4});
  // A stage has 2 of a node's 4 devices, and its two ranks share the node's adapters.
  const double stage = 1e-2 + 5e-3 + (1e-2 + 5000 / 5e5);
  EXPECT_NEAR(cost.kernels + cost.exchanges + cost.sends, 4 * stage, 1e-12);
  EXPECT_NEAR(cost.seconds(), (4 + 2) * stage, 1e-12);
  EXPECT_DOUBLE_EQ(cost.memoryBytes, (600 + 100 + 200 * 3) / 3.0) << "three calls are under way";
  EXPECT_EQ(cost.devices, 6);
}

TEST(Library, ReplicasAddUpGradientsOfTrainings) {
  const Placement eight{.replicas = 8};
  EXPECT_EQ(predict(tiny(false), eight).gradients, 0) << "no weight changes";
  const EntryCost cost = predict(tiny(true), eight);
  // 16 devices, two of eight groups in a node of four: each has half of the node's link.
  EXPECT_DOUBLE_EQ(cost.gradients, allReduce({1e-2, 5e5}, 400, 8));
  EXPECT_DOUBLE_EQ(cost.operations, 16 * 3e7);
  Placement hidden = eight;
  hidden.overlaps = true;
  EXPECT_LT(predict(tiny(true), hidden).gradients, cost.gradients);
}

TEST(Library, RefusesWhatIsNone) {
  auto problem = [](const Placement &placement) {
    auto costs = predictLibrary(tiny(false), slow(), placement);
    return costs ? "" : llvm::toString(costs.takeError());
  };
  EXPECT_EQ(problem({.type = "f16"}), "d has no peak of f16; it has: f32");
  EXPECT_EQ(problem({.interleave = 2}), "--interleave: too few pipeline stages; expected at least 2, got 1");
}

Inspection readLibrary(const std::string &folder, const std::string &name) {
  const std::string path = folder + "/" + name + ".manifest.json";
  llvm::Expected<Inspection> inspection = readManifest(readFile(path), path);
  if (inspection)
    return *inspection;
  ADD_FAILURE() << llvm::toString(inspection.takeError());
  return {};
}

// The compiler's counts for a GPT, compared with Megatron's formula: 4 layers of width 128, 256 tokens, 63 characters.
// About half of the attention is masked, and pointwise ops add some.
TEST(Library, AGptComputesWhatTheFormulaSays) {
  const Inspection whole = readLibrary(CHAR_GPT_FOLDER, "char_gpt"),
                   split = readLibrary(CHAR_GPT_RANKS_FOLDER, "char_gpt_ranks4");
  ASSERT_EQ(whole.entries[0].name, "forward");
  const GptShape shape{4, 128, 4, 256, 63};
  const double products = 4 * layerFlops(shape, 1) + 2.0 * 256 * 128 * 63, scores = 4 * 2.0 * 2 * 256 * 256 * 128;
  EXPECT_GT(whole.entries[0].operations(), products - 0.5 * scores);
  EXPECT_LT(whole.entries[0].operations(), 1.1 * products);
  EXPECT_EQ(split.ranks, 4);
  EXPECT_NEAR(split.entries[0].operations() / whole.entries[0].operations(), 0.25, 0.05) << "norms are whole";
}

// Two all-reduces per layer, of one number for each feature of each token: Megatron's formula, without the backward
// pass.
TEST(Library, RanksOfAGptSendWhatTheFormulaSays) {
  const Inspection split = readLibrary(CHAR_GPT_RANKS_FOLDER, "char_gpt_ranks4");
  llvm::Expected<std::vector<EntryCost>> costs = predictLibrary(split, slow(), {});
  ASSERT_TRUE(bool(costs)) << llvm::toString(costs.takeError());
  EXPECT_DOUBLE_EQ(costs->front().exchangedBytes, 4 * 2 * ringBytes(4.0 * 256 * 128, 4));
}

TEST(ScaleCommand, SaysTheSameOfASpecAndOfItsArchive) {
  testing::Folder folder;
  const std::string options = " --machine " KILN_MACHINES "/selene_a100.json --replicas 16 --stages 2 --microbatches 4",
                    archive = folder.path / "libpair.a";
  ASSERT_EQ(run(PAIR_GENERATOR " compile --target x86-64-v2 -o " + folder.path.string()).status, 0);
  const testing::Result spec = run(PAIR_GENERATOR " scale --target x86-64-v2" + options),
                        there = run(KILN_PROGRAM " scale " + archive + options);
  EXPECT_EQ(spec.status, 0);
  EXPECT_EQ(spec.text, there.text);
  for (const char *words : {"pair on 32 A100: ranks x stages x replicas are 1 x 2 x 16, f32\n", "  encode ", "  cycle ",
                            "assumed: stages have equal numbers of layers"})
    EXPECT_NE(spec.text.find(words), std::string::npos) << words << " is not in\n" << spec.text;
  const std::string alone = PAIR_GENERATOR " scale --target x86-64-v2 --machine " KILN_MACHINES "/selene_a100.json";
  EXPECT_EQ(run(alone).text, run(alone + " --extent rows=20").text) << "its bound";
  EXPECT_NE(run(alone).text, run(alone + " --extent rows=1").text);
}

TEST(ScaleCommand, SaysWhatIsWrong) {
  const std::string machine = " --machine " KILN_MACHINES "/selene_a100.json";
  const std::pair<std::string, const char *> cases[] = {
      {"", "--machine is required"},
      {" --machine /nonexistent.json", "error: cannot read \"/nonexistent.json\": No such file or directory"},
      {machine + " --type f64", "error: A100 has no peak of f64; it has: f16, f32"},
      {machine + " --stages 0", "--stages: Value 0 not in range"},
      {machine + " --extent rows=21",
       "error: dimension \"rows\": size is out of range; expected one in [1, 20], got 21"},
      {machine + " --extent columns=2", "error: no entry has a dimension \"columns\"; nearest: "},
      {machine + " --extent rows=2 --extent rows=3",
       "error: --extent: several values of \"rows\"; expected one, got 2"},
  };
  for (const auto &[arguments, words] : cases) {
    const testing::Result result = run(PAIR_GENERATOR " scale --target x86-64-v2" + arguments);
    EXPECT_GT(result.status, 0);
    EXPECT_LT(result.status, 128) << "it crashed";
    EXPECT_NE(result.text.find(words), std::string::npos) << result.text;
  }
  EXPECT_NE(run(KILN_PROGRAM " scale").text.find("spec is required"), std::string::npos);
}

} // namespace
} // namespace kiln
