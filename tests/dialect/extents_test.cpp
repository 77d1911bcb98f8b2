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

TEST_F(Extents, WhatIsNoPolynomialStays) {
  AffineExpr blocks = tokens.ceilDiv(8);
  EXPECT_EQ(canonicalExtent(blocks), blocks);
  EXPECT_EQ(getProduct({getAffineConstantExpr(1, &context), blocks}, &context), blocks);
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
