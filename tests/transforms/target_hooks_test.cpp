// SPDX-License-Identifier: Apache-2.0
//
// The pipeline's target hooks: layouts, which ops may be fused into a kernel, the final passes over kernels.
#include "compiler/dialect/KilnDialect.h"
#include "compiler/kernel/KernelKey.h"
#include "compiler/pipeline/Pipeline.h"
#include "targets/passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

using namespace mlir;
namespace kd = mlir::kiln;

namespace {

class TargetHooksTest : public ::testing::Test {
protected:
  TargetHooksTest() : context(registry()) { context.loadAllAvailableDialects(); }
  static DialectRegistry registry() {
    DialectRegistry dialects;
    kd::registerPipelineDialects(dialects);
    return dialects;
  }

  /// Lowers exp of a linear layer, and a separate sum.
  OwningOpRef<ModuleOp> lower(::kiln::TargetHooks hooks) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(R"(
module attributes {kiln.symbols = []} {
  func.func @forward(%x: tensor<5x16xf32> {kiln.name = "x"}) -> tensor<5x32xf32> attributes {kiln.entry} {
    %w = kiln.parameter {sources = ["w"]} : tensor<32x16xf32>
    %y = kiln.linear %x, %w weight_order = out_in : (tensor<5x16xf32>, tensor<32x16xf32>) -> tensor<5x32xf32>
    %e = kiln.exp %y : tensor<5x32xf32>
    %z = kiln.add %e, %e : (tensor<5x32xf32>, tensor<5x32xf32>) -> tensor<5x32xf32>
    return %z : tensor<5x32xf32>
  }
})",
                                                               &context);
    PassManager passes(&context);
    kd::buildPipeline(passes, {std::move(hooks)});
    EXPECT_TRUE(module && succeeded(passes.run(*module)));
    return module;
  }

  static int kernelsOf(ModuleOp module) {
    return llvm::count_if(module.getOps<func::FuncOp>(), [](auto f) { return f->hasAttr(kd::kernelAttrName); });
  }
  template <class Op> static int countOf(ModuleOp module) {
    int count = 0;
    module.walk([&](Op) { ++count; });
    return count;
  }

  MLIRContext context;
};

TEST_F(TargetHooksTest, WithoutAnyTheIrIsNeutral) {
  OwningOpRef<ModuleOp> module = lower({});
  EXPECT_EQ(kernelsOf(*module), 1);
  EXPECT_EQ(countOf<math::ExpOp>(*module), 1) << "functions of the math library stay";
  module->walk([](kd::ParameterOp parameter) {
    EXPECT_FALSE(cast<RankedTensorType>(parameter.getType()).getEncoding()) << "weights stay dense";
  });
}

TEST_F(TargetHooksTest, ATargetMayKeepOpsApart) {
  EXPECT_EQ(kernelsOf(*lower({.mayJoin = [](Operation *, Operation *) { return false; }})), 3);
  auto joinsExp = [](Operation *anchor, Operation *op) { return isa<kd::LinearOp>(anchor) && isa<kd::ExpOp>(op); };
  EXPECT_EQ(kernelsOf(*lower({.mayJoin = joinsExp})), 2);
}

TEST_F(TargetHooksTest, ATargetSaysLayoutsAndItsOwnPasses) {
  OwningOpRef<ModuleOp> module =
      lower({.weightTile = [](int64_t outputs, int64_t inputs) { return outputs == 32 && inputs == 16 ? 8 : 0; },
             .addKernelPasses = kd::addExpandMath});
  EXPECT_EQ(countOf<math::ExpOp>(*module), 0);
  module->walk([](kd::ParameterOp parameter) {
    auto layout = dyn_cast_or_null<kd::TiledAttr>(cast<RankedTensorType>(parameter.getType()).getEncoding());
    ASSERT_TRUE(layout);
    EXPECT_EQ(layout.getSize(), 8);
  });
}

TEST_F(TargetHooksTest, ATargetMayAskWhatIsAWeight) {
  OwningOpRef<ModuleOp> module = lower({.addKernelPasses = kd::addMarkWeights});
  auto kernel = *module->getOps<func::FuncOp>().begin();
  ASSERT_EQ(kernel.getNumArguments(), 2U);
  EXPECT_FALSE(kernel.getArgAttr(0, kd::weightAttrName));
  EXPECT_TRUE(kernel.getArgAttr(1, kd::weightAttrName));
}

// Another polynomial changes the object, but not the key of the kernel.
TEST_F(TargetHooksTest, KeysAreOfKernelsBeforeTheTargetsPasses) {
  OwningOpRef<ModuleOp> neutral = lower({}), expanded = lower({.addKernelPasses = kd::addExpandMath});
  auto kernelOf = [](ModuleOp module) { return *module.getOps<func::FuncOp>().begin(); };
  const ::kiln::KernelKey before = ::kiln::keyOf(kernelOf(*neutral)), after = ::kiln::keyOf(kernelOf(*expanded));
  ASSERT_NE(::kiln::structureText(kernelOf(*neutral)), ::kiln::structureText(kernelOf(*expanded)));
  EXPECT_EQ(after.structure, before.structure);
  EXPECT_EQ(after.shape, before.shape);
  EXPECT_NE(after.content, before.content);
}

TEST_F(TargetHooksTest, PolynomialsRefuseOtherTypes) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
      "func.func @f(%x: f64) -> f64 {\n%y = math.tanh %x : f64\nreturn %y : f64\n}", &context);
  std::string words;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { words += diagnostic.str(); });
  PassManager passes(&context);
  kd::addExpandMath(passes);
  EXPECT_TRUE(failed(passes.run(*module)));
  EXPECT_EQ(words, "'math.tanh' op has no polynomial for its type; expected f32, got 'f64'");
}

} // namespace
