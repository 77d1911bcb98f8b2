// SPDX-License-Identifier: Apache-2.0
//
// Result types of attention.
#include "compiler/dialect/types/Infer.h"

namespace mlir::kiln {

/// Returns -1 for a dynamic dimension.
static int64_t fixedExtent(AffineExpr extent) {
  auto constant = dyn_cast<AffineConstantExpr>(extent);
  return constant ? constant.getValue() : -1;
}

/// Checks that queries and keys have the widths of the heads; that the mask broadcasts to [..., queries, keys], or,
/// with a rank above that of the queries, to [..., heads, queries, keys]; that the lengths have the leading extents;
/// and that causal queries have enough keys.
template <class Adaptor> static LogicalResult checkScores(Adaptor op, const Check &check) {
  RankedTensorType query = tensorType(op.getQuery());
  SmallVector<AffineExpr> q = getExtents(query), k = getExtents(tensorType(op.getKey()));
  int64_t heads = op.getHeads(), keyHeads = op.getKeyValueHeads().value_or(heads);
  if (heads < 1 || keyHeads < 1 || heads % keyHeads != 0)
    return check.fail(rules::attention_c16, Twine(heads), "a multiple of " + Twine(keyHeads));
  int64_t width = fixedExtent(q.back());
  if (width < 1 || width % heads != 0)
    return check.fail(rules::attention_c1, check.text(q.back()), "a multiple of " + Twine(heads));
  if (int64_t wanted = width / heads * keyHeads; fixedExtent(k.back()) != wanted)
    return check.fail(rules::attention_c2, check.text(k.back()), Twine(wanted));
  if (op.getMask()) {
    RankedTensorType mask = tensorType(op.getMask());
    SmallVector<AffineExpr> scores = q, given = getExtents(mask);
    scores.back() = k[k.size() - 2];
    if (given.size() == q.size() + 1)
      scores.insert(scores.end() - 2, getAffineConstantExpr(heads, mask.getContext()));
    bool fits = given.size() <= scores.size();
    for (size_t i = 0; fits && i < given.size(); ++i)
      fits = isConstant(given[i], 1) || given[i] == scores[scores.size() - given.size() + i];
    if (!fits)
      return check.fail(rules::attention_c7, check.text(mask), check.text(scores));
    if (failed(check.sameElement(rules::attention_c8, {query, mask})))
      return failure();
  }
  if (op.getLengths() && getExtents(tensorType(op.getLengths())) != ArrayRef(q).drop_back(2))
    return check.fail(rules::attention_c9, check.text(tensorType(op.getLengths())),
                      check.text(ArrayRef(q).drop_back(2)));
  if (!(op.getScale().convertToDouble() > 0))
    return check.fail(rules::attention_c11, std::to_string(op.getScale().convertToDouble()));
  if (const std::optional<uint64_t> window = op.getWindow(); window && (*window < 1 || !op.getCausal()))
    return check.fail(rules::attention_c17, std::to_string(*window));
  if (const std::optional<APFloat> cap = op.getSoftcap(); cap && !(cap->convertToDouble() > 0))
    return check.fail(rules::attention_c18, std::to_string(cap->convertToDouble()));
  if (!op.getCausal())
    return success();
  AffineExpr queries = q[q.size() - 2], keys = k[k.size() - 2];
  if (!check.atLeast(keys, queries))
    return check.fail(rules::attention_c10, check.text(queries) + " queries and " + check.text(keys) + " keys");
  return success();
}

/// Checks that all types have the same rank, batch and element type.
static LogicalResult checkAttended(ArrayRef<RankedTensorType> types, const Check &check) {
  for (RankedTensorType type : types)
    if (type.getRank() < 2)
      return check.fail(rules::attention_c6, check.text(types));
  SmallVector<AffineExpr> first = getExtents(types[0]);
  for (RankedTensorType type : types)
    if (SmallVector<AffineExpr> extents = getExtents(type);
        ArrayRef(extents).drop_back(2) != ArrayRef(first).drop_back(2))
      return check.fail(rules::attention_c5, check.text(types));
  return check.sameElement(rules::attention_c12, types);
}

KILN_INFER(AttentionOp) {
  Check check(location, op.getOperands());
  RankedTensorType query = tensorType(op.getQuery()), key = tensorType(op.getKey()), value = tensorType(op.getValue());
  if (failed(checkOperands(op, check)) || failed(checkAttended({query, key, value}, check)) ||
      failed(checkScores(op, check)))
    return failure();
  int64_t heads = op.getHeads(), keyHeads = op.getKeyValueHeads().value_or(heads);
  SmallVector<AffineExpr> q = getExtents(query), k = getExtents(key), v = getExtents(value);
  int64_t width = fixedExtent(v.back());
  if (width < 1 || width % keyHeads != 0)
    return check.fail(rules::attention_c3, check.text(v.back()), "a multiple of " + Twine(keyHeads));
  AffineExpr keys = k[k.size() - 2], values = v[v.size() - 2];
  if (values != keys)
    return check.fail(rules::attention_c4, check.text(values), check.text(keys));
  if (op.getSinks()) {
    RankedTensorType sinks = tensorType(op.getSinks());
    const AffineExpr wanted = getAffineConstantExpr(heads, query.getContext());
    if (sinks.getElementType() != query.getElementType() || getExtents(sinks) != ArrayRef{wanted})
      return check.fail(rules::attention_c19, check.text(sinks),
                        check.text(resultType(op, wanted, query.getElementType())));
  }
  q.back() = getAffineConstantExpr(width / keyHeads * heads, query.getContext());
  types.push_back(resultType(op, q, query.getElementType()));
  return success();
}

KILN_INFER(AttentionScoresOp) {
  Check check(location, op.getOperands());
  RankedTensorType query = tensorType(op.getQuery()), key = tensorType(op.getKey());
  if (failed(checkOperands(op, check)) || failed(checkAttended({query, key}, check)) || failed(checkScores(op, check)))
    return failure();
  SmallVector<AffineExpr> extents = getExtents(query), k = getExtents(key);
  extents.back() = k[k.size() - 2];
  extents.insert(extents.end() - 2, getAffineConstantExpr(op.getHeads(), query.getContext()));
  types.push_back(resultType(op, extents, query.getElementType()));
  return success();
}

} // namespace mlir::kiln
