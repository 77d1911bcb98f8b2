// SPDX-License-Identifier: Apache-2.0
// F32 weights stored in formats with bytes in groups, or with outer scales: every byte is compared with plain code in
// this file, in f64, which follows dsl/SPEC.md. Checkpoints in these formats keep their numbers and scales.
#include "third_party_files.h"
#include "weights/pack.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

namespace {

using namespace kiln_test;

struct BlockFormat {
  const char *Name;
  kiln_dtype_t Type;
  uint32_t Group;
  bool HasOuters;
  int64_t Whole; // numbers along K that cannot be separated
};
constexpr BlockFormat BlockFormats[] = {{"q8_0", KILN_I8, 32, false, 32},
                                        {"fp8_block", KILN_F8E4M3, 128, false, 128},
                                        {"nvfp4", KILN_F4E2M1, 16, true, 16},
                                        {"q4_k", KILN_U4, 32, true, 256},
                                        {"q6_k", KILN_I6, 16, true, 256}};

kiln_placement_t blockPlacement(const BlockFormat &format, int64_t outputs, int64_t kExtent, uint32_t tile,
                                uint32_t dim = 0, uint64_t shift = 0) {
  return makeStoredPlacement(format.Type, outputs, kExtent, tile, dim, shift, format.Group, format.HasOuters);
}

/// The numbers of one output, as their bits; the bytes of its scales and outer scales; and what they represent.
struct EncodedOutput {
  std::vector<uint32_t> Codes;
  std::string Scales, Outers;
  std::vector<float> Values;

  void add(uint32_t code, double value) {
    Codes.push_back(code);
    Values.push_back(static_cast<float>(value));
  }
};

using Line = std::vector<float>;

double largestOf(const Line &line, size_t first, size_t count) {
  double most = 0;
  for (size_t i = first; i < first + count; ++i)
    most = std::max(most, std::fabs(static_cast<double>(line[i])));
  return most;
}

/// Rounds a number to f32.
double f32(double value) { return static_cast<float>(value); }

/// Returns the integer next to value / divisor in f32, within these bounds; 0 if the divisor is 0.
int integerAt(double value, double divisor, int least, int most) {
  if (divisor == 0)
    return 0;
  return static_cast<int>(std::clamp<double>(nearestEven(f32(value / divisor)), least, most));
}

/// Appends the f16 next to a number, and returns its value.
double addHalf(std::string &to, double value) {
  const uint16_t half = rounded(KILN_F16, static_cast<float>(value));
  append(to, half);
  return valueOfHalf(half);
}

void encodeQ8(const Line &line, EncodedOutput &to) {
  for (size_t first = 0; first < line.size(); first += 32) {
    const double scale = addHalf(to.Scales, f32(largestOf(line, first, 32) / 127));
    for (size_t i = first; i < first + 32; ++i) {
      const int q = integerAt(line[i], scale, -127, 127);
      to.add(static_cast<uint8_t>(q), q * scale);
    }
  }
}

double signedF8(uint8_t code) { return code & 0x80 ? -valueOfF8(code & 0x7F) : valueOfF8(code); }

void encodeFp8(const Line &line, EncodedOutput &to) {
  for (size_t first = 0; first < line.size(); first += 128) {
    const auto scale = static_cast<float>(largestOf(line, first, 128) / 448);
    append(to.Scales, scale);
    for (size_t i = first; i < first + 128; ++i) {
      const uint8_t code = nearestF8(scale == 0 ? line[i] : f32(static_cast<double>(line[i]) / scale));
      to.add(code, signedF8(code) * scale);
    }
  }
}

void encodeNvfp4(const Line &line, EncodedOutput &to) {
  const auto outer = static_cast<float>(largestOf(line, 0, line.size()) / (6 * 448));
  append(to.Outers, outer);
  for (size_t first = 0; first < line.size(); first += 16) {
    const double sixth = f32(largestOf(line, first, 16) / 6);
    const uint8_t units = nearestF8(outer == 0 ? 0 : f32(sixth / outer));
    const double scale = f32(valueOfF8(units) * outer);
    to.Scales.push_back(static_cast<char>(units));
    for (size_t i = first; i < first + 16; ++i) {
      const uint32_t code = nearestF4(scale == 0 ? 0 : f32(line[i] / scale));
      to.add(code, (code & 8 ? -F4Values[code & 7] : F4Values[code]) * scale);
    }
  }
}

void encodeQ4K(const Line &line, EncodedOutput &to) {
  for (size_t block = 0; block < line.size(); block += 256) {
    double steps[8], offsets[8];
    for (size_t run = 0; run < 8; ++run) {
      double least = 0, most = 0;
      for (size_t i = block + run * 32; i < block + run * 32 + 32; ++i) {
        least = std::min<double>(least, line[i]);
        most = std::max<double>(most, line[i]);
      }
      steps[run] = f32(f32(most - least) / 15);
      offsets[run] = 0 - least; // not -0
    }
    const double scale = addHalf(to.Outers, f32(*std::max_element(steps, steps + 8) / 63));
    const double minimum = addHalf(to.Outers, f32(*std::max_element(offsets, offsets + 8) / 63));
    for (size_t run = 0; run < 8; ++run) {
      const int units = integerAt(steps[run], scale, 0, 63), less = integerAt(offsets[run], minimum, 0, 63);
      to.Scales += {static_cast<char>(units), static_cast<char>(less)};
      for (size_t i = block + run * 32; i < block + run * 32 + 32; ++i) {
        const int q = integerAt(f32(line[i] + minimum * less), scale * units, 0, 15);
        to.add(static_cast<uint32_t>(q), scale * units * q - minimum * less);
      }
    }
  }
}

void encodeQ6K(const Line &line, EncodedOutput &to) {
  for (size_t block = 0; block < line.size(); block += 256) {
    double steps[16], largest = 0;
    for (size_t run = 0; run < 16; ++run) {
      double most = 0;
      for (size_t i = block + run * 16; i < block + run * 16 + 16; ++i)
        most = std::fabs(line[i]) > std::fabs(most) ? static_cast<double>(line[i]) : most;
      steps[run] = f32(most / -32);
      largest = std::fabs(steps[run]) > std::fabs(largest) ? steps[run] : largest;
    }
    const double outer = addHalf(to.Outers, f32(largest / -128));
    for (size_t run = 0; run < 16; ++run) {
      const int units = integerAt(steps[run], outer, -128, 127);
      to.Scales.push_back(static_cast<char>(units));
      for (size_t i = block + run * 16; i < block + run * 16 + 16; ++i) {
        const int q = integerAt(line[i], outer * units, -32, 31);
        to.add(static_cast<uint32_t>(q + 32), outer * units * q);
      }
    }
  }
}

EncodedOutput encode(const BlockFormat &format, const Line &line) {
  EncodedOutput to;
  (format.Type == KILN_I8       ? encodeQ8
   : format.Type == KILN_F8E4M3 ? encodeFp8
   : format.Type == KILN_F4E2M1 ? encodeNvfp4
   : format.Type == KILN_U4     ? encodeQ4K
                                : encodeQ6K)(line, to);
  return to;
}

/// Returns the bytes of the numbers of an output, in items of `itemBytes`.
std::string bytesOfCodes(const BlockFormat &format, const std::vector<uint32_t> &codes, size_t &itemBytes) {
  std::string bytes;
  itemBytes = format.Type == KILN_I8 || format.Type == KILN_F8E4M3 ? 1 : 4;
  for (size_t k = 0; itemBytes == 1 && k < codes.size(); ++k)
    bytes.push_back(static_cast<char>(codes[k]));
  const size_t numbers = format.Type == KILN_I6 ? 16 : 8;
  for (size_t first = 0; itemBytes == 4 && first < codes.size(); first += numbers) {
    uint32_t words[3] = {};
    for (size_t k = 0; k < numbers; ++k) {
      words[k / 8] |= (codes[first + k] & 15) << (k % 4 * 8 + k % 8 / 4 * 4);
      words[2] |= (codes[first + k] >> 4) << k * 2;
    }
    append(bytes, words[0]);
    if (numbers == 16) {
      append(bytes, words[1]);
      append(bytes, words[2]);
    }
  }
  return bytes;
}

/// Writes the items of an output, of which there are bytes.size() / itemBytes along K, to an array in tiles.
void putItems(std::string &packed, uint64_t offset, const std::string &bytes, size_t itemBytes, uint64_t at,
              uint64_t tile) {
  const uint64_t items = bytes.size() / itemBytes;
  for (uint64_t i = 0; i < items; ++i)
    packed.replace(offset + ((at / tile * items + i) * tile + at % tile) * itemBytes, itemBytes,
                   bytes.substr(i * itemBytes, itemBytes));
}

/// Writes the quantised matrix of a placement into the packed copy, and returns the dequantised values.
std::vector<float> storeBlocksNaively(std::string &packed, const BlockFormat &format, const Matrix &matrix,
                                      const kiln_placement_t &place) {
  const bool isByRow = place.dim == 0;
  const int64_t kExtent = isByRow ? matrix.Columns : matrix.Rows, outputs = isByRow ? matrix.Rows : matrix.Columns;
  auto indexOf = [&](int64_t n, int64_t k) { return isByRow ? n * kExtent + k : k * outputs + n; };
  std::vector<float> decoded(matrix.Values.size());
  for (int64_t n = 0; n < outputs; ++n) {
    Line line;
    for (int64_t k = 0; k < kExtent; ++k)
      line.push_back(matrix.Values[indexOf(n, k)]);
    const EncodedOutput made = encode(format, line);
    size_t itemBytes;
    const std::string numbers = bytesOfCodes(format, made.Codes, itemBytes);
    const uint64_t at = place.shift + n;
    putItems(packed, 0, numbers, itemBytes, at, place.tile);
    putItems(packed, place.scales, made.Scales, made.Scales.size() / (kExtent / format.Group), at, place.tile);
    if (format.HasOuters)
      putItems(packed, place.zeros, made.Outers,
               made.Outers.size() / (format.Whole == 256 ? kExtent / format.Whole : 1), at, place.tile);
    for (int64_t k = 0; k < kExtent; ++k)
      decoded[indexOf(n, k)] = made.Values[k];
  }
  return decoded;
}

TEST(BlockFormats, LieWhereTheDefinitionSaysAndAreReadAsTheirValues) {
  for (const BlockFormat &format : BlockFormats)
    for (int64_t outputs : {1, 33})
      for (int64_t kExtent : {format.Whole, 3 * format.Whole})
        for (uint32_t tile : {1u, 16u, 48u})
          for (uint32_t dim : {0u, 1u})
            for (uint64_t shift : {0u, 61u}) {
              const int64_t rows = dim == 0 ? outputs : kExtent, columns = dim == 0 ? kExtent : outputs;
              const Matrix matrix(KILN_F32, rows, columns, static_cast<uint32_t>(kExtent + outputs));
              const kiln_weight_t weight = {"w", KILN_F32, 2, {rows, columns}, 1, 0};
              const kiln_placement_t place = blockPlacement(format, outputs, kExtent, tile, dim, shift);
              GuardedMemory packed(kiln_pack_bytes(&weight, &place));
              ASSERT_GT(packed.size(), 0u);
              std::memset(packed.data(), 0x7E, packed.size());
              std::string expected(packed.data(), packed.size());
              const std::vector<float> decoded = storeBlocksNaively(expected, format, matrix, place);
              ASSERT_TRUE(kiln_pack_weight(packed.data(), matrix.Bytes.data(), KILN_F32, &weight, &place));
              ASSERT_EQ(std::memcmp(packed.data(), expected.data(), expected.size()), 0)
                  << format.Name << " [" << rows << ", " << columns << "] tile " << tile << " dim " << dim << " shift "
                  << shift;
              if (shift > 0)
                continue;
              BoundModel model({weight}, {place}, packed.size());
              ASSERT_EQ(model.bind({{"w", "F32", {rows, columns}, matrix.Bytes}}), KILN_OK);
              EXPECT_EQ(model.read("w", 0, rows, columns), decoded) << format.Name;
            }
}

TEST(BlockFormats, NumbersThatAreTooLargeAreRefused) {
  const double limits[] = {0x1p22, 0x1p127, 0x1p115, 0x1p21, 0x1p27};
  for (size_t i = 0; i < std::size(BlockFormats); ++i)
    for (uint32_t dim : {0u, 1u})
      for (auto [value, status] : {std::pair(limits[i], KILN_OK),
                                   {limits[i] * 1.5, KILN_WEIGHT_VALUE},
                                   {static_cast<double>(NAN), KILN_WEIGHT_VALUE}}) {
        const int64_t k = BlockFormats[i].Whole, rows = dim == 0 ? 2 : k, columns = dim == 0 ? k : 2;
        const kiln_weight_t weight = {"w", KILN_F32, 2, {rows, columns}, 1, 0};
        const kiln_placement_t place = blockPlacement(BlockFormats[i], 2, k, 16, dim);
        std::vector<float> values(2 * k, 1);
        values[k + 1] = static_cast<float>(value);
        BoundModel model({weight}, {place}, kiln_pack_bytes(&weight, &place));
        EXPECT_EQ(model.bind({{"w", "F32", {rows, columns}, bytesOf(values)}}), status)
            << BlockFormats[i].Name << " " << value << " " << model.Error.message;
      }
}

// Blocks are not cut, and a placement must have an array of outer scales exactly if its format has them.
TEST(BlockFormats, OtherPlacementsAreRefused) {
  for (const BlockFormat &format : BlockFormats) {
    const kiln_weight_t weight = {"w", KILN_F32, 2, {16, 2 * format.Whole}, 1, 0},
                        uneven = {"w", KILN_F32, 2, {16, format.Whole + 8}, 1, 0};
    kiln_placement_t place = blockPlacement(format, 16, 2 * format.Whole, 16);
    EXPECT_GT(kiln_pack_bytes(&weight, &place), 0u) << format.Name;
    EXPECT_EQ(kiln_pack_bytes(&uneven, &place), 0u) << format.Name;
    place.zeros = format.HasOuters ? 0 : kiln_pack_bytes(&weight, &place) + 64;
    EXPECT_EQ(kiln_pack_bytes(&weight, &place), 0u) << format.Name;
  }
}

//===- Checkpoints ---===//

kiln_status_t bindBlocks(BoundModel &model, uint32_t type, int64_t rows, int64_t columns, const std::string &bytes) {
  const TemporaryFile file(
      makeGguf({{"w", {static_cast<uint64_t>(columns), static_cast<uint64_t>(rows)}, type, bytes}}));
  return kiln_bind_gguf(model.Model, file.path(), nullptr, 0, &model.Error);
}

struct GgufBlocks {
  uint32_t Type;
  const BlockFormat &Format;
  int64_t Bytes;               // of a block
  int64_t ScaleAt, ScaleBytes; // of all scales of a block that are bytes of the file
  int64_t OuterAt, OuterBytes; // of the outer scales
};
const GgufBlocks GgufTypes[] = {{Q8_0, BlockFormats[0], 34, 0, 2, 0, 0},
                                {Q4_K, BlockFormats[3], 144, 0, 0, 0, 4},
                                {Q6_K, BlockFormats[4], 210, 192, 16, 208, 2}};

TEST(BlockFormats, GgufStaysAsItIs) {
  const int64_t rows = 37, columns = 768;
  for (const GgufBlocks &each : GgufTypes) {
    const Numbers numbers = drawGguf(each.Type, rows, columns, 11);
    const kiln_weight_t weight = {"w", KILN_F32, 2, {rows, columns}, 1, 0};
    for (uint32_t tile : {1u, 16u, 48u}) {
      const kiln_placement_t place = blockPlacement(each.Format, rows, columns, tile);
      BoundModel model({weight}, {place}, kiln_pack_bytes(&weight, &place));
      ASSERT_EQ(bindBlocks(model, each.Type, rows, columns, numbers.Bytes), KILN_OK) << model.Error.message;
      EXPECT_EQ(bytesOf(model.read("w", 0, rows, columns)), bytesOf(numbers.Values)) << each.Format.Name;
      if (tile > 1)
        continue;
      const std::string packed = model.packed();
      for (int64_t block = 0; block < rows * columns / each.Format.Whole; ++block) {
        const std::string from = numbers.Bytes.substr(block * each.Bytes, each.Bytes);
        ASSERT_EQ(packed.substr(place.scales + block * each.ScaleBytes, each.ScaleBytes),
                  from.substr(each.ScaleAt, each.ScaleBytes));
        if (each.OuterBytes) {
          ASSERT_EQ(packed.substr(place.zeros + block * each.OuterBytes, each.OuterBytes),
                    from.substr(each.OuterAt, each.OuterBytes));
        }
      }
    }
  }
}

// Tiles along the other dimension have other groups, so that the values are quantised again.
TEST(BlockFormats, GgufInOtherGroupsGoesTheWayOfF32) {
  const int64_t rows = 256, columns = 512;
  for (const GgufBlocks &each : GgufTypes) {
    const Numbers numbers = drawGguf(each.Type, rows, columns, 12);
    const kiln_weight_t weight = {"w", KILN_F32, 2, {rows, columns}, 1, 0};
    for (const BlockFormat &format : BlockFormats)
      for (uint32_t dim : {0u, 1u}) {
        if (dim == 0 && &format == &each.Format)
          continue;
        const kiln_placement_t place =
            blockPlacement(format, dim == 0 ? rows : columns, dim == 0 ? columns : rows, 16, dim);
        BoundModel bound({weight}, {place}, kiln_pack_bytes(&weight, &place)),
            wanted({weight}, {place}, kiln_pack_bytes(&weight, &place));
        ASSERT_EQ(bindBlocks(bound, each.Type, rows, columns, numbers.Bytes), KILN_OK) << bound.Error.message;
        ASSERT_EQ(wanted.bind({{"w", "F32", {rows, columns}, bytesOf(numbers.Values)}}), KILN_OK);
        EXPECT_TRUE(bound.packed() == wanted.packed()) << each.Format.Name << " as " << format.Name << " dim " << dim;
      }
  }
}

TEST(BlockFormats, GgufScalesThatAreNoNumbersAreRefused) {
  for (const GgufBlocks &each : GgufTypes)
    for (uint16_t half : {uint16_t{0x7C00}, uint16_t{0xFE00}}) {
      const int64_t rows = 3, columns = 512;
      std::string bytes = drawGguf(each.Type, rows, columns, 13).Bytes;
      std::memcpy(bytes.data() + 2 * each.Bytes + (each.OuterBytes ? each.OuterAt : each.ScaleAt), &half, sizeof half);
      const kiln_weight_t weight = {"w", KILN_F32, 2, {rows, columns}, 1, 0};
      const kiln_placement_t place = blockPlacement(each.Format, rows, columns, 16);
      BoundModel model({weight}, {place}, kiln_pack_bytes(&weight, &place));
      EXPECT_EQ(bindBlocks(model, each.Type, rows, columns, bytes), KILN_WEIGHT_VALUE) << each.Format.Name;
    }
}

} // namespace
