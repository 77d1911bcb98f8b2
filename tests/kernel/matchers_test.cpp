// SPDX-License-Identifier: Apache-2.0
//
// The ops of contractions, of attention and of cumulative sums, and the limits of masks.
#include "compiler/dialect/KilnDialect.h"
#include "compiler/kernel/Attention.h"
#include "compiler/kernel/Contraction.h"
#include "compiler/kernel/CumulativeSum.h"
#include "compiler/kernel/KernelFunction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "tests/targets/KernelText.h"
#include <gtest/gtest.h>

namespace kiln {
namespace {

using mlir::linalg::GenericOp;
using testing::KernelText;

const std::string addProduct = "%m = arith.mulf %x0, %x1 : f32\n%s = arith.addf %y0, %m : f32\nlinalg.yield %s : f32";

class Matchers : public ::testing::Test {
protected:
  Matchers() : context(registry(), mlir::MLIRContext::Threading::DISABLED) { context.loadAllAvailableDialects(); }

  static mlir::DialectRegistry registry() {
    mlir::DialectRegistry registry;
    registry.insert<mlir::arith::ArithDialect, mlir::func::FuncDialect, mlir::linalg::LinalgDialect,
                    mlir::math::MathDialect, mlir::tensor::TensorDialect, mlir::kiln::KilnDialect>();
    return registry;
  }

  void parse(const std::string &text) {
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
    kernel = *module->getOps<mlir::func::FuncOp>().begin();
    ops = llvm::to_vector(kernel.getOps<GenericOp>());
  }

  /// Returns the match of a sum over all elements, in which those for which `counts` is false are 0.
  std::optional<CumulativeSum> cumulativeSum(const std::string &counts, const std::string &term = "",
                                             const std::string &start = "0.0 : f32") {
    KernelText k({{1, 64}});
    const std::string type = k.type({"s0", "7"});
    const testing::Value x = k.argument(type);
    parse(
        k.finish({k.reduce("ppr", {x}, type, {"a, c", "a, b"}, start,
                           "%b = linalg.index 1 : index\n%c = linalg.index 2 : index\n%z = arith.constant 0.0 : f32\n" +
                               (term.empty() ? "%t = arith.mulf %x0, %x0 : f32" : term) + "\n%i = arith.cmpi " +
                               counts + " : index\n%v = arith.select %i, %t, %z : f32\n" +
                               "%s = arith.addf %y0, %v : f32\nlinalg.yield %s : f32")}));
    return ops.empty() ? std::nullopt : asCumulativeSum(ops[0]);
  }

  /// softmax(scores with causal mask and lengths) values, in ops 0 (scores) to 6 (the quotient).
  void parseAttention() {
    KernelText k({{1, 64}});
    const std::string rows = k.type({"2", "s0", "8"}), wide = k.type({"2", "s0", "s0"}), narrow = k.type({"2", "s0"});
    const testing::Value q = k.argument(rows), key = k.argument(rows), value = k.argument(rows),
                         lengths = k.argument(k.type({"2"}, "i32"));
    const testing::Value scores =
        k.reduce("pppr", {q, key}, wide, {"a, b, d", "a, c, d", "a, b, c"}, "0.0 : f32", addProduct);
    const testing::Value masked =
        k.one("ppp", {scores, lengths}, wide, {"a, b, c", "a", "a, b, c"},
              "%i = linalg.index 1 : index\n%j = linalg.index 2 : index\n%c = arith.cmpi sle, %j, %i : index\n"
              "%n = arith.index_cast %x1 : i32 to index\n%in = arith.cmpi slt, %j, %n : index\n"
              "%both = arith.andi %c, %in : i1\n%low = arith.constant -3.0e38 : f32\n"
              "%t = arith.select %both, %x0, %low : f32\nlinalg.yield %t : f32");
    const testing::Value maxima = k.reduce("ppr", {masked}, narrow, {"a, b, c", "a, b"}, "0xFF800000 : f32",
                                           "%s = arith.maximumf %y0, %x0 : f32\nlinalg.yield %s : f32");
    const testing::Value weights =
        k.one("ppp", {masked, maxima}, wide, {"a, b, c", "a, b", "a, b, c"},
              "%d = arith.subf %x0, %x1 : f32\n%e = math.exp2 %d : f32\nlinalg.yield %e : f32");
    const testing::Value sums = k.reduce("ppr", {weights}, narrow, {"a, b, c", "a, b"}, "0.0 : f32",
                                         "%s = arith.addf %y0, %x0 : f32\nlinalg.yield %s : f32");
    const testing::Value products =
        k.reduce("pppr", {weights, value}, rows, {"a, b, d", "a, d, c", "a, b, c"}, "0.0 : f32", addProduct);
    parse(k.finish({k.one("ppp", {products, sums}, rows, {"a, b, c", "a, b", "a, b, c"},
                          "%d = arith.divf %x0, %x1 : f32\nlinalg.yield %d : f32")}));
    if (ops.size() == 7)
      ops[3]->setAttr(mlir::kiln::exponentialAttrName, mlir::DenseI64ArrayAttr::get(&context, {0, 1}));
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp kernel;
  llvm::SmallVector<GenericOp> ops;
};

using Loops = llvm::SmallVector<unsigned>;

/// Two heads share a matrix of the right operand.
TEST_F(Matchers, SortLoopsByTheOperandsThatDependOnThem) {
  KernelText k({{1, 64}});
  const testing::Value x = k.argument(k.type({"s0", "4", "8"})), w = k.argument(k.type({"2", "8", "16"}));
  parse(k.finish({k.reduce("pppr", {x, w}, k.type({"4", "s0", "16"}), {"b, a, d", "a floordiv 2, d, c", "a, b, c"},
                           "0.0 : f32", addProduct)}));
  ASSERT_EQ(ops.size(), 1U);
  std::optional<Contraction> found = contractionOf(ops[0]), swapped = found;
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->sortLoops({0, 1, 2}));
  EXPECT_EQ(std::pair(found->a, found->b), std::pair(0U, 1U));
  EXPECT_EQ(found->batch, Loops{0});
  EXPECT_EQ(found->rows, Loops{1});
  EXPECT_EQ(found->columns, Loops{2});
  EXPECT_EQ(found->reduction, Loops{3});
  EXPECT_TRUE(swapped->sortLoops({0, 2, 1}));
  EXPECT_EQ(std::pair(swapped->a, swapped->b), std::pair(1U, 0U));
  EXPECT_EQ(swapped->columns, Loops{1});
  EXPECT_FALSE(contractionOf(ops[0])->sortLoops({1, 2, 0})) << "a loop of both operands is no column";
}

TEST_F(Matchers, FindTheOpsOfAttention) {
  parseAttention();
  ASSERT_EQ(ops.size(), 7U);
  std::optional<AttentionOps> found = attentionOf(ops[0]);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->masked, ops[1]);
  EXPECT_EQ(found->maxima, ops[2]);
  EXPECT_EQ(found->weights, ops[3]);
  EXPECT_EQ(found->sums, ops[4]);
  EXPECT_EQ(found->productOp, ops[5]);
  EXPECT_FALSE(attentionOf(ops[1])->masked) << "the scores are masked already";
  ops[3]->removeAttr(mlir::kiln::exponentialAttrName);
  EXPECT_FALSE(attentionOf(ops[0]));
}

TEST_F(Matchers, FindTheLimitsOfKeys) {
  parseAttention();
  ASSERT_EQ(ops.size(), 7U);
  auto any = [](mlir::OpOperand &) { return true; };
  const KeyLimits both = findKeyLimits(ops[1], 2, 1, Dependence::GrowsWithQuery, any);
  EXPECT_TRUE(both.areAll);
  EXPECT_EQ(both.score, ops[1].getBlock()->getArgument(0));
  ASSERT_EQ(both.limits.size(), 2U);
  EXPECT_EQ(both.limits[0].dependence, Dependence::None) << "a length";
  EXPECT_FALSE(both.limits[0].isInclusive);
  EXPECT_TRUE(both.limits[1].growsWithQuery()) << "the causal mask";
  EXPECT_TRUE(both.limits[1].isInclusive);

  auto none = [](mlir::OpOperand &) { return false; };
  const KeyLimits causal = findKeyLimits(ops[1], 2, 1, Dependence::GrowsWithQuery, none);
  EXPECT_FALSE(causal.areAll);
  ASSERT_EQ(causal.limits.size(), 1U);
  EXPECT_TRUE(causal.limits[0].growsWithQuery());
  EXPECT_TRUE(findKeyLimits(ops[1], 1, std::nullopt, Dependence::OnQuery, any).limits.empty()) << "of another index";
  EXPECT_FALSE(findKeyLimits(ops[3], 2, 1, Dependence::OnQuery, any).score) << "not masked";
}

TEST_F(Matchers, FindCumulativeSums) {
  const std::optional<CumulativeSum> forward = cumulativeSum("sle, %c, %b"), backward = cumulativeSum("sge, %c, %b");
  ASSERT_TRUE(forward && backward);
  EXPECT_EQ(forward->axis, 1U);
  EXPECT_FALSE(forward->isReverse);
  EXPECT_TRUE(backward->isReverse);
  EXPECT_TRUE(mlir::isa<mlir::arith::MulFOp>(backward->term.getDefiningOp()));
  EXPECT_FALSE(cumulativeSum("slt, %c, %b")) << "an exclusive sum";
  EXPECT_FALSE(cumulativeSum("sle, %b, %c"));
  EXPECT_FALSE(cumulativeSum("sle, %c, %b", "", "1.0 : f32")) << "it starts with another number";
  EXPECT_FALSE(cumulativeSum("sle, %c, %b", "%n = arith.index_cast %b : index to i32\n"
                                            "%t = arith.sitofp %n : i32 to f32"))
      << "the term depends on the element whose sum it is";
}

TEST_F(Matchers, ViewAKernel) {
  parseAttention();
  const KernelFunction view(kernel);
  EXPECT_TRUE(isKernel(kernel));
  EXPECT_TRUE(mlir::succeeded(view.verify()));
  EXPECT_EQ(view.numSymbols(), 1U);
  EXPECT_EQ(view.tensors().size(), 4U);
  EXPECT_EQ(view.results().size(), 1U);
  ASSERT_EQ(view.bounds().size(), 1U);
  EXPECT_EQ(view.bounds().front(), (mlir::kiln::Interval{1, 64}));
  view.setBounds(mlir::kiln::Interval{2, 8});
  EXPECT_EQ(view.boundsOf(loopExtent(ops[0], 1) * 3), (mlir::kiln::Interval{6, 24}));
  EXPECT_TRUE(view.inPlace().empty());
  EXPECT_FALSE(view.isBatchInvariant());
  EXPECT_EQ(loopExtents(ops[0]).back(), mlir::getAffineConstantExpr(8, &context));
}

} // namespace
} // namespace kiln
