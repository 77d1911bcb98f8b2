// SPDX-License-Identifier: Apache-2.0
// Rows of bound weights, read and written: their contents, their effect on later calls, and refusals.
#include "support.h"

#include <gtest/gtest.h>

namespace {

using namespace kiln_test;

class WeightRows : public testing::Test {
protected:
  kiln_model_t *Model = nullptr;
  kiln_error_t Error = {};
  const std::vector<Tensor> Weights = testWeights();

  void SetUp() override {
    ASSERT_EQ(kiln_create(nullptr, &Model, &Error), KILN_OK) << Error.message;
    bind(Model, Weights);
  }
  void TearDown() override { kiln_destroy(Model); }
  static void bind(kiln_model_t *model, const std::vector<Tensor> &weights) {
    const std::string image = makeImage(weights);
    ASSERT_EQ(kiln_bind_weights_from_memory(model, image.data(), image.size(), nullptr), KILN_OK);
  }
  std::string packed(const kiln_model_t *model) const {
    return std::string(model->packed, model->variant->packed_bytes);
  }
};

TEST_F(WeightRows, ReadGivesWhatTheFileHad) {
  for (const Tensor &weight : Weights) {
    const uint64_t rows = weight.shape[0], rowBytes = weight.bytes.size() / rows;
    for (uint64_t row = 0; row <= rows; ++row)
      for (uint64_t count = 0; count <= rows - row; ++count) {
        GuardedMemory values(count * rowBytes);
        ASSERT_EQ(kiln_read_weight(Model, weight.name.c_str(), row, count, values.data(), &Error), KILN_OK)
            << Error.message;
        EXPECT_EQ(std::string(values.data(), values.size()), weight.bytes.substr(row * rowBytes, count * rowBytes));
        EXPECT_TRUE(values.isFrontIntact());
      }
  }
}

TEST_F(WeightRows, WriteIsAsIfTheFileHadBeenAnother) {
  std::vector<Tensor> changed = Weights;
  const size_t rowBytes = Width * sizeof(float);
  const auto *fresh = "what is written are bytes, of which it does not matter which numbers they are; long enough";
  // Two rows of one layer, all rows of the other.
  changed[0].bytes.replace(rowBytes, 2 * rowBytes, fresh, 2 * rowBytes);
  changed[1].bytes.replace(0, rowBytes, fresh + 3, rowBytes);
  ASSERT_EQ(kiln_write_weight(Model, "layers.0.weight", 1, 2, fresh, &Error), KILN_OK) << Error.message;
  ASSERT_EQ(kiln_write_weight(Model, "layers.1.weight", 0, Width, changed[1].bytes.data(), &Error), KILN_OK);
  kiln_model_t *other = nullptr;
  ASSERT_EQ(kiln_create(nullptr, &other, nullptr), KILN_OK);
  bind(other, changed);
  EXPECT_EQ(packed(Model), packed(other));
  kiln_destroy(other);
}

TEST_F(WeightRows, WhatMakesNoSenseIsRefusedAndChangesNothing) {
  float values[Width * Width] = {};
  const std::string before = packed(Model);
  auto refused = [&](kiln_status_t status, kiln_status_t expected, const char *words) {
    EXPECT_EQ(status, expected);
    EXPECT_STREQ(Error.message, words);
  };
  refused(kiln_write_weight(Model, "table", 0, 1, values, &Error), KILN_INVALID_ARGUMENT,
          "rows of a weight: no access; expected a variable to write, got \"table\"");
  const std::string width = std::to_string(Width);
  refused(
      kiln_write_weight(Model, "layers.0.weight", 1, Width, values, &Error), KILN_EXTENT_OUT_OF_RANGE,
      ("weight \"layers.0.weight\": rows out of range; expected " + width + ", got " + width + " from row 1").c_str());
  EXPECT_EQ(kiln_write_weight(Model, "layers.0.weight", UINT64_MAX, 2, values, &Error), KILN_EXTENT_OUT_OF_RANGE);
  for (const char *name :
       {"layers.{}.weight", "layers.2.weight", "layers.0.weigh", "layers.0.weights", "layers.00.weight", ""})
    EXPECT_EQ(kiln_write_weight(Model, name, 0, 1, values, &Error), KILN_WEIGHT_MISSING) << name;
  refused(kiln_read_weight(Model, "tables", 0, 1, values, &Error), KILN_WEIGHT_MISSING,
          "rows of a weight: no access; expected a name of the weight table, got \"tables\"");
  refused(kiln_read_weight(nullptr, "table", 0, 1, values, &Error), KILN_NULL_ARGUMENT,
          "rows of a weight: no access; expected a model, a name and values, got \"table\"");
  EXPECT_EQ(kiln_read_weight(Model, nullptr, 0, 1, values, &Error), KILN_NULL_ARGUMENT);
  EXPECT_EQ(kiln_write_weight(Model, "layers.0.weight", 0, 1, nullptr, &Error), KILN_NULL_ARGUMENT);
  EXPECT_EQ(packed(Model), before);
}

TEST_F(WeightRows, UnboundWeightsHaveNoRows) {
  kiln_model_t *unbound = nullptr;
  float values[Width];
  ASSERT_EQ(kiln_create(nullptr, &unbound, nullptr), KILN_OK);
  EXPECT_EQ(kiln_read_weight(unbound, "table", 0, 1, values, &Error), KILN_WEIGHTS_NOT_BOUND);
  EXPECT_STREQ(Error.message, "rows of a weight: no access; expected bound weights, got \"table\"");
  kiln_destroy(unbound);
}

} // namespace
