// SPDX-License-Identifier: Apache-2.0
//
// Matches attention from its second matmul backwards:
// 1. matmul(p, v); p = softmax of s over the last axis; s = [mask +] [scale *] matmul(q, k^T), with operands in either
// order; a scale may also be applied to q or k.
// 2. If q, k, v are transpose(reshape(x)) that split heads and the result is merged back the same way, the op gets
// these heads; otherwise each batch axis stays as it is and there is one head.
#include "compiler/transforms/Passes.h"

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Iterators.h"

namespace mlir::kiln {

#define GEN_PASS_DEF_RECOGNIZEATTENTION
#include "compiler/transforms/Passes.h.inc"

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Strips constant factors off `value`, multiplying them into `scale`.
Value stripScale(Value value, double &scale) {
  while (value.hasOneUse()) {
    Operation *op = value.getDefiningOp();
    if (!isa_and_nonnull<MulOp, DivOp>(op))
      break;
    bool isDiv = isa<DivOp>(op);
    unsigned factor = !isDiv && getSplat(op->getOperand(0)) ? 0 : 1;
    auto number = getSplat(op->getOperand(factor));
    Value rest = op->getOperand(1 - factor);
    if (!number || typeOf(rest) != typeOf(value) || (isDiv && *number == 0))
      break;
    scale = isDiv ? scale / *number : scale * *number;
    value = rest;
  }
  return value;
}

/// Matches transpose(reshape(x)) that makes [..., T, H*D] into [..., H, T, D], or [..., H, D, T] with `isTransposed`.
/// Returns x; null if there is no match.
Value getUnsplit(Value value, bool isTransposed) {
  auto transpose = value.getDefiningOp<TransposeOp>();
  auto split = transpose ? transpose.getX().getDefiningOp<ReshapeOp>() : ReshapeOp();
  if (!split)
    return {};
  int64_t rank = typeOf(value).getRank();
  if (rank < 3)
    return {};
  SmallVector<int64_t> wanted = llvm::to_vector(llvm::seq<int64_t>(rank - 3));
  if (isTransposed)
    wanted.append({rank - 2, rank - 1, rank - 3});
  else
    wanted.append({rank - 2, rank - 3, rank - 1});
  SmallVector<AffineExpr> whole = getExtents(typeOf(split.getX())), parts = getExtents(typeOf(split));
  if (ArrayRef(wanted) != transpose.getPermutation() || int64_t(whole.size()) != rank - 1)
    return {};
  parts[rank - 2] = getProduct({parts[rank - 2], parts[rank - 1]}, value.getContext());
  parts.pop_back();
  return parts == whole ? split.getX() : Value();
}

/// Returns the reshape that merges heads: reshape(transpose([..., H, T, E])) to [..., T, H*E]; null if there is none.
ReshapeOp getMerge(Value value) {
  if (!value.hasOneUse())
    return {};
  auto transpose = dyn_cast<TransposeOp>(*value.getUsers().begin());
  auto merge = transpose && transpose->hasOneUse() ? dyn_cast<ReshapeOp>(*transpose->getUsers().begin()) : ReshapeOp();
  int64_t rank = typeOf(value).getRank();
  if (!merge || rank < 3)
    return {};
  SmallVector<int64_t> wanted = llvm::to_vector(llvm::seq<int64_t>(rank - 3));
  wanted.append({rank - 2, rank - 3, rank - 1});
  SmallVector<AffineExpr> parts = getExtents(typeOf(transpose.getResult())), whole = getExtents(typeOf(merge));
  parts[rank - 2] = getProduct({parts[rank - 2], parts[rank - 1]}, value.getContext());
  parts.pop_back();
  return ArrayRef(wanted) == transpose.getPermutation() && parts == whole ? merge : ReshapeOp();
}

/// Whether the value is 0 on and below the diagonal and at most -1e9 above.
bool isCausalMask(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  auto values = constant ? dyn_cast<DenseFPElementsAttr>(constant.getValue()) : DenseFPElementsAttr();
  ArrayRef<int64_t> shape = typeOf(value).getShape();
  if (!values || shape.size() < 2 || shape[shape.size() - 1] != shape[shape.size() - 2] || values.isSplat() ||
      values.getNumElements() != shape.back() * shape.back())
    return false;
  return llvm::all_of(llvm::enumerate(values.getValues<APFloat>()), [&](auto entry) {
    int64_t row = entry.index() / shape.back(), column = entry.index() % shape.back();
    double number = entry.value().convertToDouble();
    return column <= row ? number == 0 : number <= -1e9;
  });
}

/// The operands matched in the first half of the pattern, up to the softmax.
struct Scores {
  MatmulOp product;
  double scale = 1;
  Value mask;
};

std::optional<Scores> matchScores(Value value) {
  Scores scores;
  if (!value.hasOneUse())
    return std::nullopt;
  if (auto add = value.getDefiningOp<AddOp>()) {
    for (unsigned i : {0, 1}) {
      double scale = 1;
      Value product = stripScale(add->getOperand(i), scale);
      if (product.getDefiningOp<MatmulOp>() && typeOf(product) == typeOf(value)) {
        scores.mask = add->getOperand(1 - i);
        value = add->getOperand(i);
        break;
      }
    }
  }
  value = stripScale(value, scores.scale);
  scores.product = value.getDefiningOp<MatmulOp>();
  if (!scores.product || !value.hasOneUse())
    return std::nullopt;
  return scores;
}

class AttentionMatcher {
public:
  explicit AttentionMatcher(MatmulOp second) : second(second) {}

  /// Replaces the ops if they match attention.
  void rewrite() {
    auto softmax = second.getA().getDefiningOp<SoftmaxOp>();
    if (!softmax || !softmax->hasOneUse() || second.getTransposeB() ||
        int64_t(softmax.getAxis()) != typeOf(softmax).getRank() - 1)
      return;
    std::optional<Scores> matched = matchScores(softmax.getX());
    if (!matched)
      return;
    scores = *matched;
    query = stripScale(scores.product.getA(), scores.scale);
    key = stripScale(scores.product.getB(), scores.scale);
    value = second.getB();
    if (!rewriteWithHeads())
      rewriteBatched();
  }

private:
  bool rewriteWithHeads() {
    Value q = getUnsplit(query, false), k = getUnsplit(key, !scores.product.getTransposeB()),
          v = getUnsplit(value, false);
    ReshapeOp merge = getMerge(second.getResult());
    if (!q || !k || !v || !merge)
      return false;
    int64_t rank = typeOf(query).getRank(), heads = typeOf(query).getDimSize(rank - 3);
    if (ShapedType::isDynamic(heads) || typeOf(value).getDimSize(rank - 3) != heads ||
        typeOf(key).getDimSize(rank - 3) != heads || !haveSameBatch({q, k, v}))
      return false;
    std::optional<Value> mask = getMask(rank - 3, rank);
    if (!mask)
      return false;
    create(q, k, v, *mask, heads, merge);
    return true;
  }

  bool rewriteBatched() {
    RankedTensorType values = typeOf(value);
    if (!scores.product.getTransposeB() || !haveSameBatch({query, key, value}) ||
        values.isDynamicDim(values.getRank() - 1)) // kiln.attention requires a static width
      return false;
    std::optional<Value> mask = getMask(-1, typeOf(query).getRank());
    if (!mask)
      return false;
    create(query, key, value, *mask, 1, second);
    return true;
  }

  static bool haveSameBatch(ArrayRef<Value> values) {
    return llvm::all_of(values, [&](Value value) {
      SmallVector<AffineExpr> lhs = getExtents(typeOf(values[0])), rhs = getExtents(typeOf(value));
      return lhs.size() == rhs.size() && ArrayRef(lhs).drop_back(2) == ArrayRef(rhs).drop_back(2);
    });
  }

  /// Returns the mask without the head axis, null if there is none or it is causal, and nullopt if it differs by head.
  std::optional<Value> getMask(int64_t headAxis, int64_t rank) {
    if (!scores.mask)
      return Value();
    if (isCausalMask(scores.mask)) {
      isCausal = true;
      return Value();
    }
    RankedTensorType type = typeOf(scores.mask);
    int64_t axis = headAxis - (rank - type.getRank());
    if (headAxis < 0 || axis < 0)
      return scores.mask;
    SmallVector<AffineExpr> extents = getExtents(type);
    if (!isConstant(extents[axis], 1))
      return std::nullopt;
    extents.erase(extents.begin() + axis);
    OpBuilder builder(second);
    auto dropped = getTensorType(extents, type.getElementType(), getNumSymbols(type));
    return ReshapeOp::create(builder, second.getLoc(), dropped, scores.mask).getResult();
  }

  void create(Value q, Value k, Value v, Value mask, int64_t heads, Operation *replaced) {
    OpBuilder builder(replaced);
    auto attention =
        AttentionOp::create(builder, second.getLoc(), replaced->getResult(0).getType(), q, k, v, mask, Value(), Value(),
                            heads, IntegerAttr(), llvm::APFloat(scores.scale), isCausal, IntegerAttr(), FloatAttr());
    replaced->getResult(0).replaceAllUsesWith(attention.getResult());
  }

  MatmulOp second;
  Scores scores;
  Value query, key, value;
  bool isCausal = false;
};

struct RecognizeAttention : impl::RecognizeAttentionBase<RecognizeAttention> {
  using RecognizeAttentionBase::RecognizeAttentionBase;

  void runOnOperation() override {
    SmallVector<MatmulOp> products;
    getOperation().walk([&](MatmulOp op) { products.push_back(op); });
    for (MatmulOp product : products)
      AttentionMatcher(product).rewrite();
    // Erase the matched ops, which have no users any more.
    getOperation().walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
      if (isOpTriviallyDead(op))
        op->erase();
    });
  }
};

} // namespace
} // namespace mlir::kiln
