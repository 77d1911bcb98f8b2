// SPDX-License-Identifier: Apache-2.0
#include "StoredTensor.h"

#include "compiler/dialect/StoredParts.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

namespace kiln::testing {

using namespace mlir;

namespace {

/// Returns a weight in a #kiln.tiled layout: dimension `dim` in tiles, the others one after another.
Tensor tile(const Tensor &weight, mlir::kiln::TiledAttr layout) {
  int64_t size = layout.getSize(), dim = layout.getDim(), along = weight.shape[dim], inner = 1;
  int64_t other = static_cast<int64_t>(weight.values.size()) / along;
  for (size_t d = dim + 1; d < weight.shape.size(); ++d)
    inner *= weight.shape[d];
  Tensor stored = Tensor::zeros({(along + size - 1) / size, other, size});
  for (int64_t n = 0; n < along; ++n)
    for (int64_t k = 0; k < other; ++k)
      stored.at({n / size, k, n % size}) = weight.values[(k / inner * along + n) * inner + k % inner];
  return stored;
}

/// Returns the e2m1 with this value.
uint32_t f4Code(double value) {
  const double values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  const auto *found = std::find(std::begin(values), std::end(values), std::abs(value));
  EXPECT_NE(found, std::end(values)) << "no e2m1: " << value;
  return (found - values) | (value < 0 ? 8 : 0);
}

/// Returns the e4m3 with this value as an i8.
double f8Code(double value) {
  for (int code = 0; code < 0x7F; ++code) {
    const int exponent = code >> 3, fraction = code & 7;
    const double size = std::ldexp(exponent ? 8 + fraction : fraction, std::max(exponent, 1) - 10);
    if (size == std::abs(value))
      return value < 0 ? code - 128 : code;
  }
  ADD_FAILURE() << "no e4m3: " << value;
  return 0;
}

/// Returns the parts of 4-bit group-quantised tiles: packed words, scales and zero points. The zero point is as far
/// from -8 as the smallest number is from 0; without zero points, -8 represents the largest magnitude.
std::vector<std::pair<Type, Tensor>> groupedParts(const Tensor &stored, RankedTensorType type) {
  const auto parts = mlir::kiln::getStoredParts(type);
  const mlir::kiln::StorageAttr storage = mlir::kiln::getStorage(type);
  std::vector<std::pair<Type, Tensor>> result;
  for (const mlir::kiln::StoredPart &part : parts)
    result.emplace_back(part.type.getElementType(), Tensor::zeros(part.type.getShape().vec()));
  Tensor &words = result[0].second, &scales = result[1].second;
  const bool isOfFloats = mlir::kiln::getFormat(storage).element == KILN_ROW_F4E2M1;
  for (int64_t t = 0; t < stored.shape[0]; ++t)
    for (int64_t n = 0; n < stored.shape[2]; ++n)
      for (int64_t g = 0; g < scales.shape[1]; ++g) {
        double least = 0, largest = 0, most = 0;
        const int64_t first = g * storage.getGroup();
        for (int64_t k = first; k < first + storage.getGroup(); ++k) {
          const double value = stored.at({t, k, n});
          least = std::min(least, value);
          largest = std::max(largest, value);
          most = std::abs(value) > std::abs(most) ? value : most;
        }
        double &scale = scales.at({t, g, n}), zero = 0;
        if (isOfFloats) { // an e8m0
          const int exponent = most == 0 ? -127 : std::ilogb(most) - 2;
          scale = static_cast<int8_t>(exponent + 127);
          for (int64_t k = first; k < first + storage.getGroup(); ++k) {
            double &word = words.at({t, k / mlir::kiln::elementsOfWord, n});
            const uint32_t code = f4Code(std::ldexp(stored.at({t, k, n}), -exponent));
            word = int32_t(uint32_t(int64_t(word)) | code << KILN_FORMAT_BIT(k));
          }
          continue;
        }
        scale = storage.getZero() ? (largest - least) / 15 : most / -8;
        if (storage.getZero() && scale != 0)
          result[2].second.at({t, g, n}) = zero = -least / scale - 8;
        for (int64_t k = first; k < first + storage.getGroup() && scale != 0; ++k) {
          const auto element = uint32_t(int32_t(stored.at({t, k, n}) / scale + zero)) & 15;
          double &word = words.at({t, k / mlir::kiln::elementsOfWord, n});
          word = int32_t(uint32_t(int64_t(word)) | element << KILN_FORMAT_BIT(k));
        }
      }
  return result;
}

/// The parts of a weight whose format has bytes in groups, or outer scales, in one output: numbers that the
/// quantisation of dsl/SPEC.md does not change.
class BlockOutput {
public:
  BlockOutput(const Tensor &stored, int64_t tile, int64_t n, mlir::kiln::StorageAttr storage,
              std::vector<std::pair<Type, Tensor>> &parts)
      : stored(stored), tile(tile), n(n), group(storage.getGroup()), format(mlir::kiln::getFormat(storage)),
        parts(parts) {}

  void encode() {
    if (format.element == KILN_ROW_U4)
      encodeQ4K();
    else if (format.element == KILN_ROW_I6)
      encodeQ6K();
    else if (format.element == KILN_ROW_F4E2M1)
      encodeNvfp4();
    else
      encodeBytes();
  }

private:
  double value(int64_t k) const { return stored.at({tile, k, n}); }
  double &item(size_t part, int64_t index) { return parts[part].second.at({tile, index, n}); }
  void addBits(int64_t index, uint32_t bits) {
    double &word = item(0, index);
    word = int32_t(uint32_t(int64_t(word)) | bits);
  }
  double most(int64_t first, int64_t count) const {
    double found = 0;
    for (int64_t k = first; k < first + count; ++k)
      found = std::abs(value(k)) > std::abs(found) ? value(k) : found;
    return found;
  }
  int64_t depth() const { return stored.shape[1]; }

  void encodeBytes() {
    for (int64_t first = 0; first < depth(); first += group) {
      const double scale = std::abs(most(first, group)) / format.divisor;
      item(1, first / group) = scale;
      for (int64_t k = first; k < first + group; ++k) {
        const double quotient = scale > 0 ? value(k) / scale : 0;
        item(0, k) = format.element == KILN_ROW_F8E4M3 ? f8Code(quotient) : quotient;
      }
    }
  }

  void encodeNvfp4() {
    const double outer = std::abs(most(0, depth())) / (6 * 448);
    parts[2].second.at({tile, n}) = outer;
    for (int64_t first = 0; first < depth(); first += group) {
      const double units = outer > 0 ? std::abs(most(first, group)) / 6 / outer : 0;
      item(1, first / group) = f8Code(units);
      for (int64_t k = first; k < first + group; ++k)
        addBits(k / 8, f4Code(units > 0 ? value(k) / (units * outer) : 0) << KILN_FORMAT_BIT(k));
    }
  }

  /// Returns the step and the offset of a group of q4_k.
  std::pair<double, double> rangeOf(int64_t first) const {
    double least = 0, largest = 0;
    for (int64_t k = first; k < first + group; ++k) {
      least = std::min(least, value(k));
      largest = std::max(largest, value(k));
    }
    return {(largest - least) / 15, -least};
  }
  /// Returns the bits of an f16 that is a positive power of two, or 0.
  static uint32_t halfBits(double value) { return value == 0 ? 0 : uint32_t(std::ilogb(value) + 15) << 10; }

  void encodeQ4K() {
    for (int64_t block = 0; block < depth(); block += format.block) {
      double scale = 0, minimum = 0;
      for (int64_t first = block; first < block + format.block; first += group) {
        scale = std::max(scale, rangeOf(first).first / 63);
        minimum = std::max(minimum, rangeOf(first).second / 63);
      }
      item(2, block / format.block) = int32_t(halfBits(scale) | halfBits(minimum) << 16);
      for (int64_t first = block; first < block + format.block; first += group) {
        const auto [step, offset] = rangeOf(first);
        item(1, first / group) = (scale > 0 ? step / scale : 0) + 256 * (minimum > 0 ? offset / minimum : 0);
        for (int64_t k = first; k < first + group; ++k)
          addBits(k / 8, uint32_t(step > 0 ? (value(k) + offset) / step : 0) << KILN_FORMAT_BIT(k));
      }
    }
  }

  void encodeQ6K() {
    for (int64_t block = 0; block < depth(); block += format.block) {
      const double outer = most(block, format.block) / -32 / -128;
      item(2, block / format.block) = outer;
      for (int64_t first = block; first < block + format.block; first += group) {
        const double step = most(first, group) / -32;
        item(1, first / group) = outer != 0 ? step / outer : 0;
        for (int64_t k = first; k < first + group; ++k) {
          const auto bits = uint32_t(int32_t(step != 0 ? value(k) / step : 0) + 32);
          addBits(k / 16 * 3 + k % 16 / 8, (bits & 15) << KILN_FORMAT_BIT(k));
          addBits(k / 16 * 3 + 2, (bits >> 4) << KILN_FORMAT_HIGH_BIT(k));
        }
      }
    }
  }

  const Tensor &stored;
  int64_t tile, n, group;
  const Format &format;
  std::vector<std::pair<Type, Tensor>> &parts;
};

/// Returns the parts of such tiles.
std::vector<std::pair<Type, Tensor>> blockParts(const Tensor &stored, RankedTensorType type) {
  std::vector<std::pair<Type, Tensor>> result;
  for (const mlir::kiln::StoredPart &part : mlir::kiln::getStoredParts(type))
    result.emplace_back(part.type.getElementType(), Tensor::zeros(part.type.getShape().vec()));
  for (int64_t t = 0; t < stored.shape[0]; ++t)
    for (int64_t n = 0; n < stored.shape[2]; ++n)
      BlockOutput(stored, t, n, mlir::kiln::getStorage(type), result).encode();
  return result;
}

/// Returns the parts of int8 tiles in the interleaved (VNNI) layout: words of two or four K steps and, for words of
/// four, the offsets that unsigned activations add to the sums.
std::vector<std::pair<Type, Tensor>> wordParts(const Tensor &numbers, const Tensor &scales, RankedTensorType type) {
  const auto parts = mlir::kiln::getStoredParts(type);
  const int64_t word = parts[0].type.getElementTypeBitWidth() / 8;
  Tensor words = Tensor::zeros(parts[0].type.getShape().vec()), offsets = Tensor::zeros(scales.shape);
  for (int64_t t = 0; t < numbers.shape[0]; ++t)
    for (int64_t k = 0; k < numbers.shape[1]; ++k)
      for (int64_t n = 0; n < numbers.shape[2]; ++n) {
        const int64_t value = int64_t(numbers.at({t, k, n}));
        double &to = words.at({t, k / word, n});
        const uint32_t bits = uint32_t(int64_t(to)) | uint32_t(value & 0xFF) << k % word * 8;
        to = word == 2 ? int16_t(bits) : int32_t(bits);
        offsets.at({t, n}) += 128 * double(value);
      }
  std::vector<std::pair<Type, Tensor>> result{{parts[0].type.getElementType(), words},
                                              {parts[1].type.getElementType(), scales}};
  if (parts.size() > 2)
    result.emplace_back(parts[2].type.getElementType(), offsets);
  return result;
}

} // namespace

std::vector<std::pair<Type, Tensor>> storedParts(const Tensor &tensor, RankedTensorType type) {
  auto layout = dyn_cast_if_present<mlir::kiln::TiledAttr>(type.getEncoding());
  Type element = mlir::kiln::getStoredElement(type);
  if (!layout)
    return {{element, tensor}};
  Tensor stored = tile(tensor, layout);
  if (!layout.getStorage() || !layout.getStorage().hasScales())
    return {{element, stored}};
  if (kiln_format_has_blocks(&mlir::kiln::getFormat(layout.getStorage())))
    return blockParts(stored, type);
  if (layout.getStorage().isGrouped())
    return groupedParts(stored, type);
  const Format &format = mlir::kiln::getFormat(layout.getStorage());
  Tensor scales = Tensor::zeros({stored.shape[0], stored.shape[2]});
  for (int64_t t = 0; t < stored.shape[0]; ++t)
    for (int64_t n = 0; n < stored.shape[2]; ++n) {
      double &scale = scales.at({t, n});
      for (int64_t k = 0; k < stored.shape[1]; ++k)
        scale = std::max(scale, std::abs(stored.at({t, k, n})) / format.divisor);
      for (int64_t k = 0; k < stored.shape[1]; ++k) {
        const double quotient = scale > 0 ? stored.at({t, k, n}) / scale : 0;
        stored.at({t, k, n}) = format.element == KILN_ROW_F8E4M3 ? f8Code(quotient) : std::round(quotient);
      }
    }
  if (layout.isVnni())
    return wordParts(stored, scales, type);
  return {{mlir::kiln::getStoredParts(type)[0].type.getElementType(), stored}, {type.getElementType(), scales}};
}

} // namespace kiln::testing
