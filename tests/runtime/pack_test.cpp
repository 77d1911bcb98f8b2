// SPDX-License-Identifier: Apache-2.0
// Packed layouts compared with the definition in model.h, element by element, for odd sizes.
#include "readers/files.h"
#include "support.h"
#include "weights/pack.h"

#include <gtest/gtest.h>

namespace {

using namespace kiln_test;

struct Packing {
  kiln_dtype_t Dtype;
  int64_t Rows, Columns;
  uint32_t Tile, Dim;
  uint64_t Shift;
};

/// The definition: element (n along dim, k along the other) is stored at [(n + shift) / tile][k][(n + shift) % tile].
void packNaively(std::string &packed, const std::string &data, const Packing &c, size_t bytes) {
  for (int64_t row = 0; row < c.Rows; ++row)
    for (int64_t column = 0; column < c.Columns; ++column) {
      uint64_t from = row * c.Columns + column, to = from + c.Shift;
      if (c.Tile > 0) {
        uint64_t n = (c.Dim == 0 ? row : column) + c.Shift, k = c.Dim == 0 ? column : row;
        uint64_t kExtent = c.Dim == 0 ? c.Columns : c.Rows;
        to = (n / c.Tile * kExtent + k) * c.Tile + n % c.Tile;
      }
      packed.replace(to * bytes, bytes, data, from * bytes, bytes);
    }
}

/// Returns the position of an element as kiln/formats.h defines it.
uint64_t placeOf(const Packing &c, int64_t row, int64_t column) {
  const kiln_format_array_t elements = {0, 1, 1, 1};
  const uint64_t n = (c.Dim == 0 ? row : column) + c.Shift, k = c.Dim == 0 ? column : row;
  return c.Tile == 0 ? c.Shift + row * c.Columns + column
                     : kiln_format_item(&elements, c.Tile, c.Dim == 0 ? c.Columns : c.Rows, n, k);
}

std::string distinctBytes(size_t bytes) {
  std::string data(bytes, '\0');
  uint32_t state = 1;
  for (char &byte : data)
    byte = static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
  return data;
}

TEST(Pack, MatchesTheDefinition) {
  const kiln_dtype_t dtypes[] = {KILN_F32, KILN_BF16, KILN_I8};
  const int64_t extents[][2] = {{1, 1}, {1, 33}, {47, 5}, {48, 64}, {49, 65}, {16, 31}, {17, 129}, {131, 3}, {97, 32}};
  int cases = 0;
  for (kiln_dtype_t dtype : dtypes)
    for (const auto &extent : extents)
      for (uint32_t tile : {0u, 1u, 8u, 16u, 48u, 150u})
        for (uint32_t dim : {0u, 1u})
          for (uint64_t shift : {0u, 1u, 15u, 48u, 61u}) {
            const Packing c = {dtype, extent[0], extent[1], tile, dim, shift};
            const kiln_weight_t weight = {"w", dtype, 2, {c.Rows, c.Columns}, 1, 0};
            const kiln_placement_t placement = makePlacement(0, 0, tile, dim, shift, dtype);
            size_t bytes = kiln_safetensors_stored_bytes(dtype, 1);
            std::string data = distinctBytes(c.Rows * c.Columns * bytes);
            GuardedMemory source(data);
            GuardedMemory packed(kiln_pack_bytes(&weight, &placement));
            std::string expected(packed.data(), packed.size());
            packNaively(expected, data, c, bytes);
            kiln_pack_weight(packed.data(), source.data(), dtype, &weight, &placement);
            ASSERT_EQ(std::memcmp(packed.data(), expected.data(), expected.size()), 0)
                << kiln_safetensors_dtype_text(dtype) << " [" << c.Rows << ", " << c.Columns << "] tile " << tile
                << " dim " << dim << " shift " << shift;
            ASSERT_TRUE(packed.isFrontIntact());
            for (int64_t row = 0; row < c.Rows; ++row)
              for (int64_t column = 0; column < c.Columns; ++column)
                ASSERT_EQ(std::memcmp(packed.data() + bytes * placeOf(c, row, column),
                                      data.data() + bytes * (row * c.Columns + column), bytes),
                          0);
            ++cases;
          }
  EXPECT_EQ(cases, 3 * 9 * 6 * 2 * 5);
}

TEST(Pack, BytesCoverWholeTiles) {
  const kiln_weight_t weight = {"w", KILN_F32, 2, {50, 7}, 1, 0};
  const struct {
    kiln_placement_t Placement;
    uint64_t Bytes;
  } cases[] = {
      {makePlacement(0, 0, 0, 0, 0), 50 * 7 * 4},        {makePlacement(0, 0, 0, 0, 9), (50 * 7 + 9) * 4},
      {makePlacement(0, 0, 48, 0, 0), 96 * 7 * 4},       {makePlacement(0, 0, 48, 0, 47), 144 * 7 * 4},
      {makePlacement(0, 0, 16, 1, 0), 16 * 50 * 4},      {makePlacement(0, 0, 16, 1, 10), 32 * 50 * 4},
      {makePlacement(0, 0, 16, 2, 0), 0 /* no dim 2 */},
  };
  for (const auto &test : cases)
    EXPECT_EQ(kiln_pack_bytes(&weight, &test.Placement), test.Bytes);
  const kiln_weight_t window = {"c", KILN_F32, 4, {50, 2, 3, 5}, 1, 0};
  EXPECT_EQ(kiln_pack_bytes(&window, &cases[2].Placement), 96u * 30 * 4);
  EXPECT_EQ(kiln_pack_bytes(&window, &cases[4].Placement), 0u) << "only a matrix is tiled along its second dimension";
  const kiln_weight_t vector = {"v", KILN_F32, 1, {50}, 1, 0};
  EXPECT_EQ(kiln_pack_bytes(&vector, &cases[0].Placement), 200u);
  EXPECT_EQ(kiln_pack_bytes(&vector, &cases[2].Placement), 0u) << "a vector is not tiled";
}

// The weight of a convolution is stored as the matrix [outputs, everything else].
TEST(Pack, OtherDimensionsAreOne) {
  const kiln_weight_t window = {"c", KILN_F32, 4, {50, 7, 3, 5}, 1, 0}, matrix = {"m", KILN_F32, 2, {50, 105}, 1, 0};
  const kiln_placement_t placement = makePlacement(0, 0, 16, 0, 0);
  GuardedMemory source(distinctBytes(50 * 105 * 4));
  GuardedMemory packed(kiln_pack_bytes(&window, &placement)), expected(kiln_pack_bytes(&matrix, &placement));
  ASSERT_EQ(packed.size(), expected.size());
  std::memset(packed.data(), 1, packed.size());
  std::memset(expected.data(), 1, expected.size());
  kiln_pack_weight(packed.data(), source.data(), KILN_F32, &window, &placement);
  kiln_pack_weight(expected.data(), source.data(), KILN_F32, &matrix, &placement);
  EXPECT_EQ(std::memcmp(packed.data(), expected.data(), expected.size()), 0);
}

} // namespace
