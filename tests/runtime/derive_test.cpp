// SPDX-License-Identifier: Apache-2.0
// Values that are computed from weights at bind time: the body after those of the entries runs once, on the packed
// copy, with memory of the size that it states. If memory is exhausted, the model keeps its previous weights.
#include "support.h"

#include <gtest/gtest.h>

#include "core/instance.h"

namespace {

using namespace kiln_test;

constexpr uint64_t Elements = 5, Place = 64, Bytes = 128, PlanBytes = 192, ScratchBytes = 128;
int calls = 0;
bool fails = false;

/// Doubles the weight, via the arena.
int doubleWeight(const kiln_frame_t *frame) {
  ++calls;
  EXPECT_EQ(reinterpret_cast<uintptr_t>(frame->arena) % KILN_ARENA_ALIGNMENT, 0u);
  EXPECT_EQ(frame->worker->executor, nullptr);
  EXPECT_EQ(frame->worker->end - frame->worker->top, std::ptrdiff_t{ScratchBytes});
  std::memset(frame->arena, 0x7f, PlanBytes);
  float values[Elements];
  std::memcpy(values, frame->weights, sizeof values);
  for (float &value : values)
    value *= 2;
  std::memcpy(frame->arena, values, sizeof values);
  std::memcpy(const_cast<char *>(frame->weights) + Place, frame->arena, sizeof values);
  return fails ? 1 : 0;
}

int neverCalled(const kiln_frame_t *) {
  ADD_FAILURE() << "an entry was called";
  return 1;
}

class Derive : public ::testing::Test {
protected:
  void SetUp() override {
    calls = 0;
    fails = false;
    variant.derives = 1;
    descriptor.abi_version = KILN_ABI_VERSION;
    descriptor.name = "derived";
    descriptor.weights = &weight;
    descriptor.weight_count = 1;
    descriptor.entries = entries;
    descriptor.entry_count = 1;
    descriptor.variants = &variant;
    descriptor.variant_count = 1;
    const kiln_cpu_t cpu = kiln_cpu_detect();
    kiln_allocator_t from = allocator.get();
    kiln_options_t options = {};
    options.allocator = &from;
    ASSERT_EQ(kiln_model_create(&descriptor, &cpu, &options, &model, &error), KILN_OK) << error.message;
  }
  void TearDown() override { kiln_destroy(model); }

  kiln_status_t bind(float first) {
    std::vector<float> values(Elements);
    for (uint64_t i = 0; i < Elements; ++i)
      values[i] = first + static_cast<float>(i);
    const std::string image = makeImage({{"a", "F32", {Elements}, bytesOf(values)}});
    return kiln_bind_weights_from_memory(model, image.data(), image.size(), &error);
  }

  /// Returns the first element of the weight and of the derived value.
  std::pair<float, float> bound() const {
    float of[2];
    std::memcpy(&of[0], model->packed, sizeof of[0]);
    std::memcpy(&of[1], model->packed + Place, sizeof of[1]);
    return {of[0], of[1]};
  }

  const kiln_placement_t placement = {0, Place, 0, 0, 0, 0, KILN_F32, 0, 0};
  const kiln_weight_t weight = {"a", KILN_F32, 1, {Elements}, 1, 0, 0, 0};
  const kiln_entry_t entries[2] = {{"forward"}, {"bind"}};
  const kiln_body_t bodies[2] = {{neverCalled, 64, 64, 64, 0}, {doubleWeight, PlanBytes, ScratchBytes, 64, 0}};
  kiln_variant_t variant = hostVariant("host", 0, &placement, Bytes, bodies);
  kiln_descriptor_t descriptor = {};
  CountingAllocator allocator;
  kiln_model_t *model = nullptr;
  kiln_error_t error = {};
};

TEST_F(Derive, OnceForEachBinding) {
  ASSERT_EQ(bind(1), KILN_OK) << error.message;
  EXPECT_EQ(bound(), std::pair(1.0f, 2.0f));
  ASSERT_EQ(bind(7), KILN_OK) << error.message;
  EXPECT_EQ(bound(), std::pair(7.0f, 14.0f));
  EXPECT_EQ(calls, 2);
}

TEST_F(Derive, WithoutMemoryTheWeightsStay) {
  ASSERT_EQ(bind(1), KILN_OK) << error.message;
  int refused = 0;
  for (int most = 0;; ++most) {
    allocator.Limit = allocator.Made + most;
    if (bind(7) == KILN_OK)
      break;
    EXPECT_EQ(bound(), std::pair(1.0f, 2.0f)) << "allocation " << most;
    EXPECT_EQ(calls, 1);
    ++refused;
  }
  EXPECT_GT(refused, 1);
  EXPECT_EQ(bound(), std::pair(7.0f, 14.0f));
}

TEST_F(Derive, AfterAnInternalErrorNothingIsBound) {
  fails = true;
  EXPECT_EQ(bind(1), KILN_INTERNAL_ERROR);
  EXPECT_STREQ(error.message, "bind of model \"derived\": wrong result; expected 0, got 1");
  EXPECT_EQ(model->packed, nullptr);
}

} // namespace
