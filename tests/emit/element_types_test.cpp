// SPDX-License-Identifier: Apache-2.0
//
// Every target compiles models of f16 and bf16. Which targets compile quantised weights and batch-invariant kernels,
// and the errors of the others.
#include "compiler/driver/Lower.h"
#include "compiler/pipeline/ImportModel.h"
#include "compiler/pipeline/Pipeline.h"
#include "half_blocks.h"
#include "targets/registry.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include <gtest/gtest.h>

namespace kiln {
namespace {

/// Returns the first diagnostic, or an empty string if the model can be lowered to kernels.
std::string refusalOf(const Graph &graph, const char *target, const StorageChoices &weights = {},
                      const LoweringOptions &options = {}) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  loadDialects(context);
  mlir::OwningOpRef<mlir::ModuleOp> module = importModel(graph, &context, "model", weights);
  std::string said;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    if (said.empty())
      said = diagnostic.str();
    return mlir::success();
  });
  return module && succeeded(lowerToKernels(*module, *findTarget(target), options)) ? "" : said.empty() ? "?" : said;
}

TEST(ElementTypes, HalfFloatsAreForAllTargets) {
  for (const std::string &target : targetNames())
    EXPECT_EQ(refusalOf(trace<specs::HalfBlocks>(), target.c_str()), "") << target;
}

template <WeightType Weight> struct Matrix : Model {
  Linear<48, 16, true, WeightOrder::out_in, Weight> matrix{"matrix"};
  constexpr auto forward(Tensor<f32, Dim{"tokens", 1, 8}, 48> x) const { return matrix(x); }
};

TEST(ElementTypes, StoredWeightsAreForTargetsThatReadThem) {
  const StorageChoices plain, whole{int8, {}}, some{stored<f32>, {{"matrix.weight", stored<f16>}}};
  const StorageChoices none{stored<f32>, {{"matrix.weight", stored<f32>}}};
  const Graph matrix = trace<Matrix<f32>>(), stated = trace<Matrix<stored<bf16>>>();
  for (const char *cpu : {"x86-64-v4", "x86-64-v3", "x86-64-v2"})
    for (const StorageChoices &weights : {plain, whole, some, none})
      for (const Graph &graph : {matrix, stated})
        EXPECT_EQ(refusalOf(graph, cpu, weights), "") << cpu << " " << toString(weights);
  auto refusal = [](const char *got) {
    return std::string("target cuda: unsupported storage of weights; expected f32, got ") + got +
           " of \"matrix.weight\"";
  };
  EXPECT_EQ(refusalOf(matrix, "cuda", whole), refusal("int8"));
  EXPECT_EQ(refusalOf(matrix, "cuda", some), refusal("f16"));
  EXPECT_EQ(refusalOf(matrix, "cuda", none), "");
  EXPECT_EQ(refusalOf(stated, "cuda"), refusal("bf16"));
  EXPECT_EQ(refusalOf(trace<Matrix<stored<f32>>>(), "cuda", whole), "");
  EXPECT_EQ(refusalOf(stated, "cuda", none), ""); // a build for cuda and other targets
}

TEST(ElementTypes, BatchInvarianceIsForTargetsThatSupportIt) {
  const Graph matrix = trace<Matrix<f32>>();
  LoweringOptions batchInvariant;
  batchInvariant.batchInvariant = true;
  EXPECT_EQ(refusalOf(matrix, "x86-64-v2", {}, batchInvariant), "");
  EXPECT_EQ(refusalOf(matrix, "cuda", {}, batchInvariant),
            "target cuda: no batch-invariant kernels; expected a CPU with --batch-invariant");
}

} // namespace
} // namespace kiln
