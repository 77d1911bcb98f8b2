// SPDX-License-Identifier: Apache-2.0
//
// How translated code reads tensors: from tiled layouts, at clamped indices, and from quantised storage formats.
#include "targets/halide/translate/Translator.h"

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/StoredParts.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "targets/halide/Structure.h"

namespace kiln::halide {

using namespace mlir;
using Halide::Expr;

Expr Translator::read(Value tensor, const Exprs &indices) { return readStored(tensor, indices, /*isScaled=*/true); }

/// Returns the tiled layout of an argument; null if it is dense.
static mlir::kiln::TiledAttr layoutOf(Value tensor) {
  return dyn_cast_if_present<mlir::kiln::TiledAttr>(cast<RankedTensorType>(tensor.getType()).getEncoding());
}

Expr Translator::widen(Type type, const Expr &bits) {
  usesVectorFunctions |= type.isF16() && vectorFunctions.hasF16;
  return halide::widen(type, bits, vectorFunctions);
}

Expr Translator::narrow(Type type, const Expr &number) {
  usesVectorFunctions |= type.isF16() && vectorFunctions.hasF16;
  return halide::narrow(type, number, vectorFunctions);
}

/// Returns the element k along K of a word of eight i4 or u4 (u32) as a float. Without a table in a register (AVX-512),
/// its four bits, of an i4 plus 8, become mantissa bits of a float that is so large that they count integers, which
/// needs neither a shift per element nor a conversion.
Expr Translator::floatOfWord(const Expr &word, const Expr &k, bool isSigned) {
  auto bits = [](const Expr &e) { return Halide::cast<uint32_t>(e); };
  usesVectorFunctions |= vectorFunctions.hasAvx512;
  if (vectorFunctions.hasAvx512)
    return (isSigned ? floatOfI4 : floatOfU4)(word >> bits(KILN_FORMAT_BIT(k)));
  Expr half = (isSigned ? word ^ bits(Expr(0x88888888u)) : word) >> bits(k / 2 % 2 * 16),
       bit = bits(k % 2 * 8 + k / 4 % 2 * 4);
  Expr exponent = (bits(127 + 23) - bit) << 23;
  Expr large = Halide::reinterpret<float>((half & (bits(15) << bit)) | exponent);
  return Halide::strict_float(large - (Halide::reinterpret<float>(exponent) + (isSigned ? 8 : 0)));
}

/// Returns an i6 as a float: its low four bits are those of a word of eight, the others are in the third word of
/// sixteen numbers, and 32 is added to it.
Expr Translator::floatOfSixBits(const Source &source, const Place &place) {
  auto bits = [](const Expr &e) { return Halide::cast<uint32_t>(e); };
  const int numbers = KILN_SIX_ELEMENTS, half = KILN_WORD_ELEMENTS;
  Expr k = place.kIndex, words = k / numbers * 3;
  Expr low = source.func(place.inTile, words + k % numbers / half, place.tile) >> bits(KILN_FORMAT_BIT(k)) & 15,
       high = source.func(place.inTile, words + 2, place.tile) >> bits(KILN_FORMAT_HIGH_BIT(k)) & 3;
  return Halide::cast<float>(Halide::cast<int32_t>(low | high << 4) - 32);
}

/// Returns a small float of `width` bits (u16), of which `fraction` are its fraction, divided by 2 to the power of
/// biasOf(storage): an f16 with the same exponent bits and fraction, whose bias is larger. Processors with f16 convert
/// it, also subnormal numbers, whatever the caller's modes are.
Expr Translator::widenSmallFloat(const Expr &bits, int width, int fraction) {
  const int sign = 1 << (width - 1);
  Expr half =
      ((bits & uint16_t(sign)) << uint16_t(16 - width)) | ((bits & uint16_t(sign - 1)) << uint16_t(10 - fraction));
  return widenHalf(half);
}

Expr Translator::widenHalf(const Expr &bits) { return widen(mlir::Float16Type::get(kernel.getContext()), bits); }

/// By how much the bias of f16 is larger than that of e4m3 and e2m1.
constexpr int e4m3Bias = 8, e2m1Bias = 14;

/// Returns by how much the bias of f16 is larger than that of the numbers. Scales are multiplied by 2 to this power,
/// which is exact.
static int biasOf(mlir::kiln::StorageAttr storage) {
  return mlir::kiln::getFormat(storage).element == KILN_ROW_F4E2M1 ? e2m1Bias : e4m3Bias;
}

static bool isSmallFloat(mlir::kiln::StorageAttr storage) {
  return isa<FloatType>(storage.getElement()) && !mlir::kiln::isHalfFloat(storage.getElement());
}

/// Returns the outer scale of a number.
Expr Translator::outerAt(const Source &source, mlir::kiln::StorageAttr storage, const Place &place) {
  const Format &format = mlir::kiln::getFormat(storage);
  if (!format.block)
    return source.thirds(place.inTile, place.tile);
  Expr outer = source.thirds(place.inTile, place.kIndex / int(format.block), place.tile);
  return widenHalf(format.has_minimums ? Halide::cast<uint16_t>(outer & 0xFFFFu) : outer);
}

Expr Translator::scaleAt(const Source &source, mlir::kiln::StorageAttr storage, const Place &place) {
  const Format &format = mlir::kiln::getFormat(storage);
  if (!storage.isGrouped()) {
    Expr scale = source.scales(place.inTile, place.tile);
    return isSmallFloat(storage) ? scale * float(1 << biasOf(storage)) : scale;
  }
  Expr scale = source.scales(place.inTile, place.kIndex / int(storage.getGroup()), place.tile);
  switch (format.scale) {
  case KILN_ROW_F32:
    return scale * float(1 << biasOf(storage));
  case KILN_ROW_F16:
    return widenHalf(scale);
  case KILN_ROW_F8E8M0: { // the exponent of a power of two, as in an f32
    Expr bits = Halide::cast<uint32_t>(Halide::reinterpret<uint8_t>(scale));
    return Halide::reinterpret<float>((bits + biasOf(storage)) << 23);
  }
  case KILN_ROW_F8E4M3: {
    Expr small = widenSmallFloat(Halide::cast<uint16_t>(Halide::reinterpret<uint8_t>(scale)), 8, 3);
    return small * (outerAt(source, storage, place) * float(1 << (biasOf(storage) + e4m3Bias)));
  }
  default: // an integer; with a minimum in the high half of the item
    return Halide::cast<float>(format.has_minimums ? scale & 0xFF : scale) * outerAt(source, storage, place);
  }
}

/// Returns `number` times its scale, less the product of its minimum and the outer one, rounded once: both products are
/// exact, so that a fused multiply-add has the same bits.
Expr Translator::minusMinimum(const Source &source, mlir::kiln::StorageAttr storage, const Place &place,
                              const Expr &number) {
  Expr pair = source.scales(place.inTile, place.kIndex / int(storage.getGroup()), place.tile);
  Expr outers = source.thirds(place.inTile, place.kIndex / int(mlir::kiln::getFormat(storage).block), place.tile);
  Expr minimum = Halide::cast<float>(pair >> 8 & 0xFF) * widenHalf(Halide::cast<uint16_t>(outers >> 16u));
  Expr scale = scaleAt(source, storage, place);
  if (!vectorFunctions.hasFma)
    return Halide::strict_float(number * scale - minimum);
  usesVectorFunctions = true;
  return fusedMultiplyAdd(number, scale, -minimum);
}

/// Returns an element of a tiled weight without its scale. A small float is divided by 2 to the power of biasOf().
Expr Translator::readNumber(const Source &source, mlir::kiln::StorageAttr storage, const Place &place) {
  const Format &format = mlir::kiln::getFormat(storage);
  if (format.element == KILN_ROW_I6)
    return floatOfSixBits(source, place);
  if (format.bits < 8) {
    Expr word = source.func(place.inTile, place.kIndex / int(mlir::kiln::elementsOfWord), place.tile);
    if (!isSmallFloat(storage))
      return floatOfWord(word, place.kIndex, format.element == KILN_ROW_I4);
    return widenSmallFloat(Halide::cast<uint16_t>(word >> Halide::cast<uint32_t>(KILN_FORMAT_BIT(place.kIndex)) & 15),
                           4, 1);
  }
  Expr value = source.func(place.inTile, place.kIndex, place.tile);
  if (mlir::kiln::isHalfFloat(storage.getElement()))
    return widen(storage.getElement(), value);
  return isSmallFloat(storage) ? widenSmallFloat(Halide::cast<uint16_t>(Halide::reinterpret<uint8_t>(value)), 8, 3)
                               : Halide::cast<float>(value);
}

Expr Translator::readTiled(const Source &source, mlir::kiln::TiledAttr layout, const Place &place, bool isScaled) {
  mlir::kiln::StorageAttr storage = layout.getStorage();
  if (!storage)
    return source.func(place.inTile, place.kIndex, place.tile);
  const Format &format = mlir::kiln::getFormat(storage);
  Expr value;
  if (layout.isVnni()) {
    const int word = int(layout.getInterleave());
    Expr bits = source.func(place.inTile, place.kIndex / word, place.tile);
    Expr shift = Halide::cast(bits.type(), place.kIndex % word * 8);
    value = Halide::cast<float>(Halide::cast<int8_t>(bits >> shift));
  } else {
    value = readNumber(source, storage, place);
  }
  if (format.has_minimums)
    return minusMinimum(source, storage, place, value);
  if (format.has_zeros)
    value -= Halide::cast<float>(source.thirds(place.inTile, place.kIndex / int(storage.getGroup()), place.tile));
  return isScaled && source.scales.defined() ? value * scaleAt(source, storage, place) : value;
}

Expr Translator::readStored(Value tensor, const Exprs &logical, bool isScaled) {
  const Source &source = sources[tensor];
  mlir::kiln::TiledAttr layout = source.isArgument ? layoutOf(tensor) : mlir::kiln::TiledAttr();
  Expr value;
  if (layout) {
    auto type = cast<RankedTensorType>(tensor.getType());
    int size = layout.getSize();
    Expr along = logical[layout.getDim()], others;
    for (unsigned i = 0; i < logical.size(); ++i)
      if (int64_t(i) != layout.getDim())
        others = others.defined() ? others * int(type.getDimSize(i)) + logical[i] : logical[i];
    value = readTiled(source, layout, {along % size, others, along / size}, isScaled);
  } else {
    const Exprs stored = reversed(logical);
    value = source.element >= 0 ? Expr(source.func(stored)[source.element]) : Expr(source.func(stored));
  }
  return source.isBoolean ? value != Halide::Internal::make_zero(value.type()) : value;
}

int64_t Translator::groupOf(linalg::GenericOp op, unsigned number) const {
  mlir::kiln::StorageAttr storage = mlir::kiln::getStorage(cast<RankedTensorType>(op->getOperand(number).getType()));
  return storage ? storage.getGroup() : 0;
}

Expr Translator::scaleOf(linalg::GenericOp op, unsigned number, const Exprs &loops) {
  Value tensor = op->getOperand(number);
  const Source &source = sources[tensor];
  mlir::kiln::TiledAttr layout = layoutOf(tensor);
  if (!source.scales.defined() || mlir::kiln::getFormat(layout.getStorage()).has_minimums)
    return Expr();
  AffineMap map = op.getMatchingIndexingMap(&op->getOpOperand(number));
  const int size = layout.getSize();
  Expr along = affine(map.getResult(layout.getDim()), loops, {}), kIndex;
  if (layout.getStorage().isGrouped()) {
    assert(map.getNumResults() == 2 && "strategies that know groups know matrices");
    kIndex = affine(map.getResult(1 - layout.getDim()), loops, {});
  }
  return scaleAt(source, layout.getStorage(), {along % size, kIndex, along / size});
}

Expr Translator::interleavedRow(const Contraction &contraction, const Exprs &loops) {
  const int word = int(rowInterleave(contraction)), kIndex = int(staticK(contraction));
  Expr bits;
  for (int i = 0; i < word; ++i) {
    Exprs at = loops;
    Expr &k = at[contraction.reduction[0]];
    k = k * word + i;
    if (kIndex % word) // the weight is padded with zeros
      k = heldBelow(Halide::likely(k), kIndex);
    Expr number = readOperand(contraction.op, contraction.a, at);
    Expr byte = Halide::reinterpret<uint8_t>(number);
    Expr part = word == 2 ? Halide::reinterpret<uint32_t>(Halide::cast<int32_t>(number))
                          : Halide::cast<uint32_t>(
                                contraction.group || vectorFunctions.hasSignedBytes() ? byte : byte ^ uint8_t(128));
    if (word == 2 && i == 0)
      part = part & 0xFFFFu;
    part = i == 0 ? part : part << uint32_t(i * 32 / word);
    bits = bits.defined() ? bits | part : part;
  }
  return Halide::reinterpret<int32_t>(bits);
}

Expr Translator::interleavedWeight(const Contraction &contraction, const Exprs &loops) {
  const Source &source = sources[contraction.op->getOperand(contraction.b)];
  Expr n = loops[contraction.n];
  const int tile = int(contraction.tile);
  return source.func(n % tile, loops[contraction.reduction[0]], n / tile);
}

Expr Translator::addProducts(const Contraction &contraction, const Expr &sum, const Exprs &rows, const Expr &weight) {
  usesVectorFunctions = true;
  if (contraction.group)
    return addNibbles(sum, rows[0], rows[1], weight, vectorFunctions);
  return contraction.interleave == 2 ? addPairs(sum, rows[0], weight) : addBytes(sum, rows[0], weight);
}

Expr Translator::scaledGroup(const Contraction &contraction, const Expr &sum, const Expr &rowSum, const Exprs &loops) {
  const Source &weight = sources[contraction.op->getOperand(contraction.b)];
  Expr n = loops[contraction.n], zero = 8;
  const int tile = int(contraction.tile), group = int(contraction.group);
  if (weight.thirds.defined())
    zero += Halide::cast<int32_t>(weight.thirds(n % tile, loops[contraction.reduction[0]] / group, n / tile));
  return Halide::strict_float(Halide::cast<float>(sum - zero * rowSum) * scaleOf(contraction.op, contraction.b, loops));
}

Expr Translator::scaledSum(const Contraction &contraction, Expr sum, const Exprs &loops) {
  Expr scale = scaleOf(contraction.op, contraction.b, loops);
  if (!contraction.isVnni())
    return scale.defined() ? sum * scale : sum;
  const Source &weight = sources[contraction.op->getOperand(contraction.b)];
  Expr n = loops[contraction.n];
  const int tile = int(contraction.tile);
  if (weight.thirds.defined() && !vectorFunctions.hasSignedBytes()) // subtract the offsets, which wrap like the sum
    sum = Halide::reinterpret<int32_t>(Halide::reinterpret<uint32_t>(sum) - weight.thirds(n % tile, n / tile));
  return Halide::strict_float(Halide::cast<float>(sum) * scale);
}

/// Returns a value about which Halide's bounds inference and simplifier know nothing.
static Expr opaque(const Expr &index) { return Halide::reinterpret<int32_t>(Halide::reinterpret<uint32_t>(index)); }

/// Hides the bounds of an index. Halide's flattening of ramps divides by zero if it can prove that all lanes of a
/// vector read one element, as clamped lanes do; it does not change indices without bounds.
static Expr hideBounds(const Expr &index, const Expr &extent) {
  return Halide::unsafe_promise_clamped(opaque(index), 0, extent - 1);
}

/// Halide splits the loop over a clamped ramp in three. If the second part has at most one iteration, it takes `if (a)
/// x; if (b) y else z` for `if (a) x else if (b) y else z`. Long rows have more iterations.
static Expr hideRamp(const Expr &index) {
  if (auto *max = index.as<Halide::Internal::Max>())
    return Halide::max(hideRamp(max->a), max->b);
  if (auto *min = index.as<Halide::Internal::Min>())
    return Halide::min(hideRamp(min->a), min->b);
  return opaque(index);
}

Expr heldBelow(const Expr &index, const Expr &extent) {
  bool canHoldVectors = !Halide::Internal::is_const(extent) && Halide::Internal::modulus_remainder(extent).modulus > 1;
  return Halide::min(index, canHoldVectors ? hideBounds(extent - 1, extent) : extent - 1);
}

Expr Translator::translateExtract(tensor::ExtractOp op, Exprs indices) {
  Value tensor = op.getTensor();
  if (!sources.count(tensor))
    return Expr();
  for (auto [i, index] : llvm::enumerate(indices))
    index = Halide::clamp(index, 0, extent(tensor, i) - 1);
  if (indices.empty() || op.getIndices().back().getDefiningOp<linalg::IndexOp>())
    return read(tensor, indices);
  const int64_t shortRow = 32;
  Expr &last = indices.back();
  if (sources[tensor].isArgument)
    last = hideBounds(hideRamp(last), extent(tensor, indices.size() - 1));
  else if (largestValue(mlir::kiln::getExtents(cast<RankedTensorType>(tensor.getType())).back(), kernel) < shortRow)
    last = hideRamp(last);
  return read(tensor, indices);
}

Exprs Translator::operandIndices(linalg::GenericOp op, unsigned number, const Exprs &loops) {
  Exprs indices;
  for (AffineExpr expr : op.getMatchingIndexingMap(&op->getOpOperand(number)).getResults())
    indices.push_back(affine(expr, loops, {}));
  return indices;
}

Expr Translator::readOperand(linalg::GenericOp op, unsigned number, const Exprs &loops) {
  Value tensor = op->getOperand(number);
  Exprs indices = operandIndices(op, number, loops);
  auto found = padded.find(op);
  if (found != padded.end() && sources[tensor].isArgument) {
    AffineMap map = op.getMatchingIndexingMap(&op->getOpOperand(number));
    for (unsigned i = 0; i < indices.size(); ++i)
      if (llvm::any_of(found->second, [&](unsigned loop) { return map.getResult(i).isFunctionOfDim(loop); }))
        indices[i] = heldBelow(Halide::likely(indices[i]), extent(tensor, i));
  }
  return readStored(tensor, indices, /*isScaled=*/!unscaled.contains({op, number}));
}

Expr Translator::readWide(linalg::GenericOp op, unsigned number, const Exprs &loops) {
  return wide(op->getOperand(number), readOperand(op, number, loops));
}

Expr Translator::wide(Value tensor, const Expr &element) {
  Type type = getElementTypeOrSelf(tensor);
  return mlir::kiln::isHalfFloat(type) && !element.type().is_float() ? widen(type, element) : element;
}

} // namespace kiln::halide
