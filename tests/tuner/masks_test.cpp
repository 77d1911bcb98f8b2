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

/// The variant of an attention kernel; s0 queries, s1 keys.
struct Form {
  std::string condition; // on query %i and key %j, or empty
  bool hasLengths = false;
  bool keepsScores = false; // whether the scores are a result too
  std::string low = "-3.0e38";
};

std::string attention(const Form &form) {
  KernelText text({{1, 99}, {1, 99}});
  std::string h = std::to_string(heads), d = std::to_string(depth);
  Value q = text.argument(text.type({h, "s0", d})), k = text.argument(text.type({h, "s1", d})),
        v = text.argument(text.type({h, "s1", d}));
  std::string wide = text.type({h, "s0", "s1"}), narrow = text.type({h, "s0"});
  Value scores = text.reduce("pppr", {q, k}, wide, {"a, b, d", "a, c, d", "a, b, c"}, "0.0 : f32",
                             "%m = arith.mulf %x0, %x1 : f32\n%s = arith.addf %y0, %m : f32\nlinalg.yield %s : f32");
  std::vector<Value> inputs{scores};
  std::vector<std::string> maps{"a, b, c"};
  std::string body = "%low = arith.constant " + form.low + " : f32\n%t0 = arith.mulf %x0, %x0 : f32\n" +
                     "%i = linalg.index 1 : index\n%j = linalg.index 2 : index\n";
  std::string last = "%t0";
  if (form.hasLengths) {
    inputs.push_back(text.argument(text.type({h}, "i32")));
    maps.push_back("a");
    body += "%n = arith.index_cast %x1 : i32 to index\n%in = arith.cmpi slt, %j, %n : index\n" +
            ("%t1 = arith.select %in, " + last) + ", %low : f32\n";
    last = "%t1";
  }
  if (!form.condition.empty()) {
    body += form.condition + "\n%t2 = arith.select %c, " + last + ", %low : f32\n";
    last = "%t2";
  }
  maps.push_back("a, b, c");
  Value masked = text.one("ppp", inputs, wide, maps, body + "linalg.yield " + last + " : f32");
  Value maxima = text.reduce("ppr", {masked}, narrow, {"a, b, c", "a, b"}, "0xff800000 : f32",
                             "%s = arith.maximumf %y0, %x0 : f32\nlinalg.yield %s : f32");
  Value weights = text.one("ppp", {masked, maxima}, wide, {"a, b, c", "a, b", "a, b, c"},
                           "%s = arith.subf %x0, %x1 : f32\n%e = math.exp %s : f32\nlinalg.yield %e : f32");
  Value sums = text.reduce("ppr", {weights}, narrow, {"a, b, c", "a, b"}, "0.0 : f32",
                           "%s = arith.addf %y0, %x0 : f32\nlinalg.yield %s : f32");
  Value products =
      text.reduce("pppr", {weights, v}, text.type({h, "s0", d}), {"a, b, d", "a, d, c", "a, b, c"}, "0.0 : f32",
                  "%m = arith.mulf %x0, %x1 : f32\n%s = arith.addf %y0, %m : f32\nlinalg.yield %s : f32");
  Value result = text.one("ppp", {products, sums}, text.type({h, "s0", d}), {"a, b, c", "a, b", "a, b, c"},
                          "%s = arith.divf %x0, %x1 : f32\nlinalg.yield %s : f32");
  return text.finish(form.keepsScores ? std::vector{result, scores} : std::vector{result});
}

/// Returns the operations of a call with these numbers of queries and keys, as the tuner counts them.
double operations(const Form &form, int64_t queries, int64_t keys) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<mlir::affine::AffineDialect, mlir::arith::ArithDialect, mlir::func::FuncDialect,
                      mlir::linalg::LinalgDialect, mlir::math::MathDialect, mlir::tensor::TensorDialect,
                      mlir::kiln::KilnDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(attention(form), &context);
  EXPECT_TRUE(module);
  // Marked as by kiln-expand-math.
  module->walk([](mlir::math::ExpOp exponential) {
    exponential->getParentOp()->setAttr(mlir::kiln::exponentialAttrName,
                                        mlir::DenseI64ArrayAttr::get(exponential.getContext(), {0, 1}));
  });
  return measureWork(*module->getOps<mlir::func::FuncOp>().begin(), {queries, keys}).operations;
}

/// Counts the same operations one by one.
template <typename Sees> double counted(int64_t queries, int64_t keys, bool keepsScores, Sees sees) {
  double count = 0;
  for (int head = 0; head < heads; ++head)
    for (int64_t i = 0; i < queries; ++i) {
      for (int64_t j = 0; j < keys; ++j) {
        if (sees(i, j) || keepsScores)
          count += 2 * depth; // the score
        if (sees(i, j))
          count += 1 + 1 + 1 + 1 + 2 * depth; // the score's epilogue, maximum, difference, sum, multiply-adds
      }
      count += depth; // the quotients
    }
  return count;
}

TEST(Masks, CountWhatTheyLeave) {
  const std::string causal = "%c = arith.cmpi sle, %j, %i : index";
  const std::string late = "%more = arith.subi %s1, %s0 : index\n%last = arith.addi %i, %more : index\n"
                           "%c = arith.cmpi sge, %last, %j : index";
  const std::string window = "%three = arith.constant 3 : index\n%first = arith.subi %i, %three : index\n"
                             "%near = arith.cmpi sgt, %j, %first : index\n%past = arith.cmpi sle, %j, %i : index\n"
                             "%c = arith.andi %near, %past : i1";
  for (auto [queries, keys] : {std::pair<int64_t, int64_t>(1, 1), {1, 17}, {7, 7}, {13, 29}, {64, 65}}) {
    SCOPED_TRACE(std::to_string(queries) + " queries, " + std::to_string(keys) + " keys");
    for (bool keepsScores : {false, true}) {
      auto expect = [&, q = queries, k = keys](Form form, auto sees) {
        form.keepsScores = keepsScores;
        double expected = counted(q, k, keepsScores, sees);
        EXPECT_NEAR(operations(form, q, k), expected, 1e-9 * expected) << form.condition;
      };
      auto all = [](int64_t, int64_t) { return true; };
      expect({}, all);
      expect({causal}, [](int64_t i, int64_t j) { return j <= i; });
      expect({late}, [&, q = queries, k = keys](int64_t i, int64_t j) { return j <= i + k - q; });
      expect({window}, [](int64_t i, int64_t j) { return j <= i && j > i - 3; });
      expect({causal, false, false, "-3.0"}, all); // excluded scores have nonzero weights
      // Lengths are sampled from the upper half of the longest loop, and so average three quarters of it.
      int64_t most = std::max<int64_t>({heads, queries, keys}), least = (most + 2) / 2;
      auto middle = [&](int64_t j) { return j < (least + most) / 2; };
      expect({"", true}, [&](int64_t, int64_t j) { return middle(j); });
      expect({causal, true}, [&](int64_t i, int64_t j) { return j <= i && middle(j); });
    }
  }
}

// Where there are very many rows, only a sample of them is counted.
TEST(Masks, AreSampledWhereTheyAreLarge) {
  constexpr int64_t tokens = 5000;
  const std::string causal = "%c = arith.cmpi sle, %j, %i : index";
  const double expected = counted(tokens, tokens, false, [](int64_t i, int64_t j) { return j <= i; });
  EXPECT_NEAR(operations({causal}, tokens, tokens), expected, 1e-3 * expected);
}

} // namespace
} // namespace kiln
