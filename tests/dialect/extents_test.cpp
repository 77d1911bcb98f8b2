// SPDX-License-Identifier: Apache-2.0
//
// Dimensions as polynomials: canonical forms, bounds, values, Dims, messages.
#include "compiler/dialect/Extents.h"

#include <gtest/gtest.h>

#include "compiler/dialect/AffineEval.h"
#include "mlir/IR/MLIRContext.h"

namespace mlir::kiln {
namespace {

class Extents : public testing::Test {
protected:
  MLIRContext context;
  KilnDialect *dialect = context.getOrLoadDialect<KilnDialect>(); // loaded before the attributes
  AffineExpr batch = getAffineSymbolExpr(0, &context), tokens = getAffineSymbolExpr(1, &context);
  SymbolAttr symbols[2] = {SymbolAttr::get(&context, "tokens", 1, 64, ""),
                           SymbolAttr::get(&context, "batch", 2, 8, "")};
};

TEST_F(Extents, EqualPolynomialsHaveOneForm) {
  EXPECT_EQ(canonicalExtent(tokens * batch), canonicalExtent(batch * tokens));
  EXPECT_EQ(canonicalExtent((batch + 1) * (tokens + 2)), canonicalExtent(tokens * batch + tokens + batch * 2 + 2));
  EXPECT_EQ(canonicalExtent(batch * 3 - batch * 3 + 7), getAffineConstantExpr(7, &context));
  EXPECT_NE(canonicalExtent(batch * 2), canonicalExtent(batch));
}

TEST_F(Extents, RemaindersStay) {
  AffineExpr rest = tokens % 8;
  EXPECT_EQ(canonicalExtent(rest), rest);
  EXPECT_EQ(getProduct({getAffineConstantExpr(1, &context), rest}, &context), rest);
}

TEST_F(Extents, EqualQuotientsHaveOneForm) {
  auto isEqual = [](AffineExpr a, AffineExpr b) { return canonicalExtent(a) == canonicalExtent(b); };
  EXPECT_TRUE(isEqual(tokens.ceilDiv(8), (tokens + 7).floorDiv(8)));
  EXPECT_TRUE(isEqual((tokens + 17).floorDiv(8), (tokens + 1).floorDiv(8) + 2));
  EXPECT_TRUE(isEqual((tokens - 1).floorDiv(2), (tokens + 1).floorDiv(2) - 1));
  EXPECT_TRUE(isEqual((tokens * 8 + 3).floorDiv(4), tokens * 2));
  EXPECT_TRUE(isEqual((tokens * 6 + 3).floorDiv(4), tokens + (tokens + 1).floorDiv(2)));
  EXPECT_TRUE(isEqual((tokens * 2 + batch).floorDiv(2), tokens + batch.floorDiv(2)));
  // Layers of stride 2, one after another.
  EXPECT_TRUE(isEqual((tokens.floorDiv(2) + 1).floorDiv(2), (tokens + 2).floorDiv(4)));
  EXPECT_TRUE(isEqual(tokens.ceilDiv(2).ceilDiv(2), tokens.ceilDiv(4)));
  EXPECT_TRUE(isEqual(tokens.floorDiv(2) * batch, batch * (tokens - 2).floorDiv(2) + batch));
  EXPECT_FALSE(isEqual(tokens.floorDiv(2), tokens.ceilDiv(2)));
  EXPECT_FALSE(isEqual(tokens.floorDiv(2), batch.floorDiv(2)));
  EXPECT_FALSE(isEqual((tokens * 3).floorDiv(8), (tokens * 5).floorDiv(8)));
}

// For each value the canonical form is the same number, and its numerators are never negative.
TEST_F(Extents, CanonicalQuotientsAreEqual) {
  for (int64_t factor : {-7, -2, -1, 1, 2, 3, 6, 9})
    for (int64_t offset : {-9, -1, 0, 1, 5})
      for (int64_t divisor : {1, 2, 3, 4, 12}) {
        AffineExpr inner = (tokens * factor + offset).floorDiv(divisor);
        for (AffineExpr extent :
             {inner, inner * 3 + batch, (inner + batch * 2 + 1).ceilDiv(4), (inner + 3).floorDiv(5)})
          for (int64_t value = 1; value < 9; ++value) {
            AffineExpr canonical = canonicalExtent(extent);
            EXPECT_EQ(evaluateExtent(canonical, {value, 5}), evaluateExtent(extent, {value, 5}));
            canonical.walk([&](AffineExpr part) {
              if (part.getKind() == AffineExprKind::FloorDiv)
                EXPECT_GE(evaluateExtent(cast<AffineBinaryOpExpr>(part).getLHS(), {value, 5}), 0);
            });
          }
      }
}

TEST_F(Extents, Bounds) {
  Interval known[] = {{2, 8}, {1, 65}};
  EXPECT_EQ(getBounds(batch * tokens + 5, known), (Interval{7, 525}));
  EXPECT_EQ(getBounds(batch * -3, known), (Interval{-24, -6}));
  EXPECT_EQ(getBounds(tokens.ceilDiv(8), known), (Interval{1, 9}));
  EXPECT_EQ(getBounds(tokens.floorDiv(8), known), (Interval{0, 8}));
  EXPECT_EQ(getBounds(tokens % 8, known), (Interval{0, 7}));
  EXPECT_EQ(getBounds(tokens, ArrayRef(known).take_front()), std::nullopt);
}

TEST_F(Extents, Values) {
  EXPECT_EQ(evaluateExtent(batch * tokens + 5, {3, 7}), 26);
  EXPECT_EQ(evaluateExtent((batch - tokens).floorDiv(4), {0, 7}), -2);
  EXPECT_EQ(evaluateExtent(tokens.ceilDiv(4), {0, 9}), 3);
  EXPECT_EQ(evaluateExtent((batch - tokens) % 4, {0, 7}), 1);
}

TEST_F(Extents, APartialIndexHasTheValueOfItsLoop) {
  AffineExpr loop = getAffineDimExpr(0, &context);
  const int64_t at = -1; // which a modulo would change
  EXPECT_EQ(evaluateAffine(getPartialIndex(loop) + tokens, IntegerArithmetic{{at, {0, 7}}}), 6);
}

TEST_F(Extents, BoundsThatDoNotFit) {
  Interval known[] = {{1, INT64_MAX}, {1, 2}};
  EXPECT_EQ(getBounds(batch * tokens, known), std::nullopt);
  EXPECT_EQ(getBounds(batch + tokens, known), std::nullopt);
}

TEST_F(Extents, TypesKeepTheirExtents) {
  RankedTensorType type = getTensorType({batch, getAffineConstantExpr(5, &context)}, Float32Type::get(&context), 2);
  EXPECT_EQ(type.getShape(), ArrayRef<int64_t>({ShapedType::kDynamic, 5}));
  EXPECT_EQ(getNumSymbols(TypeRange(type)), 2u);
  EXPECT_EQ(getExtents(type), (SmallVector<AffineExpr>{batch, getAffineConstantExpr(5, &context)}));
  RankedTensorType fixed = getTensorType(getAffineConstantExpr(5, &context), Float32Type::get(&context), 2);
  EXPECT_FALSE(fixed.getEncoding());
}

TEST_F(Extents, ATypeWithoutAMapOfItsRankHasNoExtents) {
  Type element = Float32Type::get(&context);
  EXPECT_FALSE(hasExtents(RankedTensorType::get({ShapedType::kDynamic}, element)));
  auto map = AffineMapAttr::get(AffineMap::get(0, 1, {batch, batch}, &context));
  EXPECT_FALSE(hasExtents(RankedTensorType::get({ShapedType::kDynamic}, element, map)));
  EXPECT_TRUE(hasExtents(RankedTensorType::get({ShapedType::kDynamic, 3}, element, map)));
}

TEST_F(Extents, DimsThereAndBack) {
  constexpr ::kiln::Dim dimTokens{"tokens", 1, 64}, dimBatch{"batch", 2, 8};
  for (const ::kiln::Dim &dim : {::kiln::Dim(7), dimTokens, dimTokens * 12 + 1, dimTokens * dimBatch * 2,
                                 dimTokens + dimBatch, dimBatch * 3 + dimTokens * dimBatch - 1}) {
    AffineExpr extent = fromDim(dim, symbols, &context);
    ASSERT_TRUE(extent);
    EXPECT_EQ(toDim(extent, symbols), dim);
  }
  EXPECT_EQ(fromDim(dimTokens * dimBatch, symbols, &context), canonicalExtent(tokens * batch));
}

TEST_F(Extents, WhatNoDimCanSay) {
  EXPECT_FALSE(fromDim(::kiln::Dim("other", 1, 2), symbols, &context));
  EXPECT_EQ(toDim(batch + tokens + batch * tokens, symbols), std::nullopt);
  EXPECT_EQ(toDim(batch * batch * batch, symbols), std::nullopt);
  EXPECT_EQ(toDim(batch * INT64_MAX, symbols), std::nullopt);
  EXPECT_EQ(toDim(getAffineSymbolExpr(2, &context), symbols), std::nullopt);
}

TEST_F(Extents, Messages) {
  EXPECT_EQ(describeExtent(batch * tokens * 2 + 1, symbols), "2*batch*tokens+1 5..1025");
  EXPECT_EQ(describeExtent(tokens + batch, symbols), "batch+tokens 3..72");
  EXPECT_EQ(describeExtent(batch * 2), "s0 * 2");
  EXPECT_EQ(describeExtent(getAffineConstantExpr(3, &context)), "3");
}

} // namespace
} // namespace mlir::kiln
