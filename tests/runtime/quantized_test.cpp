// SPDX-License-Identifier: Apache-2.0
// GPTQ and AWQ safetensors files: int4 with the file's group size is kept unchanged, and everything else has exactly
// the values of f64; inconsistent parts are refused with a message; mutated files never crash.
#include "readers/files.h"
#include "third_party_files.h"
#include "weights/convert.h"
#include "weights/format.h"
#include "weights/pack.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <random>

namespace {

using namespace kiln_test;

kiln_placement_t groupPlacement(int64_t outputs, int64_t inputs, uint32_t tile, uint32_t group, bool hasZeros) {
  return makeStoredPlacement(KILN_I4, outputs, inputs, tile, 0, 0, group, hasZeros);
}

kiln_status_t bindImage(BoundModel &model, const std::string &image, kiln_quantization_t quantization,
                        const std::vector<kiln_rename_t> &renames = {}) {
  const TemporaryFile file(image);
  return kiln_bind_quantized(model.Model, file.path(), quantization, renames.data(), renames.size(), &model.Error);
}

/// Returns a model with one matrix "m.weight".
BoundModel modelOf(const Int4Matrix &matrix, const kiln_placement_t &place) {
  const kiln_weight_t weight = {"m.weight", KILN_F32, 2, {matrix.Outputs, matrix.Inputs}, 1, 0};
  return BoundModel({weight}, {place}, kiln_pack_bytes(&weight, &place));
}

/// Returns each encoding of a matrix whose groups are in order.
std::vector<std::pair<kiln_quantization_t, std::vector<Tensor>>> waysOf(const Int4Matrix &matrix) {
  return {{KILN_GPTQ, matrix.gptq("m")},
          {KILN_GPTQ, matrix.gptq("m", 1, false)},
          {KILN_GPTQ_V2, matrix.gptq("m", 0)},
          {KILN_AWQ, matrix.awq("m")}};
}

// The packed copy has the file's elements, scales and zero points. A tile of 1 makes their positions simple.
TEST(Quantized, Int4OfTheFilesGroupsStaysAsItIs) {
  for (int64_t group : {32, 64, 128})
    for (bool isCentred : {false, true})
      for (bool hasZeros : {true, false}) {
        if (!isCentred && !hasZeros)
          continue;
        const Int4Matrix matrix(40, 3 * group, group, static_cast<uint32_t>(group), isCentred);
        for (const auto &[quantization, tensors] : waysOf(matrix)) {
          SCOPED_TRACE(std::to_string(group) + " of quantization " + std::to_string(quantization));
          const kiln_placement_t place =
              groupPlacement(matrix.Outputs, matrix.Inputs, 1, static_cast<uint32_t>(group), hasZeros);
          BoundModel model = modelOf(matrix, place);
          ASSERT_EQ(bindImage(model, makeImage(tensors), quantization), KILN_OK) << model.Error.message;
          const std::string packed = model.packed();
          for (int64_t n = 0; n < matrix.Outputs; ++n) {
            for (int64_t g = 0; g < 3; ++g) {
              uint16_t scale;
              std::memcpy(&scale, packed.data() + place.scales + (n * 3 + g) * 2, sizeof scale);
              ASSERT_EQ(scale, matrix.Scales[g * matrix.Outputs + n]);
              if (hasZeros) {
                ASSERT_EQ(packed[place.zeros + n * 3 + g], matrix.Zeros[g * matrix.Outputs + n] - 8);
              }
            }
            for (int64_t k = 0; k < matrix.Inputs; ++k) {
              uint32_t word;
              std::memcpy(&word, packed.data() + (n * matrix.Inputs + k) / 8 * 4, sizeof word);
              ASSERT_EQ((word >> (k % 4 * 8 + k / 4 % 2 * 4) & 15) ^ 8,
                        static_cast<uint32_t>(matrix.Elements[n * matrix.Inputs + k]));
            }
          }
          EXPECT_EQ(bytesOf(model.read("m.weight", 0, matrix.Outputs, matrix.Inputs)), bytesOf(matrix.values()));
          // The same numbers in tiles.
          BoundModel tiled = modelOf(
              matrix, groupPlacement(matrix.Outputs, matrix.Inputs, 48, static_cast<uint32_t>(group), hasZeros));
          ASSERT_EQ(bindImage(tiled, makeImage(tensors), quantization), KILN_OK);
          EXPECT_EQ(bytesOf(tiled.read("m.weight", 0, matrix.Outputs, matrix.Inputs)), bytesOf(matrix.values()));
        }
      }
}

/// Expects that a file gives the same model as an f32 file of these numbers.
void expectNumbers(const Int4Matrix &matrix, const kiln_placement_t &place, kiln_quantization_t quantization,
                   const std::vector<Tensor> &tensors) {
  BoundModel bound = modelOf(matrix, place), wanted = modelOf(matrix, place);
  ASSERT_EQ(bindImage(bound, makeImage(tensors), quantization), KILN_OK) << bound.Error.message;
  ASSERT_EQ(wanted.bind({{"m.weight", "F32", {matrix.Outputs, matrix.Inputs}, bytesOf(matrix.values())}}), KILN_OK);
  EXPECT_EQ(bound.packed(), wanted.packed());
}

TEST(Quantized, OtherFormsGoTheWayOfF32) {
  const int64_t outputs = 152, inputs = 192;
  const Int4Matrix matrix(outputs, inputs, 64, 2), oneGroup(outputs, inputs, inputs, 3);
  const kiln_placement_t places[] = {
      makePlacement(0, 0, 0, 0, 0),
      makePlacement(0, 0, 16, 0, 0),
      makePlacement(0, 0, 16, 1, 0),
      makePlacement(0, 0, 48, 0, 0, KILN_F16),
      makePlacement(0, 0, 8, 1, 0, KILN_BF16),
      makePlacement(0, 0, 8, 0, 0, KILN_I8, outputs * inputs),
      groupPlacement(outputs, inputs, 16, 32, true),  // another group size
      groupPlacement(outputs, inputs, 16, 64, false), // without zero points
  };
  for (const kiln_placement_t &place : places) {
    SCOPED_TRACE(&place - places);
    for (const auto &[quantization, tensors] : waysOf(matrix))
      expectNumbers(matrix, place, quantization, tensors);
    for (const auto &[quantization, tensors] : waysOf(oneGroup))
      expectNumbers(oneGroup, place, quantization, tensors);
  }
}

// Inputs belong to groups in random order: values must be right, even if the storage format has groups of the same
// size.
TEST(Quantized, ActOrder) {
  const Int4Matrix matrix(48, 256, 64, 5, false, true);
  for (const kiln_placement_t &place : {makePlacement(0, 0, 16, 0, 0), groupPlacement(48, 256, 16, 64, true)}) {
    expectNumbers(matrix, place, KILN_GPTQ, matrix.gptq("m"));
    expectNumbers(matrix, place, KILN_GPTQ_V2, matrix.gptq("m", 0));
  }
  BoundModel model = modelOf(matrix, makePlacement(0, 0, 0, 0, 0));
  ASSERT_EQ(bindImage(model, makeImage(matrix.gptq("m")), KILN_GPTQ), KILN_OK);
  EXPECT_EQ(bytesOf(model.read("m.weight", 0, 48, 256)), bytesOf(matrix.values()));
}

/// Binds an fp8 matrix [rows, columns] whose numbers are all codes of e4m3 in turn, except NaN, and expects each number
/// times the scale that `scaleAt` returns.
void expectF8(int64_t rows, int64_t columns, const Tensor &scales,
              const std::function<double(int64_t row, int64_t column)> &scaleAt) {
  std::string codes;
  std::vector<float> expected;
  for (int64_t i = 0; i < rows * columns; ++i) {
    const int code = static_cast<int>(i % 127), exponent = code >> 3, fraction = code & 7;
    const double size = std::ldexp(exponent ? 8 + fraction : fraction, std::max(exponent, 1) - 10);
    codes.push_back(static_cast<char>(i % 3 ? code : code | 0x80));
    expected.push_back(static_cast<float>((i % 3 ? size : -size) * scaleAt(i / columns, i % columns)));
  }
  BoundModel model({{"m.weight", KILN_F32, 2, {rows, columns}, 1, 0}}, {makePlacement(0, 0, 16, 0, 0)},
                   static_cast<size_t>((rows + 15) / 16 * 16 * columns * 4));
  const std::vector<Tensor> tensors = {{"m.weight", "F8_E4M3", {rows, columns}, codes},
                                       {"m.input_scale", "F32", {}, bytesOf(std::vector<float>{3})},
                                       scales};
  ASSERT_EQ(bindImage(model, makeImage(tensors), KILN_FP8), KILN_OK) << model.Error.message;
  EXPECT_EQ(bytesOf(model.read("m.weight", 0, rows, columns)), bytesOf(expected)) << scales.shape.size();
}

TEST(Quantized, Fp8) {
  auto tensor = [](const char *name, std::vector<int64_t> shape) {
    std::vector<float> scales;
    int64_t count = 1;
    for (int64_t extent : shape)
      count *= extent;
    for (int64_t i = 0; i < count; ++i)
      scales.push_back(static_cast<float>(i + 1) * 0.375f);
    return Tensor{name, "F32", std::move(shape), bytesOf(scales)};
  };
  expectF8(3, 50, tensor("m.weight_scale", {}), [](int64_t, int64_t) { return 0.375; });
  expectF8(3, 50, tensor("m.weight_scale", {1}), [](int64_t, int64_t) { return 0.375; });
  auto ofRow = [](int64_t row, int64_t) { return static_cast<double>(row + 1) * 0.375; };
  expectF8(130, 5, tensor("m.weight_scale", {130}), ofRow);
  expectF8(130, 5, tensor("m.weight_scale", {130, 1}), ofRow);
  expectF8(130, 300, tensor("m.weight_scale_inv", {2, 3}),
           [](int64_t row, int64_t column) { return static_cast<double>(row / 128 * 3 + column / 128 + 1) * 0.375; });
}

// The values have other exponents in a model of mxfp4 where no number of a group is 4 or 6, but they stay the same.
TEST(Quantized, Mxfp4) {
  const int64_t rows = 40, columns = 96;
  const double values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  std::string blocks, scales;
  std::vector<float> expected;
  for (int64_t group = 0; group < rows * columns / 32; ++group) {
    const int exponent = static_cast<int>(group % 40) - 20, most = static_cast<int>(group % 7) + 2;
    scales.push_back(static_cast<char>(exponent + 127));
    for (int i = 0; i < 16; ++i) {
      const int low = ((i * 5 + static_cast<int>(group)) % most) | (i % 3 ? 8 : 0), high = i % most;
      blocks.push_back(static_cast<char>(low | high << 4));
      for (int code : {low, high})
        expected.push_back(static_cast<float>(std::ldexp(code & 8 ? -values[code & 7] : values[code & 7], exponent)));
    }
  }
  const std::vector<Tensor> tensors = {{"m.weight_blocks", "U8", {rows, columns / 32, 16}, blocks},
                                       {"m.weight_scales", "U8", {rows, columns / 32}, scales}};
  const kiln_weight_t weight = {"m.weight", KILN_F32, 2, {rows, columns}, 1, 0};
  for (const kiln_placement_t &place :
       {makePlacement(0, 0, 16, 0, 0), makeStoredPlacement(KILN_F4E2M1, rows, columns, 16, 0, 0, 32)}) {
    BoundModel model({weight}, {place}, kiln_pack_bytes(&weight, &place));
    ASSERT_EQ(bindImage(model, makeImage(tensors), KILN_MXFP4), KILN_OK) << model.Error.message;
    const std::vector<float> read = model.read("m.weight", 0, rows, columns);
    for (size_t i = 0; i < read.size(); ++i)
      ASSERT_EQ(read[i], expected[i]) << i;
  }
  BoundModel model({weight}, {makePlacement(0, 0, 0, 0, 0)}, rows * columns * 4);
  auto wordsOf = [&](std::vector<Tensor> changed) {
    EXPECT_NE(bindImage(model, makeImage(changed), KILN_MXFP4), KILN_OK);
    return std::string(model.Error.message);
  };
  EXPECT_NE(wordsOf({tensors[0]}).find("part missing; expected scales, got none"), std::string::npos);
  EXPECT_NE(wordsOf({tensors[0], {"m.weight_scales", "U8", {rows * columns / 32}, scales}}).find("one scale for each"),
            std::string::npos);
  EXPECT_NE(wordsOf({{"m.weight_blocks", "U8", {rows, columns / 2}, blocks}, tensors[1]}).find("blocks of 16 bytes"),
            std::string::npos);
}

TEST(Quantized, WhatIsNoFp8IsSaid) {
  auto wordsOf = [](const std::vector<Tensor> &more, char code = 1) {
    BoundModel model({{"m.weight", KILN_F32, 2, {2, 130}, 1, 0}}, {makeStoredPlacement(KILN_F16, 2, 130, 16)},
                     16 * 130 * 2);
    std::vector<Tensor> tensors = more;
    tensors.push_back({"m.weight", "F8_E4M3", {2, 130}, std::string(260, code)});
    EXPECT_NE(bindImage(model, makeImage(tensors), KILN_FP8), KILN_OK);
    return std::string(model.Error.message);
  };
  const std::string one = bytesOf(std::vector<float>{1}), two = bytesOf(std::vector<float>{1, 1});
  auto expect = [](const std::string &words, const std::string &part) {
    EXPECT_NE(words.find(part), std::string::npos) << words;
  };
  expect(wordsOf({}), "tensor \"m.weight\": part missing; expected weight_scale or weight_scale_inv, got neither");
  expect(wordsOf({{"m.weight_scale", "I32", {1}, one}}), "wrong type; expected F32, F16 or BF16, got I32");
  expect(wordsOf({{"m.weight_scale", "F32", {1, 1, 2}, two}}), "wrong shape; expected one scale, one for each row");
  expect(wordsOf({{"m.weight_scale", "F32", {2, 2}, two + two}}), "got [2, 2]");
  expect(wordsOf({{"m.weight_scale", "F32", {1}, one}}, 0x7F), "value does not fit; expected one of F16, got nan");
}

TEST(Quantized, ScalesOfOtherTypes) {
  const Int4Matrix matrix(16, 64, 32, 6);
  std::vector<Tensor> tensors = matrix.awq("m");
  std::vector<float> scales;
  for (uint16_t scale : matrix.Scales)
    scales.push_back(static_cast<float>(valueOfHalf(scale)));
  tensors[2] = {"m.scales", "F32", {2, 16}, bytesOf(scales)};
  for (const kiln_placement_t &place : {makePlacement(0, 0, 16, 0, 0), groupPlacement(16, 64, 16, 32, true)})
    expectNumbers(matrix, place, KILN_AWQ, tensors);
}

TEST(Quantized, RenamesBiasesAndPlainTensors) {
  const Int4Matrix first(8, 32, 32, 1), second(8, 32, 32, 2);
  BoundModel model({{"h.{}.q", KILN_F32, 2, {8, 32}, 2, 0}, {"norm", KILN_F32, 1, {4}, 1, 0}},
                   {makePlacement(0, 1024, 0, 0, 0), makePlacement(2048, 0, 0, 0, 0)}, 2064);
  std::vector<Tensor> tensors = first.gptq("layers.0.q_proj");
  for (Tensor &tensor : second.gptq("layers.1.q_proj"))
    tensors.push_back(tensor);
  const std::vector<uint16_t> norm = {0x3C00, 0x4000, 0xC000, 0x3800};
  tensors.push_back({"norm.weight", "F16", {4}, bytesOf(norm)});
  tensors.push_back({"layers.0.q_proj.bias", "F16", {8}, std::string(16, '\0')});
  tensors.push_back({"rotary.inv_freq", "F32", {1}, "freq"});
  tensors.push_back({"lonely.scales", "I8", {1}, "l"});
  const std::vector<kiln_rename_t> renames = {{"layers.*.q_proj.weight", "h.*.q", 0, 0},
                                              {"norm.weight", "norm", 0, 0},
                                              {"*_proj.bias", nullptr, 0, KILN_RENAME_ZEROS},
                                              {"*.inv_freq", nullptr, 0, 0},
                                              {"lonely.scales", nullptr, 0, 0}};
  ASSERT_EQ(bindImage(model, makeImage(tensors), KILN_GPTQ, renames), KILN_OK) << model.Error.message;
  EXPECT_EQ(bytesOf(model.read("h.0.q", 0, 8, 32)), bytesOf(first.values()));
  EXPECT_EQ(bytesOf(model.read("h.1.q", 0, 8, 32)), bytesOf(second.values()));
  EXPECT_EQ(model.read("norm", 0, 4, 1), (std::vector<float>{1, 2, -2, 0.5f}));

  tensors[9].bytes[5] = 1;
  EXPECT_EQ(bindImage(model, makeImage(tensors), KILN_GPTQ, renames), KILN_WEIGHT_UNEXPECTED);
  EXPECT_NE(
      std::string(model.Error.message)
          .find("tensor \"layers.0.q_proj.bias\": left out, not zero; expected zeros, got 1.52587891e-05 at element 2"),
      std::string::npos)
      << model.Error.message;
}

// A rename that matches none of the file's names is refused, unless it is optional. Those of a weight's parts are none.
TEST(Quantized, RenamesThatMatchNothing) {
  const Int4Matrix matrix(8, 32, 32, 1);
  BoundModel model({{"q", KILN_F32, 2, {8, 32}, 1, 0}}, {makePlacement(0, 0, 0, 0, 0)}, 1024);
  std::vector<Tensor> tensors = matrix.gptq("layers.0.q_proj");
  tensors.push_back({"norm.weight", "F16", {4}, std::string(8, '\0')});
  for (const char *from : {"layers.*.q_proj.qweight", "layers.*.q_proj.scales", "layers.*.q_proj.qzeros"}) {
    EXPECT_EQ(bindImage(model, makeImage(tensors), KILN_GPTQ, {{"norm.weight", nullptr, 0, 0}, {from, "q", 0, 0}}),
              KILN_INVALID_ARGUMENT);
    const std::string words = model.Error.message;
    EXPECT_NE(words.find("rename 1: fits no tensor; expected a name of the weight file, got \"" + std::string(from) +
                         "\"; nearest: layers.0.q_proj.weight, norm.weight"),
              std::string::npos)
        << words;
  }
  EXPECT_EQ(model.Model->packed, nullptr);
  EXPECT_EQ(model.Counter.Alive, 1) << "the model";
  EXPECT_EQ(bindImage(model, makeImage(tensors), KILN_GPTQ,
                      {{"norm.*", nullptr, 0, 0},
                       {"*.inv_freq", nullptr, 0, KILN_RENAME_OPTIONAL},
                       {"layers.*.q_proj.weight", "q", 0, 0}}),
            KILN_OK)
      << model.Error.message;
}

// The tensors of a weight may be in different files.
TEST(Quantized, OfSeveralFiles) {
  const Int4Matrix matrix(16, 64, 32, 9);
  const std::vector<Tensor> tensors = matrix.gptq("m");
  const char *parent = std::getenv("TMPDIR");
  std::string folder = std::string(parent ? parent : "/tmp") + "/kiln_quantized_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  auto write = [&](const std::string &name, const std::string &bytes) {
    std::ofstream(folder + "/" + name, std::ios::binary) << bytes;
  };
  write("one.safetensors", makeImage({tensors[0], tensors[3]}));
  write("two.safetensors", makeImage({tensors[1], tensors[2]}));
  const std::string index = folder + "/model.safetensors.index.json";
  write("model.safetensors.index.json",
        R"({"weight_map": {"m.qweight": "one.safetensors", "m.g_idx": "one.safetensors",
            "m.qzeros": "two.safetensors", "m.scales": "two.safetensors"}})");
  BoundModel model = modelOf(matrix, groupPlacement(16, 64, 16, 32, true));
  EXPECT_EQ(kiln_bind_quantized(model.Model, index.c_str(), KILN_GPTQ, nullptr, 0, &model.Error), KILN_OK)
      << model.Error.message;
  EXPECT_EQ(bytesOf(model.read("m.weight", 0, 16, 64)), bytesOf(matrix.values()));
  std::vector<Tensor> wrong = {tensors[1], tensors[2]};
  wrong[1].dtype = "I16";
  write("two.safetensors", makeImage(wrong));
  EXPECT_EQ(kiln_bind_quantized(model.Model, index.c_str(), KILN_GPTQ, nullptr, 0, &model.Error), KILN_WEIGHT_TYPE);
  EXPECT_STREQ(model.Error.message,
               "file \"two.safetensors\": tensor \"m.scales\": wrong type; expected F32, F16 or BF16, got I16");
  std::filesystem::remove_all(folder);
}

TEST(Quantized, PartsThatDoNotBelongTogetherAreRefused) {
  const Int4Matrix matrix(16, 64, 32, 1);
  const std::vector<Tensor> gptq = matrix.gptq("m"), awq = matrix.awq("m");
  auto changed = [](std::vector<Tensor> tensors, const std::string &name, const std::string &type,
                    std::vector<int64_t> shape, const std::string &bytes) {
    std::erase_if(tensors, [&](const Tensor &tensor) { return tensor.name == name; });
    if (!type.empty())
      tensors.push_back({name, type, std::move(shape), bytes});
    return tensors;
  };
  std::vector<int32_t> groups(64, 0);
  groups[63] = 2;
  const std::string wrongGroup = bytesOf(groups);
  groups[63] = -1;
  const struct {
    kiln_quantization_t Quantization;
    std::vector<Tensor> Tensors;
    kiln_status_t Status;
    std::string Words;
  } cases[] = {
      {KILN_GPTQ, changed(gptq, "m.scales", "", {}, ""), KILN_WEIGHT_MISSING,
       "tensor \"m.qweight\": part missing; expected scales and qzeros, got no scales"},
      {KILN_AWQ, changed(awq, "m.qzeros", "", {}, ""), KILN_WEIGHT_MISSING,
       "tensor \"m.qweight\": part missing; expected scales and qzeros, got no qzeros"},
      {KILN_GPTQ, changed(gptq, "m.qweight", "", {}, ""), KILN_WEIGHT_MISSING, "\"m.weight\" missing"},
      {KILN_GPTQ, changed(gptq, "m.qweight", "F32", {8, 16}, std::string(512, 'q')), KILN_WEIGHT_TYPE,
       "tensor \"m.qweight\": wrong type; expected I32, got F32"},
      {KILN_GPTQ, changed(gptq, "m.qzeros", "F32", {2, 2}, std::string(16, 'q')), KILN_WEIGHT_TYPE,
       "tensor \"m.qzeros\": wrong type; expected I32, got F32"},
      {KILN_GPTQ, changed(gptq, "m.g_idx", "I64", {64}, std::string(512, 'q')), KILN_WEIGHT_TYPE,
       "tensor \"m.g_idx\": wrong type; expected I32, got I64"},
      {KILN_GPTQ, changed(gptq, "m.qweight", "I32", {128}, std::string(512, 'q')), KILN_WEIGHT_SHAPE,
       "tensor \"m.qweight\": wrong shape; expected a matrix whose columns are a multiple of 8, got [128]"},
      {KILN_GPTQ, changed(gptq, "m.qweight", "I32", {32, 4}, std::string(512, 'q')), KILN_WEIGHT_SHAPE,
       "tensor \"m.qweight\": wrong shape; expected a matrix whose columns are a multiple of 8, got [32, 4]"},
      {KILN_GPTQ, changed(gptq, "m.qweight", "I32", {0, 16}, ""), KILN_WEIGHT_SHAPE,
       "wrong shape; expected a matrix whose columns"},
      {KILN_AWQ, changed(awq, "m.qweight", "I32", {64, 0}, ""), KILN_WEIGHT_SHAPE,
       "wrong shape; expected a matrix, got [64, 0]"},
      {KILN_GPTQ, changed(gptq, "m.scales", "F16", {32}, std::string(64, '\0')), KILN_WEIGHT_SHAPE,
       "tensor \"m.scales\": wrong shape; expected a row for each group of inputs, got [32]"},
      {KILN_GPTQ, changed(gptq, "m.scales", "F16", {0, 16}, ""), KILN_WEIGHT_SHAPE, "for each group of inputs, got [0"},
      {KILN_AWQ, changed(awq, "m.scales", "F16", {3, 16}, std::string(96, '\0')), KILN_WEIGHT_SHAPE,
       "tensor \"m.scales\": wrong shape; expected a row for each group of inputs, got [3, 16]"},
      {KILN_AWQ, changed(awq, "m.scales", "F16", {2, 8}, std::string(32, '\0')), KILN_WEIGHT_SHAPE,
       "tensor \"m.scales\": wrong shape; expected [2, 16], got [2, 8]"},
      {KILN_GPTQ, changed(gptq, "m.qzeros", "I32", {2, 16}, std::string(128, 'z')), KILN_WEIGHT_SHAPE,
       "tensor \"m.qzeros\": wrong shape; expected [2, 2], got [2, 16]"},
      {KILN_GPTQ, changed(gptq, "m.g_idx", "I32", {32}, std::string(128, '\0')), KILN_WEIGHT_SHAPE,
       "tensor \"m.g_idx\": wrong shape; expected [64], got [32]"},
      {KILN_GPTQ, changed(gptq, "m.g_idx", "I32", {64}, wrongGroup), KILN_FILE_MALFORMED,
       "tensor \"m.g_idx\": unknown group; expected one of scales, got another"},
      {KILN_GPTQ, changed(gptq, "m.g_idx", "I32", {64}, bytesOf(groups)), KILN_FILE_MALFORMED,
       "tensor \"m.g_idx\": unknown group; expected one of scales, got another"},
      {KILN_AWQ, gptq, KILN_WEIGHT_SHAPE, "tensor \"m.scales\": wrong shape; expected [2, 128], got [2, 16]"},
      {KILN_GPTQ, awq, KILN_WEIGHT_SHAPE, "tensor \"m.qweight\": wrong shape; expected a matrix whose columns"},
      {KILN_GPTQ, changed(gptq, "m.weight", "F32", {1}, "full"), KILN_FILE_MALFORMED,
       "checkpoint: repeated name; expected distinct ones, got \"m.weight\""},
      {KILN_AWQ, changed(awq, "m.g_idx", "I32", {64}, std::string(256, '\0')), KILN_WEIGHT_UNEXPECTED,
       "has no tensor \"m.g_idx\""},
      {KILN_GPTQ, Int4Matrix(16, 96, 32, 1).gptq("m"), KILN_WEIGHT_SHAPE,
       "tensor \"m.weight\": wrong shape; expected [16, 64], got [16, 96]"},
  };
  for (const auto &test : cases) {
    BoundModel model = modelOf(matrix, groupPlacement(16, 64, 16, 32, true));
    EXPECT_EQ(bindImage(model, makeImage(test.Tensors), test.Quantization), test.Status) << test.Words;
    const std::string words = model.Error.message;
    EXPECT_EQ(words.rfind("file \"kiln_runtime_", 0), 0u) << words;
    EXPECT_NE(words.find(test.Words), std::string::npos) << "got:    " << words << "\nwanted: " << test.Words;
    EXPECT_EQ(model.Counter.Alive, 1) << "the model";
  }
}

TEST(Quantized, CallsThatMakeNoSense) {
  const Int4Matrix matrix(16, 64, 32, 1);
  BoundModel model = modelOf(matrix, groupPlacement(16, 64, 16, 32, true));
  const kiln_rename_t turned = {"m.*", "n.*", 4, 0};
  EXPECT_EQ(kiln_bind_quantized(model.Model, nullptr, KILN_AWQ, nullptr, 0, &model.Error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(model.Error.message, "bind_quantized: null given; expected a path");
  EXPECT_EQ(kiln_bind_quantized(model.Model, "x", KILN_AWQ, nullptr, 2, &model.Error), KILN_NULL_ARGUMENT);
  EXPECT_EQ(kiln_bind_quantized(model.Model, "x", static_cast<kiln_quantization_t>(0), nullptr, 0, &model.Error),
            KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(model.Error.message,
               "bind_quantized: unknown format; expected KILN_GPTQ, KILN_GPTQ_V2, KILN_AWQ, KILN_FP8, KILN_MXFP4 or "
               "KILN_NVFP4, got 0");
  EXPECT_EQ(kiln_bind_quantized(model.Model, "x", KILN_AWQ, &turned, 1, &model.Error), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(model.Error.message, "bind_quantized: rename with rotary heads; expected none, got 4 of \"m.*\"");
  EXPECT_EQ(kiln_bind_quantized(model.Model, "/nonexistent", KILN_AWQ, nullptr, 0, &model.Error), KILN_FILE_ERROR);
  for (int limit : {1, 2, 3, 4}) { // the index, a buffer for names, the joined index, the packed copy
    model.Counter.Limit = model.Counter.Made + limit - 1;
    EXPECT_EQ(bindImage(model, makeImage(matrix.awq("m")), KILN_AWQ), KILN_OUT_OF_MEMORY);
    EXPECT_EQ(model.Counter.Alive, 1);
  }
  model.Counter.Limit = 1 << 30;
  EXPECT_EQ(bindImage(model, makeImage(matrix.awq("m")), KILN_AWQ), KILN_OK);
}

// 20,000 mutated headers and group indices from a fixed seed, in memory that ends at a guard page.
TEST(Quantized, MutatedFilesNeverCrash) {
  const Int4Matrix first(16, 64, 32, 1), second(8, 32, 32, 2);
  std::vector<Tensor> tensors = first.gptq("a");
  for (Tensor &tensor : second.gptq("b"))
    tensors.push_back(tensor);
  std::swap(tensors[3], tensors.back()); // group indices at the end
  const std::string base = makeImage(tensors);
  uint64_t headerBytes;
  std::memcpy(&headerBytes, base.data(), sizeof headerBytes);
  const std::string pieces[] = {"16", "8", "64", "0", "2", "I32", "F16", "a.", "b.", "scales", "qzeros", "g_idx"};
  std::mt19937 random(20261126);
  auto pick = [&](size_t limit) { return static_cast<size_t>(random() % limit); };
  int passed = 0, parsed = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string header = base.substr(8, headerBytes), data = base.substr(8 + headerBytes);
    for (size_t change = 0, changes = 1 + pick(3); change < changes; ++change) {
      const std::string &from = pieces[pick(std::size(pieces))], &to = pieces[pick(std::size(pieces))];
      const size_t at = header.find(from, pick(header.size()));
      if (pick(2) && at != header.npos)
        header.replace(at, from.size(), to);
      else
        data[data.size() - 1 - pick(128)] = static_cast<char>(random());
    }
    GuardedMemory memory(makeImage(header, data));
    CountingAllocator allocator;
    const kiln_allocator_t functions = allocator.get();
    kiln_tensors_t stored, table;
    kiln_error_t error;
    if (kiln_safetensors_open(memory.data(), memory.size(), &functions, &stored, &error) == KILN_OK) {
      ++parsed;
      const kiln_quantized_t how = {round % 3 ? KILN_GPTQ : KILN_AWQ, {nullptr, 0}};
      const kiln_status_t status = kiln_quantized_join(&stored, &how, &functions, &table, &error);
      passed += status == KILN_OK;
      ASSERT_TRUE(status == KILN_OK || std::strlen(error.message) > 20u) << status;
      for (size_t i = 0; status == KILN_OK && i < table.count; ++i) {
        const kiln_tensor_t &tensor = table.tensors[i];
        if (!tensor.form)
          continue;
        std::vector<float> values(tensor.shape[0] * tensor.shape[1]);
        kiln_convert_read(&tensor, values.data(), 0, values.size());
        tensor.form->has_groups(&tensor, kiln_format_find(KILN_I4, 32, false), 32);
      }
      kiln_tensors_release(&table, &functions);
    }
    kiln_tensors_release(&stored, &functions);
    ASSERT_EQ(allocator.Alive, 0);
  }
  EXPECT_GT(parsed, 5000);
  EXPECT_GT(passed, 200);
  EXPECT_LT(passed, 18000);
}

} // namespace
