// SPDX-License-Identifier: Apache-2.0
// Libraries with embedded weights, which are bound in place, give the same bits as libraries that are bound from a
// file.
#include "command.h"
#include "learner.hpp"
#include "pair.hpp"
#include "scaled.h"
#include "scaled_renamed.h"
#include "support.h"
#include "two_models.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace kiln::testing {
namespace {

const std::string smallProgram = SMALL_GENERATOR;

Library<small_t> smallLibrary() { return KILN_TEST_LIBRARY(small, SMALL_WEIGHTS); }
Library<pair_t> pairLibrary() { return KILN_TEST_LIBRARY(pair, PAIR_WEIGHTS); }
Library<scaled_t> scaledLibrary() { return KILN_TEST_LIBRARY(scaled, SCALED_WEIGHTS); }

TEST(EmbeddedWeights, GiveTheSameBits) {
  kiln_error_t error{};
  Session<small_t> small(smallLibrary()), ofFileSmall(smallLibrary());
  ASSERT_EQ(small_bind_embedded(small.get(), &error), KILN_OK) << error.message;
  EXPECT_EQ(logits(small, 12), logits(ofFileSmall, 12));
  Session<pair_t> pair(pairLibrary()), ofFilePair(pairLibrary());
  ASSERT_EQ(pair_bind_embedded(pair.get(), &error), KILN_OK) << error.message;
  EXPECT_EQ(codes(pair, 9), codes(ofFilePair, 9));
}

// Values that are computed from weights at bind time are also in the archive and in packed files. The compiler may
// round them differently from the kernels.
TEST(EmbeddedWeights, HaveWhatFollowsFromThem) {
  const std::vector<Weight> weights = counterWeights(scaledLibrary().weights);
  auto weight = [&](const std::string &name) {
    return std::find_if(weights.begin(), weights.end(), [&](const Weight &each) { return each.name == name; })->values;
  };
  kiln_error_t error{};
  Session<scaled_t> embedded(scaledLibrary()), ofFile(scaledLibrary()), packed(scaledLibrary());
  ASSERT_EQ(scaled_bind_embedded(embedded.get(), &error), KILN_OK) << error.message;
  Folder folder;
  const std::string saved = (folder.path / "scaled.packed").string();
  ASSERT_EQ(scaled_save_packed(ofFile.get(), saved.c_str(), &error), KILN_OK) << error.message;
  ASSERT_EQ(scaled_bind_packed(packed.get(), saved.c_str(), &error), KILN_OK) << error.message;
  std::vector<float> x(3 * 6);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = std::sin(static_cast<float>(i));
  auto call = [&](Session<scaled_t> &session) {
    Output<float> y(3 * 10);
    session.run(scaled_forward, Input<float>(x), y);
    return std::vector<float>(y.values().begin(), y.values().end());
  };
  const std::vector<float> results = call(ofFile);
  const std::vector<float> ofArchive = call(embedded);
  EXPECT_EQ(call(packed), results);
  for (std::size_t r = 0; r < 3; ++r)
    for (std::size_t c = 0; c < 10; ++c) {
      double up = weight("up.bias")[c];
      for (std::size_t k = 0; k < 6; ++k)
        up += static_cast<double>(x[r * 6 + k]) * weight("up.weight")[c * 6 + k];
      const double scale = weight("norm.weight")[c] / std::sqrt(weight("norm.running_var")[c] + 1e-5);
      double expected = (up - weight("norm.running_mean")[c]) * scale + weight("norm.bias")[c];
      for (const std::string layer : {"decays.0.", "decays.1.", "decays.2."}) {
        double squares = 0;
        for (std::size_t k = 0; k < 3; ++k)
          squares += std::pow(weight(layer + "v")[c * 3 + k], 2);
        expected *= std::exp(weight(layer + "log")[c]) / std::sqrt(squares);
      }
      const double tolerance = 1e-5 * std::max(1.0, std::abs(expected));
      EXPECT_NEAR(results[r * 10 + c], expected, tolerance);
      EXPECT_NEAR(ofArchive[r * 10 + c], expected, tolerance);
    }
}

// kiln_add_library(... EMBED file RENAME extra= RENAMES file)
TEST(EmbeddedWeights, OfAFileWithOtherNames) {
  kiln_error_t error{};
  Session<scaled_t> scaled(scaledLibrary());
  Session<scaled_renamed_t> renamed(KILN_TEST_LIBRARY(scaled_renamed, SCALED_RENAMED_WEIGHTS));
  ASSERT_EQ(scaled_bind_embedded(scaled.get(), &error), KILN_OK) << error.message;
  ASSERT_EQ(scaled_renamed_bind_embedded(renamed.get(), &error), KILN_OK) << error.message;
  Input<float> x(std::vector<float>(3 * 6, 0.5f));
  Output<float> expected(3 * 10), y(3 * 10);
  scaled.run(scaled_forward, x, expected);
  renamed.run(scaled_renamed_forward, x, y);
  EXPECT_TRUE(std::ranges::equal(y.values(), expected.values()));
}

// Counts the model's allocations.
struct Counted {
  int allocations = 0, alive = 0, most = std::numeric_limits<int>::max();
  static void *allocate(void *self, std::size_t bytes, std::size_t alignment) {
    auto &counted = *static_cast<Counted *>(self);
    if (counted.allocations == counted.most)
      return nullptr;
    ++counted.allocations;
    ++counted.alive;
    return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  }
  static void release(void *self, void *memory) {
    --static_cast<Counted *>(self)->alive;
    std::free(memory);
  }
};

TEST(EmbeddedWeights, AreNotCopied) {
  Counted counted;
  const kiln_allocator_t allocator{&counted, Counted::allocate, Counted::release};
  kiln_error_t error{};
  pair_t *model = nullptr;
  ASSERT_EQ(pair_create(&allocator, &model, &error), KILN_OK) << error.message;
  const int made = counted.allocations;
  ASSERT_EQ(pair_bind_embedded(model, &error), KILN_OK) << error.message;
  EXPECT_EQ(pair_bind_embedded(model, &error), KILN_OK) << error.message;
  EXPECT_EQ(counted.allocations, made);
  pair_destroy(model);
}

TEST(EmbeddedWeights, OfOneModelAreNotWrittenByAnother) {
  kiln_error_t error{};
  Session<small_t> written(smallLibrary()), other(smallLibrary());
  ASSERT_EQ(small_bind_embedded(written.get(), &error), KILN_OK) << error.message;
  ASSERT_EQ(small_bind_embedded(other.get(), &error), KILN_OK) << error.message;
  const std::vector<float> row(8, 0.5f), before = logits(other, 12);
  ASSERT_EQ(small_write_weight(written.get(), "words.weight", 3, 1, row.data(), &error), KILN_OK) << error.message;
  EXPECT_NE(logits(written, 12), before);
  EXPECT_EQ(logits(other, 12), before);
  ASSERT_EQ(small_bind_embedded(written.get(), &error), KILN_OK) << error.message;
  EXPECT_EQ(logits(written, 12), before);
}

TEST(EmbeddedWeights, GiveWayToOthersAndTakeTheirPlace) {
  kiln_error_t error{};
  std::vector<Weight> zeros = counterWeights(pairLibrary().weights);
  for (Weight &weight : zeros)
    weight.values.assign(weight.values.size(), 0);
  WeightImage image(zeros);
  pair::Model model;
  ASSERT_EQ(model.bind_embedded(&error), KILN_OK) << error.message;
  ASSERT_EQ(model.bind(std::as_bytes(image.characters()), &error), KILN_OK) << error.message;
  Folder folder;
  const std::string saved = folder.path / "saved";
  ASSERT_EQ(model.save_packed(saved.c_str(), &error), KILN_OK) << error.message;
  const std::string ofZeros = readFile(saved);
  ASSERT_EQ(model.bind_embedded(&error), KILN_OK) << error.message;
  ASSERT_EQ(model.save_packed(saved.c_str(), &error), KILN_OK) << error.message;
  EXPECT_NE(readFile(saved), ofZeros);
  ASSERT_EQ(model.bind_packed(saved.c_str(), &error), KILN_OK) << error.message;
}

TEST(SelfTest, PassesAndGivesItsMemoryBack) {
  Counted counted;
  const kiln_allocator_t allocator{&counted, Counted::allocate, Counted::release};
  const kiln_options_t options{.allocator = &allocator};
  kiln_error_t error{};
  EXPECT_EQ(small_selftest(&options, &error), KILN_OK) << error.message;
  EXPECT_EQ(pair::Model::selftest(&error), KILN_OK) << error.message;
  EXPECT_GT(counted.allocations, 0);
  EXPECT_EQ(counted.alive, 0);
}

TEST(SelfTest, PassesForEntriesThatTrainAndKeepStates) {
  kiln_error_t error{};
  EXPECT_EQ(learner::Model::selftest(&error), KILN_OK) << error.message;
}

// Each allocation may fail; a failure must leak nothing.
TEST(SelfTest, WithoutMemoryIsAStatus) {
  for (int most = 0;; ++most) {
    Counted counted{.most = most};
    const kiln_allocator_t allocator{&counted, Counted::allocate, Counted::release};
    const kiln_options_t options{.allocator = &allocator};
    const kiln_status_t status = pair_selftest(&options, nullptr);
    EXPECT_EQ(counted.alive, 0);
    if (status == KILN_OK) {
      EXPECT_GT(most, 3);
      return;
    }
    ASSERT_EQ(status, KILN_OUT_OF_MEMORY);
  }
}

TEST(EmbeddedWeights, RequireAModel) {
  kiln_error_t error{};
  EXPECT_EQ(pair_bind_embedded(nullptr, &error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(error.message, "bind_embedded: null given; expected a model");
}

TEST(EmbeddedWeights, ThatCannotBeReadAreAnError) {
  Folder folder;
  std::ofstream(folder.path / "pair.safetensors", std::ios::binary)
      << std::string_view(WeightImage(counterWeights(pairLibrary().weights)).characters().data(), 100);
  const std::string command = smallProgram + " compile --target " KILN_V2 " -o " + folder.path.string() + " --embed ";
  struct {
    std::string arguments, words;
  } const cases[] = {
      {"/nowhere.safetensors", "cannot open weight file \"/nowhere.safetensors\""},
      {(folder.path / "pair.safetensors").string(), "safetensors"},
      {"a.gguf --quantized gptq", "--quantized: wrong kind of file; expected safetensors, got \"a.gguf\""},
      {"a.safetensors --renames b", "cannot read the renames \"b\""},
      {"a.safetensors --rename b", "--rename: wrong form; expected FROM=TO"},
  };
  for (const auto &wrong : cases) {
    const Result result = run(command + wrong.arguments);
    EXPECT_NE(result.status, 0);
    EXPECT_NE(result.text.find(wrong.words), std::string::npos) << result.text;
    EXPECT_FALSE(fs::exists(folder.path / "libsmall.a"));
  }
  EXPECT_NE(run(smallProgram + " compile --renames b -o " + folder.path.string()).status, 0);
}

} // namespace
} // namespace kiln::testing
