// SPDX-License-Identifier: Apache-2.0
//
// What a kernel's calls find in the caches: a layer's weights were last read in the previous pass, those of a loop over
// time in the previous iteration.
#include "compiler/library/Calls.h"

#include "compiler/frontend/Import.h"
#include "compiler/pipeline/Pipeline.h"
#include "kiln/dsl.h"

#include "mlir/IR/BuiltinOps.h"
#include <gtest/gtest.h>

namespace {

constexpr kiln::Dim T{"steps", 1, 40};

struct Recurrent : kiln::Model {
  kiln::Rnn<48, 48> rnn{"rnn"};
  kiln::Linear<48, 16> head{"head"};
  constexpr auto forward(kiln::Tensor<kiln::f32, T, 3, 48> x) const { return head(rnn(x).outputs); }
};

TEST(Calls, WeightsOfALoopOverTimeStayInTheCaches) {
  mlir::DialectRegistry registry;
  mlir::kiln::registerPipelineDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  mlir::OwningOpRef<mlir::ModuleOp> module = kiln::importGraph(kiln::trace<Recurrent>(), &context, "model");
  mlir::PassManager passes(&context);
  mlir::kiln::buildPipeline(passes, {.target = {.weightTile = [](int64_t, int64_t) { return 48; }}});
  ASSERT_TRUE(module && succeeded(passes.run(*module)));

  const std::vector<kiln::Scenario> scenarios{{{"steps", 40}}};
  int steps = 0, others = 0;
  for (const kiln::KernelUse &use : kiln::collectKernels(*module, {}, scenarios)) {
    const bool hasFresh = llvm::is_contained(use.isFresh, true);
    ASSERT_EQ(use.scenarios.front().size(), 1u);
    if (use.scenarios.front().front().calls == 40) {
      EXPECT_FALSE(hasFresh);
      EXPECT_TRUE(use.isStep);
      ++steps;
    } else {
      others += hasFresh;
      EXPECT_FALSE(use.isStep);
    }
  }
  EXPECT_GE(steps, 1);
  EXPECT_GE(others, 2) << "the projections of all inputs and of all outputs";
}

} // namespace
