// SPDX-License-Identifier: Apache-2.0
//
// 1. A mask is select(condition, score, very low), or several in sequence. Conditions are evaluated for every index on
// which they depend; conditions that cannot be evaluated are assumed to exclude nothing.
// 2. Masking propagates to the op that computes the scores, if they have no other use, and to the other ops of an
// attention: its weights are 0 where the score is very low.
#include "compiler/kernel/MaskedShares.h"

#include "compiler/dialect/ExcludedScore.h"
#include "compiler/kernel/Attention.h"
#include "compiler/kernel/Workload.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace kiln {

using namespace mlir;

/// Above about this number of elements only some rows of a mask are evaluated, evenly spaced: a tenth of a second.
static constexpr double mostElements = 1 << 22;

namespace {

/// Returns the op that replaces excluded scores by such a low number that their weight is 0 compared with any other;
/// null if it computes no score in this way.
arith::SelectOp maskOf(Value score) {
  auto select = score.getDefiningOp<arith::SelectOp>();
  APFloat excluded(0.0f);
  const bool isMask = select && matchPattern(select.getFalseValue(), m_ConstantFloat(&excluded)) &&
                      excluded.convertToDouble() <= mlir::kiln::lowestMask;
  return isMask ? select : arith::SelectOp();
}

/// Evaluates integers of an op's region for all values of its last loop at once.
class RowEvaluator {
public:
  using Row = std::vector<int64_t>;

  RowEvaluator(linalg::GenericOp op, ArrayRef<int64_t> extents)
      : loops(loopExtents(op, extents)), at(loops.size(), 0), op(op), extents(extents) {}

  /// Returns nullopt if the value depends on anything but indices, dimensions and integers in memory.
  std::optional<Row> get(Value value) const {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (argument.getOwner()->getParentOp() != op)
        return constant(extents[argument.getArgNumber()]);
      return inMemory(op->getOperand(argument.getArgNumber()));
    }
    Operation *from = value.getDefiningOp();
    if (APInt number; matchPattern(value, m_ConstantInt(&number)))
      return constant(number.getSExtValue());
    if (auto index = dyn_cast<linalg::IndexOp>(from)) {
      if (index.getDim() + 1 != loops.size())
        return constant(at[index.getDim()]);
      Row row(loops.back());
      std::iota(row.begin(), row.end(), 0);
      return row;
    }
    if (auto extract = dyn_cast<tensor::ExtractOp>(from))
      return inMemory(extract.getTensor());
    if (isa<arith::IndexCastOp>(from))
      return get(from->getOperand(0));
    if (auto compare = dyn_cast<arith::CmpIOp>(from))
      return combine(from, [&](int64_t a, int64_t b) {
        return int64_t(arith::applyCmpPredicate(compare.getPredicate(), APInt(64, a, true), APInt(64, b, true)));
      });
    if (isa<arith::AddIOp>(from))
      return combine(from, std::plus<>());
    if (isa<arith::SubIOp>(from))
      return combine(from, std::minus<>());
    if (isa<arith::MulIOp>(from))
      return combine(from, std::multiplies<>());
    if (isa<arith::AndIOp>(from))
      return combine(from, std::bit_and<>());
    if (isa<arith::OrIOp>(from))
      return combine(from, std::bit_or<>());
    if (isa<arith::MinSIOp>(from))
      return combine(from, [](int64_t a, int64_t b) { return std::min(a, b); });
    if (isa<arith::MaxSIOp>(from))
      return combine(from, [](int64_t a, int64_t b) { return std::max(a, b); });
    return std::nullopt;
  }

  const std::vector<int64_t> loops;
  std::vector<int64_t> at; // the values of the other loops

private:
  Row constant(int64_t number) const { return Row(loops.back(), number); }

  std::optional<Row> inMemory(Value tensor) const {
    auto argument = dyn_cast<BlockArgument>(tensor);
    if (!argument || !cast<RankedTensorType>(argument.getType()).getElementType().isInteger(32))
      return std::nullopt;
    auto [first, pastLast] = integerRange(op->getParentOfType<func::FuncOp>(), argument.getArgNumber(), extents);
    return constant((first + pastLast - 1) / 2);
  }

  template <typename Function> std::optional<Row> combine(Operation *from, Function function) const {
    std::optional<Row> a = get(from->getOperand(0)), b = get(from->getOperand(1));
    if (!a || !b)
      return std::nullopt;
    std::transform(a->begin(), a->end(), b->begin(), a->begin(), function);
    return a;
  }

  linalg::GenericOp op;
  ArrayRef<int64_t> extents;
};

bool isPermutation(linalg::GenericOp op, OpOperand &operand) {
  return op.getMatchingIndexingMap(&operand).isPermutation();
}

/// Whether the op computes one element in each iteration, without a reduction.
bool isElementPerIteration(linalg::GenericOp op) {
  return op.getNumReductionLoops() == 0 && op.getNumDpsInits() == 1 && isPermutation(op, *op.getDpsInitOperand(0));
}

/// Returns the share of the elements that an op's masks do not exclude; 1 without a mask.
double shareOfMask(linalg::GenericOp op, ArrayRef<int64_t> extents) {
  std::vector<Value> conditions;
  Value value = op.getBlock()->getTerminator()->getOperand(0);
  while (arith::SelectOp mask = maskOf(value)) {
    conditions.push_back(mask.getCondition());
    value = mask.getTrueValue();
  }
  RowEvaluator evaluator(op, extents);
  llvm::erase_if(conditions, [&](Value condition) { return !evaluator.get(condition); });
  if (conditions.empty() || evaluator.loops.back() == 0)
    return 1;
  std::map<unsigned, int64_t> indexed; // the loops other than the last, with the step of each
  op.walk([&](linalg::IndexOp index) {
    if (index.getDim() + 1 != evaluator.loops.size())
      indexed[index.getDim()] = 1;
  });
  double elements = double(evaluator.loops.back());
  for (auto [loop, step] : indexed)
    elements *= double(evaluator.loops[loop]);
  auto length = [&](const auto &loop) { return evaluator.loops[loop.first]; };
  if (auto longest = std::max_element(indexed.begin(), indexed.end(),
                                      [&](const auto &a, const auto &b) { return length(a) < length(b); });
      longest != indexed.end()) {
    longest->second = std::max<int64_t>(1, std::min(int64_t(elements / mostElements), length(*longest)));
    evaluator.at[longest->first] = longest->second / 2;
  }
  int64_t rows = 0, left = 0;
  for (bool isMore = true; isMore;) {
    RowEvaluator::Row both(evaluator.loops.back(), 1);
    for (Value condition : conditions)
      for (auto [a, b] : llvm::zip(both, *evaluator.get(condition)))
        a &= b != 0;
    left += std::accumulate(both.begin(), both.end(), int64_t(0));
    ++rows;
    isMore = false;
    for (auto [loop, step] : indexed) {
      if ((isMore = (evaluator.at[loop] += step) < evaluator.loops[loop]))
        break;
      evaluator.at[loop] = step / 2;
    }
  }
  return double(left) / (double(rows) * double(evaluator.loops.back()));
}

class MaskedShares {
public:
  explicit MaskedShares(ArrayRef<int64_t> extents) : extents(extents) {}

  void visit(linalg::GenericOp op, const AttentionOps *attention) {
    const double share = isElementPerIteration(op) ? shareOfMask(op, extents) : 1;
    if (share == 1)
      return;
    leave(op, share);
    leaveProducers(op, share);
    if (attention && op == attention->masked)
      for (linalg::GenericOp next : {attention->maxima, attention->weights, attention->sums, attention->products})
        leave(next, share);
  }

  llvm::DenseMap<Operation *, double> shares;

private:
  void leave(Operation *op, double share) { shares[op] = std::min(shares.try_emplace(op, 1).first->second, share); }

  /// Propagates the share to producers whose elements the op reads one by one.
  void leaveProducers(linalg::GenericOp op, double share) {
    for (OpOperand *input : op.getDpsInputOperands()) {
      auto producer = input->get().getDefiningOp<linalg::GenericOp>();
      if (!producer || producer.getNumResults() != 1 || !input->get().hasOneUse() || !isPermutation(op, *input))
        continue;
      leave(producer, share);
      if (isElementPerIteration(producer))
        leaveProducers(producer, share);
    }
  }

  ArrayRef<int64_t> extents;
};

} // namespace

llvm::DenseMap<Operation *, double> findMaskedShares(const DecomposedKernel &kernel, ArrayRef<int64_t> extents) {
  MaskedShares finder(extents);
  kernel.get().walk([&](linalg::GenericOp op) { finder.visit(op, kernel.attention()); });
  return std::move(finder.shares);
}

} // namespace kiln
