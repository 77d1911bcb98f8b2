// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/attention/MmaOperands.h"

#include "mlir/IR/Matchers.h"
#include "targets/cuda/attention/Match.h"

namespace kiln::cuda {

using namespace mlir;
using tile::MmaType;

unsigned AttentionMma::channelLoop(const Attention &attention) const {
  return unsigned(llvm::find(loops, attention.scores.reduction.front()) - loops.begin());
}

tile::Values AttentionMma::loopsAt(const tile::Values &ofScores) const {
  tile::Values result;
  for (unsigned loop : loops)
    result.push_back(ofScores[loop]);
  return result;
}

static std::optional<MmaType> halfTypeOf(Value tensor) {
  Type element = getElementTypeOrSelf(tensor);
  return element.isF16() ? std::optional(MmaType::F16) : element.isBF16() ? std::optional(MmaType::BF16) : std::nullopt;
}

/// Whether the op computes an input in f32, possibly times a constant; sets the input's number and the constant.
static bool isScaled(linalg::GenericOp op, AttentionMma &found) {
  Value result = op.getBlock()->getTerminator()->getOperand(0);
  if (auto scale = result.getDefiningOp<arith::MulFOp>()) {
    APFloat factor(0.0f);
    const bool isRight = matchPattern(scale.getRhs(), m_ConstantFloat(&factor));
    if (!isRight && !matchPattern(scale.getLhs(), m_ConstantFloat(&factor)))
      return false;
    found.factor = factor.convertToFloat();
    result = isRight ? scale.getLhs() : scale.getRhs();
  }
  if (auto extended = result.getDefiningOp<arith::ExtFOp>())
    result = extended.getIn();
  auto argument = dyn_cast<BlockArgument>(result);
  if (!argument || argument.getOwner() != op.getBlock() || argument.getArgNumber() >= op.getNumDpsInputs())
    return false;
  found.query = argument.getArgNumber();
  return true;
}

/// Finds the op that scales queries where they are read, if there is one. Each of its loops is a loop of the scores'
/// op.
static bool findScaling(const Attention &attention, const Placement &placement, AttentionMma &found) {
  linalg::GenericOp scores = attention.scores.op;
  Value query = scores->getOperand(attention.query);
  auto op = query.getDefiningOp<linalg::GenericOp>();
  if (!op || placement.find(query) || op->getNumResults() != 1 || op.getNumReductionLoops() || !isScaled(op, found))
    return false;
  AffineMap read = scores.getMatchingIndexingMap(&scores->getOpOperand(attention.query));
  AffineMap written = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (!read.isProjectedPermutation() || !written.isPermutation())
    return false;
  found.op = op;
  found.loops.resize(op.getNumLoops());
  for (unsigned i = 0; i < written.getNumResults(); ++i)
    found.loops[written.getDimPosition(i)] = read.getDimPosition(i);
  return llvm::is_contained(found.loops, attention.scores.reduction.front());
}

/// Returns the type in which all three are multiplied: their own 16-bit type, or tf32, which represents all numbers of
/// f16 and bf16.
static std::optional<MmaType> typeOf(const Attention &attention, Value queries) {
  linalg::GenericOp scores = attention.scores.op, outputs = attention.outputs.op;
  std::optional<MmaType> ofKeys = halfTypeOf(scores->getOperand(attention.key));
  if (ofKeys && halfTypeOf(outputs->getOperand(attention.value)) == ofKeys && halfTypeOf(queries) == ofKeys)
    return ofKeys;
  const bool mayRound = scores->getParentOfType<func::FuncOp>()->hasAttr(tf32AttrName);
  return mayRound ? std::optional(MmaType::TF32) : std::nullopt;
}

std::optional<AttentionMma> findAttentionMma(const Attention &attention, const Placement &placement) {
  linalg::GenericOp scores = attention.scores.op;
  AttentionMma found{MmaType::TF32, 1, scores, attention.query, llvm::to_vector(llvm::seq(scores.getNumLoops()))};
  Value queries = scores->getOperand(attention.query);
  if (AttentionMma scaled = found; !halfTypeOf(queries) && findScaling(attention, placement, scaled))
    found = std::move(scaled);
  std::optional<MmaType> type = typeOf(attention, found.op->getOperand(found.query));
  if (!type)
    return std::nullopt;
  found.type = *type;
  return found;
}

} // namespace kiln::cuda
