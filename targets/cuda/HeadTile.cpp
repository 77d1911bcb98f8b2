// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/HeadTile.h"

#include "targets/cuda/tile/Shared.h"
#include "llvm/Support/MathExtras.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

/// Elements that a thread reads before it stores them, where it computes or converts what it reads.
static constexpr int64_t readTogether = 4;

/// Whether the innermost index is the loop behind a multiple of four, and the loop is nowhere else.
static bool areInFours(linalg::GenericOp op, unsigned number, unsigned loop) {
  AffineMap map = op.getMatchingIndexingMap(&op->getOpOperand(number));
  const int64_t extent = cast<RankedTensorType>(op->getOperand(number).getType()).getShape().back();
  auto ofLoop = dyn_cast<AffineConstantExpr>(loopExtents(op)[loop]);
  if (ShapedType::isDynamic(extent) || extent % 4 != 0 || !ofLoop || ofLoop.getValue() % 4 != 0)
    return false;
  for (AffineExpr index : map.getResults().drop_back())
    if (index.isFunctionOfDim(loop))
      return false;
  AffineExpr dim = getAffineDimExpr(loop, op->getContext());
  AffineExpr rest = simplifyAffineExpr(map.getResults().back() - dim, map.getNumDims(), map.getNumSymbols());
  return !rest.isFunctionOfDim(loop) && rest.isMultipleOf(4);
}

HeadTile::HeadTile(tile::Builder &b, Reader &reader, const Placement &placement, linalg::GenericOp op, unsigned number,
                   unsigned lineLoop, unsigned channelLoop, const LineShape &shape)
    : b(b), reader(reader), op(op), number(number), lineLoop(lineLoop), channelLoop(channelLoop), shape(shape) {
  AffineMap map = op.getMatchingIndexingMap(&op->getOpOperand(number));
  std::optional<Parameter> place = placement.find(op->getOperand(number));
  const bool hasInner = map.getNumResults() > 0;
  isPlain = place && getElementTypeOrSelf(op->getOperand(number)).isF32();
  isInFours = isPlain && hasInner && areInFours(op, number, channelLoop);
  isSureAligned = place && place->kind == Parameter::Scratch;
  AffineExpr inner = hasInner ? map.getResults().back() : AffineExpr();
  isAlongChannels = !hasInner || inner.isFunctionOfDim(channelLoop) || !inner.isFunctionOfDim(lineLoop);
}

void HeadTile::begin(Value ofTeam, int64_t inTeam, const Values &others) {
  thread = ofTeam, threads = inTeam, loops = others;
  SmallVector<AffineExpr> extents = loopExtents(op);
  lineCount = reader.extent(extents[lineLoop]);
  channelCount = reader.extent(extents[channelLoop]);
  if (isPlain)
    address = reader.address(op, number);
  if (isInFours && !isSureAligned) {
    Value bits = LLVM::PtrToIntOp::create(b, b.getI64Type(), address);
    Value rest = b.both(bits, b.integer(b.getI64Type(), 15));
    isAligned = b.compare(arith::CmpIPredicate::eq, rest, b.integer(b.getI64Type(), 0));
  }
}

int64_t HeadTile::turns(int64_t unitWidth) const {
  return llvm::divideCeil(shape.lines * shape.width / unitWidth, threads);
}

/// Neighbours in memory go to neighbours among the threads.
HeadTile::Unit HeadTile::unitOf(int64_t unitWidth, Value turn, int64_t together) {
  const int64_t inner = isAlongChannels ? shape.width / unitWidth : shape.lines;
  const int64_t count = shape.lines * shape.width / unitWidth;
  Value index = b.add(thread, b.mul(turn, b.integer(threads)));
  Value fast = b.rem(index, b.integer(inner)), slow = b.div(index, b.integer(inner));
  Unit unit;
  unit.line = isAlongChannels ? slow : fast;
  unit.channel = b.mul(isAlongChannels ? fast : slow, b.integer(unitWidth));
  unit.place = b.add(b.mul(unit.line, b.integer(shape.pitch)), unit.channel);
  if (count % (threads * together) != 0)
    unit.isOfTile = b.isBelow(index, b.integer(count));
  return unit;
}

Values HeadTile::at(const Unit &unit, Value line) const {
  Values result = loops;
  result[lineLoop] = line;
  result[channelLoop] = unit.channel;
  return result;
}

Value HeadTile::isInside(const Unit &unit, Value line) {
  Value inside = b.both(b.isBelow(line, lineCount), b.isBelow(unit.channel, channelCount));
  return unit.isOfTile ? b.both(inside, unit.isOfTile) : inside;
}

void HeadTile::ifOfTile(const Unit &unit, function_ref<void()> body) {
  if (unit.isOfTile)
    b.ifThen(unit.isOfTile, body);
  else
    body();
}

void HeadTile::copy(const Unit &unit, int64_t unitWidth, Value first, Value to) {
  Value line = b.add(first, unit.line), inside = isInside(unit, line);
  Value offset = reader.offset(op, number, at(unit, line));
  Value from = tile::advance(b, address, b.select(inside, offset, b.integer(offset.getType(), 0)));
  ifOfTile(unit, [&] { tile::copyAsync(b, tile::advance(b, to, unit.place), from, unitWidth, inside); });
}

/// Four at a time in line; one by one in a loop, which keeps no registers.
void HeadTile::copyUnits(int64_t unitWidth, Value first, Value to) {
  if (unitWidth == 4) {
    for (int64_t turn = 0; turn < turns(4); ++turn)
      copy(unitOf(4, b.integer(turn)), 4, first, to);
    return;
  }
  b.loop(b.integer(turns(1)), {}, [&](Value turn, ValueRange) {
    copy(unitOf(1, turn), 1, first, to);
    return Values();
  });
}

void HeadTile::readAll(Value first, Value to) {
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  b.loop(b.integer(llvm::divideCeil(turns(1), readTogether)), {}, [&](Value turn, ValueRange) {
    SmallVector<Unit> units;
    Values elements;
    for (int64_t i = 0; i < readTogether; ++i) {
      units.push_back(unitOf(1, b.add(b.mul(turn, b.integer(readTogether)), b.integer(i)), readTogether));
      const Unit &unit = units.back();
      Value line = b.add(first, unit.line);
      auto read = [&] {
        Value element = reader.operand(op, number, at(unit, line));
        broken |= !element;
        if (element && !element.getType().isF32())
          element = b.createOrFold<arith::ExtFOp>(b.getF32Type(), element);
        return element ? element : zero;
      };
      elements.push_back(b.ifElse(isInside(unit, line), b.getF32Type(), read, [&] { return zero; }));
    }
    for (auto [unit, element] : llvm::zip_equal(units, elements))
      ifOfTile(unit,
               [&, element = element, place = unit.place] { tile::storeOne(b, element, tile::advance(b, to, place)); });
    return Values();
  });
}

void HeadTile::fetch(Value first, Value to) {
  if (!isPlain) {
    readAll(first, to);
    return;
  }
  if (!isInFours || !isAligned) {
    copyUnits(isInFours ? 4 : 1, first, to);
    return;
  }
  auto copyBy = [&](int64_t unitWidth) {
    copyUnits(unitWidth, first, to);
    return Values();
  };
  b.ifElse(isAligned, TypeRange(), [&] { return copyBy(4); }, [&] { return copyBy(1); });
}

} // namespace kiln::cuda
