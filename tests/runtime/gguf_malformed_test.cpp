// SPDX-License-Identifier: Apache-2.0
// The GGUF reader with malformed files: for every rule there is a file that breaks it, and the expected message;
// truncations and mutations never crash, read outside the image, or pass with tensors outside of it.
#include "third_party_files.h"
#include "weights/convert.h"

#include <gtest/gtest.h>
#include <random>

namespace {

using namespace kiln_test;

/// Opens an image that ends at a guard page, and reads all elements of all tensors; sets `count` to the number of
/// tensors.
kiln_status_t openGguf(std::string_view image, kiln_error_t &error, size_t *count = nullptr) {
  static const kiln_rename_t renames[] = {{"left.*", nullptr, 0, KILN_RENAME_OPTIONAL},
                                          {"turned.*", "t.*", 2, KILN_RENAME_OPTIONAL}};
  const kiln_renames_t names = {renames, 2};
  GuardedMemory memory(image);
  CountingAllocator allocator;
  const kiln_allocator_t functions = allocator.get();
  kiln_tensors_t table;
  error = {};
  const kiln_status_t status = kiln_gguf_open(memory.data(), memory.size(), &names, &functions, &table, &error);
  EXPECT_LE(allocator.Made, 1) << "one index and nothing else";
  for (size_t i = 0; status == KILN_OK && i < table.count; ++i) {
    const kiln_tensor_t &tensor = table.tensors[i];
    EXPECT_LE(tensor.end, memory.size());
    uint64_t elements = 1;
    for (uint32_t dim = 0; dim < tensor.rank; ++dim)
      elements *= static_cast<uint64_t>(tensor.shape[dim]);
    std::vector<float> values(elements);
    kiln_convert_read(&tensor, values.data(), 0, elements);
  }
  if (count)
    *count = table.count;
  kiln_tensors_release(&table, &functions);
  EXPECT_EQ(allocator.Alive, 0);
  return status;
}

std::vector<GgufTensor> someTensors() {
  return {{"a", {256, 2}, Q4_K, drawGguf(Q4_K, 2, 256, 1).Bytes},
          {"turned.q", {32, 4}, Q8_0, drawGguf(Q8_0, 4, 32, 2).Bytes},
          {"left.x", {3}, 77, "abc"},
          {"b", {64, 1, 2}, Q4_0, drawGguf(Q4_0, 2, 64, 3).Bytes},
          {"c", {256}, Q6_K, drawGguf(Q6_K, 1, 256, 4).Bytes},
          {"n", {3}, GgufF32, drawGguf(GgufF32, 1, 3, 5).Bytes}};
}

std::string u32s(std::initializer_list<uint32_t> values) { return bytesOf(std::vector<uint32_t>(values)); }

/// Encodes an array of metadata: the element type, the count, the elements.
std::string arrayOf(uint32_t type, uint64_t count, const std::string &bytes) {
  std::string result = u32s({type});
  append(result, count);
  return result + bytes;
}

/// Encodes `depth` nested arrays; the innermost one is an array of numbers.
std::string nested(int depth) { return depth == 1 ? arrayOf(4, 2, "12345678") : arrayOf(9, 1, nested(depth - 1)); }

std::vector<std::string> someMetadata() {
  std::string texts;
  appendText(texts, "one");
  appendText(texts, "");
  return {metadata<uint32_t>("general.alignment", 4, 32), metadata("tokens", 9, arrayOf(8, 2, texts)),
          metadata("scores", 9, arrayOf(6, 3, std::string(12, 's'))), metadata<double>("d", 12, 1.5),
          metadata<uint16_t>("split.count", 2, 1),
          // Nested arrays: of the maximum depth; of several arrays, some of which are empty; of none.
          metadata("nested", 9, nested(8)),
          metadata("pairs", 9, arrayOf(9, 3, arrayOf(8, 2, texts) + arrayOf(9, 0, "") + arrayOf(5, 1, "1234"))),
          metadata("none", 9, arrayOf(9, 0, ""))};
}

TEST(GgufMalformed, WellFormedOddities) {
  kiln_error_t error;
  size_t count = 0;
  EXPECT_EQ(openGguf(makeGguf({}), error, &count), KILN_OK) << error.message;
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(openGguf(makeGguf(someTensors(), someMetadata()), error, &count), KILN_OK) << error.message;
  EXPECT_EQ(count, 5u);
  EXPECT_EQ(openGguf(makeGguf(someTensors(), {metadata<uint32_t>("general.alignment", 4, 1)}, 1, 2), error), KILN_OK)
      << error.message;
}

TEST(GgufMalformed, FilesAreRefusedWithReasons) {
  const std::string f32(8, 'f');
  auto one = [&](std::vector<uint64_t> extents, uint32_t type, const std::string &bytes) {
    return makeGguf({{"a", std::move(extents), type, bytes}});
  };
  auto with = [&](const std::string &value) { return makeGguf({}, {value}); };
  auto patched = [&](std::string image, size_t at, uint64_t value) {
    std::memcpy(image.data() + at, &value, sizeof value);
    return image;
  };
  const std::string plain = one({2}, GgufF32, f32);
  const size_t name = 24, rank = name + 9, extent = rank + 4, type = extent + 8, offset = type + 4;
  ASSERT_EQ(plain.size(), 64u + 8);
  const struct {
    std::string Image, Words;
    kiln_status_t Status = KILN_FILE_MALFORMED;
  } cases[] = {
      {"", "weight file: of another kind; expected a little-endian GGUF file, got an empty file"},
      {std::string("GG\1", 3), "GGUF file: truncated; expected \"GGUF\" as its first bytes, got its end at byte 0"},
      {"GGML\3\0\0\0", "GGUF file: wrong first bytes; expected \"GGUF\""},
      {"GGUF", "GGUF file: truncated; expected a version, got its end at byte 4"},
      {makeGguf({}, {}, 32, 1), "GGUF file: unknown version; expected 2 or 3, got 1"},
      {makeGguf({}, {}, 32, 0x03000000),
       "weight file: of another kind; expected a little-endian GGUF file, got a big-endian GGUF file"},
      {std::string("GGUF\3\0\0\0\0\0\0\0", 12),
       "GGUF file: truncated; expected the number of its tensors, got its end at byte 8"},
      {std::string("GGUF\3\0\0\0\0\0\0\0\0\0\0\0", 16),
       "GGUF file: truncated; expected the number of its metadata, got its end"},
      {patched(plain, 16, 1), "tensor \"\": wrong rank; expected 1 to 4, got 0"},
      {patched(plain, 8, 1u << 30), "GGUF file: truncated; expected the name of a tensor, got "},
      {patched(plain, name, UINT64_MAX),
       "GGUF file: truncated; expected the name of a tensor, got 40 bytes for 18446744073709551615 of 1"},
      {with(metadata<uint32_t>("general.alignment", 4, 0)), "wrong alignment; expected a power of two, got 0"},
      {with(metadata<uint32_t>("general.alignment", 4, 48)), "wrong alignment; expected a power of two, got 48"},
      {with(metadata<uint16_t>("split.count", 2, 3)), "split checkpoint; expected all of it, got one of 3 parts"},
      {with(metadata("x", 13, "")), "unknown type of metadata; expected a known one, got 13 at byte 37"},
      {with(metadata("x", 9, arrayOf(9, 1, ""))),
       "unknown type of metadata; expected a known one, got 1886417008 at byte 61"},
      {with(metadata("x", 9, arrayOf(9, 1, arrayOf(13, 1, "")))),
       "unknown type of metadata; expected a known one, got 13"},
      {with(metadata("x", 9, arrayOf(9, 2, arrayOf(4, 1, "abcd")))),
       "unknown type of metadata; expected a known one, got 1886417008"},
      {with(metadata("x", 9, arrayOf(9, UINT64_MAX, arrayOf(4, 1, "abcd")))),
       "type of metadata; expected a known one, got 1886417008"},
      {with(metadata("x", 9, nested(9))), "metadata too deep; expected at most 8 arrays, got more at byte"},
      {with(metadata("x", 9, arrayOf(12, UINT64_MAX / 8 + 1, ""))),
       "truncated; expected a value in its metadata, got "},
      {with(metadata("x", 9, arrayOf(8, 2, ""))), "truncated; expected a value in its metadata, got "},
      {with(metadata("x", 8, "abc")), "truncated; expected a value in its metadata, got "},
      {makeGguf({{"a\n", {2}, GgufF32, f32}}), "wrong name; expected printable ASCII, got 0x0a at byte 33"},
      {makeGguf({{"\xC3\xA9", {2}, GgufF32, f32}}), "wrong name; expected printable ASCII, got 0xc3 at byte 32"},
      {one({}, GgufF32, f32), "tensor \"a\": wrong rank; expected 1 to 4, got 0"},
      {one({1, 1, 1, 1, 2}, GgufF32, f32), "tensor \"a\": wrong rank; expected 1 to 4, got 5"},
      {one({2, 0}, GgufF32, f32),
       "tensor \"a\": wrong dimension; expected 1 or more, and less than 2^61 elements, got 0"},
      {one({1ull << 32, 1ull << 32}, GgufF32, f32), "and less than 2^61 elements, got 4294967296"},
      {one({UINT64_MAX}, GgufF32, f32), "and less than 2^61 elements, got 18446744073709551615"},
      {one({48}, Q4_0, f32), "tensor \"a\" of type Q4_0: wrong row length; expected a multiple of 32, got shape [48]"},
      {one({32, 8}, Q4_K, f32),
       "tensor \"a\" of type Q4_K: wrong row length; expected a multiple of 256, got shape [8"},
      {one({32}, 13, f32), "tensor \"a\": wrong type; expected F32, F16, BF16, Q8_0, Q4_0, Q4_K or Q6_K, got number 13",
       KILN_WEIGHT_TYPE},
      {one({3}, GgufF32, f32),
       "tensor \"a\": wrong offset; expected 12 bytes at a multiple of 32 within 8 bytes of data, got 0"},
      {patched(plain, offset, 4),
       "tensor \"a\": wrong offset; expected 8 bytes at a multiple of 32 within 8 bytes of data, got 4"},
      {patched(plain, offset, 32), "within 8 bytes of data, got 32"},
      {patched(plain, offset, UINT64_MAX - 31), "within 8 bytes of data, got 18446744073709551584"},
      {plain.substr(0, 60), "wrong offset; expected 8 bytes at a multiple of 32 within 0 bytes of data, got 0"},
      {makeGguf({{"a", {2}, GgufF32, f32}, {"a", {2}, GgufF32, f32}}),
       "repeated name; expected distinct ones, got \"a\""},
      {patched(makeGguf({{"a", {2}, GgufF32, f32}, {"b", {2}, GgufF32, f32}}), offset + 8 + 9 + 4 + 8 + 4, 0),
       "tensor \"a\": overlaps another; expected an offset from 8 on, got 0"},
      {makeGguf({{"turned.x", {32, 6}, GgufF32, std::string(768, 't')}}),
       "tensor \"turned.x\": wrong rows; expected pairs of 2 rotary heads, got shape [6, 32]", KILN_INVALID_ARGUMENT},
  };
  for (const auto &test : cases) {
    kiln_error_t error;
    EXPECT_EQ(openGguf(test.Image, error), test.Status) << test.Words << "\n" << error.message;
    EXPECT_NE(std::string(error.message).find(test.Words), std::string::npos)
        << "got:    " << error.message << "\nwanted: " << test.Words;
  }
}

TEST(GgufMalformed, TruncatedFilesAreRefused) {
  const std::string image = makeGguf(someTensors(), someMetadata());
  kiln_error_t error;
  for (size_t bytes = 0; bytes < image.size(); ++bytes) {
    ASSERT_EQ(openGguf(std::string_view(image).substr(0, bytes), error), KILN_FILE_MALFORMED) << bytes;
    ASSERT_GT(std::strlen(error.message), 20u) << bytes;
  }
}

TEST(GgufMalformed, OutOfMemoryIsAStatus) {
  const std::string image = makeGguf(someTensors());
  CountingAllocator allocator;
  allocator.Limit = 0;
  const kiln_allocator_t functions = allocator.get();
  const kiln_rename_t rename = {"left.*", nullptr, 0, 0};
  const kiln_renames_t names = {&rename, 1};
  kiln_tensors_t table;
  kiln_error_t error;
  EXPECT_EQ(kiln_gguf_open(image.data(), image.size(), &names, &functions, &table, &error), KILN_OUT_OF_MEMORY);
  EXPECT_NE(std::string(error.message).find("an index of the weight file: no memory; expected "), std::string::npos);
}

// 20,000 mutated files from a fixed seed: files that still pass have their elements within the image, which ends at a
// guard page.
TEST(GgufMalformed, MutatedFilesNeverCrash) {
  const std::string base = makeGguf(someTensors(), someMetadata());
  const size_t header = base.size() - 1200 > 0 ? base.find("abc") : 0;
  ASSERT_GT(header, 300u);
  std::mt19937 random(20261125);
  auto pick = [&](size_t limit) { return static_cast<size_t>(random() % limit); };
  const uint64_t odd[] = {0, 1, 2, 4, 31, 33, 255, 256, 1ull << 31, 1ull << 32, 1ull << 61, 1ull << 63, UINT64_MAX};
  int passed = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string image = base;
    for (size_t change = 0, changes = 1 + pick(3); change < changes; ++change) {
      const size_t at = pick(std::min(header, image.size() - 9));
      switch (pick(5)) {
      case 0:
        image[at] = static_cast<char>(random());
        break;
      case 1:
        image.erase(at, 1 + pick(8));
        break;
      case 2:
        image.insert(at, base.substr(pick(header), 1 + pick(30)));
        break;
      case 3:
        std::memcpy(image.data() + at, &odd[pick(std::size(odd))], 4 + 4 * pick(2));
        break;
      default:
        image.resize(image.size() - pick(image.size() - header));
      }
      if (image.size() < header + 16)
        break;
    }
    kiln_error_t error;
    const kiln_status_t status = openGguf(image, error);
    passed += status == KILN_OK;
    if (status != KILN_OK) {
      ASSERT_TRUE(status == KILN_FILE_MALFORMED || status == KILN_WEIGHT_TYPE || status == KILN_INVALID_ARGUMENT)
          << status << " " << error.message;
      ASSERT_GT(std::strlen(error.message), 20u);
    }
  }
  EXPECT_GT(passed, 200);
  EXPECT_LT(passed, 15000);
}

} // namespace
