// SPDX-License-Identifier: Apache-2.0
// GGUF files bound to models with every storage format: values are exact compared with f64, int4 is kept unchanged, and
// names and rows follow the renames.
#include "third_party_files.h"
#include "weights/pack.h"

#include <algorithm>
#include <gtest/gtest.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace {

using namespace kiln_test;

kiln_weight_t matrixWeight(const char *name, int64_t rows, int64_t columns) {
  return {name, KILN_F32, 2, {rows, columns}, 1, 0};
}

kiln_placement_t int4Placement(int64_t rows, int64_t columns, uint32_t tile, uint32_t dim, uint32_t group, bool zeros) {
  return makeStoredPlacement(KILN_I4, dim == 0 ? rows : columns, dim == 0 ? columns : rows, tile, dim, 0, group, zeros);
}

kiln_status_t bindGguf(BoundModel &model, const std::string &image, const std::vector<kiln_rename_t> &renames = {}) {
  const TemporaryFile file(image);
  return kiln_bind_gguf(model.Model, file.path(), renames.data(), renames.size(), &model.Error);
}

/// Returns the message without the file's name, which varies.
std::string wordsOf(const kiln_error_t &error) {
  const std::string words = error.message;
  EXPECT_EQ(words.rfind("file \"kiln_runtime_", 0), 0u) << words;
  return words.substr(std::min(words.find("\": ") + 3, words.size()));
}

constexpr uint32_t AllTypes[] = {GgufF32, GgufF16, GgufBF16, Q4_0, Q8_0, Q4_K, Q6_K};

// For each GGUF type and each storage format, binding the file gives the same model as binding an f32 file of its
// values.
TEST(Gguf, EachTypeBindsToEachStoredForm) {
  const int64_t rows = 160, columns = 768;
  const uint64_t elements = rows * columns;
  const kiln_placement_t places[] = {
      makePlacement(0, 0, 0, 0, 0),
      makePlacement(0, 0, 16, 0, 0),
      makePlacement(0, 0, 16, 1, 0),
      makePlacement(0, 0, 48, 0, 0, KILN_F16),
      makePlacement(0, 0, 8, 1, 0, KILN_BF16),
      makePlacement(0, 0, 16, 0, 0, KILN_I8, elements),
      makePlacement(0, 0, 16, 1, 0, KILN_I8, elements),
      int4Placement(rows, columns, 16, 0, 32, false),
      int4Placement(rows, columns, 16, 1, 32, false),
      int4Placement(rows, columns, 16, 0, 64, false),
      int4Placement(rows, columns, 8, 0, 128, true),
  };
  for (uint32_t type : AllTypes) {
    const Numbers numbers = drawGguf(type, rows, columns, 7);
    for (const kiln_placement_t &place : places) {
      SCOPED_TRACE("type " + std::to_string(type) + ", placement " + std::to_string(&place - places));
      const kiln_weight_t weight = matrixWeight("w", rows, columns);
      const uint64_t bytes = kiln_pack_bytes(&weight, &place);
      ASSERT_GT(bytes, 0u);
      BoundModel bound({weight}, {place}, bytes), wanted({weight}, {place}, bytes);
      ASSERT_EQ(bindGguf(bound, makeGguf({{"w", {columns, rows}, type, numbers.Bytes}})), KILN_OK)
          << bound.Error.message;
      ASSERT_EQ(wanted.bind({{"w", "F32", {rows, columns}, bytesOf(numbers.Values)}}), KILN_OK) << wanted.Error.message;
      const bool isKept = type == Q4_0 && place.dtype == KILN_I4 && place.dim == 0 && place.group == 32;
      EXPECT_TRUE(isKept || bound.packed() == wanted.packed());
      if (isKept || place.dtype == KILN_F32) {
        EXPECT_EQ(bytesOf(bound.read("w", 0, rows, columns)), bytesOf(numbers.Values));
      }
    }
  }
}

// Properties that requantisation would lose: a scale of 0 with any elements, and groups that do not use the extreme
// element.
TEST(Gguf, Int4OfGroupsOf32StaysAsItIs) {
  const int64_t rows = 37, columns = 96;
  const Numbers numbers = drawGguf(Q4_0, rows, columns, 3);
  for (bool hasZeros : {false, true}) {
    const kiln_placement_t place = int4Placement(rows, columns, 1, 0, 32, hasZeros);
    const kiln_weight_t weight = matrixWeight("w", rows, columns);
    BoundModel model({weight}, {place}, kiln_pack_bytes(&weight, &place));
    ASSERT_EQ(bindGguf(model, makeGguf({{"w", {columns, rows}, Q4_0, numbers.Bytes}})), KILN_OK) << model.Error.message;
    const std::string packed = model.packed();
    for (int64_t block = 0; block < rows * columns / 32; ++block) {
      const std::string from = numbers.Bytes.substr(block * 18, 18);
      EXPECT_EQ(packed.substr(place.scales + block * 2, 2), from.substr(0, 2));
      EXPECT_TRUE(!hasZeros || packed[place.zeros + block] == 0) << "8, less 8";
      for (int k = 0; k < 32; ++k) {
        const int element = static_cast<uint8_t>(from[2 + k % 16]) >> (k < 16 ? 0 : 4) & 15;
        uint32_t word;
        std::memcpy(&word, packed.data() + block * 16 + k / 8 * 4, sizeof word);
        ASSERT_EQ(word >> (k % 4 * 8 + k / 4 % 2 * 4) & 15, static_cast<uint32_t>(element - 8) & 15u) << k;
      }
    }
    EXPECT_EQ(bytesOf(model.read("w", 0, rows, columns)), bytesOf(numbers.Values));
  }
}

// The scale exceeds the limit of quantisation, 2^18, but fits an f16.
TEST(Gguf, ScalesThatAreNoNumbersAreRefused) {
  const kiln_weight_t weight = matrixWeight("w", 2, 64);
  const kiln_placement_t place = int4Placement(2, 64, 16, 0, 32, false);
  for (auto [scale, words] : {std::pair<uint16_t, const char *>{0x7BFF, ""}, // 65504
                              {0x7C00, "got -inf at [1, 32]"},
                              {0x7E00, "got nan at [1, 32]"}}) {
    std::string bytes = drawGguf(Q4_0, 2, 64, 5).Bytes;
    std::memcpy(bytes.data() + 3 * 18, &scale, sizeof scale);
    bytes[3 * 18 + 2] = 0x00;
    BoundModel model({weight}, {place}, kiln_pack_bytes(&weight, &place));
    EXPECT_EQ(bindGguf(model, makeGguf({{"w", {64, 2}, Q4_0, bytes}})), *words ? KILN_WEIGHT_VALUE : KILN_OK);
    if (*words) {
      EXPECT_NE(wordsOf(model.Error).find(words), std::string::npos) << model.Error.message;
    } else {
      EXPECT_EQ(model.read("w", 1, 1, 64)[32], -8 * 65504.0f);
    }
  }
}

TEST(Gguf, NumbersThatCannotBeStoredAreRefused) {
  std::string bytes = drawGguf(Q8_0, 4, 64, 5).Bytes;
  const uint16_t large = 0x6C00; // 4096
  std::memcpy(bytes.data() + 5 * 34, &large, sizeof large);
  bytes[5 * 34 + 2 + 7] = 127;
  const kiln_weight_t weight = matrixWeight("w", 4, 64);
  const kiln_placement_t place = int4Placement(4, 64, 16, 0, 32, false);
  BoundModel model({weight}, {place}, kiln_pack_bytes(&weight, &place));
  EXPECT_EQ(bindGguf(model, makeGguf({{"w", {64, 4}, Q8_0, bytes}})), KILN_WEIGHT_VALUE);
  EXPECT_NE(wordsOf(model.Error).find("tensor \"w\": value does not fit; expected one of I4, got "), std::string::npos)
      << model.Error.message;
}

TEST(Gguf, RenamesAndPlainTensors) {
  BoundModel model({{"h.{}.q", KILN_F32, 2, {4, 32}, 2, 0}, {"norm", KILN_F32, 1, {5}, 1, 0}},
                   {makePlacement(0, 512, 0, 0, 0), makePlacement(1024, 0, 0, 0, 0)}, 1044);
  const Numbers first = drawGguf(Q8_0, 4, 32, 1), second = drawGguf(Q4_0, 4, 32, 2), norm = drawGguf(GgufF32, 1, 5, 3);
  const std::string image = makeGguf({{"blk.1.attn_q.weight", {32, 4}, Q4_0, second.Bytes},
                                      {"output_norm.weight", {5}, GgufF32, norm.Bytes},
                                      {"rope_freqs.weight", {3}, 999, "abcdefghijkl"},
                                      {"blk.0.attn_q.weight", {32, 4}, Q8_0, first.Bytes}},
                                     {metadata("general.name", 8, std::string("\3\0\0\0\0\0\0\0abc", 11)),
                                      metadata<uint32_t>("general.alignment", 4, 64)},
                                     64, 2);
  const std::vector<kiln_rename_t> renames = {{"blk.*.attn_q.weight", "h.*.q", 0, 0},
                                              {"output_norm.*", "norm", 0, 0},
                                              {"rope_freqs.weight", nullptr, 0, 0},
                                              {"*", "never", 0, 0}};
  ASSERT_EQ(bindGguf(model, image, renames), KILN_OK) << model.Error.message;
  EXPECT_EQ(bytesOf(model.read("h.0.q", 0, 4, 32)), bytesOf(first.Values));
  EXPECT_EQ(bytesOf(model.read("h.1.q", 0, 4, 32)), bytesOf(second.Values));
  EXPECT_EQ(bytesOf(model.read("norm", 0, 5, 1)), bytesOf(norm.Values));
  EXPECT_EQ(model.Counter.Made, 4) << "the model, the header, the index and the packed copy";
  EXPECT_EQ(model.Counter.Alive, 2);

  EXPECT_EQ(bindGguf(model, image, {renames[0]}), KILN_WEIGHT_TYPE);
  EXPECT_EQ(
      wordsOf(model.Error),
      "tensor \"rope_freqs.weight\": wrong type; expected F32, F16, BF16, Q8_0, Q4_0, Q4_K or Q6_K, got number 999");
  EXPECT_EQ(bindGguf(model, image, {renames[0], renames[2]}), KILN_WEIGHT_MISSING);
  EXPECT_EQ(wordsOf(model.Error),
            "weight file: does not fit model \"stored\"; 1 missing, 1 unexpected: \"norm\" missing, "
            "\"output_norm.weight\" unexpected");
  EXPECT_EQ(bindGguf(model, image, {{"blk.*", "h", 0, 0}, renames[2]}), KILN_FILE_MALFORMED);
  EXPECT_EQ(wordsOf(model.Error), "GGUF file: repeated name; expected distinct ones, got \"h\"");
}

// A rename that matches none of the file's names is refused, unless it is optional.
TEST(Gguf, RenamesThatMatchNothing) {
  BoundModel model({{"w", KILN_F32, 1, {2}, 1, 0}}, {makePlacement(0, 0, 0, 0, 0)}, 8);
  const std::string image = makeGguf({{"blk.0.attn_q", {2}, GgufF32, std::string(8, 'q')},
                                      {"blk.10.ffn_gate.weight", {32, 2}, Q8_0, drawGguf(Q8_0, 2, 32, 1).Bytes},
                                      {"rope", {3, 1}, 999, "abcdefghijkl"}});
  std::vector<kiln_rename_t> renames = {{"rope", nullptr, 0, 0},
                                        {"blk.*.attn_q", "w", 0, 0},
                                        {"blk.*.fn_gate.weight", nullptr, 0, 0},
                                        {"blk.*.ffn_gate.weight", nullptr, 0, 0}};
  EXPECT_EQ(bindGguf(model, image, renames), KILN_INVALID_ARGUMENT);
  EXPECT_EQ(wordsOf(model.Error), "rename 2: fits no tensor; expected a name of the weight file, got "
                                  "\"blk.*.fn_gate.weight\"; nearest: blk.10.ffn_gate.weight, blk.0.attn_q, rope");
  EXPECT_EQ(model.Model->packed, nullptr);
  EXPECT_EQ(model.Counter.Alive, 1) << "the model";
  renames[2].flags = KILN_RENAME_OPTIONAL;
  EXPECT_EQ(bindGguf(model, image, renames), KILN_OK) << model.Error.message;
}

TEST(Gguf, APatternsStarStandsForAnyCharacters) {
  const struct {
    const char *From, *To, *Name, *Wanted; // null if the pattern does not match
  } cases[] = {
      {"a.*.b", "x.*.y", "a.12.b", "x.12.y"},
      {"a.*.b", "x.*.y", "a..b", "x..y"},
      {"a.*.b", "x.*.y", "a.b", nullptr},
      {"ab*ba", "*", "aba", nullptr},
      {"ab*ba", "*", "abba", ""},
      {"*", "p.*", "", "p."},
      {"*.w", "*", "h.w.w", "h.w"},
      {"h*", "all", "h.0", "all"},
      {"h", "x*y", "h", "xy"},
      {"h", "x", "hh", nullptr},
      {"a*b*", "*", "a1b*", "1"},
      {"", "x", "", "x"},
  };
  for (const auto &test : cases) {
    const kiln_rename_t rename = {test.From, test.To, 0, 0}, *found = nullptr;
    const kiln_renames_t renames = {&rename, 1};
    const std::string name = test.Name, wanted = test.Wanted ? test.Wanted : name;
    const size_t length = kiln_rename(&renames, name.data(), name.size(), &found, nullptr);
    GuardedMemory to(length);
    EXPECT_EQ(kiln_rename(&renames, name.data(), name.size(), &found, to.data()), length);
    EXPECT_EQ(std::string(to.data(), length), wanted) << test.From << " " << name;
    EXPECT_EQ(found, test.Wanted ? &rename : nullptr) << test.From << " " << name;
  }
}

TEST(Gguf, WhatIsLeftOutMayHaveToBeZeros) {
  BoundModel model({{"w", KILN_F32, 1, {2}, 1, 0}}, {makePlacement(0, 0, 0, 0, 0)}, 8);
  std::vector<float> bias(3, 0);
  auto image = [&] { return makeGguf({{"w", {2}, GgufF32, std::string(8, 'w')}, {"b", {3}, GgufF32, bytesOf(bias)}}); };
  const std::vector<kiln_rename_t> renames = {{"b", nullptr, 0, KILN_RENAME_ZEROS}};
  EXPECT_EQ(bindGguf(model, image(), renames), KILN_OK) << model.Error.message;
  bias[2] = 0.5f;
  EXPECT_EQ(bindGguf(model, image(), renames), KILN_WEIGHT_UNEXPECTED);
  EXPECT_EQ(wordsOf(model.Error), "tensor \"b\": left out, not zero; expected zeros, got 0.5 at element 2");
  EXPECT_EQ(bindGguf(model, image(), {{"b", nullptr, 0, 0}}), KILN_OK);
}

// The row order of a head in llama.cpp: pair i is (i of the first half, i of the second half).
TEST(Gguf, RowsOfRotaryHeadsAreUndone) {
  const int64_t heads = 3, half = 4, rows = heads * half * 2, columns = 64;
  std::vector<int64_t> fileRow(rows);
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t j = 0; j < 2; ++j)
      for (int64_t i = 0; i < half; ++i)
        fileRow[h * 2 * half + j * half + i] = h * 2 * half + 2 * i + j;
  const kiln_weight_t q = matrixWeight("q", rows, columns), bias = {"b", KILN_F32, 1, {rows}, 1, 0};
  for (uint32_t type : {Q4_0, Q8_0, GgufF16})
    for (const kiln_placement_t &place :
         {int4Placement(rows, columns, 16, 0, 32, false), makePlacement(0, 0, 0, 0, 0)}) {
      const Numbers numbers = drawGguf(type, rows, columns, 11), vector = drawGguf(GgufF32, 1, rows, 12);
      const uint64_t bytes = (kiln_pack_bytes(&q, &place) + 3) / 4 * 4;
      BoundModel model({q, bias}, {place, makePlacement(bytes, 0, 0, 0, 0)}, bytes + rows * 4);
      BoundModel unchanged({q, bias}, {place, makePlacement(bytes, 0, 0, 0, 0)}, bytes + rows * 4);
      const std::string image = makeGguf({{"q", {columns, rows}, type, numbers.Bytes}, {"b", {rows}, 0, vector.Bytes}});
      ASSERT_EQ(bindGguf(model, image, {{"*", "*", heads, 0}}), KILN_OK) << model.Error.message;
      ASSERT_EQ(bindGguf(unchanged, image), KILN_OK) << model.Error.message;
      for (int64_t row = 0; row < rows; ++row) {
        EXPECT_EQ(bytesOf(model.read("q", row, 1, columns)), bytesOf(unchanged.read("q", fileRow[row], 1, columns)));
        EXPECT_EQ(model.read("b", row, 1, 1)[0], vector.Values[fileRow[row]]);
      }
      EXPECT_EQ(bindGguf(model, image, {{"*", "*", 5, 0}}), KILN_INVALID_ARGUMENT);
      EXPECT_EQ(wordsOf(model.Error), "tensor \"q\": wrong rows; expected pairs of 5 rotary heads, got shape [24, 64]");
    }
}

#if defined(__SSE__)
TEST(Gguf, TheCallersModesDoNotMatter) {
  const int64_t rows = 8, columns = 256;
  Numbers numbers = drawGguf(Q4_K, rows, columns, 4);
  const uint16_t tiny = 1; // 2^-24
  for (int64_t row = 0; row < rows; ++row)
    std::memcpy(numbers.Bytes.data() + row * 144, &tiny, sizeof tiny);
  const kiln_weight_t weight = matrixWeight("w", rows, columns);
  const kiln_placement_t place = makePlacement(0, 0, 0, 0, 0);
  BoundModel model({weight}, {place}, rows * columns * 4), other({weight}, {place}, rows * columns * 4);
  const std::string image = makeGguf({{"w", {columns, rows}, Q4_K, numbers.Bytes}});
  ASSERT_EQ(bindGguf(model, image), KILN_OK);
  const unsigned before = _mm_getcsr(), mode = 0xFFC0 ^ 0x1000; // towards 0, flush subnormals, trap on inexact
  _mm_setcsr(mode);
  const kiln_status_t status = bindGguf(other, image);
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_EQ(status, KILN_OK);
  EXPECT_EQ(after, mode);
  EXPECT_EQ(other.packed(), model.packed());
}
#endif

TEST(Gguf, CallsThatMakeNoSense) {
  BoundModel model({{"w", KILN_F32, 1, {2}, 1, 0}}, {makePlacement(0, 0, 0, 0, 0)}, 8);
  const kiln_rename_t none = {};
  EXPECT_EQ(kiln_bind_gguf(nullptr, "x", nullptr, 0, &model.Error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(model.Error.message, "bind_gguf: null given; expected a model");
  EXPECT_EQ(kiln_bind_gguf(model.Model, nullptr, nullptr, 0, &model.Error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(model.Error.message, "bind_gguf: null given; expected a path");
  EXPECT_EQ(kiln_bind_gguf(model.Model, "x", nullptr, 1, &model.Error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(model.Error.message, "bind_gguf: null given; expected renames");
  EXPECT_EQ(kiln_bind_gguf(model.Model, "x", &none, 1, &model.Error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(model.Error.message, "bind_gguf: null given; expected a name that rename 0 is from");
  EXPECT_EQ(kiln_bind_gguf(model.Model, "/nonexistent.gguf", nullptr, 0, &model.Error), KILN_FILE_ERROR);
  EXPECT_STREQ(model.Error.message, "cannot open weight file \"/nonexistent.gguf\": No such file or directory");
}

} // namespace
