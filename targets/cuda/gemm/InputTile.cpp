// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/gemm/InputTile.h"

#include "targets/cuda/tile/Shared.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

bool isCopied(const ContractionInput &input, std::optional<tile::MmaType> mma) {
  return input.isPlain && input.bytes() == (mma ? tile::bytesOf(*mma) : 4) && input.together * input.bytes() >= 4;
}

InputTile::InputTile(tile::Builder &b, ElementEmitter &emitter, const StageContext &context,
                     const Contraction &contraction, bool isA, const TileShape &shape)
    : b(b), emitter(emitter), contraction(contraction), input(context, contraction, isA),
      rows(isA ? shape.bm : shape.bn), kExtent(shape.bk), threads(shape.threads()),
      type(shape.mma ? tile::elementOf(b, *shape.mma) : b.getF32Type()),
      swizzled(shape.mma && (input.isKMajor || bytes() == 2)), isCopied(cuda::isCopied(input, shape.mma)) {
  padding = swizzled ? 0 : shape.mma ? 8 : input.isKMajor ? 4 : 0;
}

/// The swizzle: eight consecutive lines, of which ldmatrix reads the same chunk, have it in eight different places of
/// 128 bytes. Lines of less than 128 bytes share these.
Value InputTile::place(Value line, Value inLine) const {
  Value start = b.mul(line, b.integer(pitch()));
  if (!swizzled)
    return b.add(start, inLine);
  const int64_t ofChunk = 16 / bytes(), chunks = this->line() / ofChunk, places = std::min<int64_t>(chunks, 8);
  Value chunk = b.div(inLine, b.integer(ofChunk)), rest = b.rem(inLine, b.integer(ofChunk));
  Value key = b.rem(b.div(line, b.integer(8 / places)), b.integer(places));
  chunk = b.createOrFold<arith::XOrIOp>(chunk, key);
  return b.add(start, b.add(b.mul(chunk, b.integer(ofChunk)), rest));
}

/// Neighbouring threads take neighbouring elements in memory.
InputTile::Unit InputTile::unitOf(int64_t width, Value iteration) {
  const int64_t count = rows * kExtent / width, ofLine = line() / width;
  Value number = b.add(thread, b.mul(iteration, b.integer(threads)));
  Value inner = b.mul(b.rem(number, b.integer(ofLine)), b.integer(width)), outer = b.div(number, b.integer(ofLine));
  Unit unit;
  unit.place = place(outer, inner);
  unit.k = input.isKMajor ? inner : outer;
  Value row = b.add(first, input.isKMajor ? outer : inner);
  unit.isThere = b.isBelow(row, rowCount);
  if (count % threads != 0) {
    unit.isOfTile = b.isBelow(number, b.integer(count));
    unit.isThere = b.both(unit.isThere, unit.isOfTile);
  }
  unit.loops = loops;
  splitIndex(b, emitter, contraction, input.rows, row, unit.loops);
  return unit;
}

void InputTile::begin(Value ofThread, Value firstRow, Value end, const Values &ofBatch) {
  thread = ofThread, first = firstRow, kEnd = end, loops = ofBatch;
  rowCount = emitter.extent(extentOf(contraction, input.rows));
  width = isCopied ? input.together : 1;
  for (int64_t iteration = 0; iteration < iterations(width); ++iteration)
    units.push_back(unitOf(width, b.integer(iteration)));
  if (!isCopied)
    return;
  address = emitter.address(contraction.op, input.number);
  if (width * bytes() > input.bytes() && !input.isSureAligned)
    isAligned = tile::isMultiple(b, address, width * bytes());
}

/// All elements of a unit are inside together, since extents are multiples of its width.
Value InputTile::isInside(const Unit &unit, Value k) { return b.both(unit.isThere, b.isBelow(k, kEnd)); }

/// Returns an element in the type of shared memory; null after a diagnostic.
Value InputTile::read(const Values &loops) {
  if (type.isF32())
    return readInput(b, emitter, contraction, input.number, loops);
  return emitter.operand(contraction.op, input.number, loops);
}

void InputTile::copy(const Unit &unit, int64_t width, Value start, Value stage) {
  Value k = b.add(start, unit.k);
  Values at = unit.loops;
  splitIndex(b, emitter, contraction, contraction.reduction, k, at);
  Value offset = emitter.offset(contraction.op, input.number, at);
  Value inside = isInside(unit, k);
  Value from = b.addressOf(type, address, b.select(inside, offset, b.integer(offset.getType(), 0)));
  Value to = b.addressOf(type, stage, unit.place);
  auto copy = [&] { tile::copyBytesAsync(b, to, from, width * bytes(), inside); };
  auto move = [&] {
    Value zero = b.integer(b.getI16Type(), 0);
    auto load = [&] { return LLVM::LoadOp::create(b, b.getI16Type(), from); };
    LLVM::StoreOp::create(b, b.ifElse(inside, b.getI16Type(), load, [&] { return zero; }), to);
  };
  const bool isNarrow = width * bytes() < 4; // cp.async copies four bytes at least
  if (unit.isOfTile)
    b.ifThen(unit.isOfTile, [&] { isNarrow ? move() : copy(); });
  else
    isNarrow ? move() : copy();
}

/// Copies elements one by one if the address is not aligned to units, in a loop, which keeps no registers occupied.
void InputTile::copyAll(Value start, Value stage) {
  auto copyUnits = [&] {
    for (const Unit &unit : units)
      copy(unit, width, start, stage);
    return Values();
  };
  auto copyOnes = [&] {
    b.loop(b.integer(iterations(1)), {}, [&](Value iteration, ValueRange) {
      copy(unitOf(1, iteration), 1, start, stage);
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
  Value zero = arith::ConstantOp::create(b, FloatAttr::get(type, 0));
  for (const Unit &unit : units) {
    Value k = b.add(start, unit.k);
    Values at = unit.loops;
    auto element = [&] {
      splitIndex(b, emitter, contraction, contraction.reduction, k, at);
      Value value = read(at);
      broken |= !value;
      return value ? value : zero;
    };
    values.push_back(b.ifElse(isInside(unit, k), type, element, [&] { return zero; }));
  }
  return values;
}

void InputTile::put(const Values &values, Value stage) {
  if (isAsync())
    return;
  for (auto [unit, value] : llvm::zip_equal(units, values)) {
    auto store = [&, value = value, place = unit.place] { b.store(value, stage, place); };
    if (unit.isOfTile)
      b.ifThen(unit.isOfTile, store);
    else
      store();
  }
}

} // namespace kiln::cuda
