// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/attention/HeadTile.h"

#include "compiler/dialect/PartialIndex.h"
#include "targets/cuda/tile/Mma.h"
#include "targets/cuda/tile/Shared.h"
#include "llvm/Support/MathExtras.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

/// Elements that a thread reads before it stores them, if it computes or converts them.
static constexpr int64_t readTogether = 4;

Value LineShape::place(tile::Builder &b, Value line, Value channel) const {
  Value start = b.mul(line, b.integer(pitch));
  if (!isSwizzled)
    return b.add(start, channel);
  Value key = b.mul(b.rem(line, b.integer(8)), b.integer(16 / bytes));
  if (!isInBlocks)
    return b.add(start, b.createOrFold<arith::XOrIOp>(channel, key));
  Value block = b.mul(b.div(channel, b.integer(pitch)), b.integer(lines * pitch));
  return b.add(b.add(block, start), b.createOrFold<arith::XOrIOp>(b.rem(channel, b.integer(pitch)), key));
}

LineShape matrixLines(int64_t lines, int64_t width, int64_t bytes) {
  const int64_t ofChunk = 16 / bytes;
  const bool isSwizzled = width * bytes % 128 == 0;
  return {lines, width, isSwizzled ? width : (width / ofChunk | 1) * ofChunk, bytes, isSwizzled};
}

LineShape blockLines(int64_t lines, int64_t width) { return {lines, width, 64, 2, true, true}; }

/// Rounds four elements of a line at a time. A swizzle only permutes elements within their line.
void roundToTf32(tile::Builder &b, const LineShape &lines, Value at, Value thread, int64_t threads) {
  constexpr int64_t together = 4;
  const int64_t ofLine = lines.width / together, count = lines.lines * ofLine;
  for (int64_t iteration = 0; iteration * threads < count; ++iteration) {
    Value index = b.add(thread, b.integer(iteration * threads));
    Value place = b.add(b.mul(b.div(index, b.integer(ofLine)), b.integer(lines.pitch)),
                        b.mul(b.rem(index, b.integer(ofLine)), b.integer(together)));
    Value address = tile::advance(b, at, place);
    auto round = [&] {
      Values four = tile::loadFour(b, address);
      for (Value &value : four)
        value = b.createOrFold<arith::BitcastOp>(b.getF32Type(), tile::roundToTf32(b, value));
      tile::storeFour(b, four, address);
    };
    if ((iteration + 1) * threads <= count)
      round();
    else
      b.ifThen(b.isBelow(index, b.integer(count)), round);
  }
}

/// Whether the innermost index is the loop plus a multiple of `elements`, and no other index uses the loop.
static bool areInUnits(linalg::GenericOp op, unsigned number, unsigned loop, int64_t elements) {
  const AffineMap map = mlir::kiln::withoutPartial(op.getMatchingIndexingMap(&op->getOpOperand(number)));
  const int64_t extent = cast<RankedTensorType>(op->getOperand(number).getType()).getShape().back();
  auto ofLoop = dyn_cast<AffineConstantExpr>(loopExtents(op)[loop]);
  if (ShapedType::isDynamic(extent) || extent % elements != 0 || !ofLoop || ofLoop.getValue() % elements != 0)
    return false;
  for (AffineExpr index : map.getResults().drop_back())
    if (index.isFunctionOfDim(loop))
      return false;
  AffineExpr dim = getAffineDimExpr(loop, op->getContext());
  AffineExpr rest = simplifyAffineExpr(map.getResults().back() - dim, map.getNumDims(), map.getNumSymbols());
  return !rest.isFunctionOfDim(loop) && rest.isMultipleOf(elements);
}

HeadTile::HeadTile(tile::Builder &b, ElementEmitter &emitter, const Placement &placement, linalg::GenericOp op,
                   unsigned number, std::optional<unsigned> lineLoop, unsigned channelLoop, Type element,
                   const LineShape &shape)
    : b(b), emitter(emitter), op(op), number(number), channelLoop(channelLoop), lineLoop(lineLoop), element(element),
      shape(shape), unitElements(16 / shape.bytes) {
  Type stored = getElementTypeOrSelf(op->getOperand(number));
  AffineMap map = op.getMatchingIndexingMap(&op->getOpOperand(number));
  std::optional<Parameter> place = placement.find(op->getOperand(number));
  const bool hasInner = map.getNumResults() > 0;
  isPlain = place && stored.getIntOrFloatBitWidth() == 8 * shape.bytes;
  // If there may be no line, there may be nothing to read in place of lines beyond the end.
  isWidened = place && element.isF32() && (stored.isF16() || stored.isBF16()) && lineLoop &&
              leastValue(loopExtents(op)[*lineLoop], op->getParentOfType<func::FuncOp>()) > 0;
  if (isWidened)
    unitElements = 16 / 2;
  isInUnits = (isPlain || isWidened) && hasInner && areInUnits(op, number, channelLoop, unitElements);
  isSureAligned = place && place->kind == Parameter::Scratch;
  AffineExpr inner = hasInner ? map.getResults().back() : AffineExpr();
  isAlongChannels = !hasInner || inner.isFunctionOfDim(channelLoop) || !lineLoop || !inner.isFunctionOfDim(*lineLoop);
}

void HeadTile::begin(Value ofThreadGroup, int64_t inThreadGroup, const Values &others) {
  begin(ofThreadGroup, inThreadGroup, emitter.extent(loopExtents(op)[*lineLoop]), [this, others](Value line) {
    Values loops = others;
    loops[*lineLoop] = line;
    return loops;
  });
}

void HeadTile::begin(Value ofThreadGroup, int64_t inThreadGroup, Value count, LoopsOfLine ofLine) {
  thread = ofThreadGroup, threads = inThreadGroup, lineCount = count, loopsOfLine = std::move(ofLine);
  channelCount = emitter.extent(loopExtents(op)[channelLoop]);
  if (isPlain || isWidened)
    address = emitter.address(op, number);
  if (isInUnits && !isSureAligned) {
    Value bits = LLVM::PtrToIntOp::create(b, b.getI64Type(), address);
    Value rest = b.both(bits, b.integer(b.getI64Type(), 15));
    isAligned = b.compare(arith::CmpIPredicate::eq, rest, b.integer(b.getI64Type(), 0));
  }
}

int64_t HeadTile::iterations(int64_t unitWidth) const {
  return llvm::divideCeil(shape.lines * shape.width / unitWidth, threads);
}

/// Neighbouring threads take neighbouring elements in memory.
HeadTile::Unit HeadTile::unitOf(int64_t unitWidth, Value iteration, int64_t together) {
  const int64_t inner = isAlongChannels ? shape.width / unitWidth : shape.lines;
  const int64_t count = shape.lines * shape.width / unitWidth;
  Value index = b.add(thread, b.mul(iteration, b.integer(threads)));
  Value fast = b.rem(index, b.integer(inner)), slow = b.div(index, b.integer(inner));
  Unit unit;
  unit.line = isAlongChannels ? slow : fast;
  unit.channel = b.mul(isAlongChannels ? fast : slow, b.integer(unitWidth));
  unit.place = shape.place(b, unit.line, unit.channel);
  if (count % (threads * together) != 0)
    unit.isOfTile = b.isBelow(index, b.integer(count));
  return unit;
}

Values HeadTile::at(const Unit &unit, Value line) const {
  Values result = loopsOfLine(line);
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
  Value offset = emitter.offset(op, number, at(unit, line));
  Value from = addressOf(address, b.select(inside, offset, b.integer(offset.getType(), 0)));
  ifOfTile(unit, [&] { tile::copyBytesAsync(b, addressOf(to, unit.place), from, unitWidth * shape.bytes, inside); });
}

/// Vectors of 16 bytes are unrolled; single elements are copied in a loop, which keeps no registers occupied.
void HeadTile::copyUnits(int64_t unitWidth, Value first, Value to) {
  if (unitWidth > 1) {
    for (int64_t iteration = 0; iteration < iterations(unitWidth); ++iteration)
      copy(unitOf(unitWidth, b.integer(iteration)), unitWidth, first, to);
    return;
  }
  b.loop(b.integer(iterations(1)), {}, [&](Value iteration, ValueRange) {
    copy(unitOf(1, iteration), 1, first, to);
    return Values();
  });
}

void HeadTile::readAll(Value first, Value to) {
  Value zero = arith::ConstantOp::create(b, FloatAttr::get(element, 0));
  b.loop(b.integer(llvm::divideCeil(iterations(1), readTogether)), {}, [&](Value iteration, ValueRange) {
    SmallVector<Unit> units;
    Values values;
    for (int64_t i = 0; i < readTogether; ++i) {
      units.push_back(unitOf(1, b.add(b.mul(iteration, b.integer(readTogether)), b.integer(i)), readTogether));
      const Unit &unit = units.back();
      Value line = b.add(first, unit.line);
      auto read = [&] {
        Value value = emitter.operand(op, number, at(unit, line));
        broken |= !value;
        if (value && value.getType() != element)
          value = b.createOrFold<arith::ExtFOp>(element, value);
        return value ? value : zero;
      };
      values.push_back(b.ifElse(isInside(unit, line), element, read, [&] { return zero; }));
    }
    for (auto [unit, value] : llvm::zip_equal(units, values))
      ifOfTile(unit, [&, value = value, place = unit.place] { LLVM::StoreOp::create(b, value, addressOf(to, place)); });
    return Values();
  });
}

/// Reads 16 bytes at a time; the loads of several iterations are in flight together.
void HeadTile::readUnits(Value first, Value to) {
  constexpr int64_t atOnce = 8;
  Type stored = getElementTypeOrSelf(op->getOperand(number));
  Value zero = arith::ConstantOp::create(b, FloatAttr::get(element, 0));
  for (int64_t iteration = 0; iteration < iterations(unitElements); iteration += atOnce) {
    SmallVector<Unit> units;
    SmallVector<Values> values;
    for (int64_t i = iteration; i < std::min(iteration + atOnce, iterations(unitElements)); ++i) {
      units.push_back(unitOf(unitElements, b.integer(i)));
      Value line = b.add(first, units.back().line), inside = isInside(units.back(), line);
      Value offset = emitter.offset(op, number, at(units.back(), line));
      offset = b.select(inside, offset, b.integer(offset.getType(), 0));
      values.push_back(tile::loadFloats(b, stored, unitElements, b.addressOf(stored, address, offset)));
      for (Value &value : values.back())
        value = b.select(inside, value, zero);
    }
    for (auto [unit, ofUnit] : llvm::zip_equal(units, values))
      ifOfTile(unit, [&, &unit = unit, &ofUnit = ofUnit] {
        for (int64_t i = 0; i < unitElements; i += 4) {
          Value place = shape.place(b, unit.line, b.add(unit.channel, b.integer(i)));
          tile::storeFour(b, ArrayRef(ofUnit).slice(size_t(i), 4), addressOf(to, place));
        }
      });
  }
}

/// Single elements are copied asynchronously if they have four bytes, else they are read.
void HeadTile::fetch(Value first, Value to) {
  auto fetchOnes = [&] {
    isPlain &&shape.bytes == 4 ? copyUnits(1, first, to) : readAll(first, to);
    return Values();
  };
  auto fetchUnits = [&] {
    isWidened ? readUnits(first, to) : copyUnits(unitElements, first, to);
    return Values();
  };
  if (!isInUnits)
    fetchOnes();
  else if (!isAligned)
    fetchUnits();
  else
    b.ifElse(isAligned, TypeRange(), fetchUnits, fetchOnes);
}

} // namespace kiln::cuda
