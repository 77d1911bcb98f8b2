// SPDX-License-Identifier: Apache-2.0
//
// Which target compiles models of f16 and bf16, and what the others say.
#include "compiler/emit/Lower.h"
#include "compiler/frontend/Import.h"
#include "half_blocks.h"
#include "targets/registry.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include <gtest/gtest.h>

namespace kiln {
namespace {

/// The first diagnostic; empty if the model becomes kernels.
std::string refusalOf(const Graph &graph, const char *target, const LoweringOptions &options = {}) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  loadDialects(context);
  mlir::OwningOpRef<mlir::ModuleOp> module = importGraph(graph, &context, "model");
  std::string said;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    if (said.empty())
      said = diagnostic.str();
    return mlir::success();
  });
  return module && succeeded(lowerToKernels(*module, *findTarget(target), options)) ? "" : said.empty() ? "?" : said;
}

template <ElementType E> struct Cast : Model {
  constexpr auto forward(Tensor<i32, Dim{"tokens", 1, 8}> x) const { return cast<E>(x) + 1; }
};

TEST(ElementTypes, ShortFloatsAreForTargetsThatHaveThem) {
  EXPECT_EQ(refusalOf(trace<specs::HalfBlocks>(), "cuda"), "");
  for (const char *cpu : {"x86-64-v4", "x86-64-v3", "x86-64-v2"}) {
    const std::string rule = "target " + std::string(cpu) + " requires elements of type f32, i32, i8 or i1, got ";
    EXPECT_EQ(refusalOf(trace<Cast<f32>>(), cpu), "");
    EXPECT_EQ(refusalOf(trace<Cast<f16>>(), cpu), rule + "'f16'");
    EXPECT_EQ(refusalOf(trace<Cast<bf16>>(), cpu), rule + "'bf16'");
  }
}

struct Projection : Model {
  constexpr auto forward(Tensor<f32, 4, 8> x) const { return linear(x, parameter<f32, 6, 8>(x, "weight")); }
};

TEST(ElementTypes, StoredWeightsAreForTargetsThatReadThem) {
  LoweringOptions options;
  options.weights.preset = ElementType::i8;
  for (const char *cpu : {"x86-64-v4", "x86-64-v3", "x86-64-v2"})
    EXPECT_EQ(refusalOf(trace<Projection>(), cpu, options), "");
  EXPECT_EQ(refusalOf(trace<Projection>(), "cuda", options),
            "target cuda requires weights of f32 as they are, got int8");
}

} // namespace
} // namespace kiln
