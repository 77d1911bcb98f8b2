// SPDX-License-Identifier: Apache-2.0
// Binding a weight file: a file that does not fit the model is refused by name, and leaves the model unchanged.
#include "support.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace {

using namespace kiln_test;

class Bind : public testing::Test {
protected:
  CountingAllocator Counter;
  kiln_allocator_t Functions = Counter.get();
  kiln_model_t *Model = nullptr;
  kiln_error_t Error = {};

  void SetUp() override { ASSERT_EQ(kiln_create(&Functions, &Model, &Error), KILN_OK) << Error.message; }
  void TearDown() override {
    kiln_destroy(Model);
    EXPECT_EQ(Counter.Alive, 0) << "something was not released";
  }
  kiln_status_t bind(const std::string &image) {
    GuardedMemory memory(image);
    return kiln_bind_weights_from_memory(Model, memory.data(), memory.size(), &Error);
  }
  kiln_status_t bind(const std::vector<Tensor> &tensors) { return bind(makeImage(tensors)); }
  std::string packedBytes() const { return std::string(Model->packed, Model->variant->packed_bytes); }
};

TEST_F(Bind, PacksEveryWeightOnceWithZerosBetween) {
  ASSERT_EQ(bind(testWeights()), KILN_OK) << Error.message;
  std::vector<Tensor> weights = testWeights();
  std::string expected(Model->variant->packed_bytes, '\0');
  expected.replace(0, weights[2].bytes.size(), weights[2].bytes);
  for (int layer = 0; layer < Layers; ++layer)
    for (int n = 0; n < Width; ++n)
      for (int k = 0; k < Width; ++k)
        expected.replace(64 + ((layer * Width + k) * 16 + n) * 4, 4, weights[layer].bytes, (n * Width + k) * 4, 4);
  EXPECT_EQ(packedBytes(), expected);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(Model->packed) % KILN_ARENA_ALIGNMENT, 0u);
  EXPECT_EQ(Counter.Alive, 2) << "the model and its packed copy; the index is gone";
}

TEST_F(Bind, OrderAndEscapesInTheFileDoNotMatter) {
  ASSERT_EQ(bind(testWeights()), KILN_OK);
  std::string before = packedBytes();
  std::vector<Tensor> weights = testWeights();
  std::swap(weights[0], weights[2]);
  weights[0].name = "\\u0074able";
  ASSERT_EQ(bind(weights), KILN_OK) << Error.message;
  EXPECT_EQ(packedBytes(), before);
}

// Without a caller's allocator, the packed copy is stored in pages from the system.
TEST_F(Bind, TheAllocatorDoesNotMatter) {
  ASSERT_EQ(bind(testWeights()), KILN_OK);
  const std::string wanted = packedBytes();
  kiln_model_t *plain = nullptr;
  ASSERT_EQ(kiln_create(nullptr, &plain, nullptr), KILN_OK);
  const std::string image = makeImage(testWeights());
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(kiln_bind_weights_from_memory(plain, image.data(), image.size(), nullptr), KILN_OK);
    EXPECT_EQ(std::string(plain->packed, wanted.size()), wanted);
    std::memset(plain->packed, 0xA5, wanted.size());
  }
  kiln_destroy(plain);
}

TEST_F(Bind, SecondBindReplacesTheFirst) {
  std::vector<Tensor> weights = testWeights();
  ASSERT_EQ(bind(weights), KILN_OK);
  weights[2].bytes[0] ^= 1;
  ASSERT_EQ(bind(weights), KILN_OK);
  EXPECT_EQ(packedBytes().substr(0, weights[2].bytes.size()), weights[2].bytes);
  EXPECT_EQ(Counter.Alive, 2);
}

TEST_F(Bind, MisfitsAreRefusedByNameAndLeaveTheModelAsItWas) {
  ASSERT_EQ(bind(testWeights()), KILN_OK);
  const char *packed = Model->packed;
  const std::string before = packedBytes();
  const std::string longName(300, 'n');
  const struct {
    void (*Change)(std::vector<Tensor> &);
    kiln_status_t Status;
    std::string Message;
  } cases[] = {
      {[](auto &w) { w.erase(w.begin()); }, KILN_WEIGHT_MISSING,
       "tensor \"layers.0.weight\": not found; expected shape [3, 3] and type F32, F16 or BF16"},
      {[](auto &w) { w.erase(w.begin() + 1); }, KILN_WEIGHT_MISSING,
       "tensor \"layers.1.weight\": not found; expected shape [3, 3] and type F32, F16 or BF16"},
      {[](auto &w) { w.clear(); }, KILN_WEIGHT_MISSING,
       "weight file: does not fit model \"tiny\"; 3 missing: \"table\" missing, \"layers.0.weight\" missing, "},
      {[](auto &w) { w[0].name = "layers.{}.weight"; }, KILN_WEIGHT_MISSING, "\"layers.0.weight\""},
      {[](auto &w) { w[0].name = "layers.00.weight"; }, KILN_WEIGHT_MISSING, "\"layers.0.weight\""},
      {[](auto &w) { w.push_back({"layers.2.weight", "F32", {1}, "1234"}); }, KILN_WEIGHT_UNEXPECTED,
       "model \"tiny\" has no tensor \"layers.2.weight\", the weight file has"},
      {[](auto &w) { w.push_back({std::string(300, 'n'), "F32", {1}, "1234"}); }, KILN_WEIGHT_UNEXPECTED,
       "has no tensor \"" + longName.substr(0, KILN_NAME_SHOWN) + "\", the"},
      {[](auto &w) { w[2].shape = {3, 5}; }, KILN_WEIGHT_SHAPE,
       "tensor \"table\": wrong shape; expected [5, 3], got [3, 5]"},
      {[](auto &w) { w[2].shape = {15}; }, KILN_WEIGHT_SHAPE,
       "tensor \"table\": wrong shape; expected [5, 3], got [15]"},
      {[](auto &w) { w[1].shape = {1, 1, 1, 1, 1, 3, 3}; }, KILN_WEIGHT_SHAPE,
       "tensor \"layers.1.weight\": wrong shape; expected [3, 3], got [1, 1, 1, 1, 1, 3, ...]"},
      {[](auto &w) { w[2].dtype = "I32"; }, KILN_WEIGHT_TYPE,
       "tensor \"table\": wrong type; expected F32, F16 or BF16, got I32"},
      {[](auto &w) {
         w[1].dtype = "F64";
         w[1].bytes += w[1].bytes;
       },
       KILN_WEIGHT_TYPE, "tensor \"layers.1.weight\": wrong type; expected F32, F16 or BF16, got F64"},
      {[](auto &w) { w[2].bytes += "abcd"; }, KILN_FILE_MALFORMED,
       "tensor \"table\" of shape [5, 3]: wrong size; expected 4 bytes an element, got offsets [72, 136]"},
  };
  for (const auto &test : cases) {
    std::vector<Tensor> weights = testWeights();
    test.Change(weights);
    EXPECT_EQ(bind(weights), test.Status) << test.Message;
    EXPECT_EQ(Error.status, test.Status);
    EXPECT_NE(std::string(Error.message).find(test.Message), std::string::npos)
        << "got:    " << Error.message << "\nwanted: " << test.Message;
    EXPECT_EQ(Model->packed, packed);
    EXPECT_EQ(packedBytes(), before);
    EXPECT_EQ(Counter.Alive, 2);
  }
}

TEST_F(Bind, OutOfMemoryAtEveryAllocationLeavesTheModelAsItWas) {
  ASSERT_EQ(bind(testWeights()), KILN_OK);
  const char *packed = Model->packed;
  const char *const wanted[] = {"an index of the weight file: no memory; expected ",
                                "the packed weights: no memory; expected "};
  for (int extra = 0; extra < 2; ++extra) {
    Counter.Limit = Counter.Made + extra;
    EXPECT_EQ(bind(testWeights()), KILN_OUT_OF_MEMORY);
    EXPECT_EQ(std::string(Error.message).rfind(wanted[extra], 0), 0u) << Error.message;
    EXPECT_EQ(Model->packed, packed);
    EXPECT_EQ(Counter.Alive, 2);
  }
}

TEST_F(Bind, FromAFile) {
  TemporaryFile file(makeImage(testWeights()));
  ASSERT_EQ(kiln_bind_weights(Model, file.path(), &Error), KILN_OK) << Error.message;
  std::string fromFile = packedBytes();
  ASSERT_EQ(bind(testWeights()), KILN_OK);
  EXPECT_EQ(packedBytes(), fromFile);
}

TEST_F(Bind, UnreadableFilesAreRefused) {
  TemporaryFile empty("");
  EXPECT_EQ(kiln_bind_weights(Model, empty.path(), &Error), KILN_FILE_MALFORMED);
  EXPECT_EQ(Error.message,
            empty.words() + "weight file: of another kind; expected a safetensors file, got an empty file");
  EXPECT_EQ(kiln_bind_weights(Model, "/no/such/file", &Error), KILN_FILE_ERROR);
  EXPECT_STREQ(Error.message, "cannot open weight file \"/no/such/file\": No such file or directory");
  EXPECT_EQ(kiln_bind_weights(Model, "/", &Error), KILN_FILE_ERROR);
  EXPECT_STREQ(Error.message, "cannot read weight file \"/\": not a regular file");
  EXPECT_EQ(kiln_bind_weights(Model, "/dev/null", &Error), KILN_FILE_ERROR);
  EXPECT_STREQ(Error.message, "cannot read weight file \"/dev/null\": not a regular file");
  // Opening a pipe without a writer must not block.
  std::string pipe = std::string(empty.path()) + ".pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(kiln_bind_weights(Model, pipe.c_str(), &Error), KILN_FILE_ERROR);
  EXPECT_NE(std::string(Error.message).find("not a regular file"), std::string::npos) << Error.message;
  unlink(pipe.c_str());
}

TEST_F(Bind, NullArguments) {
  EXPECT_EQ(kiln_bind_weights(nullptr, "x", &Error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(Error.message, "bind_weights: null given; expected a model");
  EXPECT_EQ(kiln_bind_weights(Model, nullptr, &Error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(Error.message, "bind_weights: null given; expected a path");
  EXPECT_EQ(kiln_bind_weights_from_memory(nullptr, "x", 1, &Error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(Error.message, "bind_weights_from_memory: null given; expected a model");
  EXPECT_EQ(kiln_bind_weights_from_memory(Model, nullptr, 1, &Error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(Error.message, "bind_weights_from_memory: null given; expected an image");
  EXPECT_EQ(kiln_bind_weights(nullptr, nullptr, nullptr), KILN_NULL_ARGUMENT) << "the error may be null too";
}

TEST(Create, RefusalsHaveReasons) {
  kiln_model_t *model = nullptr;
  kiln_error_t error;
  EXPECT_EQ(kiln_create(nullptr, nullptr, &error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(error.message, "create: null given; expected a place for the model");
  CountingAllocator counter;
  kiln_allocator_t functions = counter.get();
  kiln_allocator_t half = functions;
  half.release = nullptr;
  EXPECT_EQ(kiln_create(&half, &model, &error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(error.message, "allocator: null function; expected release");
  half = functions;
  half.allocate = nullptr;
  EXPECT_EQ(kiln_create(&half, &model, &error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(error.message, "allocator: null function; expected allocate");
  counter.Limit = 0;
  EXPECT_EQ(kiln_create(&functions, &model, &error), KILN_OUT_OF_MEMORY);
  EXPECT_STREQ(error.message, "the model: no memory; expected 128 bytes");
  EXPECT_EQ(model, nullptr);
  kiln_destroy(nullptr);
}

TEST(Create, MisalignedAllocatorIsRefused) {
  static bool isReleased = false;
  const kiln_allocator_t careless = {nullptr,
                                     [](void *, size_t bytes, size_t) -> void * {
                                       return static_cast<char *>(std::aligned_alloc(64, bytes + 64)) + 8;
                                     },
                                     [](void *, void *memory) {
                                       isReleased = true;
                                       std::free(static_cast<char *>(memory) - 8);
                                     }};
  kiln_model_t *model = nullptr;
  kiln_error_t error;
  EXPECT_EQ(kiln_create(&careless, &model, &error), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "allocator: wrong alignment; expected 64, got less");
  EXPECT_TRUE(isReleased);
}

// Errors of the compiler must not cause writes outside of the packed copy.
TEST(Create, ImpossibleDescriptorsAreInternalErrors) {
  const kiln_cpu_t cpu = kiln_cpu_detect();
  const kiln_options_t options = {};
  const kiln_weight_t weights[] = {{"h.{}", KILN_F32, 2, {3, 3}, 2, 0}};
  const struct {
    kiln_placement_t Placement;
    uint64_t PackedBytes;
  } cases[] = {
      {makePlacement(0, 64, 0, 0, 0), 99},   {makePlacement(0, 64, 0, 0, 1), 100},
      {makePlacement(4, 64, 0, 0, 0), 100},  {makePlacement(0, 65, 0, 0, 0), 100},
      {makePlacement(0, 64, 16, 0, 0), 255}, {makePlacement(0, 64, 16, 2, 0), 9999},
  };
  const std::string image =
      makeImage({{"h.0", "F32", {3, 3}, std::string(36, '0')}, {"h.1", "F32", {3, 3}, std::string(36, '1')}});
  for (const auto &test : cases) {
    const kiln_variant_t variant = hostVariant("x86-64-v2", HostFeatures, &test.Placement, test.PackedBytes, nullptr);
    const kiln_descriptor_t descriptor = {KILN_ABI_VERSION, 1, 0, 1, "odd", weights, nullptr, &variant, nullptr, 0};
    kiln_model_t *model = nullptr;
    kiln_error_t error;
    ASSERT_EQ(kiln_model_create(&descriptor, &cpu, &options, &model, &error), KILN_OK);
    EXPECT_EQ(kiln_bind_weights_from_memory(model, image.data(), image.size(), &error), KILN_INTERNAL_ERROR);
    EXPECT_EQ(error.message,
              "weight \"h.{}\": wrong place; expected one in " + std::to_string(test.PackedBytes) + " packed bytes");
    kiln_destroy(model);
  }
  const kiln_descriptor_t future = {KILN_ABI_VERSION + 1, 0, 0, 0, "odd", nullptr, nullptr, nullptr, nullptr, 0};
  kiln_model_t *model = nullptr;
  kiln_error_t error;
  EXPECT_EQ(kiln_model_create(&future, &cpu, &options, &model, &error), KILN_INTERNAL_ERROR);
  EXPECT_STREQ(error.message, "model \"odd\": wrong runtime version; expected 14, got 13");
}

// Two weights of the same name pack one tensor twice, dense for gathering and tiled for matrix products; a name without
// copies may still have a placeholder; weights that are concatenated in one row of tiles share an offset.
TEST(Create, TiedAndJoinedWeights) {
  const kiln_cpu_t cpu = kiln_cpu_detect();
  const kiln_options_t options = {};
  const kiln_weight_t weights[] = {
      {"h.{}.q", KILN_I8, 2, {3, 2}, 1, 0}, {"h.{}.q", KILN_I8, 2, {3, 2}, 1, 0}, {"h.{}.k", KILN_I8, 2, {2, 2}, 1, 0}};
  const kiln_placement_t placements[] = {makePlacement(0, 0, 0, 0, 0, KILN_I8), makePlacement(8, 0, 4, 0, 0, KILN_I8),
                                         makePlacement(8, 0, 4, 0, 3, KILN_I8)};
  const kiln_variant_t variant = hostVariant("x86-64-v2", HostFeatures, placements, 24, nullptr);
  const kiln_descriptor_t descriptor = {KILN_ABI_VERSION, 3, 0, 1, "tied", weights, nullptr, &variant, nullptr, 0};
  const std::string image = makeImage({{"h.0.k", "I8", {2, 2}, "ABCD"}, {"h.0.q", "I8", {3, 2}, "abcdef"}});
  kiln_model_t *model = nullptr;
  kiln_error_t error;
  ASSERT_EQ(kiln_model_create(&descriptor, &cpu, &options, &model, &error), KILN_OK);
  ASSERT_EQ(kiln_bind_weights_from_memory(model, image.data(), image.size(), &error), KILN_OK) << error.message;
  EXPECT_EQ(std::string_view(model->packed, 24), std::string_view("abcdef\0\0aceAbdfBC\0\0\0D\0\0\0", 24));
  kiln_destroy(model);
}

} // namespace
