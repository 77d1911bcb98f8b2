// SPDX-License-Identifier: Apache-2.0
// Weights saved as a safetensors file: for every placement and storage format; and files that cannot be written.
#include "../read_file.h"
#include "stored_numbers.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

namespace {

using namespace kiln_test;
using kiln::testing::readFile;

class Save : public ::testing::Test {
protected:
  ~Save() override { std::filesystem::remove_all(Folder); }
  std::string path(const char *name) const { return Folder + "/" + name; }

  std::string Folder = std::filesystem::temp_directory_path() / ("kiln_save_" + std::to_string(getpid()));
  bool IsMade = std::filesystem::create_directories(Folder);
};

/// A model with two tiled layers, a table that is packed twice, f16, a vector and a scalar.
BoundModel makeModel() {
  return {{{"h.{}.w", KILN_F32, 2, {3, 5}, 2, 0},
           {"table", KILN_F32, 2, {7, 2}, 1, 0},
           {"table", KILN_F32, 2, {7, 2}, 1, 0},
           {"half", KILN_BF16, 2, {2, 3}, 1, 0},
           {"scale", KILN_F32, 0, {}, 1, 0},
           {"vector", KILN_F16, 1, {5}, 1, 0}},
          {makePlacement(0, 128, 4, 0, 0), makePlacement(256, 0, 0, 0, 0), makePlacement(320, 0, 16, 0, 0),
           makePlacement(512, 0, 2, 1, 0, KILN_BF16), makePlacement(576, 0, 0, 0, 0),
           makePlacement(640, 0, 0, 0, 0, KILN_F16)},
          704};
}

std::vector<Tensor> makeTensors() {
  auto floats = [](size_t count, float first) {
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i)
      values[i] = first + static_cast<float>(i) / 8;
    return bytesOf(values);
  };
  return {{"h.0.w", "F32", {3, 5}, floats(15, 1)},
          {"h.1.w", "F32", {3, 5}, floats(15, -9)},
          {"half", "BF16", {2, 3}, bytesOf(std::vector<uint16_t>{0x3F80, 0x4000, 0x7FC1, 0xC040, 0, 0x0001})},
          {"scale", "F32", {}, floats(1, 0.3f)},
          {"table", "F32", {7, 2}, floats(14, 100)},
          {"vector", "F16", {5}, bytesOf(std::vector<uint16_t>{1, 2, 3, 0x7C00, 0xFE01})}};
}

TEST_F(Save, WhatWasBoundIsWritten) {
  ASSERT_TRUE(IsMade);
  BoundModel model = makeModel(), again = makeModel();
  ASSERT_EQ(model.bind(makeTensors()), KILN_OK) << model.Error.message;
  const std::string saved = path("saved.safetensors");
  ASSERT_EQ(kiln_save_weights(model.Model, saved.c_str(), &model.Error), KILN_OK) << model.Error.message;
  ASSERT_EQ(kiln_bind_weights(again.Model, saved.c_str(), &again.Error), KILN_OK) << again.Error.message;
  // The bytes between the weights are undefined.
  EXPECT_EQ(again.packed().substr(0, 240), model.packed().substr(0, 240));
  EXPECT_EQ(again.packed().substr(256, 56), model.packed().substr(256, 56));
  for (const char *name : {"h.0.w", "h.1.w", "table"}) {
    const uint64_t rows = name[0] == 'h' ? 3 : 7, columns = name[0] == 'h' ? 5 : 2;
    EXPECT_EQ(again.read(name, 0, rows, columns), model.read(name, 0, rows, columns)) << name;
  }
  // Every byte is determined by the format: the same tensors give the same file, whatever file they were bound from.
  ASSERT_EQ(kiln_save_weights(again.Model, path("again").c_str(), &again.Error), KILN_OK) << again.Error.message;
  EXPECT_EQ(readFile(path("again")), readFile(saved));
  EXPECT_EQ(readFile(saved).size() % 2, 0u);
  for (const Tensor &tensor : makeTensors())
    EXPECT_NE(readFile(saved).find(tensor.bytes), std::string::npos) << tensor.name;
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(Folder), {}), 2) << "nothing is left next to them";
}

// Quantised weights are saved as the values that they represent.
TEST_F(Save, StoredWeightsAreWrittenAsTheyCount) {
  BoundModel model({{"w", KILN_F32, 2, {3, 2}, 1, 0}}, {makePlacement(0, 0, 4, 0, 0, KILN_I8, 64)}, 96),
      plain({{"w", KILN_F32, 2, {3, 2}, 1, 0}}, {makePlacement(0, 0, 0, 0, 0)}, 24);
  const std::vector<float> given = {127, 0.7f, -3, 1, 254, -0.9f};
  ASSERT_EQ(model.bind({{"w", "F32", {3, 2}, bytesOf(given)}}), KILN_OK) << model.Error.message;
  ASSERT_EQ(kiln_save_weights(model.Model, path("w").c_str(), &model.Error), KILN_OK) << model.Error.message;
  ASSERT_EQ(kiln_bind_weights(plain.Model, path("w").c_str(), &plain.Error), KILN_OK) << plain.Error.message;
  EXPECT_EQ(plain.read("w", 0, 3, 2), model.read("w", 0, 3, 2));
  EXPECT_NE(plain.read("w", 0, 3, 2), given);
}

TEST_F(Save, FilesThatCannotBeWritten) {
  BoundModel model = makeModel();
  EXPECT_EQ(kiln_save_weights(model.Model, path("x").c_str(), &model.Error), KILN_WEIGHTS_NOT_BOUND);
  EXPECT_STREQ(model.Error.message, "save_weights: no weights; expected bound ones");
  EXPECT_EQ(kiln_save_weights(nullptr, "x", &model.Error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(model.Error.message, "save_weights: null given; expected a model");
  EXPECT_EQ(kiln_save_weights(model.Model, nullptr, &model.Error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(model.Error.message, "save_weights: null given; expected a path");
  ASSERT_EQ(model.bind(makeTensors()), KILN_OK) << model.Error.message;
  EXPECT_EQ(kiln_save_weights(model.Model, "/no/such/file", &model.Error), KILN_FILE_ERROR);
  std::ofstream(path("x")) << "what was there";
  model.Counter.Limit = model.Counter.Made;
  EXPECT_EQ(kiln_save_weights(model.Model, path("x").c_str(), &model.Error), KILN_OUT_OF_MEMORY);
  EXPECT_EQ(readFile(path("x")), "what was there");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(Folder), {}), 1);
}

} // namespace
