// SPDX-License-Identifier: Apache-2.0
//
// What a model costs to compile does not grow with its depth or the size of its weights: the same number of kernels and
// of ops around them.
#include "compiler/frontend/Import.h"
#include "compiler/transforms/Pipeline.h"
#include "gpt2/gpt2.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include <gtest/gtest.h>

using namespace mlir;

namespace {

struct Cost {
  size_t kernels = 0, ops = 0, nodes = 0;
  bool operator==(const Cost &) const = default;
};

template <typename Model> Cost measure() {
  DialectRegistry registry;
  mlir::kiln::registerPipelineDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  const ::kiln::Graph graph = ::kiln::trace<Model>();
  OwningOpRef<ModuleOp> module = ::kiln::importGraph(graph, &context, "model");
  PassManager passes(&context);
  mlir::kiln::buildPipeline(passes, {.target = {.weightTile = [](int64_t, int64_t) { return 48; }}});
  if (!module || failed(passes.run(*module)))
    return {};
  Cost cost;
  for (auto function : module->getOps<func::FuncOp>())
    cost.kernels += function->hasAttr("kiln.kernel");
  module->walk([&](Operation *) { ++cost.ops; });
  cost.nodes = graph.nodes.size();
  return cost;
}

TEST(Cost, IsFlatInDepthAndWidth) {
  const Cost small = measure<specs::Gpt2<12, 768, 12>>();
  EXPECT_GT(small.kernels, 5u);
  EXPECT_LT(small.kernels, 20u);
  const Cost deep = measure<specs::Gpt2<48, 768, 12>>();
  EXPECT_EQ(deep, small) << deep.kernels << " kernels, " << deep.ops << " ops";
  const Cost wide = measure<specs::Gpt2Xl>();
  EXPECT_EQ(wide.kernels, small.kernels);
  EXPECT_EQ(wide.ops, small.ops);
}

} // namespace
