// SPDX-License-Identifier: Apache-2.0
// All errors that a caller can make with a generated library: each row of the tables states the status and the whole
// message, and nothing may be written. tests/runtime covers the contents of weight files; here the library's own
// functions are called.
#include "session.h"
#include "small.h"

#include <algorithm>
#include <climits>
#include <fstream>
#include <functional>

namespace kiln::testing {
namespace {

Library<small_t> library() { return KILN_TEST_LIBRARY(small, SMALL_WEIGHTS); }

/// A call that succeeds until a case changes something.
struct Call {
  static constexpr std::int64_t maxBatch = SMALL_FORWARD_BATCH_MAX, maxTokens = SMALL_FORWARD_TOKENS_MAX;
  Session<small_t> &session;
  const small_t *model = session.get();
  std::int64_t batch = 2, tokens = 5;
  std::vector<std::int32_t> words = std::vector<std::int32_t>(maxBatch * maxTokens, 3);
  std::vector<std::int32_t> lengths = {5, 2, 1};
  std::vector<float> logits = std::vector<float>(maxBatch * maxTokens * 11, -7.0f);
  GuardedMemory memory{SMALL_FORWARD_ARENA_BYTES(3), Guard::front};
  kiln_executor_t executor = *session.executor(2);
  kiln_error_t error{};
  kiln_call_t call{memory.data(), SMALL_FORWARD_ARENA_BYTES(1), nullptr, &error};
  const kiln_call_t *given = &call;
  const std::int32_t *wordsGiven = words.data(), *lengthsGiven = lengths.data();
  float *logitsGiven = logits.data();

  kiln_status_t run() { return small_forward(model, given, batch, tokens, wordsGiven, lengthsGiven, logitsGiven); }
};

struct CallCase {
  const char *name;
  std::function<void(Call &)> change;
  kiln_status_t status;
  std::string message;
};

std::string bytes(std::size_t count) { return std::to_string(count); }

const CallCase callCases[] = {
    {"null model", [](Call &c) { c.model = nullptr; }, KILN_NULL_ARGUMENT, "entry: null given; expected a model"},
    {"null tokens", [](Call &c) { c.wordsGiven = nullptr; }, KILN_NULL_ARGUMENT,
     "forward: null given; expected input \"tokens\""},
    {"null lengths", [](Call &c) { c.lengthsGiven = nullptr; }, KILN_NULL_ARGUMENT,
     "forward: null given; expected input \"lengths\""},
    {"null logits", [](Call &c) { c.logitsGiven = nullptr; }, KILN_NULL_ARGUMENT,
     "forward: null given; expected output \"logits\""},
    {"null arena", [](Call &c) { c.call.arena = nullptr; }, KILN_NULL_ARGUMENT,
     "forward: null given; expected an arena"},
    {"batch 0", [](Call &c) { c.batch = 0; }, KILN_EXTENT_OUT_OF_RANGE,
     "forward: batch out of range; expected [1, 3], got 0"},
    {"batch above its bound", [](Call &c) { c.batch = 4; }, KILN_EXTENT_OUT_OF_RANGE,
     "forward: batch out of range; expected [1, 3], got 4"},
    {"tokens 0", [](Call &c) { c.tokens = 0; }, KILN_EXTENT_OUT_OF_RANGE,
     "forward: tokens out of range; expected [1, 12], got 0"},
    {"tokens -1", [](Call &c) { c.tokens = -1; }, KILN_EXTENT_OUT_OF_RANGE,
     "forward: tokens out of range; expected [1, 12], got -1"},
    {"tokens above their bound", [](Call &c) { c.tokens = 13; }, KILN_EXTENT_OUT_OF_RANGE,
     "forward: tokens out of range; expected [1, 12], got 13"},
    {"tokens of the largest number", [](Call &c) { c.tokens = INT64_MAX; }, KILN_EXTENT_OUT_OF_RANGE,
     "forward: tokens out of range; expected [1, 12], got 9223372036854775807"},
    {"tokens of the smallest number", [](Call &c) { c.tokens = INT64_MIN; }, KILN_EXTENT_OUT_OF_RANGE,
     "forward: tokens out of range; expected [1, 12], got -9223372036854775808"},
    {"tokens of 2^32 + 1", [](Call &c) { c.tokens = (INT64_C(1) << 32) + 1; }, KILN_EXTENT_OUT_OF_RANGE,
     "forward: tokens out of range; expected [1, 12], got 4294967297"},
    {"arena one byte too small", [](Call &c) { c.call.arena_bytes -= 1; }, KILN_ARENA_TOO_SMALL,
     "forward: arena too small; expected " + bytes(SMALL_FORWARD_ARENA_BYTES(1)) + " bytes for 1 workers, got " +
         bytes(SMALL_FORWARD_ARENA_BYTES(1) - 1)},
    {"arena of no bytes", [](Call &c) { c.call.arena_bytes = 0; }, KILN_ARENA_TOO_SMALL,
     "forward: arena too small; expected " + bytes(SMALL_FORWARD_ARENA_BYTES(1)) + " bytes for 1 workers, got 0"},
    {"arena for one worker, executor of two", [](Call &c) { c.call.executor = &c.executor; }, KILN_ARENA_TOO_SMALL,
     "forward: arena too small; expected " + bytes(SMALL_FORWARD_ARENA_BYTES(2)) + " bytes for 2 workers, got " +
         bytes(SMALL_FORWARD_ARENA_BYTES(1))},
    {"arena misaligned by 1", [](Call &c) { c.call.arena = c.memory.data() + 1; }, KILN_ARENA_MISALIGNED,
     "forward: arena misaligned; expected alignment 64, got 1 past it"},
    {"arena misaligned by 32", [](Call &c) { c.call.arena = c.memory.data() + 32; }, KILN_ARENA_MISALIGNED,
     "forward: arena misaligned; expected alignment 64, got 32 past it"},
    {"executor without a function",
     [](Call &c) {
       c.executor.parallel_for = nullptr;
       c.call.executor = &c.executor;
     },
     KILN_NULL_ARGUMENT, "forward: null given; expected an executor with parallel_for"},
    {"executor without workers",
     [](Call &c) {
       c.executor.workers = 0;
       c.call.executor = &c.executor;
     },
     KILN_INVALID_ARGUMENT, "forward: executor without workers; expected at least 1"},
    {"token of the vocabulary's size", [](Call &c) { c.words[3] = 11; }, KILN_INDEX_OUT_OF_RANGE,
     "forward: \"tokens\" out of range; expected [0, 10], got 11 at element 3"},
    {"negative token", [](Call &c) { c.words[9] = -1; }, KILN_INDEX_OUT_OF_RANGE,
     "forward: \"tokens\" out of range; expected [0, 10], got -1 at element 9"},
    {"smallest token", [](Call &c) { c.words[0] = INT32_MIN; }, KILN_INDEX_OUT_OF_RANGE,
     "forward: \"tokens\" out of range; expected [0, 10], got -2147483648 at element 0"},
    {"negative length", [](Call &c) { c.lengths[0] = -5; }, KILN_INDEX_OUT_OF_RANGE,
     "forward: \"lengths\" out of range; expected [0, 5], got -5 at element 0"},
    {"length above the tokens of this call", [](Call &c) { c.lengths[0] = 6; }, KILN_INDEX_OUT_OF_RANGE,
     "forward: \"lengths\" out of range; expected [0, 5], got 6 at element 0"},
};

TEST(BadCall, IsRefusedWithWords) {
  Session<small_t> session(library());
  for (const CallCase &wrong : callCases) {
    SCOPED_TRACE(wrong.name);
    Call call{session};
    wrong.change(call);
    EXPECT_EQ(call.run(), wrong.status);
    EXPECT_EQ(call.error.status, wrong.status);
    EXPECT_EQ(call.error.message, wrong.message);
    EXPECT_EQ(std::count(call.logits.begin(), call.logits.end(), -7.0f), std::ssize(call.logits))
        << "outputs were written";
    call.call.error = nullptr;
    EXPECT_EQ(call.run(), wrong.status) << "without a place for the words";
  }
}

TEST(BadCall, NoneOfTheseIsWrong) {
  Session<small_t> session(library());
  Call call{session};
  EXPECT_EQ(call.run(), KILN_OK) << call.error.message;
  call.words[10] = -1; // beyond the 2 * 5 tokens of the call
  call.lengths[2] = 0;
  EXPECT_EQ(call.run(), KILN_OK) << call.error.message;
  call.words[10] = 3;
  call.lengths[2] = 12;
  call.batch = Call::maxBatch;
  call.tokens = Call::maxTokens;
  EXPECT_EQ(call.run(), KILN_OK) << call.error.message;
}

TEST(BadCall, NullCall) {
  Session<small_t> session(library());
  Call call{session};
  call.given = nullptr;
  EXPECT_EQ(call.run(), KILN_NULL_ARGUMENT);
}

TEST(BadCall, WithoutWeights) {
  Session<small_t> session(library());
  small_t *bare = nullptr;
  ASSERT_EQ(small_create(nullptr, &bare, nullptr), KILN_OK);
  Call call{session};
  call.model = bare;
  EXPECT_EQ(call.run(), KILN_WEIGHTS_NOT_BOUND);
  EXPECT_STREQ(call.error.message, "forward: no weights; expected bound ones");
  small_destroy(bare);
}

/// Returns a weight file of the counter in which the first occurrence of a text is replaced by another one of the same
/// length.
WeightImage imageWith(const std::string &from = "", const std::string &to = "") {
  WeightImage image(library().weights);
  std::span<char> text = image.characters();
  auto at = std::search(text.begin(), text.end(), from.begin(), from.end());
  EXPECT_TRUE(at != text.end() && from.size() == to.size()) << from;
  std::copy(to.begin(), to.end(), at);
  return image;
}

struct FileCase {
  const char *name;
  std::string from, to;
  kiln_status_t status;
  std::string message;
};

const FileCase fileCases[] = {
    {"another name", "words.weight", "Words.weight", KILN_WEIGHT_MISSING,
     "weight file: does not fit model \"small\"; 1 missing, 1 unexpected: \"words.weight\" missing (nearest "
     "\"Words.weight\"), \"Words.weight\" unexpected"},
    {"a layer that the model lacks", "layers.1.norm1.bias", "layers.2.norm1.bias", KILN_WEIGHT_MISSING,
     "\"layers.1.norm1.bias\" missing (nearest \"layers.2.norm1.bias\"), \"layers.2.norm1.bias\" unexpected"},
    {"another shape", "\"shape\":[11,8]", "\"shape\":[8,11]", KILN_WEIGHT_SHAPE,
     "tensor \"words.weight\": wrong shape; expected [11, 8], got [8, 11]"},
    {"another rank", "\"shape\":[12,8]", "\"shape\":[96]  ", KILN_WEIGHT_SHAPE,
     "tensor \"places.weight\": wrong shape; expected [12, 8], got [96]"},
    {"another type of the same size", "\"dtype\":\"F32\"", "\"dtype\":\"I32\"", KILN_WEIGHT_TYPE,
     "tensor \"layers.0.mlp.fc1.bias\": wrong type; expected F32, F16 or BF16, got I32"},
    {"another type of another size", "\"dtype\":\"F32\"", "\"dtype\":\"F16\"", KILN_FILE_MALFORMED,
     "tensor \"layers.0.mlp.fc1.bias\" of shape [24]: wrong size; expected 2 bytes an element, got offsets [0, 96]"},
    {"not JSON", "{\"", "[\"", KILN_FILE_MALFORMED, "'{' as its first byte"},
    {"offsets that overlap", "\"data_offsets\":[96,192]", "\"data_offsets\":[64,160]", KILN_FILE_MALFORMED,
     "an overlap"},
};

TEST(BadWeights, AreRefusedWithWords) {
  for (const FileCase &wrong : fileCases) {
    SCOPED_TRACE(wrong.name);
    WeightImage image = imageWith(wrong.from, wrong.to);
    small_t *model = nullptr;
    kiln_error_t error{};
    ASSERT_EQ(small_create(nullptr, &model, &error), KILN_OK);
    EXPECT_EQ(small_bind_weights_from_memory(model, image.data(), image.size(), &error), wrong.status);
    EXPECT_EQ(error.status, wrong.status);
    EXPECT_NE(std::string(error.message).find(wrong.message), std::string::npos) << error.message;
    EXPECT_EQ(small_bind_weights_from_memory(model, image.data(), image.size(), nullptr), wrong.status);
    small_destroy(model);
  }
}

TEST(BadWeights, UnexpectedTensor) {
  std::vector<WeightShape> weights = library().weights;
  weights.push_back({"extra.weight", 1, {3}});
  WeightImage image(weights);
  small_t *model = nullptr;
  kiln_error_t error{};
  ASSERT_EQ(small_create(nullptr, &model, &error), KILN_OK);
  EXPECT_EQ(small_bind_weights_from_memory(model, image.data(), image.size(), &error), KILN_WEIGHT_UNEXPECTED);
  EXPECT_STREQ(error.message, "model \"small\" has no tensor \"extra.weight\", the weight file has");
  small_destroy(model);
}

// A file that is truncated anywhere is refused, up to the last byte.
TEST(BadWeights, TruncatedAnywhere) {
  WeightImage image(library().weights);
  small_t *model = nullptr;
  kiln_error_t error{};
  ASSERT_EQ(small_create(nullptr, &model, &error), KILN_OK);
  for (std::size_t size = 0; size < image.size(); size += size < 4000 ? 13 : 401) {
    GuardedMemory cut(size, Guard::back);
    std::memcpy(cut.data(), image.data(), size);
    ASSERT_EQ(small_bind_weights_from_memory(model, cut.data(), size, &error), KILN_FILE_MALFORMED) << size;
    ASSERT_STRNE(error.message, "");
  }
  EXPECT_EQ(small_bind_weights_from_memory(model, image.data(), image.size() - 1, &error), KILN_FILE_MALFORMED);
  EXPECT_EQ(small_bind_weights_from_memory(model, image.data(), image.size(), &error), KILN_OK) << error.message;
  small_destroy(model);
}

// A failed bind leaves the previous weights.
TEST(BadWeights, LeaveTheModelAsItWas) {
  Session<small_t> session(library());
  Call before{session}, after{session};
  ASSERT_EQ(before.run(), KILN_OK);
  WeightImage image = imageWith("words.weight", "Words.weight");
  EXPECT_EQ(small_bind_weights_from_memory(session.get(), image.data(), image.size(), nullptr), KILN_WEIGHT_MISSING);
  ASSERT_EQ(after.run(), KILN_OK);
  EXPECT_EQ(before.logits, after.logits);
}

TEST(BadFile, IsRefusedWithWords) {
  const std::string folder = ::testing::TempDir(), empty = folder + "kiln_empty.safetensors";
  std::ofstream(empty, std::ios::binary);
  const std::tuple<const char *, kiln_status_t, std::string> cases[] = {
      {nullptr, KILN_NULL_ARGUMENT, "bind_weights: null given; expected a path"},
      {"/nonexistent/weights.safetensors", KILN_FILE_ERROR,
       "cannot open weight file \"/nonexistent/weights.safetensors\": No such file or directory"},
      {"/", KILN_FILE_ERROR, "cannot read weight file \"/\": not a regular file"},
      {"/dev/null", KILN_FILE_ERROR, "cannot read weight file \"/dev/null\": not a regular file"},
      {empty.c_str(), KILN_FILE_MALFORMED,
       "file \"kiln_empty.safetensors\": weight file: of another kind; expected a safetensors file, got an empty file"},
  };
  small_t *model = nullptr;
  kiln_error_t error{};
  ASSERT_EQ(small_create(nullptr, &model, &error), KILN_OK);
  for (const auto &[path, status, message] : cases) {
    SCOPED_TRACE(path ? path : "null");
    EXPECT_EQ(small_bind_weights(model, path, &error), status);
    EXPECT_EQ(error.message, message);
  }
  EXPECT_EQ(small_bind_weights(nullptr, "/", &error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(error.message, "bind_weights: null given; expected a model");
  EXPECT_EQ(small_bind_weights_from_memory(model, nullptr, 8, &error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(error.message, "bind_weights_from_memory: null given; expected an image");
  small_destroy(model);
  std::remove(empty.c_str());
}

TEST(BadCreate, IsRefusedWithWords) {
  kiln_error_t error{};
  EXPECT_EQ(small_create(nullptr, nullptr, &error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(error.message, "create: null given; expected a place for the model");

  auto give = [](void *, std::size_t size, std::size_t alignment) { return std::aligned_alloc(alignment, size); };
  auto refuse = [](void *, std::size_t, std::size_t) -> void * { return nullptr; };
  auto take = [](void *, void *memory) { std::free(memory); };
  small_t *model = nullptr;
  const kiln_allocator_t deaf{nullptr, nullptr, take}, hoarder{nullptr, give, nullptr}, poor{nullptr, refuse, take};
  EXPECT_EQ(small_create(&deaf, &model, &error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(error.message, "allocator: null function; expected allocate");
  EXPECT_EQ(small_create(&hoarder, &model, &error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(error.message, "allocator: null function; expected release");
  EXPECT_EQ(small_create(&poor, &model, &error), KILN_OUT_OF_MEMORY);
  EXPECT_EQ(std::string(error.message).find("the model: no memory; expected "), 0u) << error.message;
  EXPECT_EQ(model, nullptr);
  small_destroy(nullptr);
}

TEST(BadPool, IsRefusedWithWords) {
  kiln_error_t error{};
  kiln_pool_t *pool = nullptr;
  EXPECT_EQ(small_pool_create(0, &pool, &error), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "pool_create: no threads; expected at least 1");
  EXPECT_EQ(small_pool_create(2, nullptr, &error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(error.message, "pool_create: null given; expected a place for the pool");
  EXPECT_EQ(small_pool_executor(nullptr), nullptr);
  small_pool_destroy(nullptr);
}

TEST(Status, HasASentenceForEveryValue) {
  for (int status = KILN_OK; status <= KILN_WEIGHT_VALUE; ++status)
    EXPECT_GT(std::strlen(small_status_text(static_cast<kiln_status_t>(status))), 15u);
  EXPECT_STREQ(small_status_text(static_cast<kiln_status_t>(-3)),
               "not a status of Kiln; check that header and library belong together.");
}

} // namespace
} // namespace kiln::testing
