// SPDX-License-Identifier: Apache-2.0
// What is computed of weights when they are bound: every step of a formula, for each copy, where the descriptor says,
// and no other byte changes.
#include "support.h"

#include <cmath>
#include <gtest/gtest.h>

#include "instance.h"

namespace {

using namespace kiln_test;

constexpr uint64_t Elements = 5, Copies = 3, Stride = 64;
/// Two weights, then what is computed of them.
constexpr uint64_t First = 0, Second = Copies * Stride, Place = 2 * Copies * Stride, Bytes = 3 * Copies * Stride;

uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// (a / sqrt(b + 0.5) - a) * b
float expected(float a, float b) {
  const float sum = b + 0.5f, root = std::sqrt(sum), quotient = a / root, difference = quotient - a;
  return difference * b;
}

TEST(Derive, EachStepForEachCopy) {
  const kiln_step_t steps[] = {{KILN_FORMULA_WEIGHT, 0}, {KILN_FORMULA_WEIGHT, 1}, {KILN_FORMULA_NUMBER, bitsOf(0.5f)},
                               {KILN_FORMULA_ADD, 0},    {KILN_FORMULA_SQRT, 0},   {KILN_FORMULA_DIV, 0},
                               {KILN_FORMULA_WEIGHT, 0}, {KILN_FORMULA_SUB, 0},    {KILN_FORMULA_WEIGHT, 1},
                               {KILN_FORMULA_MUL, 0}};
  const kiln_derived_t derived = {Place, Stride, Elements, Copies, std::size(steps), steps};
  const kiln_placement_t placements[] = {{First, Stride, 0, 0, 0, 0, KILN_F32, 0, 0},
                                         {Second, Stride, 0, 0, 0, 0, KILN_F32, 0, 0}};
  const kiln_weight_t weights[] = {{"a.{}", KILN_F32, 1, {Elements}, Copies, 0, 0, 0},
                                   {"b.{}", KILN_F32, 1, {Elements}, Copies, 0, 0, 0}};
  kiln_variant_t variant = hostVariant("host", 0, placements, Bytes, nullptr);
  variant.derived = &derived;
  variant.derived_count = 1;
  kiln_descriptor_t descriptor = {};
  descriptor.abi_version = KILN_ABI_VERSION;
  descriptor.name = "derived";
  descriptor.weights = weights;
  descriptor.weight_count = std::size(weights);
  descriptor.variants = &variant;
  descriptor.variant_count = 1;

  std::vector<Tensor> tensors;
  std::vector<float> values[2];
  for (uint64_t copy = 0; copy < Copies; ++copy)
    for (int weight = 0; weight < 2; ++weight) {
      std::vector<float> own;
      for (uint64_t i = 0; i < Elements; ++i) // the last root is of a negative number
        own.push_back(static_cast<float>((i + 1) * (copy + 2)) / 7 - (copy + 1 == Copies && i + 1 == Elements ? 9 : 0));
      values[weight].insert(values[weight].end(), own.begin(), own.end());
      tensors.push_back({(weight ? "b." : "a.") + std::to_string(copy), "F32", {Elements}, bytesOf(own)});
    }
  const std::string image = makeImage(tensors);

  const kiln_cpu_t cpu = kiln_cpu_detect();
  const kiln_options_t options = {};
  kiln_model_t *model = nullptr;
  kiln_error_t error;
  ASSERT_EQ(kiln_model_create(&descriptor, &cpu, &options, &model, &error), KILN_OK) << error.message;
  ASSERT_EQ(kiln_bind_weights_from_memory(model, image.data(), image.size(), &error), KILN_OK) << error.message;
  for (uint64_t copy = 0; copy < Copies; ++copy)
    for (uint64_t i = 0; i < Stride / sizeof(float); ++i) {
      float got;
      std::memcpy(&got, model->packed + Place + copy * Stride + i * sizeof got, sizeof got);
      const float wanted = i < Elements ? expected(values[0][copy * Elements + i], values[1][copy * Elements + i]) : 0;
      EXPECT_TRUE(got == wanted || (std::isnan(got) && std::isnan(wanted))) << copy << " " << i << ": " << got;
    }
  kiln_destroy(model);
}

} // namespace
