// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/InputTile.h"

#include "targets/cuda/tile/Shared.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

InputTile::InputTile(tile::Builder &b, Reader &reader, const StepContext &context, const Contraction &contraction,
                     bool isA, const TileShape &shape)
    : b(b), reader(reader), contraction(contraction), input(context, contraction, isA), rows(isA ? shape.bm : shape.bn),
      depth(shape.bk), threads(shape.threads()) {}

/// Neighbours in memory go to neighbours among the threads.
InputTile::Unit InputTile::unitOf(int64_t width, Value turn) {
  const int64_t count = rows * depth / width, line = (input.isAlongDepth ? depth : rows) / width;
  Value number = b.add(thread, b.mul(turn, b.integer(threads)));
  Value inner = b.mul(b.rem(number, b.integer(line)), b.integer(width)), outer = b.div(number, b.integer(line));
  Unit unit;
  unit.place = b.add(b.mul(outer, b.integer(pitch())), inner);
  unit.depth = input.isAlongDepth ? inner : outer;
  Value row = b.add(first, input.isAlongDepth ? outer : inner);
  unit.isThere = b.isBelow(row, rowCount);
  if (count % threads != 0) {
    unit.isOfTile = b.isBelow(number, b.integer(count));
    unit.isThere = b.both(unit.isThere, unit.isOfTile);
  }
  unit.loops = loops;
  splitIndex(b, reader, contraction, input.rows, row, unit.loops);
  return unit;
}

void InputTile::begin(Value ofThread, Value firstRow, const Values &ofBatch) {
  thread = ofThread, first = firstRow, loops = ofBatch;
  rowCount = reader.extent(extentOf(contraction, input.rows));
  depthCount = reader.extent(extentOf(contraction, contraction.depth));
  if (input.isPlain)
    address = reader.address(contraction.op, input.number);
  width = input.isInFours ? 4 : 1;
  for (int64_t turn = 0; turn < turns(width); ++turn)
    units.push_back(unitOf(width, b.integer(turn)));
  if (input.isInFours && !input.isSureAligned) {
    Value bits = LLVM::PtrToIntOp::create(b, b.getI64Type(), address);
    Value rest = b.both(bits, b.integer(b.getI64Type(), 15));
    isAligned = b.compare(arith::CmpIPredicate::eq, rest, b.integer(b.getI64Type(), 0));
  }
}

/// Four neighbours are inside together: extents are multiples of four then.
Value InputTile::isInside(const Unit &unit, Value depth) { return b.both(unit.isThere, b.isBelow(depth, depthCount)); }

void InputTile::copy(const Unit &unit, int64_t width, Value start, Value stage) {
  Value depth = b.add(start, unit.depth);
  Values at = unit.loops;
  splitIndex(b, reader, contraction, contraction.depth, depth, at);
  Value offset = reader.offset(contraction.op, input.number, at);
  Value inside = isInside(unit, depth);
  Value from = tile::advance(b, address, b.select(inside, offset, b.integer(offset.getType(), 0)));
  auto copy = [&] { tile::copyAsync(b, tile::advance(b, stage, unit.place), from, width, inside); };
  if (unit.isOfTile)
    b.ifThen(unit.isOfTile, copy);
  else
    copy();
}

/// Copies what is in fours one by one where the address is none of theirs. That is a loop, which keeps no registers.
void InputTile::copyAll(Value start, Value stage) {
  auto copyUnits = [&] {
    for (const Unit &unit : units)
      copy(unit, width, start, stage);
    return Values();
  };
  auto copyOnes = [&] {
    b.loop(b.integer(turns(1)), {}, [&](Value turn, ValueRange) {
      copy(unitOf(1, turn), 1, start, stage);
      return Values();
    });
    return Values();
  };
  if (isAligned)
    b.ifElse(isAligned, TypeRange(), copyUnits, copyOnes);
  else
    copyUnits();
}

Values InputTile::fetch(Value start, Value stage) {
  Values values;
  if (isAsync()) {
    copyAll(start, stage);
    return values;
  }
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  for (const Unit &unit : units) {
    Value depth = b.add(start, unit.depth);
    Values at = unit.loops;
    auto read = [&] {
      splitIndex(b, reader, contraction, contraction.depth, depth, at);
      Value element = readInput(b, reader, contraction, input.number, at);
      broken |= !element;
      return element ? element : zero;
    };
    values.push_back(b.ifElse(isInside(unit, depth), b.getF32Type(), read, [&] { return zero; }));
  }
  return values;
}

void InputTile::put(const Values &values, Value stage) {
  if (isAsync())
    return;
  for (auto [unit, value] : llvm::zip_equal(units, values)) {
    auto store = [&, value = value, place = unit.place] { tile::storeOne(b, value, tile::advance(b, stage, place)); };
    if (unit.isOfTile)
      b.ifThen(unit.isOfTile, store);
    else
      store();
  }
}

} // namespace kiln::cuda
