// SPDX-License-Identifier: Apache-2.0
// fp8 and NVFP4 safetensors files whose scales are those of a storage format: numbers and scales are kept unchanged,
// and inconsistent parts are refused with a message.
#include "third_party_files.h"
#include "weights/pack.h"

#include <cmath>
#include <gtest/gtest.h>

namespace {

using namespace kiln_test;

kiln_status_t bindScaled(BoundModel &model, const std::string &image, kiln_quantization_t quantization) {
  const TemporaryFile file(image);
  return kiln_bind_quantized(model.Model, file.path(), quantization, nullptr, 0, &model.Error);
}

/// Returns codes of e4m3 in turn, without NaN, and as many scales.
std::string codesOfF8(int64_t count) {
  std::string codes;
  for (int64_t i = 0; i < count; ++i)
    codes.push_back(static_cast<char>(i % 127 | (i % 3 ? 0 : 0x80)));
  return codes;
}

/// Binds an fp8 matrix with these scales to a placement, and expects its codes if they are kept.
void expectF8Kept(int64_t rows, int64_t columns, const std::vector<int64_t> &scales, uint32_t group, bool isKept) {
  SCOPED_TRACE(std::to_string(group) + " " + std::to_string(scales.size()));
  int64_t count = 1;
  for (int64_t extent : scales)
    count *= extent;
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(0.75f / static_cast<float>(i + 3));
  const std::string codes = codesOfF8(rows * columns);
  const std::vector<Tensor> tensors = {{"m.weight", "F8_E4M3", {rows, columns}, codes},
                                       {"m.weight_scale", "F32", scales, bytesOf(values)}};
  const kiln_weight_t weight = {"m.weight", KILN_F32, 2, {rows, columns}, 1, 0};
  std::vector<float> read[2];
  for (uint32_t tile : {1u, 16u}) {
    const kiln_placement_t place = makeStoredPlacement(KILN_F8E4M3, rows, columns, tile, 0, 0, group);
    BoundModel model({weight}, {place}, kiln_pack_bytes(&weight, &place));
    ASSERT_EQ(bindScaled(model, makeImage(tensors), KILN_FP8), KILN_OK) << model.Error.message;
    read[tile > 1] = model.read("m.weight", 0, rows, columns);
    if (tile == 1) {
      EXPECT_EQ(model.packed().substr(0, codes.size()) == codes, isKept);
    }
  }
  BoundModel plain({weight}, {makePlacement(0, 0, 16, 0, 0)}, static_cast<size_t>((rows + 15) / 16 * 16 * columns * 4));
  ASSERT_EQ(bindScaled(plain, makeImage(tensors), KILN_FP8), KILN_OK);
  EXPECT_EQ(bytesOf(read[0]), bytesOf(read[1]));
  EXPECT_EQ(bytesOf(read[0]) == bytesOf(plain.read("m.weight", 0, rows, columns)), isKept);
}

// Scales of the whole matrix and of rows are those of outputs; those of blocks need groups of 128.
TEST(ScaledFloats, Fp8OfItsScalesStaysAsItIs) {
  expectF8Kept(37, 50, {}, 0, true);
  expectF8Kept(37, 50, {37}, 0, true);
  expectF8Kept(37, 50, {37, 1}, 0, true);
  expectF8Kept(130, 256, {2, 2}, 0, false);
  expectF8Kept(130, 256, {2, 2}, 128, true);
  expectF8Kept(37, 256, {}, 128, true);
  expectF8Kept(37, 256, {37, 1}, 128, true);
}

TEST(ScaledFloats, Fp8ThatIsKeptIsChecked) {
  auto statusOf = [](char code, float scale) {
    std::string codes = codesOfF8(2 * 128);
    codes[130] = code;
    const kiln_weight_t weight = {"m.weight", KILN_F32, 2, {2, 128}, 1, 0};
    const kiln_placement_t place = makeStoredPlacement(KILN_F8E4M3, 2, 128, 16);
    BoundModel model({weight}, {place}, kiln_pack_bytes(&weight, &place));
    return bindScaled(model,
                      makeImage({{"m.weight", "F8_E4M3", {2, 128}, codes},
                                 {"m.weight_scale", "F32", {}, bytesOf(std::vector<float>{scale})}}),
                      KILN_FP8);
  };
  EXPECT_EQ(statusOf(1, 2), KILN_OK);
  EXPECT_EQ(statusOf(0x7F, 2), KILN_WEIGHT_VALUE);
  EXPECT_EQ(statusOf(static_cast<char>(0xFF), 2), KILN_WEIGHT_VALUE);
  EXPECT_EQ(statusOf(1, NAN), KILN_WEIGHT_VALUE);
  EXPECT_EQ(statusOf(1, INFINITY), KILN_WEIGHT_VALUE);
  EXPECT_EQ(statusOf(1, 0x1p127f), KILN_WEIGHT_VALUE);
}

// Each value is its e2m1 times the product of its e4m3 and the outer scale, rounded once more; a model of nvfp4 keeps
// all three.
TEST(ScaledFloats, Nvfp4) {
  const int64_t rows = 40, columns = 96;
  std::string numbers, scales;
  std::vector<float> expected;
  const float outer = 0.3f;
  for (int64_t i = 0; i < rows * columns / 2; ++i)
    numbers.push_back(static_cast<char>(i * 37 + i / 256));
  for (int64_t i = 0; i < rows * columns / 16; ++i)
    scales.push_back(static_cast<char>(i % 127));
  for (int64_t i = 0; i < rows * columns; ++i) {
    const uint32_t code = static_cast<uint8_t>(numbers[i / 2]) >> i % 2 * 4 & 15;
    const auto scale = static_cast<float>(valueOfF8(scales[i / 16]) * static_cast<double>(outer));
    expected.push_back((code & 8 ? -1.0f : 1.0f) * static_cast<float>(F4Values[code & 7]) * scale);
  }
  const std::vector<Tensor> tensors = {{"m.weight", "U8", {rows, columns / 2}, numbers},
                                       {"m.weight_scale", "F8_E4M3", {rows, columns / 16}, scales},
                                       {"m.weight_scale_2", "F32", {}, bytesOf(std::vector<float>{outer})},
                                       {"m.input_scale", "F32", {}, bytesOf(std::vector<float>{3})}};
  const kiln_weight_t weight = {"m.weight", KILN_F32, 2, {rows, columns}, 1, 0};
  for (const kiln_placement_t &place :
       {makePlacement(0, 0, 16, 0, 0), makeStoredPlacement(KILN_F4E2M1, rows, columns, 1, 0, 0, 16, true),
        makeStoredPlacement(KILN_F4E2M1, rows, columns, 16, 0, 0, 16, true)}) {
    BoundModel model({weight}, {place}, kiln_pack_bytes(&weight, &place));
    ASSERT_EQ(bindScaled(model, makeImage(tensors), KILN_NVFP4), KILN_OK) << model.Error.message;
    EXPECT_EQ(model.read("m.weight", 0, rows, columns), expected);
    if (place.tile == 1) {
      EXPECT_EQ(model.packed().substr(place.scales, scales.size()), scales);
    }
  }
  BoundModel model({weight}, {makePlacement(0, 0, 0, 0, 0)}, rows * columns * 4);
  auto wordsOf = [&](size_t number, Tensor changed) {
    std::vector<Tensor> all = tensors;
    all[number] = std::move(changed);
    EXPECT_NE(bindScaled(model, makeImage(all), KILN_NVFP4), KILN_OK);
    return std::string(model.Error.message);
  };
  EXPECT_NE(wordsOf(2, {"other", "F32", {}, bytesOf(std::vector<float>{1})}).find("got no weight_scale_2"),
            std::string::npos)
      << model.Error.message;
  EXPECT_NE(wordsOf(1, {"other", "F32", {}, bytesOf(std::vector<float>{1})}).find("got no weight_scale"),
            std::string::npos);
  EXPECT_NE(wordsOf(2, {"m.weight_scale_2", "F32", {2}, bytesOf(std::vector<float>{1, 2})}).find("expected one number"),
            std::string::npos);
  EXPECT_NE(wordsOf(1, {"m.weight_scale", "U8", {rows, columns / 16}, scales}).find("expected F8_E4M3, got U8"),
            std::string::npos);
  EXPECT_NE(wordsOf(1, {"m.weight_scale", "F8_E4M3", {rows * 2, columns / 32}, scales}).find("wrong shape"),
            std::string::npos);
  EXPECT_NE(wordsOf(0, {"m.weight", "U8", {rows * 4, columns / 8}, numbers}).find("a multiple of 8"),
            std::string::npos);
}

} // namespace
