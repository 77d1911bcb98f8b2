// SPDX-License-Identifier: Apache-2.0
// F32 weights stored as f16, bf16 or i8: every byte is compared with plain code in this file, in f64 and integers.
#include "readers/files.h"
#include "stored_numbers.h"
#include "weights/pack.h"

#include <gtest/gtest.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace {

using namespace kiln_test;

const kiln_dtype_t AllTypes[] = {KILN_F16, KILN_BF16, KILN_I8}, AllSources[] = {KILN_F32, KILN_F16, KILN_BF16};

/// Returns a placement; for I8, optionally interleaved by `word` elements (VNNI layout). outputs: including the shift.
kiln_placement_t storedPlacement(kiln_dtype_t stored, uint64_t rows, uint64_t columns, uint32_t tile, uint32_t dim,
                                 uint64_t shift, uint64_t outputs, uint32_t word = 1) {
  return makeStoredPlacement(stored, outputs - shift, dim == 0 ? columns : rows, tile, dim, shift, word > 1 ? word : 0);
}

/// Writes the quantised matrix of a placement into the packed copy, and returns the dequantised values.
std::vector<float> storeNaively(std::string &packed, const Matrix &matrix, const kiln_placement_t &place) {
  const bool isByRow = place.dim == 0, isByte = place.dtype == KILN_I8;
  const auto stored = static_cast<kiln_dtype_t>(place.dtype);
  std::vector<float> scales(isByRow ? matrix.Rows : matrix.Columns), decoded;
  for (size_t i = 0; i < matrix.Values.size(); ++i) {
    float &scale = scales[isByRow ? i / matrix.Columns : i % matrix.Columns];
    scale = std::max(scale, std::fabs(matrix.Values[i]));
  }
  for (size_t n = 0; n < scales.size(); ++n) {
    scales[n] = static_cast<float>(static_cast<double>(scales[n]) / 127);
    if (isByte)
      packed.replace(place.scales + (place.shift + n) * 4, 4, reinterpret_cast<const char *>(&scales[n]), 4);
  }
  const uint64_t word = std::max(place.group, 1u);
  std::vector<int32_t> sums(scales.size());
  for (size_t i = 0; i < matrix.Values.size(); ++i) {
    const uint64_t row = i / matrix.Columns, column = i % matrix.Columns,
                   kExtent = isByRow ? matrix.Columns : matrix.Rows;
    const uint64_t n = (isByRow ? row : column) + place.shift, k = isByRow ? column : row;
    const uint64_t steps = (kExtent + word - 1) / word;
    const uint64_t to = ((n / place.tile * steps + k / word) * place.tile + n % place.tile) * word + k % word;
    for (uint64_t padding = to + 1; k + 1 == kExtent && padding % word != 0; ++padding)
      packed[padding] = 0;
    if (isByte) {
      const float scale = scales[n - place.shift];
      const auto quotient = static_cast<float>(scale == 0 ? 0.0 : static_cast<double>(matrix.Values[i]) / scale);
      const double whole = std::min(127.0, std::max(-127.0, nearestEven(quotient)));
      packed[to] = static_cast<char>(static_cast<int>(whole));
      sums[n - place.shift] += static_cast<int32_t>(128 * whole);
      decoded.push_back(static_cast<float>(whole * static_cast<double>(scale)));
    } else {
      const uint16_t half = rounded(stored, matrix.Values[i]);
      packed.replace(to * 2, 2, reinterpret_cast<const char *>(&half), 2);
      const auto size = static_cast<float>(magnitudeOf(stored, half & 0x7FFF));
      decoded.push_back(half >> 15 ? -size : size);
    }
  }
  for (size_t n = 0; place.zeros && n < sums.size(); ++n)
    packed.replace(place.zeros + (place.shift + n) * 4, 4, reinterpret_cast<const char *>(&sums[n]), 4);
  return decoded;
}

// Each value, the midpoint to the next one, and the neighbours of that midpoint.
TEST(StoredWeights, EveryHalfFloatIsTheNearestOne) {
  for (kiln_dtype_t stored : {KILN_F16, KILN_BF16})
    for (uint32_t sign : {0u, 0x8000u}) {
      const uint32_t last = stored == KILN_F16 ? 0x7BFF : 0x7F7F;
      std::vector<float> values;
      std::vector<uint16_t> expected;
      auto add = [&](float value, uint32_t bits) {
        values.push_back(sign ? -value : value);
        expected.push_back(static_cast<uint16_t>(sign | bits));
      };
      for (uint32_t bits = 0; bits <= last; ++bits) {
        const double here = magnitudeOf(stored, bits), next = magnitudeOf(stored, bits + 1);
        const auto middle = static_cast<float>((here + next) / 2);
        ASSERT_EQ(static_cast<double>(middle), (here + next) / 2);
        add(static_cast<float>(here), bits);
        add(std::nextafterf(middle, 0), bits);
        if (bits == last)
          continue;
        add(middle, bits + bits % 2);
        add(std::nextafterf(middle, INFINITY), bits + 1);
      }
      const auto count = static_cast<int64_t>(values.size());
      const kiln_weight_t weight = {"w", KILN_F32, 2, {count, 1}, 1, 0};
      const kiln_placement_t placement = makePlacement(0, 0, 1, 0, 0, stored);
      std::vector<uint16_t> packed(values.size());
      ASSERT_EQ(kiln_pack_bytes(&weight, &placement), packed.size() * 2);
      ASSERT_TRUE(kiln_pack_weight(reinterpret_cast<char *>(packed.data()), bytesOf(values).data(), KILN_F32, &weight,
                                   &placement));
      for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(packed[i], expected[i]) << values[i];
        ASSERT_EQ(rounded(stored, values[i]), expected[i]) << "the test's own rounding of " << values[i];
      }
    }
}

// Sizes around tiles, cache lines and the conversion's block size; only the weight's bytes and its scales change.
// `isWeightToo`: the model's weight has the stored type, not f32.
void checkPlaces(kiln_dtype_t stored, kiln_dtype_t source, bool isWeightToo) {
  const int64_t extents[][2] = {{1, 1},    {3, 5},    {47, 33},   {48, 64}, {129, 31}, {9, 513},
                                {2, 1030}, {1030, 2}, {131, 517}, {97, 32}, {300, 7}};
  for (const auto &extent : extents)
    for (uint32_t tile : {1u, 8u, 48u, 150u})
      for (uint32_t dim : {0u, 1u})
        for (uint64_t shift : {0u, 1u, 61u}) {
          const Matrix matrix(source, extent[0], extent[1]);
          const kiln_weight_t weight = {"w", isWeightToo ? stored : KILN_F32, 2, {extent[0], extent[1]}, 1, 0};
          const kiln_placement_t placement =
              storedPlacement(stored, extent[0], extent[1], tile, dim, shift, shift + extent[dim]);
          GuardedMemory data(" " + matrix.Bytes), packed(kiln_pack_bytes(&weight, &placement));
          std::memset(packed.data(), 0x7E, packed.size()); // large as f32: scales must not depend on it
          std::string expected(packed.data(), packed.size());
          storeNaively(expected, matrix, placement);
          ASSERT_TRUE(kiln_pack_weight(packed.data(), data.data() + 1, source, &weight, &placement));
          ASSERT_EQ(std::memcmp(packed.data(), expected.data(), expected.size()), 0)
              << "[" << extent[0] << ", " << extent[1] << "] tile " << tile << " dim " << dim << " shift " << shift;
          ASSERT_TRUE(packed.isFrontIntact());
        }
}

TEST(StoredWeights, LieWhereTheDefinitionSays) {
  for (kiln_dtype_t stored : AllTypes)
    for (kiln_dtype_t source : AllSources)
      for (bool isWeightToo : {false, true}) {
        if (isWeightToo && stored == KILN_I8)
          continue;
        SCOPED_TRACE(std::string(kiln_safetensors_dtype_text(source)) + " as " + kiln_safetensors_dtype_text(stored) +
                     (isWeightToo ? ", the weight's own type" : ""));
        checkPlaces(stored, source, isWeightToo);
      }
}

// Dense 16-bit vectors, and matrices that no kernel needs in tiles.
TEST(StoredWeights, HalfFloatsAreContiguous) {
  for (kiln_dtype_t type : {KILN_F16, KILN_BF16})
    for (kiln_dtype_t source : AllSources)
      for (int64_t count : {1, 7, 513, 4096, 9001}) {
        const Matrix numbers(source, count, 3);
        const kiln_weight_t weight = {"w", type, 2, {count, 3}, 1, 0};
        const kiln_placement_t placement = makePlacement(0, 0, 0, 0, 5, type);
        GuardedMemory packed(kiln_pack_bytes(&weight, &placement));
        ASSERT_EQ(packed.size(), static_cast<size_t>(5 + count * 3) * 2);
        ASSERT_TRUE(kiln_pack_weight(packed.data(), numbers.Bytes.data(), source, &weight, &placement));
        std::vector<uint16_t> expected(5), got(packed.size() / 2);
        for (float value : numbers.Values)
          expected.push_back(rounded(type, value));
        std::memcpy(got.data(), packed.data(), packed.size());
        std::copy_n(got.begin(), 5, expected.begin()); // preceding elements belong to other weights
        ASSERT_EQ(got, expected) << kiln_safetensors_dtype_text(source) << " as " << kiln_safetensors_dtype_text(type);
      }
}

// The same for int8 in the interleaved (VNNI) layout of two or four, and the values read back.
TEST(StoredWeights, WordsLieWhereTheDefinitionSays) {
  const int64_t extents[][2] = {{1, 1}, {3, 5}, {47, 33}, {129, 31}, {9, 514}, {131, 517}, {97, 32}, {300, 7}};
  for (uint32_t word : {2u, 4u})
    for (kiln_dtype_t source : {KILN_F32, KILN_BF16})
      for (const auto &extent : extents)
        for (uint32_t tile : {1u, 16u, 48u, 150u})
          for (uint32_t dim : {0u, 1u})
            for (uint64_t shift : {0u, 61u}) {
              const Matrix matrix(source, extent[0], extent[1]);
              const kiln_weight_t weight = {"w", KILN_F32, 2, {extent[0], extent[1]}, 1, 0};
              const kiln_placement_t placement =
                  storedPlacement(KILN_I8, extent[0], extent[1], tile, dim, shift, shift + extent[dim], word);
              GuardedMemory data(" " + matrix.Bytes), packed(kiln_pack_bytes(&weight, &placement));
              ASSERT_GT(packed.size(), 0u);
              std::memset(packed.data(), 0x7E, packed.size());
              std::string expected(packed.data(), packed.size());
              const std::vector<float> decoded = storeNaively(expected, matrix, placement);
              ASSERT_TRUE(kiln_pack_weight(packed.data(), data.data() + 1, source, &weight, &placement));
              ASSERT_EQ(std::memcmp(packed.data(), expected.data(), expected.size()), 0)
                  << "words of " << word << " [" << extent[0] << ", " << extent[1] << "] tile " << tile << " dim "
                  << dim << " shift " << shift;
              BoundModel model({weight}, {placement}, packed.size());
              ASSERT_EQ(model.bind({{"w", kiln_safetensors_dtype_text(source), {extent[0], extent[1]}, matrix.Bytes}}),
                        KILN_OK)
                  << model.Error.message;
              ASSERT_EQ(model.read("w", 0, static_cast<uint64_t>(extent[0]), static_cast<uint64_t>(extent[1])),
                        decoded);
            }
}

TEST(StoredWeights, KnownNumbers) {
  const kiln_weight_t weight = {"w", KILN_F32, 2, {5, 3}, 1, 0};
  const kiln_placement_t placement = makePlacement(0, 0, 1, 0, 0, KILN_I8, 16);
  // 0.5 and 1.5 steps round to even; a scale below half of the smallest number is 0; a scale that is rounded
  // down by half of the smallest number gives 190 steps, which are clamped.
  const float values[] = {
      127,          0.5f, -1.5f, 0, -0.0f, 0, -3, 3, 1, 0x1p-149f, 63 * 0x1p-149f, 0, 190 * 0x1p-149f, -190 * 0x1p-149f,
      2 * 0x1p-149f};
  const signed char expected[] = {127, 0, -2, 0, 0, 0, -127, 127, 42, 0, 0, 0, 127, -127, 2};
  const float scales[] = {1, 0, 3.0f / 127, 0, 0x1p-149f};
  alignas(64) char packed[36] = {};
  ASSERT_EQ(kiln_pack_bytes(&weight, &placement), sizeof packed);
  ASSERT_TRUE(kiln_pack_weight(packed, reinterpret_cast<const char *>(values), KILN_F32, &weight, &placement));
  EXPECT_EQ(std::memcmp(packed, expected, sizeof expected), 0);
  EXPECT_EQ(std::memcmp(packed + 16, scales, sizeof scales), 0);
}

TEST(StoredWeights, OtherDimensionsAreOne) {
  const kiln_weight_t window = {"c", KILN_F32, 4, {50, 7, 3, 5}, 1, 0}, matrix = {"m", KILN_F32, 2, {50, 105}, 1, 0};
  for (kiln_dtype_t stored : AllTypes) {
    const kiln_placement_t placement = storedPlacement(stored, 50, 105, 16, 0, 0, 50);
    const Matrix values(KILN_F32, 50, 105);
    GuardedMemory packed(kiln_pack_bytes(&window, &placement)), expected(kiln_pack_bytes(&matrix, &placement));
    ASSERT_EQ(packed.size(), expected.size());
    EXPECT_TRUE(kiln_pack_weight(packed.data(), values.Bytes.data(), KILN_F32, &window, &placement));
    EXPECT_TRUE(kiln_pack_weight(expected.data(), values.Bytes.data(), KILN_F32, &matrix, &placement));
    EXPECT_EQ(std::memcmp(packed.data(), expected.data(), packed.size()), 0);
  }
}

TEST(StoredWeights, PlacementsThatMakeNoSenseCoverNoBytes) {
  const kiln_weight_t matrix = {"m", KILN_F32, 2, {50, 7}, 1, 0}, vector = {"v", KILN_F32, 1, {50}, 1, 0},
                      half = {"h", KILN_F16, 2, {50, 7}, 1, 0};
  const struct {
    const kiln_weight_t &Weight;
    kiln_placement_t Placement;
    uint64_t Bytes;
  } cases[] = {
      {matrix, makePlacement(0, 0, 16, 0, 0, KILN_F16), 64 * 7 * 2},
      {matrix, makePlacement(0, 0, 48, 0, 47, KILN_BF16), 144 * 7 * 2},
      {matrix, makePlacement(0, 0, 16, 0, 0, KILN_I8, 448), 448 + 64 * 4},
      {matrix, makePlacement(0, 0, 16, 1, 10, KILN_I8, 1600), 1600 + 32 * 4},
      {matrix, makePlacement(0, 0, 16, 0, 0, KILN_I8), 0 /* no scales */},
      {matrix, makePlacement(0, 0, 16, 0, 0, KILN_I8, 444), 0 /* scales overlap the elements */},
      {matrix, makePlacement(0, 0, 16, 0, 0, KILN_I8, 450), 0 /* misaligned scales */},
      {matrix, makePlacement(2, 0, 16, 0, 0, KILN_I8, 448), 0},
      {matrix, makePlacement(0, 2, 16, 0, 0, KILN_I8, 448), 0},
      {matrix, makePlacement(0, 0, 16, 0, 0, KILN_F16, 896), 0 /* scales of a format without scales */},
      {matrix, makePlacement(0, 0, 16, 0, 0, KILN_F32, 1792), 0},
      {matrix, makePlacement(0, 0, 0, 0, 0, KILN_I8, 448), 0 /* no tiles */},
      {vector, makePlacement(0, 0, 16, 0, 0, KILN_F16), 0},
      {matrix, makePlacement(0, 0, 16, 0, 0, KILN_I32), 0},
      {half, makePlacement(0, 0, 16, 0, 0, KILN_I8, 448), 0 /* only f32 can be quantised */},
      {half, makePlacement(0, 0, 16, 0, 0, KILN_F32), 0},
  };
  for (const auto &test : cases)
    EXPECT_EQ(kiln_pack_bytes(&test.Weight, &test.Placement), test.Bytes) << &test - cases;
  // Interleaved (VNNI) layouts: of two without sums, of four with sums after the scales; K = 7 is padded to 8.
  auto words = [&](uint32_t word, uint64_t scales, uint64_t sums) {
    kiln_placement_t placement = makePlacement(0, 0, 16, 0, 0, KILN_I8, scales);
    placement.group = word;
    placement.zeros = sums;
    return kiln_pack_bytes(&matrix, &placement);
  };
  EXPECT_EQ(words(2, 512, 0), 512 + 64 * 4);
  EXPECT_EQ(words(4, 512, 768), 768 + 64 * 4);
  EXPECT_EQ(words(2, 448, 0), 0) << "scales within the last words";
  EXPECT_EQ(words(3, 512, 0), 0);
  EXPECT_EQ(words(4, 512, 0), 0) << "no sums";
  EXPECT_EQ(words(2, 512, 768), 0) << "sums of what has none";
  EXPECT_EQ(words(4, 512, 764), 0) << "sums within the scales";
  EXPECT_EQ(words(4, 512, 770), 0) << "sums that are not aligned";
}

#if defined(__SSE__)
// Rounding in each direction, flushing of subnormals, and traps on exceptions must have no effect.
TEST(StoredWeights, TheCallersModesNeitherMatterNorChange) {
  for (kiln_dtype_t stored : AllTypes)
    for (uint32_t dim : {0u, 1u}) {
      const Matrix matrix(KILN_F32, 61, 77);
      const kiln_weight_t weight = {"w", KILN_F32, 2, {61, 77}, 1, 0};
      const kiln_placement_t placement = storedPlacement(stored, 61, 77, 16, dim, 0, dim == 0 ? 61 : 77);
      std::string expected(kiln_pack_bytes(&weight, &placement), '\0');
      storeNaively(expected, matrix, placement);
      for (unsigned mode : {0x1F80u, 0x3F80u, 0x5F80u, 0x7F80u, 0x9FC0u, 0xFFFFu, 0x0000u, 0x6040u}) {
        GuardedMemory packed(std::string(expected.size(), '\0'));
        const unsigned before = _mm_getcsr();
        _mm_setcsr(mode);
        const bool isPacked = kiln_pack_weight(packed.data(), matrix.Bytes.data(), KILN_F32, &weight, &placement);
        const unsigned after = _mm_getcsr();
        _mm_setcsr(before);
        EXPECT_TRUE(isPacked);
        EXPECT_EQ(after, mode);
        EXPECT_EQ(std::memcmp(packed.data(), expected.data(), expected.size()), 0) << std::hex << mode;
      }
    }
}
#endif

// The same bytes on every machine, with every compiler.
TEST(StoredWeights, GoldenBytes) {
  const uint64_t golden[] = {528954727326296353u, 172501521547347797u, 2212129271943939870u};
  for (int i = 0; i < 3; ++i) {
    uint64_t hash = 0xCBF29CE484222325u; // FNV-1a
    for (uint32_t dim : {0u, 1u}) {
      const Matrix matrix(KILN_F32, 193, 211, 26);
      const kiln_weight_t weight = {"w", KILN_F32, 2, {193, 211}, 1, 0};
      const kiln_placement_t placement = storedPlacement(AllTypes[i], 193, 211, 48, dim, 0, dim == 0 ? 193 : 211);
      GuardedMemory packed(std::string(kiln_pack_bytes(&weight, &placement), '\0'));
      ASSERT_TRUE(kiln_pack_weight(packed.data(), matrix.Bytes.data(), KILN_F32, &weight, &placement));
      for (size_t at = 0; at < packed.size(); ++at)
        hash = (hash ^ static_cast<unsigned char>(packed.data()[at])) * 0x100000001B3u;
    }
    EXPECT_EQ(hash, golden[i]) << kiln_safetensors_dtype_text(AllTypes[i]);
  }
}

} // namespace
