// SPDX-License-Identifier: Apache-2.0
// The peak memory of a process while it binds a file: the packed copy plus a tenth, or plus 8 MB, whatever the file's
// size and element type. The system's count includes pages of mapped files.
#include "support.h"
#include "weights/pack.h"

#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>

namespace {

using namespace kiln_test;

/// Returns a line of /proc/self/status in bytes, or 0 if there is none.
uint64_t memoryOf(const std::string &field) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (uint64_t kilobytes = 0; word == field + ":" && status >> kilobytes)
      return kilobytes << 10;
  return 0;
}

/// Resets VmHWM to the current value.
bool forgetPeak() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  return file.good() && memoryOf("VmHWM") > 0;
}

struct MemoryCase {
  const char *Name, *Source; // the element type of the file
  kiln_placement_t Placement;
};

/// What is read at a time, in pages of 2 MB on systems that use such pages for files.
constexpr uint64_t Least = 8 << 20;
constexpr int64_t Rows = 2048, Columns = 2048, Layers = 4;

constexpr uint64_t copyBytes(uint64_t bytes, bool hasScales) {
  return Rows * Columns * bytes + (hasScales ? Rows * sizeof(float) : 0);
}

MemoryCase makeCase(const char *name, const char *source, uint32_t tile, uint32_t dim, kiln_dtype_t stored = KILN_F32) {
  const uint64_t bytes = stored == KILN_F32 ? 4 : stored == KILN_I8 ? 1 : 2;
  const bool isScaled = stored == KILN_I8;
  return {name, source,
          makePlacement(0, copyBytes(bytes, isScaled), tile, dim, 0, stored, isScaled ? Rows * Columns : 0)};
}

/// Int4 in groups of 32.
MemoryCase makeGroupsCase(const char *name, uint32_t dim) {
  const kiln_weight_t weight = {"w", KILN_F32, 2, {Rows, Columns}, 1, 0};
  kiln_placement_t place =
      makeStoredPlacement(KILN_I4, dim == 0 ? Rows : Columns, dim == 0 ? Columns : Rows, 16, dim, 0, 32);
  place.stride = kiln_pack_bytes(&weight, &place);
  return {name, "F32", place};
}

TEST(Memory, BindingTakesAtMostATenthMoreThanThePackedBytes) {
  const MemoryCase cases[] = {
      makeCase("as it is", "F32", 0, 0),
      makeCase("tiles along the first dimension", "F32", 16, 0),
      makeCase("tiles along the second dimension", "F32", 16, 1),
      makeCase("widened", "F16", 0, 0),
      makeCase("widened to tiles", "BF16", 16, 0),
      makeCase("f16 in tiles", "F32", 16, 0, KILN_F16),
      makeCase("f16 in tiles along the second dimension", "F32", 16, 1, KILN_F16),
      makeCase("i8 with a scale a row", "F32", 16, 0, KILN_I8),
      makeCase("i8 with a scale a column", "F32", 16, 1, KILN_I8),
      makeGroupsCase("int4 by rows", 0),
      makeGroupsCase("int4 by columns", 1),
  };
  const kiln_weight_t weight = {"h.{}", KILN_F32, 2, {Rows, Columns}, Layers, 0};
  for (const MemoryCase &test : cases) {
    SCOPED_TRACE(test.Name);
    const size_t elementBytes = std::string_view(test.Source) == "F32" ? 4 : 2;
    std::vector<Tensor> tensors;
    for (int64_t layer = 0; layer < Layers; ++layer)
      tensors.push_back({"h." + std::to_string(layer),
                         test.Source,
                         {Rows, Columns},
                         std::string(Rows * Columns * elementBytes, '\x31')});
    TemporaryFile file(makeImage(tensors));
    tensors.clear();
    tensors.shrink_to_fit();
    const uint64_t packedBytes = Layers * test.Placement.stride;
    const kiln_variant_t variant = hostVariant("x86-64-v2", HostFeatures, &test.Placement, packedBytes, nullptr);
    const kiln_descriptor_t descriptor = {KILN_ABI_VERSION, 1, 0, 1, "large", &weight, nullptr, &variant, nullptr, 0};
    const kiln_cpu_t cpu = kiln_cpu_detect();
    const kiln_options_t options = {};
    kiln_model_t *model = nullptr;
    kiln_error_t error = {};
    ASSERT_EQ(kiln_model_create(&descriptor, &cpu, &options, &model, &error), KILN_OK) << error.message;
    if (!forgetPeak()) {
      kiln_destroy(model);
      GTEST_SKIP() << "the system does not say how much memory a process had at most";
    }
    const uint64_t before = memoryOf("VmRSS");
    EXPECT_EQ(kiln_bind_weights(model, file.path(), &error), KILN_OK) << error.message;
    const uint64_t peak = memoryOf("VmHWM") - before;
    EXPECT_GE(peak, packedBytes * 9 / 10) << "what was measured was something else";
    EXPECT_LE(peak, packedBytes + std::max<uint64_t>(packedBytes / 10, Least));
    RecordProperty(test.Name, std::to_string(static_cast<double>(peak) / static_cast<double>(packedBytes)));
    kiln_destroy(model);
  }
}

} // namespace
