// SPDX-License-Identifier: Apache-2.0
//
// The arena of a variant with device memory: its constant part includes staging copies of the largest arguments.
#include "compiler/library/Headers.h"
#include "runtime/src/core/model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace kiln {
namespace {

constexpr Dim stagedBatch{"batch", 1, 3}, stagedTokens{"tokens", 1, 10};

/// i32 [batch, tokens], i32 [batch] -> f32 [batch, 11 - tokens].
EntryInterface stagedEntry() {
  EntryInterface entry;
  entry.name = "forward";
  entry.symbols = {stagedBatch.symbols[0], stagedTokens.symbols[0]};
  auto add = [&](const char *name, ElementType element, std::vector<Dim> shape, bool isOutput) {
    entry.arguments.push_back({name, element, std::move(shape), isOutput, {}});
  };
  add("tokens", ElementType::i32, {stagedBatch, stagedTokens}, false);
  add("lengths", ElementType::i32, {stagedBatch}, false);
  Dim rest = stagedTokens;
  rest.offset = 11;
  rest.factor = -1;
  add("rest", ElementType::f32, {stagedBatch, rest}, true);
  entry.arguments[1].check = ValueCheck{1, stagedTokens};
  return entry;
}

Variant variantOf(uint32_t memorySpace, uint64_t planBytes, uint64_t scratchBytes, uint64_t taskBytes,
                  uint64_t stagingBytes) {
  Variant variant;
  variant.target = memorySpace == KILN_MEMORY_HOST ? "x86-64-v3" : "cuda";
  variant.memorySpace = memorySpace;
  variant.backend = memorySpace == KILN_MEMORY_HOST ? "" : "cuda";
  variant.entries.push_back({variant.target + "_forward", planBytes, planBytes, scratchBytes, taskBytes, stagingBytes});
  return variant;
}

TEST(Staging, IsOfTheLargestArguments) {
  // 3 * 10 * 4 = 120, 3 * 4 = 12 and 3 * 10 * 4 = 120 bytes, each rounded up to 64.
  EXPECT_EQ(stagingBytes(stagedEntry()), 128u + 64 + 128);
}

TEST(Staging, IsPartOfTheArena) {
  const std::vector<Variant> variants = {variantOf(KILN_MEMORY_DEVICE, 100, 10, 0, 320),
                                         variantOf(KILN_MEMORY_HOST, 300, 200, 70, 0)};
  const ArenaBytes both = arenaBytes(variants, 0), host = arenaBytes({variants[1]}, 0);
  EXPECT_EQ(both.fixed, 128u + 64 + 320);
  EXPECT_EQ(both.perWorker, 128u + 64);
  EXPECT_EQ(host.fixed, 320u + 256 - 128) << "one worker has the 256 in place of a task's 128";
}

TEST(Staging, TheHeaderSaysWhatADeviceDoesNotCheck) {
  ModelInterface model;
  model.name = "staged";
  model.entries.push_back(stagedEntry());
  const std::string words = "With KILN_DEVICE_POINTERS, values are not checked";
  const std::vector<Variant> host = {variantOf(KILN_MEMORY_HOST, 0, 0, 0, 0)},
                             device = {variantOf(KILN_MEMORY_DEVICE, 0, 0, 0, 320)};
  EXPECT_EQ(writeCHeader(model, host).find(words), std::string::npos);
  EXPECT_NE(writeCHeader(model, device).find(words), std::string::npos);
  EXPECT_NE(writeCHeader(model, device).find("STAGED_FORWARD_ARENA_BYTES(workers) (KILN_SIZE_T(320) + KILN_SIZE_T(64)"),
            std::string::npos);
}

TEST(Staging, OnlyTheHeaderOfADeviceHasItsFunctions) {
  ModelInterface model;
  model.name = "staged";
  model.entries.push_back(stagedEntry());
  const std::vector<Variant> host = {variantOf(KILN_MEMORY_HOST, 0, 0, 0, 0)},
                             both = {host[0], variantOf(KILN_MEMORY_DEVICE, 0, 0, 0, 320)};
  for (const char *function : {"cuda_image", "load_cuda_image", "cuda_assembly_seconds", "capture_entries"}) {
    const std::string call = fmt::format("staged_{}(", function), method = fmt::format(" {}(", function);
    EXPECT_EQ(writeCHeader(model, host).find(call), std::string::npos);
    EXPECT_NE(writeCHeader(model, both).find(call), std::string::npos);
    EXPECT_EQ(writeCxxHeader(model, host).find(method), std::string::npos);
    EXPECT_NE(writeCxxHeader(model, both).find(method), std::string::npos);
  }
  const std::string words = "except that a GPU's driver may allocate in first calls";
  EXPECT_EQ(writeCHeader(model, host).find(words), std::string::npos);
  EXPECT_NE(writeCHeader(model, both).find(words), std::string::npos);
}

} // namespace
} // namespace kiln
