// SPDX-License-Identifier: Apache-2.0
//
// Every operation and the small models through all passes: no pass changes a result, and the error bounds are tight
// enough to detect a change.
#include "models.h"

#include "compiler/dialect/KilnDialect.h"
#include "compiler/pipeline/ImportModel.h"
#include "compiler/verify/PassVerifier.h"
#include "compiler/verify/VerifyPasses.h"
#include "support.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::testing {

std::vector<TracedModel> &models() {
  static std::vector<TracedModel> list;
  return list;
}

bool addModel(const char *name, Graph (*trace)()) {
  models().push_back({name, trace});
  return true;
}

std::vector<TracedModel> modelsByName() {
  std::vector<TracedModel> list = models();
  std::sort(list.begin(), list.end(), [](const TracedModel &a, const TracedModel &b) { return a.name < b.name; });
  return list;
}

namespace {

constexpr double mostOperations = 3e6;

class Models : public ::testing::TestWithParam<TracedModel> {};

TEST_P(Models, KeepTheirResults) {
  EXPECT_EQ(verifyPasses(GetParam().trace(), LayoutTarget(), 1, {.mostOperations = mostOperations}), "");
}

Graph graphOf(const std::string &name) {
  for (const TracedModel &model : models())
    if (model.name == name)
      return model.trace();
  ADD_FAILURE() << "there is no model " << name;
  return {};
}

TEST(Layouts, KeepTheResults) {
  for (int tile : {0, 48})
    EXPECT_EQ(verifyPasses(graphOf("tiny_gpt"), LayoutTarget(tile), 2, {.mostOperations = mostOperations}), "") << tile;
}

TEST(StoredWeights, KeepTheResults) {
  for (const Storage &storage : {stored<f16>, stored<bf16>, int8})
    for (const char *name : {"gpt2_tiny", "llama", "vit_tiny"})
      EXPECT_EQ(
          verifyPasses(graphOf(name), LayoutTarget(), 4, {.weights = {storage, {}}, .mostOperations = mostOperations}),
          "")
          << name << " " << name_of(storage);
}

// Each op in a separate kernel.
TEST(Grouping, KeepsTheResults) {
  const TargetHooks apart{.mayJoin = [](mlir::Operation *, mlir::Operation *) { return false; }};
  for (const char *name : {"tiny_gpt", "llama", "tiny_translator"})
    EXPECT_EQ(verifyPasses(graphOf(name), LayoutTarget(16, apart), 3, {.mostOperations = mostOperations}), "") << name;
}

/// After many layers the error bounds of correct implementations allow any result; the bounds between two stages do
/// not.
TEST(DeepModels, ShowSmallChanges) {
  for (const char *name : {"gpt2_tiny", "tiny_gpt", "vit_tiny"}) {
    Context context;
    mlir::OwningOpRef<mlir::ModuleOp> module = importModel(graphOf(name), &context, "model");
    ASSERT_TRUE(module);
    verify::PassVerifier verifier(*module, {.seed = 1, .mostOperations = mostOperations});
    mlir::PassManager passes(&context);
    verifier.attach(passes);
    passes.addPass(std::make_unique<TestPass<mlir::ModuleOp>>([](mlir::ModuleOp changed) {
      changed.walk([](mlir::kiln::AttentionOp op) {
        op.setScaleAttr(mlir::Builder(op.getContext()).getF64FloatAttr(1.01 * op.getScale().convertToDouble()));
      });
    }));
    EXPECT_TRUE(failed(passes.run(*module)));
    EXPECT_THAT(verifier.difference(), ::testing::StartsWith("test-change changed \"")) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(, Models, ::testing::ValuesIn(modelsByName()),
                         [](const auto &info) { return info.param.name; });

} // namespace
} // namespace kiln::testing
