// SPDX-License-Identifier: Apache-2.0
//
// The ops of contractions and of cumulative sums, and those of decomposed attention.
#include "compiler/dialect/KilnDialect.h"
#include "compiler/kernel/Attention.h"
#include "compiler/kernel/Contraction.h"
#include "compiler/kernel/CumulativeSum.h"
#include "compiler/kernel/KernelFunction.h"
#include "compiler/kernel/KernelKey.h"
#include "compiler/kernel/Workload.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Verifier.h"
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

  /// Causal attention with a length for each of two heads, and possibly a mask.
  void parseAttention(const std::string &queries = "s0", const std::string &keys = "s0", bool hasMask = false) {
    KernelText k({{1, 64}});
    testing::AttentionText attention{.extents = {"2", queries, keys, "8", "8"},
                                     .query = {k.argument(k.type({"2", queries, "8"})), "h, q, d"},
                                     .key = {k.argument(k.type({"2", keys, "8"})), "h, k, d"},
                                     .value = {k.argument(k.type({"2", keys, "8"})), "h, k, e"},
                                     .lengths = {{k.argument(k.type({"2"}, "i32")), "h"}},
                                     .causalOffset = "0"};
    if (hasMask)
      attention.mask = {k.argument(k.type({queries, keys})), "q, k"};
    parse(k.finish({k.attention(attention)}));
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

TEST_F(Matchers, DecomposeAttention) {
  parseAttention();
  ASSERT_TRUE(ops.empty());
  const DecomposedKernel decomposed(kernel);
  EXPECT_EQ(llvm::range_size(kernel.getOps<mlir::kiln::KernelAttentionOp>()), 1) << "the kernel itself stays as it is";
  EXPECT_TRUE(mlir::succeeded(mlir::verify(decomposed.get())));
  ASSERT_TRUE(decomposed.attention());
  const AttentionOps &a = *decomposed.attention();
  EXPECT_EQ(llvm::to_vector(decomposed.get().getOps<GenericOp>()),
            (llvm::SmallVector<GenericOp>{a.scaled, a.scores, a.masked, a.maxima, a.weights, a.sums, a.inverses,
                                          a.products, a.result}));
  auto input = [](GenericOp of, unsigned number) { return of->getOperand(number).getDefiningOp(); };
  EXPECT_EQ(input(a.scores, AttentionOps::scaledOfScores), a.scaled);
  EXPECT_EQ(input(a.masked, AttentionOps::scoreOfMasked), a.scores);
  EXPECT_EQ(input(a.weights, AttentionOps::scoreOfWeights), a.masked);
  EXPECT_EQ(input(a.weights, AttentionOps::maximumOfWeights), a.maxima);
  EXPECT_EQ(input(a.products, AttentionOps::weightOfProducts), a.weights);
  EXPECT_EQ(a.lastScores(), a.masked);
  EXPECT_EQ(keyOf(kernel), keyOf(decomposed.get()));
}

TEST_F(Matchers, HaveTheLimitsOfKeys) {
  parseAttention();
  const DecomposedKernel both(kernel);
  ASSERT_EQ(both.attention()->limits.size(), 2U);
  EXPECT_FALSE(both.attention()->limits[0].growsWithQuery) << "a length";
  EXPECT_FALSE(both.attention()->limits[0].isInclusive);
  EXPECT_TRUE(both.attention()->limits[1].growsWithQuery) << "the causal mask";
  EXPECT_TRUE(both.attention()->limits[1].isInclusive);
  EXPECT_TRUE(both.attention()->isPlainWithin);

  parseAttention("s0", "s0", /*hasMask=*/true);
  const DecomposedKernel masked(kernel);
  EXPECT_EQ(masked.attention()->limits.size(), 2U);
  EXPECT_FALSE(masked.attention()->isPlainWithin) << "the mask is added";

  parseAttention("1", "s0");
  const DecomposedKernel one(kernel);
  ASSERT_EQ(one.attention()->limits.size(), 2U);
  EXPECT_FALSE(one.attention()->limits[1].growsWithQuery) << "there is only one query";

  parseAttention("s0", "1");
  EXPECT_TRUE(DecomposedKernel(kernel).attention()->limits.empty()) << "the only key is always needed";
}

TEST_F(Matchers, LeaveOtherKernelsAsTheyAre) {
  KernelText k({{1, 64}});
  const testing::Value x = k.argument(k.type({"s0", "8"})), w = k.argument(k.type({"8", "16"}));
  parse(k.finish({k.reduce("ppr", {x, w}, k.type({"s0", "16"}), {"a, c", "c, b", "a, b"}, "0.0 : f32", addProduct)}));
  const DecomposedKernel decomposed(kernel);
  EXPECT_EQ(decomposed.get(), kernel);
  EXPECT_FALSE(decomposed.attention());
}

TEST_F(Matchers, FindCumulativeSums) {
  const std::optional<CumulativeSum> forward = cumulativeSum("sle, %c, %b"), backward = cumulativeSum("sge, %c, %b");
  ASSERT_TRUE(forward && backward);
  EXPECT_EQ(forward->axis, 1U);
  EXPECT_FALSE(forward->isReverse);
  EXPECT_TRUE(backward->isReverse);
  EXPECT_TRUE(mlir::isa<mlir::arith::MulFOp>(backward->term.getDefiningOp()));
  EXPECT_EQ(measureWork(kernel, {64}).operations, 2.0 * 64 * 7) << "a product and an addition for each element";
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
  const DecomposedKernel decomposed(kernel);
  const GenericOp scores = decomposed.attention()->scores;
  EXPECT_EQ(KernelFunction(decomposed.get()).boundsOf(loopExtent(scores, 1) * 3), (mlir::kiln::Interval{6, 24}));
  EXPECT_TRUE(view.inPlace().empty());
  EXPECT_FALSE(view.isBatchInvariant());
  EXPECT_EQ(loopExtents(scores).back(), mlir::getAffineConstantExpr(8, &context));
}

} // namespace
} // namespace kiln
