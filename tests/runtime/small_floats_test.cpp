// SPDX-License-Identifier: Apache-2.0
// F32 weights stored as small floats: every byte is compared with plain code in this file, in f64.
#include "stored_numbers.h"
#include "weights/pack.h"

#include <gtest/gtest.h>

namespace {

using namespace kiln_test;

/// Writes the quantised matrix of a placement into the packed copy, and returns the dequantised values.
std::vector<float> storeF8Naively(std::string &packed, const Matrix &matrix, const kiln_placement_t &place) {
  const bool isByRow = place.dim == 0;
  const int64_t kExtent = isByRow ? matrix.Columns : matrix.Rows, outputs = isByRow ? matrix.Rows : matrix.Columns;
  auto indexOf = [&](int64_t n, int64_t k) { return isByRow ? n * kExtent + k : k * outputs + n; };
  std::vector<float> decoded(matrix.Values.size());
  for (int64_t n = 0; n < outputs; ++n) {
    double most = 0;
    for (int64_t k = 0; k < kExtent; ++k)
      most = std::max(most, std::fabs(static_cast<double>(matrix.Values[indexOf(n, k)])));
    const auto scale = static_cast<float>(most / 448);
    const uint64_t at = place.shift + n;
    packed.replace(place.scales + at * 4, 4, reinterpret_cast<const char *>(&scale), 4);
    for (int64_t k = 0; k < kExtent; ++k) {
      const float value = matrix.Values[indexOf(n, k)];
      const uint8_t code = nearestF8(scale == 0 ? value : static_cast<float>(static_cast<double>(value) / scale));
      packed[(at / place.tile * kExtent + k) * place.tile + at % place.tile] = static_cast<char>(code);
      const double size = valueOfF8(code & 0x7F);
      decoded[indexOf(n, k)] = static_cast<float>((code & 0x80 ? -size : size) * scale);
    }
  }
  return decoded;
}

kiln_placement_t f8Placement(const Matrix &matrix, uint32_t tile, uint32_t dim, uint64_t shift) {
  return makeStoredPlacement(KILN_F8E4M3, dim == 0 ? matrix.Rows : matrix.Columns,
                             dim == 0 ? matrix.Columns : matrix.Rows, tile, dim, shift);
}

TEST(SmallFloats, LieWhereTheDefinitionSaysAndAreReadAsTheirValues) {
  for (kiln_dtype_t source : {KILN_F32, KILN_F16, KILN_BF16})
    for (auto [rows, columns] : {std::pair(1, 1), {31, 33}, {150, 17}, {129, 700}})
      for (uint32_t tile : {1u, 16u, 48u})
        for (uint32_t dim : {0u, 1u})
          for (uint64_t shift : {0u, 61u}) {
            const Matrix matrix(source, rows, columns);
            const kiln_weight_t weight = {"w", KILN_F32, 2, {rows, columns}, 1, 0};
            const kiln_placement_t place = f8Placement(matrix, tile, dim, shift);
            GuardedMemory packed(kiln_pack_bytes(&weight, &place));
            ASSERT_GT(packed.size(), 0u);
            std::memset(packed.data(), 0x7E, packed.size());
            std::string expected(packed.data(), packed.size());
            const std::vector<float> decoded = storeF8Naively(expected, matrix, place);
            ASSERT_TRUE(kiln_pack_weight(packed.data(), matrix.Bytes.data(), source, &weight, &place));
            ASSERT_EQ(std::memcmp(packed.data(), expected.data(), expected.size()), 0)
                << "[" << rows << ", " << columns << "] tile " << tile << " dim " << dim << " shift " << shift;
            if (shift > 0)
              continue;
            BoundModel model({weight}, {place}, packed.size());
            ASSERT_EQ(model.bind({{"w",
                                   source == KILN_F32   ? "F32"
                                   : source == KILN_F16 ? "F16"
                                                        : "BF16",
                                   {rows, columns},
                                   matrix.Bytes}}),
                      KILN_OK);
            EXPECT_EQ(model.read("w", 0, rows, columns), decoded);
          }
}

/// storeF8Naively for e2m1 in groups of 32 with e8m0 scales.
std::vector<float> storeF4Naively(std::string &packed, const Matrix &matrix, const kiln_placement_t &place) {
  const bool isByRow = place.dim == 0;
  const int64_t kExtent = isByRow ? matrix.Columns : matrix.Rows, outputs = isByRow ? matrix.Rows : matrix.Columns;
  auto indexOf = [&](int64_t n, int64_t k) { return isByRow ? n * kExtent + k : k * outputs + n; };
  std::vector<float> decoded(matrix.Values.size());
  for (int64_t n = 0; n < outputs; ++n)
    for (int64_t first = 0; first < kExtent; first += 32) {
      double most = 0;
      for (int64_t k = first; k < first + 32; ++k)
        most = std::max(most, std::fabs(static_cast<double>(matrix.Values[indexOf(n, k)])));
      const int exponent = most == 0 ? -127 : std::max(std::ilogb(most) - 2, -127);
      const uint64_t at = place.shift + n, tile = at / place.tile, lane = at % place.tile;
      packed[place.scales + (tile * (kExtent / 32) + first / 32) * place.tile + lane] =
          static_cast<char>(exponent + 127);
      for (int64_t i = first; i < first + 32; i += 8) {
        uint32_t word = 0;
        for (int64_t k = i; k < i + 8; ++k) {
          const uint32_t code = nearestF4(std::ldexp(static_cast<double>(matrix.Values[indexOf(n, k)]), -exponent));
          word |= code << (k % 4 * 8 + k % 8 / 4 * 4);
          const double size = std::ldexp(F4Values[code & 7], exponent);
          decoded[indexOf(n, k)] = static_cast<float>(code & 8 ? -size : size);
        }
        packed.replace(((tile * (kExtent / 8) + i / 8) * place.tile + lane) * 4, 4,
                       reinterpret_cast<const char *>(&word), 4);
      }
    }
  return decoded;
}

TEST(SmallFloats, InGroupsLieWhereTheDefinitionSaysAndAreReadAsTheirValues) {
  for (kiln_dtype_t source : {KILN_F32, KILN_F16, KILN_BF16})
    for (int64_t outputs : {1, 33, 150})
      for (int64_t kExtent : {32, 160})
        for (uint32_t tile : {1u, 16u, 48u})
          for (uint32_t dim : {0u, 1u})
            for (uint64_t shift : {0u, 61u}) {
              const int64_t rows = dim == 0 ? outputs : kExtent, columns = dim == 0 ? kExtent : outputs;
              const Matrix matrix(source, rows, columns);
              const kiln_weight_t weight = {"w", KILN_F32, 2, {rows, columns}, 1, 0};
              const kiln_placement_t place = makeStoredPlacement(KILN_F4E2M1, outputs, kExtent, tile, dim, shift, 32);
              GuardedMemory packed(kiln_pack_bytes(&weight, &place));
              ASSERT_GT(packed.size(), 0u);
              std::memset(packed.data(), 0x7E, packed.size());
              std::string expected(packed.data(), packed.size());
              const std::vector<float> decoded = storeF4Naively(expected, matrix, place);
              ASSERT_TRUE(kiln_pack_weight(packed.data(), matrix.Bytes.data(), source, &weight, &place));
              ASSERT_EQ(std::memcmp(packed.data(), expected.data(), expected.size()), 0)
                  << "[" << rows << ", " << columns << "] tile " << tile << " dim " << dim << " shift " << shift;
              if (source != KILN_F32 || shift > 0)
                continue;
              BoundModel model({weight}, {place}, packed.size());
              ASSERT_EQ(model.bind({{"w", "F32", {rows, columns}, matrix.Bytes}}), KILN_OK);
              EXPECT_EQ(model.read("w", 0, rows, columns), decoded);
            }
}

TEST(SmallFloats, InGroupsThatAreTooLarge) {
  for (auto [value, status] :
       {std::pair(0x1p115f, KILN_OK), {0x1.8p115f, KILN_WEIGHT_VALUE}, {NAN, KILN_WEIGHT_VALUE}}) {
    const kiln_weight_t weight = {"w", KILN_F32, 2, {2, 32}, 1, 0};
    const kiln_placement_t place = makeStoredPlacement(KILN_F4E2M1, 2, 32, 16, 0, 0, 32);
    std::vector<float> values(64, 1);
    values[33] = value;
    BoundModel model({weight}, {place}, kiln_pack_bytes(&weight, &place));
    EXPECT_EQ(model.bind({{"w", "F32", {2, 32}, bytesOf(values)}}), status);
  }
}

TEST(SmallFloats, KnownNumbers) {
  const std::vector<float> values = {448, -448, 17, 19, 0x1p-9f, 0x1p-10f, 0x1.8p-9f, 0x1p-6f, 432, -0.0f};
  const kiln_weight_t weight = {"w", KILN_F32, 2, {1, 10}, 1, 0};
  const kiln_placement_t place = makeStoredPlacement(KILN_F8E4M3, 1, 10, 1);
  std::string packed(kiln_pack_bytes(&weight, &place), '\0');
  ASSERT_TRUE(kiln_pack_weight(packed.data(), bytesOf(values).data(), KILN_F32, &weight, &place));
  const unsigned char codes[] = {0x7E, 0xFE, 0x58, 0x5A, 0x01, 0x00, 0x02, 0x08, 0x7E, 0x80};
  EXPECT_EQ(std::memcmp(packed.data(), codes, sizeof codes), 0);
}

TEST(SmallFloats, WhatCannotBeStoredIsSaid) {
  for (auto [value, words] : {std::pair(0x1p127f, ""), {NAN, "F8E4M3, got nan"}, {-INFINITY, "F8E4M3, got -inf"}}) {
    const kiln_weight_t weight = {"w", KILN_F32, 2, {2, 3}, 1, 0};
    const kiln_placement_t place = makeStoredPlacement(KILN_F8E4M3, 2, 3, 16);
    BoundModel model({weight}, {place}, kiln_pack_bytes(&weight, &place));
    const kiln_status_t status = model.bind({{"w", "F32", {2, 3}, bytesOf(std::vector<float>{1, 2, 3, 4, value, 6})}});
    EXPECT_EQ(status, *words ? KILN_WEIGHT_VALUE : KILN_OK);
    if (*words)
      EXPECT_NE(std::string(model.Error.message).find(std::string(words) + " at [1, 1]"), std::string::npos)
          << model.Error.message;
  }
}

} // namespace
