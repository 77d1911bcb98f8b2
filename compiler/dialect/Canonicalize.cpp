// SPDX-License-Identifier: Apache-2.0
//
// Canonicalisation patterns that create ops; the other canonical forms are folds.
#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"

#include "mlir/IR/PatternMatch.h"

namespace mlir::kiln {
namespace {

/// transpose(transpose(x)) ==> transpose(x) with the composed permutation.
struct ComposeTransposes : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op, PatternRewriter &rewriter) const override {
    auto producer = op.getX().getDefiningOp<TransposeOp>();
    if (!producer)
      return failure();
    SmallVector<int64_t> permutation;
    for (int64_t axis : op.getPermutation())
      permutation.push_back(producer.getPermutation()[axis]);
    rewriter.replaceOpWithNewOp<TransposeOp>(op, op.getType(), producer.getX(), permutation);
    return success();
  }
};

/// A transpose that keeps the order of the axes longer than 1 ==> reshape.
struct TransposeOfUnitAxes : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op, PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getX().getType());
    int64_t last = -1;
    for (int64_t axis : op.getPermutation()) {
      if (type.getDimSize(axis) == 1)
        continue;
      if (axis < last)
        return failure();
      last = axis;
    }
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), op.getX());
    return success();
  }
};

/// matmul(a, transpose(b)) ==> matmul(a, b) with transpose_b inverted.
struct TransposeOfFactor : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MatmulOp op, PatternRewriter &rewriter) const override {
    auto producer = op.getB().getDefiningOp<TransposeOp>();
    if (!producer)
      return failure();
    ArrayRef<int64_t> permutation = producer.getPermutation();
    int64_t rank = permutation.size();
    if (permutation[rank - 1] != rank - 2 || permutation[rank - 2] != rank - 1 ||
        !llvm::equal(permutation.drop_back(2), llvm::seq<int64_t>(rank - 2)))
      return failure();
    rewriter.replaceOpWithNewOp<MatmulOp>(op, op.getType(), op.getA(), producer.getX(), !op.getTransposeB());
    return success();
  }
};

/// conv2d with a 1x1 kernel ==> linear.
struct LinearConvolution : OpRewritePattern<Conv2dOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(Conv2dOp op, PatternRewriter &rewriter) const override {
    auto weight = cast<RankedTensorType>(op.getWeight().getType());
    auto are = [](ArrayRef<int64_t> numbers, int64_t value) {
      return llvm::all_of(numbers, [&](int64_t number) { return number == value; });
    };
    if (weight.getEncoding() || op.getGroups() != 1 || !are(weight.getShape().drop_front(2), 1) ||
        !are(op.getStride(), 1) || !are(op.getPadding(), 0))
      return failure();
    auto matrix = RankedTensorType::get(weight.getShape().take_front(2), weight.getElementType());
    Value reshaped = ReshapeOp::create(rewriter, op.getLoc(), matrix, op.getWeight());
    rewriter.replaceOpWithNewOp<LinearOp>(op, op.getType(), op.getX(), reshaped, op.getBias(), Value(),
                                          WeightOrder::OutIn);
    return success();
  }
};

/// A loop-carried value that no iteration changes ==> captured from outside.
struct CaptureInvariant : OpRewritePattern<RepeatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(RepeatOp op, PatternRewriter &rewriter) const override {
    Operation *yield = op.getYield();
    BitVector invariant(op.getInits().size());
    for (auto [i, carried, yielded] :
         llvm::enumerate(op.getCarried(), yield->getOperands().take_front(op.getNumCarried())))
      invariant[i] = yielded == carried || yielded == op.getInits()[i];
    // A value that is replaced by the initial one after the first layer is the initial one in every layer.
    if (invariant.none())
      return failure();

    SmallVector<Value> inits, results(op.getInits().size());
    for (auto [i, init] : llvm::enumerate(op.getInits()))
      if (!invariant[i])
        inits.push_back(init);
    for (int i : invariant.set_bits()) {
      rewriter.replaceAllUsesWith(op.getCarried()[i], op.getInits()[i]);
      results[i] = op.getInits()[i];
    }
    results.resize(op.getNumResults());
    invariant.resize(op.getNumResults());
    rewriter.modifyOpInPlace(yield, [&] { yield->eraseOperands(invariant); });
    auto fewer = RepeatOp::create(rewriter, op.getLoc(), op.getCount(), inits, op.getStacked().getTypes());
    llvm::copy(fewer.getStacked(), results.begin() + op.getNumCarried());
    Block *old = &op.getBody().front(), *body = &fewer.getBody().front();
    SmallVector<Value> carried(op.getInits());
    for (size_t i = 0, next = 0; i < carried.size(); ++i)
      if (!invariant[i]) {
        carried[i] = body->getArgument(next);
        results[i] = fewer.getResult(next++);
      }
    rewriter.mergeBlocks(old, body, carried);
    rewriter.replaceOp(op, results);
    return success();
  }
};

RepeatOp createLike(RepeatOp op, TypeRange stacked, PatternRewriter &rewriter) {
  return RepeatOp::create(rewriter, op.getLoc(), op.getCount(), op.getInits(), stacked);
}
ScanOp createLike(ScanOp op, TypeRange stacked, PatternRewriter &rewriter) {
  auto like =
      ScanOp::create(rewriter, op.getLoc(), op.getInits(), op.getSequences(), stacked, op.getReverse(), op.getLayers());
  like.setAhead(op.getAhead());
  like.setUntil(op.getUntil());
  return like;
}

EachSequenceOp createLike(EachSequenceOp op, TypeRange results, PatternRewriter &rewriter) {
  return EachSequenceOp::create(rewriter, op.getLoc(), op.getBatchSymbols(), op.getWholes(),
                                op.getBody().getArgumentTypes(), results);
}

/// Stacked outputs without uses are dropped.
template <class Loop> struct DropUnusedOutputs : OpRewritePattern<Loop> {
  using OpRewritePattern<Loop>::OpRewritePattern;
  LogicalResult matchAndRewrite(Loop op, PatternRewriter &rewriter) const override {
    unsigned carried = op.getNumCarried();
    BitVector unused(op.getNumResults());
    SmallVector<Type> types;
    for (Value stacked : op.getStacked())
      if (stacked.use_empty())
        unused.set(cast<OpResult>(stacked).getResultNumber());
      else
        types.push_back(stacked.getType());
    if (unused.none())
      return failure();
    Operation *yield = op.getYield();
    rewriter.modifyOpInPlace(yield, [&] { yield->eraseOperands(unused); });
    Loop fewer = createLike(op, types, rewriter);
    rewriter.mergeBlocks(&op.getBody().front(), &fewer.getBody().front(), fewer.getBody().getArguments());
    SmallVector<Value> results(op.getNumResults());
    for (unsigned i = 0, next = 0; i < results.size(); ++i)
      if (i < carried || !unused[i])
        results[i] = fewer.getResult(next++);
    for (auto [result, value] : llvm::zip_equal(op.getResults(), results))
      if (value)
        rewriter.replaceAllUsesWith(result, value);
    rewriter.eraseOp(op);
    return success();
  }
};

/// each_sequence over columns of x ==> over x, with the columns sliced inside, where an append or an attention reads
/// them directly.
struct SliceInside : OpRewritePattern<EachSequenceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(EachSequenceOp op, PatternRewriter &rewriter) const override {
    const BatchSymbols symbols = op.getBatchSymbols();
    for (OpOperand &operand : op.getWholesMutable()) {
      auto slice = operand.get().getDefiningOp<SliceOp>();
      if (!slice || slice.getAxis() == 0 || !slice->hasOneUse())
        continue;
      BlockArgument columns = op.getBody().getArgument(operand.getOperandNumber());
      SmallVector<AffineExpr> extents = getExtents(cast<RankedTensorType>(slice.getX().getType()));
      extents.front() = getExtents(cast<RankedTensorType>(columns.getType())).front();
      auto type = getTensorType(extents, slice.getType().getElementType(), getNumSymbols(slice.getX().getType()));
      if (symbols.getWhole(type) != slice.getX().getType())
        continue;
      rewriter.modifyOpInPlace(op, [&] {
        const Type before = columns.getType();
        operand.set(slice.getX());
        columns.setType(type);
        OpBuilder::InsertionGuard guard(rewriter);
        rewriter.setInsertionPointToStart(&op.getBody().front());
        auto inside = SliceOp::create(rewriter, slice.getLoc(), before, columns, slice.getAxis(), slice.getStart(),
                                      slice.getAtEnd());
        rewriter.replaceAllUsesExcept(columns, inside.getResult(), inside);
      });
      rewriter.eraseOp(slice);
      return success();
    }
    return failure();
  }
};

} // namespace

/// append(slice(x)) of columns ==> append of columns of x, which is computed for the other columns anyway.
LogicalResult AppendOp::canonicalize(AppendOp op, PatternRewriter &rewriter) {
  auto slice = op.getX().getDefiningOp<SliceOp>();
  auto type = cast<RankedTensorType>(op.getX().getType());
  if (!slice || slice.getAtEnd() || type.getRank() < 2 || int64_t(slice.getAxis()) != type.getRank() - 1 ||
      cast<RankedTensorType>(slice.getX().getType()).isDynamicDim(type.getRank() - 1))
    return failure();
  rewriter.modifyOpInPlace(op, [&] {
    op.setColumn(op.getColumn() + slice.getStart());
    op.getXMutable().assign(slice.getX());
  });
  return success();
}

void TransposeOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<ComposeTransposes, TransposeOfUnitAxes>(context);
}

void MatmulOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<TransposeOfFactor>(context);
}

void Conv2dOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<LinearConvolution>(context);
}

void RepeatOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<CaptureInvariant, DropUnusedOutputs<RepeatOp>>(context);
}

void ScanOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<DropUnusedOutputs<ScanOp>>(context);
}

void EachSequenceOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<DropUnusedOutputs<EachSequenceOp>, SliceInside>(context);
}

} // namespace mlir::kiln
