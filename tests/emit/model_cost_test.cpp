// SPDX-License-Identifier: Apache-2.0
//
// The cost of compiling a model does not grow with its depth or the size of its weights: the numbers of kernels and of
// ops around them are constant. Group norms are three kernels.
#include "compiler/frontend/Import.h"
#include "compiler/pipeline/Pipeline.h"
#include "kiln/model.h"
#include "models/gpt2/gpt2.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include <algorithm>
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
  mlir::kiln::buildPipeline(passes, {.target = {.weightTile = [](int64_t, int64_t) { return 48; }, .joinsSums = true}});
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

template <int Groups, int Channels, int Side> class Norm : public ::kiln::Model {
public:
  ::kiln::GroupNorm<Groups, Channels> norm{"norm"};
  constexpr auto forward(::kiln::Tensor<::kiln::f32, Side, Side + 1, Channels> x) const { return norm(x); }
};

template <int Channels, int Side> size_t mostKernelsOfNorms() {
  return std::max(
      {measure<Norm<1, Channels, Side>>().kernels, measure<Norm<Channels / 7, Channels, Side>>().kernels,
       measure<Norm<Channels / 4, Channels, Side>>().kernels, measure<Norm<Channels / 3, Channels, Side>>().kernels,
       measure<Norm<Channels / 2, Channels, Side>>().kernels, measure<Norm<Channels, Channels, Side>>().kernels});
}

TEST(Cost, NormsOfGroupsAreThreeKernels) {
  EXPECT_EQ((mostKernelsOfNorms<84, 5>()), 3u);
  EXPECT_EQ((mostKernelsOfNorms<84, 100>()), 3u);
}

} // namespace
