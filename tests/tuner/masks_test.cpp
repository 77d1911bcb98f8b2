// SPDX-License-Identifier: Apache-2.0
// The operations of masked attention are counted as in a loop that skips the masked keys.
#include "KernelText.h"
#include "compiler/dialect/KilnDialect.h"
#include "compiler/kernel/Workload.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

using testing::KernelText;
using testing::Value;

constexpr int heads = 3, depth = 5;

/// Returns attention over s0 queries and s1 keys.
std::string attention(const std::string &causalOffset, bool hasLengths, int window = 0) {
  KernelText text({{1, 99}, {1, 99}});
  const std::string h = std::to_string(heads), d = std::to_string(depth);
  testing::AttentionText attention{.extents = {h, "s0", "s1", d, d},
                                   .query = {text.argument(text.type({h, "s0", d})), "h, q, d"},
                                   .key = {text.argument(text.type({h, "s1", d})), "h, k, d"},
                                   .value = {text.argument(text.type({h, "s1", d})), "h, k, e"},
                                   .causalOffset = causalOffset,
                                   .window = window};
  if (hasLengths)
    attention.lengths = {text.argument(text.type({h}, "i32")), "h"};
  return text.finish({text.attention(attention)});
}

/// Returns masked scores of s0 queries and s1 keys: the condition is %c, on query %i and key %j. The number `low` is
/// the score of the others. The scores may be a result too.
std::string scores(const std::string &condition, const std::string &low, bool keepsScores) {
  KernelText text({{1, 99}, {1, 99}});
  const std::string h = std::to_string(heads), d = std::to_string(depth), wide = text.type({h, "s0", "s1"});
  const Value q = text.argument(text.type({h, "s0", d})), k = text.argument(text.type({h, "s1", d}));
  const Value all = text.reduce("pppr", {q, k}, wide, {"a, b, d", "a, c, d", "a, b, c"}, "0.0 : f32",
                                "%m = arith.mulf %x0, %x1 : f32\n%s = arith.addf %y0, %m : f32\nlinalg.yield %s : f32");
  const Value masked = text.one("ppp", {all}, wide, {"a, b, c", "a, b, c"},
                                "%low = arith.constant " + low + " : f32\n%t0 = arith.mulf %x0, %x0 : f32\n" +
                                    "%i = linalg.index 1 : index\n%j = linalg.index 2 : index\n" + condition +
                                    "\n%t1 = arith.select %c, %t0, %low : f32\nlinalg.yield %t1 : f32");
  return text.finish(keepsScores ? std::vector{masked, all} : std::vector{masked});
}

/// Returns the operations of a call with these numbers of queries and keys, as the tuner counts them.
double operations(const std::string &text, int64_t queries, int64_t keys) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<mlir::affine::AffineDialect, mlir::arith::ArithDialect, mlir::func::FuncDialect,
                      mlir::linalg::LinalgDialect, mlir::math::MathDialect, mlir::tensor::TensorDialect,
                      mlir::kiln::KilnDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  EXPECT_TRUE(module) << text;
  return module ? measureWork(*module->getOps<mlir::func::FuncOp>().begin(), {queries, keys}).operations : 0;
}

/// Counts pairs of a query and a key, of all heads.
template <typename Sees> double pairs(int64_t queries, int64_t keys, Sees sees) {
  double count = 0;
  for (int64_t i = 0; i < queries; ++i)
    for (int64_t j = 0; j < keys; ++j)
      count += sees(i, j) ? heads : 0;
  return count;
}

/// Counts the operations of attention one by one.
template <typename Sees> double counted(int64_t queries, int64_t keys, Sees sees) {
  const double ofPair = 2 * depth + 1 + 1 + 1 + 2 * depth; // score, maximum, difference, sum, multiply-adds
  const double ofRow = depth + 1 + depth;                  // scaled query, reciprocal, result
  return ofPair * pairs(queries, keys, sees) + ofRow * double(heads * queries);
}

bool all(int64_t, int64_t) { return true; }

const std::vector<std::pair<int64_t, int64_t>> sizes{{1, 1}, {1, 17}, {7, 7}, {13, 29}, {64, 65}};

TEST(Masks, CountWhatAttentionNeeds) {
  for (auto [queries, keys] : sizes) {
    SCOPED_TRACE(std::to_string(queries) + " queries, " + std::to_string(keys) + " keys");
    auto expect = [q = queries, k = keys](const std::string &offset, bool hasLengths, auto sees) {
      const double expected = counted(q, k, sees);
      EXPECT_NEAR(operations(attention(offset, hasLengths), q, k), expected, 1e-9 * expected) << offset;
    };
    expect("", false, all);
    expect("0", false, [](int64_t i, int64_t j) { return j <= i; });
    expect("s1 - s0", false, [more = keys - queries](int64_t i, int64_t j) { return j <= i + more; });
    const double ofWindow = counted(queries, keys, [](int64_t i, int64_t j) { return j <= i && j > i - 3; });
    EXPECT_NEAR(operations(attention("0", false, 3), queries, keys), ofWindow, 1e-9 * ofWindow) << "a window of 3";
    // Lengths are sampled from the upper half of the longest loop, and so average three quarters of it.
    const int64_t most = std::max<int64_t>({heads, queries, keys}), least = (most + 2) / 2;
    auto middle = [=](int64_t j) { return j < (least + most) / 2; };
    expect("", true, [&](int64_t, int64_t j) { return middle(j); });
    expect("0", true, [&](int64_t i, int64_t j) { return j <= i && middle(j); });
  }
}

TEST(Masks, CountWhatScoresNeed) {
  const std::string causal = "%c = arith.cmpi sle, %j, %i : index";
  const std::string window = "%three = arith.constant 3 : index\n%first = arith.subi %i, %three : index\n"
                             "%near = arith.cmpi sgt, %j, %first : index\n%past = arith.cmpi sle, %j, %i : index\n"
                             "%c = arith.andi %near, %past : i1";
  for (auto [queries, keys] : sizes) {
    SCOPED_TRACE(std::to_string(queries) + " queries, " + std::to_string(keys) + " keys");
    for (bool keepsScores : {false, true}) {
      auto expect = [=, q = queries, k = keys](const std::string &condition, const std::string &low, auto sees) {
        const double expected =
            2 * depth * pairs(q, k, [&](int64_t i, int64_t j) { return keepsScores || sees(i, j); }) +
            pairs(q, k, sees);
        EXPECT_NEAR(operations(scores(condition, low, keepsScores), q, k), expected, 1e-9 * expected) << condition;
      };
      expect(causal, "-3.0e38", [](int64_t i, int64_t j) { return j <= i; });
      expect(window, "-3.0e38", [](int64_t i, int64_t j) { return j <= i && j > i - 3; });
      expect(causal, "-3.0", all); // excluded scores have nonzero weights
    }
  }
}

// Where there are very many rows, only a sample of them is counted.
TEST(Masks, AreSampledWhereTheyAreLarge) {
  constexpr int64_t tokens = 5000;
  const double expected = counted(tokens, tokens, [](int64_t i, int64_t j) { return j <= i; });
  EXPECT_NEAR(operations(attention("0", false), tokens, tokens), expected, 1e-3 * expected);
}

} // namespace
} // namespace kiln
