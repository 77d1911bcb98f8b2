// SPDX-License-Identifier: Apache-2.0
// F32 weights stored as int4 in groups: every byte is compared with plain code in this file, in f64 and integers.
#include "stored_numbers.h"
#include "weights/pack.h"

#include <gtest/gtest.h>

namespace {

using namespace kiln_test;

struct Form {
  uint32_t Group;
  bool HasZeros;
};
const Form AllForms[] = {{32, false}, {64, true}, {128, false}, {32, true}};

kiln_placement_t groupedPlacement(Form form, uint64_t rows, uint64_t columns, uint32_t tile, uint32_t dim,
                                  uint64_t shift) {
  return makeStoredPlacement(KILN_I4, dim == 0 ? rows : columns, dim == 0 ? columns : rows, tile, dim, shift,
                             form.Group, form.HasZeros);
}

/// One quantisation group: the f16 scale, the zero point, and the elements.
struct Group {
  uint16_t Scale = 0;
  int Zero = 8;
  std::vector<int> Elements;

  Group(const std::vector<float> &values, bool hasZeros) {
    double least = 0, most = 0, largest = 0;
    for (double value : values) {
      least = std::min(least, value);
      most = std::max(most, value);
      largest = std::fabs(value) > std::fabs(largest) ? value : largest;
    }
    const auto range = static_cast<float>(most - least);
    Scale = rounded(KILN_F16, static_cast<float>(hasZeros ? range / 15.0 : largest / -8));
    const double scale = valueOfHalf(Scale);
    auto whole = [&](double value) { return static_cast<int>(nearestEven(static_cast<float>(value / scale))); };
    if (hasZeros)
      Zero = scale == 0 ? 0 : std::min(15, std::max(0, whole(-least)));
    for (double value : values)
      Elements.push_back(scale == 0 ? Zero : std::min(15, std::max(0, whole(value) + Zero)));
  }
  float value(size_t i) const { return static_cast<float>((Elements[i] - Zero) * valueOfHalf(Scale)); }
};

/// Writes the quantised matrix of a placement into the packed copy, and returns the dequantised values.
std::vector<float> storeGroupsNaively(std::string &packed, const Matrix &matrix, const kiln_placement_t &place) {
  const bool isByRow = place.dim == 0;
  const int64_t kExtent = isByRow ? matrix.Columns : matrix.Rows, outputs = isByRow ? matrix.Rows : matrix.Columns;
  auto indexOf = [&](int64_t n, int64_t k) { return isByRow ? n * kExtent + k : k * outputs + n; };
  std::vector<float> decoded(matrix.Values.size());
  for (int64_t n = 0; n < outputs; ++n)
    for (int64_t first = 0; first < kExtent; first += place.group) {
      std::vector<float> values;
      for (int64_t k = first; k < first + place.group; ++k)
        values.push_back(matrix.Values[indexOf(n, k)]);
      const Group group(values, place.zeros != 0);
      const uint64_t at = place.shift + n, tile = at / place.tile, lane = at % place.tile;
      auto placeOf = [&](uint64_t each) { return (tile * (kExtent / each) + first / each) * place.tile + lane; };
      packed.replace(place.scales + placeOf(place.group) * 2, 2, reinterpret_cast<const char *>(&group.Scale), 2);
      if (place.zeros)
        packed[place.zeros + placeOf(place.group)] = static_cast<char>(group.Zero - 8);
      for (int64_t i = 0; i < place.group; i += 8) {
        uint32_t word = 0;
        const int order[] = {0, 4, 1, 5, 2, 6, 3, 7}; // from the lowest bits on
        for (int nibble = 0; nibble < 8; ++nibble)
          word |= static_cast<uint32_t>((group.Elements[i + order[nibble]] - 8) & 15) << (4 * nibble);
        packed.replace((placeOf(8) + i / 8 * place.tile) * 4, 4, reinterpret_cast<const char *>(&word), 4);
      }
      for (int64_t i = 0; i < place.group; ++i)
        decoded[indexOf(n, first + i)] = group.value(i);
    }
  return decoded;
}

kiln_weight_t weightOf(const Matrix &matrix) { return {"w", KILN_F32, 2, {matrix.Rows, matrix.Columns}, 1, 0}; }

// Sizes around tiles and the conversion's block size; only the weight's bytes, scales and zero points change.
TEST(StoredGroups, LieWhereTheDefinitionSays) {
  int cases = 0;
  for (Form form : AllForms)
    for (kiln_dtype_t source : {KILN_F32, KILN_F16, KILN_BF16})
      for (int64_t outputs : {1, 31, 33, 150})
        for (int64_t groups : {1, 3, 5})
          for (uint32_t tile : {1u, 8u, 48u})
            for (uint32_t dim : {0u, 1u})
              for (uint64_t shift : {0u, 61u}) {
                const int64_t kExtent = groups * form.Group;
                const Matrix matrix(source, dim == 0 ? outputs : kExtent, dim == 0 ? kExtent : outputs);
                const kiln_weight_t weight = weightOf(matrix);
                const kiln_placement_t placement =
                    groupedPlacement(form, matrix.Rows, matrix.Columns, tile, dim, shift);
                GuardedMemory data(" " + matrix.Bytes), packed(kiln_pack_bytes(&weight, &placement));
                ASSERT_GT(packed.size(), 0u);
                std::memset(packed.data(), 0x7E, packed.size());
                std::string expected(packed.data(), packed.size());
                storeGroupsNaively(expected, matrix, placement);
                ASSERT_TRUE(kiln_pack_weight(packed.data(), data.data() + 1, source, &weight, &placement));
                ASSERT_EQ(std::memcmp(packed.data(), expected.data(), expected.size()), 0)
                    << "group " << form.Group << " zeros " << form.HasZeros << " [" << matrix.Rows << ", "
                    << matrix.Columns << "] tile " << tile << " dim " << dim << " shift " << shift;
                ASSERT_TRUE(packed.isFrontIntact());
                ++cases;
              }
  EXPECT_EQ(cases, 4 * 3 * 4 * 3 * 3 * 2 * 2);
}

// As in Q4_0 files: the element of largest magnitude is -8 steps, whatever its sign.
TEST(StoredGroups, KnownNumbers) {
  std::vector<float> values(64, 0);
  values[3] = -2, values[4] = 1.75f, values[5] = 0.125f, values[6] = 0.375f, values[7] = 1e-9f;
  values[32] = 4, values[39] = -4;
  const Group first({values.begin(), values.begin() + 32}, false), second({values.begin() + 32, values.end()}, false);
  EXPECT_EQ(valueOfHalf(first.Scale), 0.25);
  EXPECT_EQ(valueOfHalf(second.Scale), -0.5);
  Matrix matrix(KILN_F32, 1, 64);
  matrix.Values = values;
  const kiln_weight_t weight = weightOf(matrix);
  const kiln_placement_t placement = groupedPlacement({32, false}, 1, 64, 1, 0, 0);
  std::string packed(kiln_pack_bytes(&weight, &placement), '\0');
  ASSERT_TRUE(kiln_pack_weight(packed.data(), bytesOf(values).data(), KILN_F32, &weight, &placement));
  uint32_t words[8];
  std::memcpy(words, packed.data(), sizeof words);
  EXPECT_EQ(words[0], 0x08200070u); // 3 becomes -8; 4 becomes 7; 5 is half a step, rounded to even 0; 6 is one and a
                                    // half, rounded to even 2
  EXPECT_EQ(words[4], 0x70000008u); // 8 steps of -0.5 in the other direction exceed the range by one
  for (int i : {1, 2, 3, 5, 6, 7})
    EXPECT_EQ(words[i], 0u);
}

TEST(StoredGroups, AreReadAsTheNumbersThatTheyStandFor) {
  for (Form form : AllForms)
    for (uint32_t dim : {0u, 1u}) {
      const Matrix matrix(KILN_F32, dim == 0 ? 37 : 256, dim == 0 ? 256 : 37);
      const kiln_placement_t placement = groupedPlacement(form, matrix.Rows, matrix.Columns, 16, dim, 0);
      const kiln_weight_t weight = weightOf(matrix);
      std::string packed(kiln_pack_bytes(&weight, &placement), '\0');
      const std::vector<float> decoded = storeGroupsNaively(packed, matrix, placement);
      BoundModel model({weight}, {placement}, packed.size());
      ASSERT_EQ(model.bind({{"w", "F32", {matrix.Rows, matrix.Columns}, matrix.Bytes}}), KILN_OK);
      std::vector<float> read(decoded.size());
      read = model.read("w", 0, matrix.Rows, matrix.Columns);
      EXPECT_EQ(read, decoded);
    }
}

TEST(StoredGroups, WhatCannotBeStoredIsSaid) {
  const Matrix matrix(KILN_F32, 40, 128);
  const kiln_placement_t placement = groupedPlacement(AllForms[0], 40, 128, 16, 0, 0);
  const kiln_weight_t weight = weightOf(matrix);
  for (auto [value, words] : {std::pair(0x1p18f, ""),
                              {-0x1p18f, ""},
                              {std::nextafterf(0x1p18f, INFINITY), "I4, got 262144.031"},
                              {NAN, "I4, got nan"},
                              {-INFINITY, "I4, got -inf"}}) {
    std::string bytes = matrix.Bytes;
    put<float>(bytes, (39 * 128 + 127) * 4, {value});
    BoundModel model({weight}, {placement}, kiln_pack_bytes(&weight, &placement));
    const kiln_status_t status = model.bind({{"w", "F32", {40, 128}, bytes}});
    EXPECT_EQ(status, *words ? KILN_WEIGHT_VALUE : KILN_OK);
    if (*words)
      EXPECT_NE(std::string(model.Error.message).find(std::string(words) + " at [39, 127]"), std::string::npos)
          << model.Error.message;
  }
}

// The quotient of the value and the scale, which is not used, does not fit a 32-bit integer; found by libFuzzer.
TEST(StoredGroups, QuotientsMayBeAnything) {
  for (Form form : AllForms) {
    const Matrix matrix(KILN_F32, 40, 128);
    const kiln_placement_t placement = groupedPlacement(form, 40, 128, 16, 0, 0);
    const kiln_weight_t weight = weightOf(matrix);
    std::string bytes = matrix.Bytes;
    put<float>(bytes, (39 * 128 + 127) * 4, {-1968159.5f});
    BoundModel model({weight}, {placement}, kiln_pack_bytes(&weight, &placement));
    EXPECT_EQ(model.bind({{"w", "F32", {40, 128}, bytes}}), KILN_WEIGHT_VALUE);
  }
}

TEST(StoredGroups, PlacementsThatMakeNoSenseCoverNoBytes) {
  const kiln_weight_t matrix = {"m", KILN_F32, 2, {50, 64}, 1, 0}, odd = {"m", KILN_F32, 2, {50, 72}, 1, 0};
  auto place = [](uint64_t scales, uint32_t group, uint64_t zeros) {
    return makePlacement(0, 0, 16, 0, 0, KILN_I4, scales, group, zeros);
  };
  const struct {
    const kiln_weight_t &Weight;
    kiln_placement_t Placement;
    uint64_t Bytes;
  } cases[] = {
      {matrix, place(2048, 32, 0), 2048 + 2 * 64 * 2},
      {matrix, place(2048, 64, 2176), 2176 + 64},
      {matrix, place(2048, 16, 0), 0 /* no such group */},
      {matrix, place(2048, 128, 0), 0 /* half a group */},
      {odd, place(4096, 32, 0), 0},
      {matrix, place(2044, 32, 0), 0 /* scales overlap the elements */},
      {matrix, place(2050, 32, 0), 0 /* not aligned */},
      {matrix, place(2048, 64, 2172), 0 /* zeros overlap the scales */},
      {matrix, place(0, 32, 0), 0 /* no scales */},
  };
  for (const auto &test : cases)
    EXPECT_EQ(kiln_pack_bytes(&test.Weight, &test.Placement), test.Bytes) << &test - cases;
}

// The same bytes on every machine, with every compiler.
TEST(StoredGroups, GoldenBytes) {
  uint64_t hash = 0xCBF29CE484222325u; // FNV-1a
  for (Form form : AllForms)
    for (uint32_t dim : {0u, 1u}) {
      const Matrix matrix(KILN_F32, dim == 0 ? 193 : 256, dim == 0 ? 256 : 193, 26);
      const kiln_weight_t weight = weightOf(matrix);
      const kiln_placement_t placement = groupedPlacement(form, matrix.Rows, matrix.Columns, 48, dim, 0);
      GuardedMemory packed(std::string(kiln_pack_bytes(&weight, &placement), '\0'));
      ASSERT_TRUE(kiln_pack_weight(packed.data(), matrix.Bytes.data(), KILN_F32, &weight, &placement));
      for (size_t at = 0; at < packed.size(); ++at)
        hash = (hash ^ static_cast<unsigned char>(packed.data()[at])) * 0x100000001B3u;
    }
  EXPECT_EQ(hash, 2712091596736918121u);
}

} // namespace
