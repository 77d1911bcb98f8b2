// SPDX-License-Identifier: Apache-2.0
// Weight files of f16 and bf16 for a model of f32: every number of either type is converted exactly, and is packed
// where an f32 of the file would be. stored_weights_test.cpp tests the opposite direction.
#include "support.h"
#include "weights/convert.h"
#include "weights/pack.h"

#include <cmath>
#include <gtest/gtest.h>
#include <numeric>

namespace {

using namespace kiln_test;

/// Returns the f32 bits of a 16-bit number, from the definition: (-1)^sign * 2^(exponent - bias) * 1.fraction, without
/// the leading 1 for subnormal numbers; the largest exponent encodes infinity, and NaN with its payload.
uint32_t widened(uint16_t bits, int fractionBits, int bias) {
  const uint32_t sign = bits >> 15, fraction = bits & ((1u << fractionBits) - 1);
  const int exponent = (bits & 0x7FFF) >> fractionBits, last = (0x7FFF >> fractionBits);
  if (exponent == last)
    return sign << 31 | 0x7F800000 | fraction << (23 - fractionBits);
  const uint32_t significand = exponent == 0 ? fraction : fraction | 1u << fractionBits;
  const float size = std::ldexp(static_cast<float>(significand), std::max(exponent, 1) - bias - fractionBits);
  const float value = sign ? -size : size;
  uint32_t result;
  std::memcpy(&result, &value, sizeof result);
  return result;
}
uint32_t widened(kiln_dtype_t from, uint16_t bits) {
  return from == KILN_F16 ? widened(bits, 10, 15) : widened(bits, 7, 127);
}
std::string widened(kiln_dtype_t from, const std::vector<uint16_t> &numbers) {
  std::vector<uint32_t> result;
  for (uint16_t number : numbers)
    result.push_back(widened(from, number));
  return bytesOf(result);
}

/// Returns `count` numbers of all kinds in random order.
std::vector<uint16_t> numbers(size_t count, uint32_t seed = 1) {
  std::vector<uint16_t> result(count);
  for (uint16_t &number : result)
    number = static_cast<uint16_t>((seed = seed * 1664525u + 1013904223u) >> 16);
  return result;
}

std::vector<uint16_t> everyNumber() {
  std::vector<uint16_t> result(65536);
  std::iota(result.begin(), result.end(), uint16_t{0});
  return result;
}

/// Binds these tensors to a model of these weights, with a counting allocator, and returns the packed bytes.
std::string bind(const std::vector<kiln_weight_t> &weights, const std::vector<kiln_placement_t> &placements,
                 uint64_t packedBytes, const std::vector<Tensor> &tensors, kiln_status_t wanted = KILN_OK,
                 const std::string &message = "") {
  const kiln_cpu_t cpu = kiln_cpu_detect();
  const kiln_variant_t variant = hostVariant("x86-64-v2", HostFeatures, placements.data(), packedBytes, nullptr);
  const kiln_descriptor_t descriptor = {KILN_ABI_VERSION,
                                        static_cast<uint32_t>(weights.size()),
                                        0,
                                        1,
                                        "half",
                                        weights.data(),
                                        nullptr,
                                        &variant,
                                        nullptr,
                                        0};
  CountingAllocator counter;
  const kiln_allocator_t functions = counter.get();
  const kiln_options_t options = {.allocator = &functions};
  kiln_model_t *model = nullptr;
  kiln_error_t error = {};
  EXPECT_EQ(kiln_model_create(&descriptor, &cpu, &options, &model, &error), KILN_OK) << error.message;
  GuardedMemory image(makeImage(tensors));
  EXPECT_EQ(kiln_bind_weights_from_memory(model, image.data(), image.size(), &error), wanted) << error.message;
  EXPECT_EQ(error.message, message);
  // The model, the index and the packed copy; no allocation for the conversion.
  EXPECT_EQ(counter.Made, wanted == KILN_OK ? 3 : 2);
  std::string packed = model->packed ? std::string(model->packed, packedBytes) : "";
  kiln_destroy(model);
  EXPECT_EQ(counter.Alive, 0);
  return packed;
}

const struct {
  kiln_dtype_t Type;
  const char *Text;
} Halves[] = {{KILN_F16, "F16"}, {KILN_BF16, "BF16"}};

TEST(Convert, KnownNumbers) {
  const struct {
    kiln_dtype_t From;
    uint16_t Bits;
    float Value;
  } cases[] = {{KILN_F16, 0x3C00, 1},
               {KILN_F16, 0xC000, -2},
               {KILN_F16, 0x7BFF, 65504},
               {KILN_F16, 0x0001, 0x1p-24f},
               {KILN_F16, 0x83FF, -0x1.ff8p-15f},
               {KILN_F16, 0x0400, 0x1p-14f},
               {KILN_F16, 0x3555, 0x1.554p-2f},
               {KILN_F16, 0xFC00, -INFINITY},
               {KILN_BF16, 0x3F80, 1},
               {KILN_BF16, 0xC049, -3.140625f},
               {KILN_BF16, 0x0001, 0x1p-133f},
               {KILN_BF16, 0x7F80, INFINITY}};
  for (const auto &test : cases) {
    float value;
    kiln_convert_widen(&value, reinterpret_cast<const char *>(&test.Bits), 1, test.From);
    EXPECT_EQ(value, test.Value) << std::hex << test.Bits;
    uint32_t bits = widened(test.From, test.Bits);
    EXPECT_EQ(std::memcmp(&bits, &test.Value, sizeof bits), 0) << "the test's own reading of " << std::hex << test.Bits;
  }
}

TEST(Convert, EveryNumberKeepsItsValueAndEveryNaNItsBits) {
  const std::vector<uint16_t> every = everyNumber();
  for (const auto &half : Halves) {
    const std::string packed = bind({{"w", KILN_F32, 1, {65536}, 1, 0}}, {makePlacement(0, 0, 0, 0, 0)}, 65536 * 4,
                                    {{"w", half.Text, {65536}, bytesOf(every)}});
    const std::string expected = widened(half.Type, every);
    for (size_t i = 0; i < every.size(); ++i)
      ASSERT_EQ(packed.compare(i * 4, 4, expected, i * 4, 4), 0) << half.Text << " " << std::hex << i;
  }
}

// Sizes around the conversion's block size (128 rows of 32 columns, 8 of 512, a row of 4096), tiles and cache lines.
TEST(Convert, LandsWhereF32Would) {
  const int64_t extents[][2] = {{1, 1},   {3, 5},   {47, 33},  {48, 64},  {128, 32},  {129, 31},
                                {300, 7}, {9, 513}, {1, 4097}, {4099, 1}, {131, 517}, {16, 1025}};
  int cases = 0;
  for (const auto &half : Halves)
    for (const auto &extent : extents)
      for (uint32_t tile : {0u, 1u, 16u, 48u, 150u})
        for (uint32_t dim : {0u, 1u})
          for (uint64_t shift : {0u, 15u, 48u}) {
            const kiln_weight_t weight = {"w", KILN_F32, 2, {extent[0], extent[1]}, 1, 0};
            const kiln_placement_t placement = makePlacement(0, 0, tile, dim, shift);
            const std::vector<uint16_t> given = numbers(extent[0] * extent[1]);
            // Shifted by one byte, since tensors of a file are not aligned.
            GuardedMemory source(" " + bytesOf(given)), same(widened(half.Type, given));
            GuardedMemory packed(kiln_pack_bytes(&weight, &placement)), expected(packed.size());
            kiln_pack_weight(packed.data(), source.data() + 1, half.Type, &weight, &placement);
            kiln_pack_weight(expected.data(), same.data(), KILN_F32, &weight, &placement);
            ASSERT_EQ(std::memcmp(packed.data(), expected.data(), expected.size()), 0)
                << half.Text << " [" << extent[0] << ", " << extent[1] << "] tile " << tile << " dim " << dim
                << " shift " << shift;
            ASSERT_TRUE(packed.isFrontIntact());
            ++cases;
          }
  EXPECT_EQ(cases, 2 * 12 * 5 * 2 * 3);
}

TEST(Convert, ConvolutionsAndVectors) {
  const kiln_weight_t window = {"c", KILN_F32, 4, {50, 7, 3, 5}, 1, 0}, matrix = {"m", KILN_F32, 2, {50, 105}, 1, 0};
  const kiln_placement_t placement = makePlacement(0, 0, 16, 0, 0);
  GuardedMemory source(bytesOf(numbers(50 * 105)));
  GuardedMemory packed(kiln_pack_bytes(&window, &placement)), expected(kiln_pack_bytes(&matrix, &placement));
  kiln_pack_weight(packed.data(), source.data(), KILN_BF16, &window, &placement);
  kiln_pack_weight(expected.data(), source.data(), KILN_BF16, &matrix, &placement);
  EXPECT_EQ(std::memcmp(packed.data(), expected.data(), packed.size()), 0);
  const kiln_weight_t scalar = {"s", KILN_F32, 0, {}, 1, 0};
  const kiln_placement_t dense = makePlacement(0, 0, 0, 0, 1);
  float two[2] = {7, 7};
  const uint16_t one = 0x3C00;
  kiln_pack_weight(reinterpret_cast<char *>(two), reinterpret_cast<const char *>(&one), KILN_F16, &scalar, &dense);
  EXPECT_EQ(two[0], 7);
  EXPECT_EQ(two[1], 1);
}

// Each tensor of a file may have a different type: two weights that are concatenated in tiles, a table that is packed
// twice, and copies of a stack.
TEST(Convert, TypesMayDifferFromTensorToTensor) {
  const std::vector<kiln_weight_t> weights = {{"k", KILN_F32, 2, {2, 2}, 1, 0},
                                              {"q", KILN_F32, 2, {3, 2}, 1, 0},
                                              {"q", KILN_F32, 2, {3, 2}, 1, 0},
                                              {"h.{}", KILN_F32, 1, {1}, 2, 0}};
  // q dense; q and k concatenated in tiles of four: [k0][n0 .. n3], [k1][n0 .. n3], then the second tile; h.0, h.1.
  const std::vector<kiln_placement_t> placements = {makePlacement(24, 0, 4, 0, 3), makePlacement(0, 0, 0, 0, 0),
                                                    makePlacement(24, 0, 4, 0, 0), makePlacement(88, 4, 0, 0, 0)};
  const std::vector<uint16_t> q = {0x3C00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600};   // f16: 1 to 6
  const std::vector<uint16_t> k = {0x40E0, 0x4100, 0x4110, 0x4120}, first = {0x4130}; // bf16: 7 to 10, 11
  const std::vector<float> second = {12}, expected = {1, 2, 3, 4, 5,  6,              // q
                                                      1, 3, 5, 7, 2,  4, 6, 8,        // q and the first row of k
                                                      9, 0, 0, 0, 10, 0, 0, 0, 11, 12};
  EXPECT_EQ(bind(weights, placements, 96,
                 {{"h.0", "BF16", {1}, bytesOf(first)},
                  {"h.1", "F32", {1}, bytesOf(second)},
                  {"k", "BF16", {2, 2}, bytesOf(k)},
                  {"q", "F16", {3, 2}, bytesOf(q)}}),
            bytesOf(expected));
}

TEST(Convert, OtherTypesAreRefusedWithThoseThatWouldDo) {
  const char *const others[] = {"F64", "I32", "I8", "BOOL", "I16", "F8_E4M3"};
  const size_t bytes[] = {8, 4, 1, 1, 2, 1};
  for (size_t i = 0; i < std::size(others); ++i)
    bind({{"w", KILN_F32, 1, {3}, 1, 0}}, {makePlacement(0, 0, 0, 0, 0)}, 12,
         {{"w", others[i], {3}, std::string(3 * bytes[i], '\0')}}, KILN_WEIGHT_TYPE,
         std::string("tensor \"w\": wrong type; expected F32, F16 or BF16, got ") + others[i]);
  for (const auto &half : Halves) {
    bind({{"w", KILN_I8, 1, {3}, 1, 0}}, {makePlacement(0, 0, 0, 0, 0, KILN_I8)}, 3,
         {{"w", half.Text, {3}, std::string(6, '\0')}}, KILN_WEIGHT_TYPE,
         std::string("tensor \"w\": wrong type; expected I8, got ") + half.Text);
    bind({{"w", half.Type, 1, {3}, 1, 0}}, {makePlacement(0, 0, 0, 0, 0, half.Type)}, 6,
         {{"w", "I16", {3}, std::string(6, '\0')}}, KILN_WEIGHT_TYPE,
         "tensor \"w\": wrong type; expected F32, F16 or BF16, got I16");
  }
  // An f16 weight is stored unchanged.
  EXPECT_EQ(
      bind({{"w", KILN_F16, 1, {3}, 1, 0}}, {makePlacement(0, 0, 0, 0, 0, KILN_F16)}, 6, {{"w", "F16", {3}, "abcdef"}}),
      "abcdef");
}

} // namespace
