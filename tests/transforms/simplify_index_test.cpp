// SPDX-License-Identifier: Apache-2.0
//
// Simplified expressions have the values of the original ones, and the forms that indexing maps require.
#include "compiler/dialect/lowering/SimplifyIndex.h"

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/MLIRContext.h"
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using mlir::kiln::simplifyIndex;

namespace {

class SimplifyIndexTest : public testing::Test {
protected:
  MLIRContext context;
  AffineExpr h = getAffineDimExpr(0, &context), d = getAffineDimExpr(1, &context);
  std::vector<std::optional<int64_t>> extents{12, 64};
};

TEST_F(SimplifyIndexTest, HeadsAreTakenApart) {
  AffineExpr third = h * 64 + d + 2 * 768; // the values of 12 heads in a fused QKV projection
  EXPECT_EQ(simplifyIndex(third.floorDiv(768), extents), getAffineConstantExpr(2, &context));
  EXPECT_EQ(simplifyIndex((third % 768).floorDiv(64), extents), h);
  EXPECT_EQ(simplifyIndex(third % 64, extents), d);
}

TEST_F(SimplifyIndexTest, UnknownExtentsStay) {
  extents[0] = std::nullopt;
  EXPECT_EQ(simplifyIndex((h * 64 + d).floorDiv(64), extents), h);
  EXPECT_EQ(simplifyIndex(h % 12, extents), h % 12);
}

TEST_F(SimplifyIndexTest, SingleElementAxesAreZero) {
  extents[1] = 1;
  EXPECT_EQ(simplifyIndex(h + d, extents), h);
}

TEST_F(SimplifyIndexTest, KeepsValues) {
  std::mt19937 random(7);
  auto below = [&](int64_t bound) { return static_cast<int64_t>(random() % bound); };
  extents = {5, 7};
  for (int trial = 0; trial < 2000; ++trial) {
    AffineExpr expr = h * (1 + below(9)) + d * (1 + below(9)) + below(20);
    for (int depth = 0; depth < 3; ++depth) {
      int64_t by = 1 + below(12);
      switch (below(4)) {
      case 0:
        expr = expr.floorDiv(by);
        break;
      case 1:
        expr = expr % by;
        break;
      case 2:
        expr = expr * by + d;
        break;
      default:
        expr = expr + h.floorDiv(by) + by;
      }
    }
    AffineMap before = AffineMap::get(2, 0, expr);
    AffineMap after = AffineMap::get(2, 0, simplifyIndex(expr, extents));
    for (int64_t i = 0; i < 5; ++i)
      for (int64_t j = 0; j < 7; ++j)
        ASSERT_EQ(before.compose(ArrayRef<int64_t>{i, j}), after.compose(ArrayRef<int64_t>{i, j})) << "trial " << trial;
  }
}

} // namespace
