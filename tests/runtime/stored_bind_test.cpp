// SPDX-License-Identifier: Apache-2.0
// Binding quantised weights: concatenated sources, copies, rows read back, and files with values that cannot be stored.
// Values are integers times powers of two, so that each result is known exactly.
#include "stored_numbers.h"

#include <cmath>
#include <gtest/gtest.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace {

using namespace kiln_test;

// q and k concatenated in tiles of four, for each of two layers; then an unquantised weight of the same layers.
TEST(StoredBind, JoinedSourcesAndCopies) {
  BoundModel model({{"h.{}.q", KILN_F32, 2, {3, 2}, 2, 0},
                    {"h.{}.k", KILN_F32, 2, {2, 2}, 2, 0},
                    {"h.{}.bias", KILN_F32, 1, {1}, 2, 0}},
                   {makePlacement(0, 128, 4, 0, 0, KILN_I8, 64), makePlacement(0, 128, 4, 0, 3, KILN_I8, 64),
                    makePlacement(256, 4, 0, 0, 0)},
                   264);
  const std::vector<float> q0 = {127, 1, 0, 0, -254, 2}, k0 = {63.5f, 1, -3, 127}, q1 = {-127, 5, 254, 254, 4, 127};
  const std::vector<uint16_t> k1 = {0xC2FE, 0x4040, 0x3F80, 0x42FE}; // bf16: -127, 3, 1, 127
  ASSERT_EQ(model.bind({{"h.0.bias", "F32", {1}, bytesOf(std::vector<float>{7})},
                        {"h.0.k", "F32", {2, 2}, bytesOf(k0)},
                        {"h.0.q", "F32", {3, 2}, bytesOf(q0)},
                        {"h.1.bias", "F32", {1}, bytesOf(std::vector<float>{8})},
                        {"h.1.k", "BF16", {2, 2}, bytesOf(k1)},
                        {"h.1.q", "F32", {3, 2}, bytesOf(q1)}}),
            KILN_OK)
      << model.Error.message;
  std::string expected(264, '\0');
  // [tile][k][n]: q's three rows and the first of k, then k's second row and padding.
  put<int8_t>(expected, 0, {127, 0, -127, 127, 1, 0, 1, 2, -3, 0, 0, 0, 127, 0, 0, 0});
  put<float>(expected, 64, {1, 0, 2, 0.5f, 1, 0, 0, 0});
  put<int8_t>(expected, 128, {-127, 127, 4, -127, 5, 127, 127, 3, 1, 0, 0, 0, 127, 0, 0, 0});
  put<float>(expected, 192, {1, 2, 1, 1, 1, 0, 0, 0});
  put<float>(expected, 256, {7, 8});
  EXPECT_EQ(model.packed(), expected);
  EXPECT_EQ(model.Counter.Made, 3) << "the model, the index and the packed copy: nothing for what is converted";
  EXPECT_EQ(model.read("h.0.q", 0, 3, 2), q0);
  EXPECT_EQ(model.read("h.0.q", 1, 2, 2), (std::vector<float>{0, 0, -254, 2}));
  EXPECT_EQ(model.read("h.0.k", 0, 2, 2), k0);
  EXPECT_EQ(model.read("h.1.k", 0, 2, 2), (std::vector<float>{-127, 3, 1, 127}));
  EXPECT_EQ(model.read("h.1.bias", 0, 1, 1), (std::vector<float>{8}));
}

// With outputs along the columns, there is one scale per column. Reading returns the quantised values, not those of the
// file.
TEST(StoredBind, ReadsWhatTheStoredFormStandsFor) {
  const std::vector<float> given = {127, -0.3f, 2, 31.75f, 0.5f, 1e-8f, 1 + 0x1p-9f, 65519.99f, 1 + 3 * 0x1p-11f};
  auto bound = [&](kiln_dtype_t stored, uint64_t scales) {
    BoundModel model({{"w", KILN_F32, 2, {3, 3}, 1, 0}}, {makePlacement(0, 0, 2, 1, 0, stored, scales)}, 128);
    EXPECT_EQ(model.bind({{"w", "F32", {3, 3}, bytesOf(given)}}), KILN_OK) << model.Error.message;
    std::vector<float> values = model.read("w", 0, 3, 3), rows;
    for (uint64_t row = 0; row < 3; ++row)
      for (float value : model.read("w", row, 1, 3))
        rows.push_back(value);
    EXPECT_EQ(rows, values);
    return values;
  };
  EXPECT_EQ(bound(KILN_F16, 0),
            (std::vector<float>{127, -0x1.334p-2f, 2, 31.75f, 0.5f, 0, 1 + 0x1p-9f, 65504, 1 + 0x1p-9f}));
  EXPECT_EQ(bound(KILN_BF16, 0), (std::vector<float>{127, -0x1.34p-2f, 2, 31.75f, 0.5f, 0x1.58p-27f, 1, 65536, 1}));
  const float large = 65519.99f / 127, small = 2.0f / 127;
  EXPECT_EQ(bound(KILN_I8, 64),
            (std::vector<float>{127, 0, 2, 32, 0, 0, 1, large * 127, std::round((1 + 3 * 0x1p-11f) / small) * small}));
}

#if defined(__SSE__)
TEST(StoredBind, RowsAreReadInAnyMode) {
  BoundModel model({{"w", KILN_F32, 2, {1, 3}, 1, 0}}, {makePlacement(0, 0, 1, 0, 0, KILN_I8, 4)}, 8);
  const std::vector<float> tiny = {127 * 0x1p-149f, -3 * 0x1p-149f, 0};
  ASSERT_EQ(model.bind({{"w", "F32", {1, 3}, bytesOf(tiny)}}), KILN_OK) << model.Error.message;
  std::vector<float> values(3);
  const unsigned before = _mm_getcsr(), mode = 0x9FC0 ^ 0x1000; // flushes subnormals and traps on inexact results
  _mm_setcsr(mode);
  const kiln_status_t status = kiln_read_weight(model.Model, "w", 0, 1, values.data(), nullptr);
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_EQ(status, KILN_OK);
  EXPECT_EQ(after, mode);
  EXPECT_EQ(values, tiny);
}
#endif

TEST(StoredBind, NumbersThatCannotBeStoredLeaveTheModelAsItWas) {
  const float huge = 3.4e38f;
  const struct {
    kiln_dtype_t Stored;
    const char *Source, *Words;
    float Value;
    uint16_t Half;
    bool IsRefused;
  } cases[] = {
      {KILN_F16, "F32", "F16, got nan", NAN, 0, true},
      {KILN_BF16, "F32", "BF16, got -nan", -NAN, 0, true},
      {KILN_I8, "F32", "I8, got nan", NAN, 0, true},
      {KILN_F16, "F32", "F16, got -inf", -INFINITY, 0, true},
      {KILN_BF16, "F32", "BF16, got inf", INFINITY, 0, true},
      {KILN_I8, "F32", "I8, got inf", INFINITY, 0, true},
      {KILN_F16, "F16", "F16, got inf", 0, 0x7C00, true},
      {KILN_F16, "F16", "F16, got nan", 0, 0x7E01, true},
      {KILN_BF16, "F16", "BF16, got -inf", 0, 0xFC00, true},
      {KILN_I8, "F16", "I8, got inf", 0, 0x7C00, true},
      {KILN_I8, "BF16", "I8, got nan", 0, 0x7FC0, true},
      {KILN_BF16, "BF16", "BF16, got inf", 0, 0x7F80, true},
      {KILN_F16, "F32", "F16, got 65520", 65520, 0, true},
      {KILN_F16, "F32", "F16, got -65520", -65520, 0, true},
      {KILN_F16, "BF16", "F16, got 65536", 0, 0x4780, true},
      {KILN_F16, "F32", "", std::nextafterf(65520, 0), 0, false},
      {KILN_BF16, "F32", "BF16, got 3.39999995e+38", huge, 0, true},
      {KILN_BF16, "F32", "", 0x1.fefffep127f, 0, false},
      {KILN_BF16, "BF16", "", 0, 0x7F7F, false},
      {KILN_I8, "F32", "I8, got 1.70141204e+38", std::nextafterf(0x1p127f, INFINITY), 0, true},
      {KILN_I8, "F32", "I8, got -3.39999995e+38", -huge, 0, true},
      {KILN_I8, "F32", "", -0x1p127f, 0, false},
  };
  const int64_t rows = 150, columns = 530;
  for (const auto &test : cases)
    for (uint32_t dim : {0u, 1u}) {
      const uint64_t elements = dim == 0 ? 160 * 530 : 544 * 150, scales = test.Stored == KILN_I8 ? elements : 0;
      BoundModel model({{"w.{}", KILN_F32, 2, {rows, columns}, 2, 0}},
                       {makePlacement(0, 4 * elements, 16, dim, 0, test.Stored, scales)}, 8 * elements);
      const bool isWide = std::string_view(test.Source) == "F32";
      std::string first(rows * columns * (isWide ? 4 : 2), '\0'), second = first;
      ASSERT_EQ(
          model.bind({{"w.0", test.Source, {rows, columns}, first}, {"w.1", test.Source, {rows, columns}, second}}),
          KILN_OK);
      const char *const memory = model.Model->packed;
      const std::string before = model.packed();
      for (int64_t at : {int64_t{149} * columns + 529, int64_t{131} * columns + 7, int64_t{133} * columns + 3}) {
        if (isWide)
          put<float>(second, at * 4, {test.Value});
        else
          put<uint16_t>(second, at * 2, {test.Half});
      }
      const kiln_status_t status =
          model.bind({{"w.0", test.Source, {rows, columns}, first}, {"w.1", test.Source, {rows, columns}, second}});
      EXPECT_EQ(status, test.IsRefused ? KILN_WEIGHT_VALUE : KILN_OK) << model.Error.message;
      EXPECT_EQ(model.Counter.Alive, 2);
      if (!test.IsRefused)
        continue;
      // The message has the first position in the order of the file, whichever is packed first.
      EXPECT_EQ(std::string(model.Error.message),
                std::string("tensor \"w.1\": value does not fit; expected one of ") + test.Words + " at [131, 7]");
      EXPECT_EQ(model.Model->packed, memory);
      EXPECT_EQ(model.packed(), before);
    }
}

TEST(StoredBind, WritingIsRefused) {
  BoundModel model({{"w", KILN_F32, 2, {2, 2}, 1, KILN_WEIGHT_VARIABLE}}, {makePlacement(0, 0, 2, 0, 0, KILN_F16)}, 8);
  const std::vector<float> values = {1, 2, 3, 4};
  ASSERT_EQ(model.bind({{"w", "F32", {2, 2}, bytesOf(values)}}), KILN_OK) << model.Error.message;
  const std::string before = model.packed();
  for (uint64_t rows : {1u, 2u}) {
    EXPECT_EQ(kiln_write_weight(model.Model, "w", 0, rows, values.data(), &model.Error), KILN_INVALID_ARGUMENT);
    EXPECT_STREQ(model.Error.message,
                 "rows of a weight: no access; expected a variable stored in its own type to write, got \"w\"");
  }
  EXPECT_EQ(model.packed(), before);
}

TEST(StoredBind, PlacesOutsideOfThePackedCopyAreInternalErrors) {
  for (const kiln_placement_t &placement :
       {makePlacement(0, 0, 2, 0, 0, KILN_I8, 60), makePlacement(4, 0, 2, 0, 0, KILN_I8, 56),
        makePlacement(0, 0, 2, 0, 0, KILN_I8, 2), makePlacement(60, 0, 2, 0, 0, KILN_F16)}) {
    BoundModel model({{"w", KILN_F32, 2, {2, 2}, 1, 0}}, {placement}, 67);
    EXPECT_EQ(model.bind({{"w", "F32", {2, 2}, std::string(16, '\0')}}), KILN_INTERNAL_ERROR);
    EXPECT_STREQ(model.Error.message, "weight \"w\": wrong place; expected one in 67 packed bytes");
  }
}

} // namespace
