// SPDX-License-Identifier: Apache-2.0
// The safetensors reader with malformed files: for every rule of the format there is a file that breaks it, and the
// expected message; truncations and mutations must never crash, read outside the image, or pass with tensors that do
// not cover the data.
#include "readers/files.h"
#include "support.h"

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <random>

namespace {

using namespace kiln_test;

/// Opens an image that ends at a guard page, calls `check`, and closes the image.
kiln_status_t open(std::string_view image, kiln_error_t &error,
                   const std::function<void(const kiln_tensors_t &)> &check = nullptr) {
  GuardedMemory memory(image);
  CountingAllocator allocator;
  const kiln_allocator_t functions = allocator.get();
  kiln_tensors_t file;
  error = {};
  kiln_status_t status = kiln_safetensors_open(memory.data(), memory.size(), &functions, &file, &error);
  if (status == KILN_OK && check)
    check(file);
  EXPECT_LE(allocator.Made, 1) << "one index array and nothing else";
  kiln_tensors_release(&file, &functions);
  EXPECT_EQ(allocator.Alive, 0);
  return status;
}

kiln_name_t wholeName(const char *name) { return {{name, "", ""}, {std::strlen(name), 0, 0}, {}}; }

struct Malformed {
  const char *Header;
  size_t DataBytes;
  const char *Message;
};

// `FIELDS` is the inside of a well-formed tensor, without offsets.
#define FIELDS "\"dtype\":\"F32\",\"shape\":[2]"
#define A "\"a\":{" FIELDS ",\"data_offsets\":[0,8]}"

const Malformed MalformedFiles[] = {
    // The framing of the header.
    {"", 0, "weight file: of another kind; expected a safetensors file, got zeros"},
    {" {}", 0, "safetensors header: malformed JSON; expected '{' as its first byte, got 0x20 at byte 0"},
    {"[]", 0, "safetensors header: malformed JSON; expected '{' as its first byte, got '[' at byte 0"},
    {"{", 0, "safetensors header: malformed JSON; expected the name of a tensor, got its end at byte 1"},
    {"{}x", 0,
     "safetensors header: malformed JSON; expected nothing but white space after its last '}', got 'x' at byte 2"},
    {"{1:2}", 0, "safetensors header: malformed JSON; expected the name of a tensor, got '1' at byte 1"},
    {"{\"a\"}", 0, "safetensors header: malformed JSON; expected ':' after a name, got '}' at byte 4"},
    {"{\"a\":null}", 0, "safetensors header: malformed JSON; expected '{' to begin a tensor, got 'n' at byte 5"},
    {"{\"a\":[[[[[[", 0, "safetensors header: malformed JSON; expected '{' to begin a tensor, got '[' at byte 5"},
    {"{" A ","
     "}",
     8, "safetensors header: malformed JSON; expected the name of a tensor, got '}'"},
    {"{" A A "}", 8, "safetensors header: malformed JSON; expected ',' or '}' after a tensor, got '\"'"},
    {"{" A, 8, "safetensors header: malformed JSON; expected ',' or '}' after a tensor, got its end"},
    // Strings.
    {"{\"a\n\":1}", 0, "safetensors header: malformed JSON; expected a well-formed string, got 0x0a at byte 3"},
    {"{\"a\\x\":1}", 0, "safetensors header: malformed JSON; expected a well-formed string, got 'x' at byte 4"},
    {"{\"a\\u12G4\":1}", 0, "safetensors header: malformed JSON; expected a well-formed string, got 'G' at byte 7"},
    {"{\"a\\u12", 0, "safetensors header: malformed JSON; expected a well-formed string, got '1' at byte 5"},
    {"{\"a\\udc00\":1}", 0, "safetensors header: malformed JSON; expected a well-formed string, got '\"' at byte 9"},
    {"{\"a\\ud800x\":1}", 0, "safetensors header: malformed JSON; expected a well-formed string, got 'x' at byte 9"},
    {"{\"a\\ud800\\u0041\":1}", 0,
     "safetensors header: malformed JSON; expected a well-formed string, got '\"' at byte 15"},
    {"{\"a\\", 0, "safetensors header: malformed JSON; expected a well-formed string, got its end at byte 4"},
    {"{\"a", 0, "safetensors header: malformed JSON; expected a well-formed string, got its end at byte 3"},
    {"{\"\x80\":1}", 0, "safetensors header: malformed JSON; expected a well-formed string, got 0x80 at byte 2"},
    {"{\"\xC0\xAF\":1}", 0, "safetensors header: malformed JSON; expected a well-formed string, got 0xc0 at byte 2"},
    {"{\"\xE0\x80\x80\":1}", 0,
     "safetensors header: malformed JSON; expected a well-formed string, got 0xe0 at byte 2"},
    {"{\"\xED\xA0\x80\":1}", 0,
     "safetensors header: malformed JSON; expected a well-formed string, got 0xed at byte 2"},
    {"{\"\xF5\x80\x80\x80\":1}", 0,
     "safetensors header: malformed JSON; expected a well-formed string, got 0xf5 at byte 2"},
    {"{\"\xE2\x82", 0, "safetensors header: malformed JSON; expected a well-formed string, got 0xe2 at byte 2"},
    // The fields of a tensor.
    {"{\"a\":{}}", 0, "safetensors header: malformed JSON; expected a field of a tensor, got '}' at byte 6"},
    {"{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "tensor \"a\": field missing; expected dtype"},
    {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8, "tensor \"a\": field missing; expected shape"},
    {"{\"a\":{" FIELDS "}}", 8, "tensor \"a\": field missing; expected data_offsets"},
    {"{\"a\":{" FIELDS "," FIELDS ",\"data_offsets\":[0,8]}}", 8,
     "tensor \"a\": wrong field; expected dtype, shape and data_offsets once each, got \"dtype\""},
    {"{\"a\":{" FIELDS ",\"data_offsets\":[0,8],\"stride\":1}}", 8,
     "tensor \"a\": wrong field; expected dtype, shape and data_offsets once each, got \"stride\""},
    {"{\"a\":{" FIELDS " \"data_offsets\":[0,8]}}", 8,
     "safetensors header: malformed JSON; expected ',' or '}' in a tensor, got '\"'"},
    {"{\"a\":{\"dtype\" \"F32\"}}", 0, "safetensors header: malformed JSON; expected ':' after a name, got '\"'"},
    // Types.
    {"{\"a\":{\"dtype\":\"F31\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
     "tensor \"a\": unknown type; expected one of safetensors, got \"F31\""},
    {"{\"a\":{\"dtype\":\"f32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
     "tensor \"a\": unknown type; expected one of safetensors, got \"f32\""},
    {"{\"a\":{\"dtype\":\"I4\",\"shape\":[2],\"data_offsets\":[0,1]}}", 1,
     "tensor \"a\": unknown type; expected one of safetensors, got \"I4\""},
    {"{\"a\":{\"dtype\":\"\",\"shape\":[2],\"data_offsets\":[0,1]}}", 1,
     "tensor \"a\": unknown type; expected one of safetensors, got \"\""},
    {"{\"a\":{\"dtype\":32}}", 8, "safetensors header: malformed JSON; expected an element type, got '3'"},
    // Shapes.
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":2}}", 8, "safetensors header: malformed JSON; expected a shape, got '2'"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-2]}}", 8,
     "safetensors header: malformed JSON; expected an integer dimension below 2^63, got '-'"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2.0]}}", 8,
     "safetensors header: malformed JSON; expected ',' or ']' in a shape, got '.'"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2e0]}}", 8,
     "safetensors header: malformed JSON; expected ',' or ']' in a shape, got 'e'"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[02]}}", 8,
     "safetensors header: malformed JSON; expected an integer dimension below 2^63, got '2'"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2,]}}", 8,
     "safetensors header: malformed JSON; expected an integer dimension below 2^63, got ']'"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[[2]]}}", 8,
     "safetensors header: malformed JSON; expected an integer dimension below 2^63, got '['"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[9223372036854775808]}}", 8,
     "safetensors header: malformed JSON; expected an integer dimension below 2^63, got '8'"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999999999]}}", 8,
     "safetensors header: malformed JSON; expected an integer dimension below 2^63, got '9'"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296]}}", 8,
     "safetensors header: malformed JSON; expected a shape of less than 2^63 elements, got ']'"},
    // Offsets.
    {"{\"a\":{" FIELDS ",\"data_offsets\":8}}", 8, "safetensors header: malformed JSON; expected two offsets, got '8'"},
    {"{\"a\":{" FIELDS ",\"data_offsets\":[0]}}", 8,
     "safetensors header: malformed JSON; expected ',' between offsets, got ']'"},
    {"{\"a\":{" FIELDS ",\"data_offsets\":[0,8,8]}}", 8,
     "safetensors header: malformed JSON; expected ']' after two offsets, got ','"},
    {"{\"a\":{" FIELDS ",\"data_offsets\":[-8,0]}}", 8,
     "safetensors header: malformed JSON; expected an integer offset below 2^63, got '-'"},
    {"{\"a\":{" FIELDS ",\"data_offsets\":[0,9223372036854775808]}}", 8,
     "safetensors header: malformed JSON; expected an integer offset below 2^63, got '8'"},
    {"{\"a\":{" FIELDS ",\"data_offsets\":[8,0]}}", 8,
     "tensor \"a\": wrong offsets; expected rising ones within 8 bytes of data, got [8, 0]"},
    {"{\"a\":{" FIELDS ",\"data_offsets\":[0,8]}}", 7,
     "tensor \"a\": wrong offsets; expected rising ones within 7 bytes of data, got [0, 8]"},
    {"{\"a\":{" FIELDS ",\"data_offsets\":[9223372036854775799,9223372036854775807]}}", 8,
     "tensor \"a\": wrong offsets; expected rising ones within 8 bytes of data, got [9223372036854775799, "
     "9223372036854775807]"},
    {"{\"a\":{" FIELDS ",\"data_offsets\":[0,4]}}", 4,
     "tensor \"a\" of shape [2]: wrong size; expected 4 bytes an element, got offsets [0, 4]"},
    {"{\"a\":{" FIELDS ",\"data_offsets\":[0,9]}}", 9,
     "tensor \"a\" of shape [2]: wrong size; expected 4 bytes an element, got offsets [0, 9]"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,4]}}", 4,
     "tensor \"a\" of shape [0]: wrong size; expected 4 bytes an element, got offsets [0, 4]"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,0]}}", 0,
     "tensor \"a\" of shape []: wrong size; expected 4 bytes an element, got offsets [0, 0]"},
    {"{\"a\":{\"dtype\":\"F64\",\"shape\":[2305843009213693952],\"data_offsets\":[0,0]}}", 0,
     "tensor \"a\" of shape [2305843009213693952]: wrong size; expected 8 bytes an element, got offsets [0, 0]"},
    {"{" A "}", 9, "safetensors data: wrong size; expected the 8 bytes of its tensors, got 9"},
    {"{}", 1, "safetensors data: wrong size; expected the 0 bytes of its tensors, got 1"},
    {"{\"a\":{" FIELDS ",\"data_offsets\":[1,9]}}", 9,
     "tensor \"a\": not contiguous; expected offset 0, got 1 (a gap)"},
    {"{\"b\":{" FIELDS ",\"data_offsets\":[12,20]}," A "}", 20,
     "tensor \"b\": not contiguous; expected offset 8, got 12 (a gap)"},
    {"{\"b\":{" FIELDS ",\"data_offsets\":[4,12]}," A "}", 12,
     "tensor \"b\": not contiguous; expected offset 8, got 4 (an overlap)"},
    {"{\"b\":{" FIELDS ",\"data_offsets\":[0,8]}," A "}", 8, "not contiguous; expected offset 8, got 0 (an overlap)"},
    // Names.
    {"{" A ",\"a\":{" FIELDS ",\"data_offsets\":[8,16]}}", 16,
     "safetensors header: repeated name; expected distinct ones, got \"a\""},
    {"{" A ",\"\\u0061\":{" FIELDS ",\"data_offsets\":[8,16]}}", 16,
     "safetensors header: repeated name; expected distinct ones, got \"a\""},
    // Metadata.
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0,
     "safetensors header: malformed JSON; expected __metadata__ only once, got '{'"},
    {"{\"__metadata__\":[]}", 0, "safetensors header: malformed JSON; expected '{' to begin __metadata__, got '['"},
    {"{\"__metadata__\":{\"a\":1}}", 0,
     "safetensors header: malformed JSON; expected a string in __metadata__, got '1'"},
    {"{\"__metadata__\":{\"a\":{}}}", 0,
     "safetensors header: malformed JSON; expected a string in __metadata__, got '{'"},
    {"{\"__metadata__\":{\"a\":\"b\"", 0,
     "safetensors header: malformed JSON; expected ',' or '}' in __metadata__, got its end"},
    {"{\"__metadata__\":{\"a\" \"b\"}}", 0, "safetensors header: malformed JSON; expected ':' after a name, got '\"'"},
    {"{\"__metadata__\":{1}}", 0, "safetensors header: malformed JSON; expected a name in __metadata__, got '1'"},
};

TEST(Safetensors, MalformedFilesAreRefusedWithReasons) {
  for (const Malformed &test : MalformedFiles) {
    kiln_error_t error;
    EXPECT_EQ(open(makeImage(test.Header, std::string(test.DataBytes, 'd')), error), KILN_FILE_MALFORMED)
        << test.Header;
    EXPECT_EQ(error.status, KILN_FILE_MALFORMED) << test.Header;
    EXPECT_NE(std::string(error.message).find(test.Message), std::string::npos)
        << test.Header << "\ngot:    " << error.message << "\nwanted: " << test.Message;
  }
}

TEST(Safetensors, HeaderLengthIsChecked) {
  kiln_error_t error;
  EXPECT_EQ(open("", error), KILN_FILE_MALFORMED);
  EXPECT_STREQ(error.message, "weight file: of another kind; expected a safetensors file, got an empty file");
  EXPECT_EQ(open(std::string_view("\x05\0\0\0\0\0\0\0{}  ", 12), error), KILN_FILE_MALFORMED);
  EXPECT_STREQ(error.message, "safetensors header: too large; expected at most 4 bytes, got 5");
  EXPECT_EQ(open("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF{}", error), KILN_FILE_MALFORMED);
  EXPECT_STREQ(error.message, "safetensors header: too large; expected at most 2 bytes, got 18446744073709551615");
}

// The header is longer than the format's limit, in a file that really has that many bytes (none of which is touched).
TEST(Safetensors, HugeHeaderIsRefused) {
  const size_t bytes = 200000000;
  void *image = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(image, MAP_FAILED);
  const uint64_t headerBytes = 100000001;
  std::memcpy(image, &headerBytes, sizeof headerBytes);
  CountingAllocator allocator;
  const kiln_allocator_t functions = allocator.get();
  kiln_tensors_t file;
  kiln_error_t error;
  EXPECT_EQ(kiln_safetensors_open(image, bytes, &functions, &file, &error), KILN_FILE_MALFORMED);
  EXPECT_STREQ(error.message, "safetensors header: too large; expected at most 100000000 bytes, got 100000001");
  munmap(image, bytes);
}

TEST(Safetensors, WellFormedOddities) {
  kiln_error_t error;
  EXPECT_EQ(open(makeImage("{}", ""), error), KILN_OK);
  EXPECT_EQ(open(makeImage("{ }  \n\t\r ", ""), error), KILN_OK);
  EXPECT_EQ(open(makeImage("{\"__metadata__\":{\"format\":\"pt\",\"x\":\"\\\"\"}}", ""), error), KILN_OK);
  // Padding, fields in another order, an unsorted file, an empty tensor between two others, a scalar, a high rank.
  EXPECT_EQ(open(makeImage("{ \"z\" : { \"data_offsets\" : [ 8 , 16 ] , \"shape\" : [ 2 ] , \"dtype\" : \"F32\" } ,"
                           "\"e\":{\"dtype\":\"I64\",\"shape\":[3,0],\"data_offsets\":[8,8]},"
                           "\"s\":{\"dtype\":\"BOOL\",\"shape\":[],\"data_offsets\":[16,17]},"
                           "\"h\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,2],\"data_offsets\":[17,19]}," A "}   ",
                           std::string(19, 'd')),
                 error,
                 [](const kiln_tensors_t &file) {
                   ASSERT_EQ(file.count, 5u);
                   kiln_name_t name = wholeName("z");
                   const kiln_tensor_t *z = kiln_tensors_find(&file, &name);
                   ASSERT_NE(z, nullptr);
                   EXPECT_EQ(z->begin, 8u);
                   EXPECT_EQ(z->end, 16u);
                   EXPECT_EQ(z->dtype, KILN_F32);
                   EXPECT_EQ(z->rank, 1u);
                   EXPECT_EQ(z->shape[0], 2);
                   name = wholeName("h");
                   EXPECT_EQ(kiln_tensors_find(&file, &name)->rank, 7u);
                 }),
            KILN_OK)
      << error.message;
}

TEST(Safetensors, EscapedNamesAreDecoded) {
  const struct {
    const char *Escaped, *Name;
  } cases[] = {{"\\u0061\\/b", "a/b"},
               {"\\\"\\\\\\b\\f\\n\\r\\t", "\"\\\b\f\n\r\t"},
               {"\\u00e9\\u20AC", "\xC3\xA9\xE2\x82\xAC"},
               {"\\ud83d\\uDE00", "\xF0\x9F\x98\x80"},
               {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"},
               {"", ""}};
  for (const auto &test : cases) {
    kiln_error_t error;
    std::string header = "{" A ",\"" + std::string(test.Escaped) + "\":{" FIELDS ",\"data_offsets\":[8,16]}}";
    EXPECT_EQ(open(makeImage(header, std::string(16, 'd')), error,
                   [&](const kiln_tensors_t &file) {
                     kiln_name_t name = wholeName(test.Name);
                     const kiln_tensor_t *tensor = kiln_tensors_find(&file, &name);
                     ASSERT_NE(tensor, nullptr) << test.Escaped;
                     EXPECT_EQ(tensor->begin, 8u);
                   }),
              KILN_OK)
        << test.Escaped << ": " << error.message;
  }
}

TEST(Safetensors, FindsEachOfManyNamesInParts) {
  std::vector<Tensor> tensors;
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i)
    tensors.push_back({"h." + std::to_string(i) + ".w", "I8", {i % 3}, std::string(i % 3, static_cast<char>(i))});
  std::shuffle(tensors.begin(), tensors.end(), random);
  kiln_error_t error;
  EXPECT_EQ(open(makeImage(tensors), error,
                 [&](const kiln_tensors_t &file) {
                   for (int i = 0; i < 300; ++i) {
                     std::string digits = std::to_string(i);
                     kiln_name_t name = {{"h.", digits.c_str(), ".w"}, {2, digits.size(), 2}, {}};
                     const kiln_tensor_t *tensor = kiln_tensors_find(&file, &name);
                     ASSERT_NE(tensor, nullptr) << i;
                     EXPECT_EQ(std::string(tensor->name, tensor->name_length), "h." + digits + ".w");
                     EXPECT_EQ(tensor->end - tensor->begin, static_cast<uint64_t>(i % 3));
                   }
                   for (const char *absent : {"", "h.", "h.3.", "h.3.ww", "h.300.w", "a", "z"}) {
                     kiln_name_t name = wholeName(absent);
                     EXPECT_EQ(kiln_tensors_find(&file, &name), nullptr) << absent;
                   }
                 }),
            KILN_OK)
      << error.message;
}

TEST(Safetensors, TruncatedFilesAreRefused) {
  const std::string image = makeImage(testWeights());
  kiln_error_t error;
  ASSERT_EQ(open(image, error), KILN_OK) << error.message;
  for (size_t bytes = 0; bytes < image.size(); ++bytes) {
    EXPECT_EQ(open(std::string_view(image).substr(0, bytes), error), KILN_FILE_MALFORMED) << bytes;
    EXPECT_GT(std::strlen(error.message), 20u) << bytes;
    // The same truncation within the header, with an adjusted length.
    if (bytes >= 8) {
      std::string shortened = makeImage(std::string_view(image).substr(8, bytes - 8), "");
      EXPECT_EQ(open(shortened, error), KILN_FILE_MALFORMED) << bytes;
    }
  }
}

TEST(Safetensors, OutOfMemoryIsAStatus) {
  const std::string image = makeImage(testWeights());
  CountingAllocator allocator;
  allocator.Limit = 0;
  const kiln_allocator_t functions = allocator.get();
  kiln_tensors_t file;
  kiln_error_t error;
  EXPECT_EQ(kiln_safetensors_open(image.data(), image.size(), &functions, &file, &error), KILN_OUT_OF_MEMORY);
  EXPECT_NE(std::string(error.message).find("an index of the weight file: no memory; expected "), std::string::npos);
}

// 20,000 mutated headers from fixed seeds. The tensors of a file that still passes must be contiguous and cover the
// data.
TEST(Safetensors, MutatedHeadersNeverCrash) {
  const std::string base =
      "{\"__metadata__\":{\"k\":\"v\"},\"h.0.\\u0077\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,8]},"
      "\"b\xC3\xA9\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[8,14]},"
      "\"c\":{\"dtype\":\"I8\",\"shape\":[],\"data_offsets\":[14,15]}}";
  const std::string pieces[] = {"{",     "}",    "[",  "]",       "\"",        ":",   ",",    "0",         "-1",
                                "99999", "\\u",  "\\", "\xED",    "\xF0",      "\0",  "F32",  "\"shape\"", " ",
                                "8",     "{\"a", "[[", "\\ud800", "\"dtype\"", "1e9", "null", "\"c\""};
  std::mt19937 random(20261121);
  auto pick = [&](size_t limit) { return static_cast<size_t>(random() % limit); };
  int passed = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string header = base;
    for (size_t change = 0, changes = 1 + pick(4); change < changes && !header.empty(); ++change) {
      size_t at = pick(header.size());
      switch (pick(5)) {
      case 0:
        header[at] = static_cast<char>(random());
        break;
      case 1:
        header.erase(at, 1 + pick(6));
        break;
      case 2:
        header.insert(at, pieces[pick(std::size(pieces))]);
        break;
      case 3:
        header.insert(at, header.substr(pick(header.size()), 1 + pick(20)));
        break;
      default:
        header[at] = static_cast<char>('0' + pick(10));
      }
    }
    kiln_error_t error;
    kiln_status_t status = open(makeImage(header, std::string(15, 'd')), error, [&](const kiln_tensors_t &file) {
      ++passed;
      uint64_t covered = 0;
      for (size_t i = 0; i < file.count; ++i) {
        const kiln_tensor_t &tensor = file.tensors[i];
        ASSERT_LE(tensor.end, 15u);
        covered += tensor.end - tensor.begin;
        kiln_name_t name = {{tensor.name, "", ""}, {tensor.name_length, 0, 0}, {}};
        ASSERT_EQ(kiln_tensors_find(&file, &name), &tensor);
      }
      ASSERT_EQ(covered, 15u);
    });
    if (status != KILN_OK) {
      ASSERT_EQ(status, KILN_FILE_MALFORMED) << header;
      ASSERT_GT(std::strlen(error.message), 20u) << header;
    }
  }
  // Changed names and white space are harmless; if no file passed, the mutations would be too coarse to reach the
  // checks.
  EXPECT_GT(passed, 200);
  EXPECT_LT(passed, 10000);
}

} // namespace
