// SPDX-License-Identifier: Apache-2.0
//
// Random numbers to be quantised, a model that has them, and 16-bit floats by simple arithmetic that shares no code
// with the runtime.
#pragma once

#include "slices.h"
#include "support.h"

#include <cmath>
#include <gtest/gtest.h>

namespace kiln_test {

/// Returns the finite magnitude that these 16 bits encode, without the sign; f16's 0x7C00 gives 65536.
inline double magnitudeOf(kiln_dtype_t type, uint32_t bits) {
  const int fractionBits = type == KILN_F16 ? 10 : 7, bias = type == KILN_F16 ? 15 : 127;
  const int exponent = static_cast<int>(bits >> fractionBits), leading = exponent > 0 ? 1 << fractionBits : 0;
  const uint32_t fraction = bits & ((1u << fractionBits) - 1);
  return std::ldexp(static_cast<double>(fraction) + leading, std::max(exponent, 1) - bias - fractionBits);
}

inline double nearestEven(double value) { // not std::nearbyint, which depends on the rounding mode
  const double below = std::floor(value), rest = value - below;
  return below + (rest > 0.5 || (rest == 0.5 && std::fmod(below, 2) != 0));
}

inline uint16_t rounded(kiln_dtype_t type, float value) {
  const int fractionBits = type == KILN_F16 ? 10 : 7, bias = type == KILN_F16 ? 15 : 127;
  const double size = std::fabs(static_cast<double>(value));
  const int exponent = size == 0 ? 1 - bias : std::max(std::ilogb(size), 1 - bias);
  // The leading 1 of a normal number adds 1 to the exponent field.
  const auto steps = static_cast<uint32_t>(nearestEven(std::ldexp(size, fractionBits - exponent)));
  const uint32_t bits = (static_cast<uint32_t>(exponent + bias - 1) << fractionBits) + steps;
  return static_cast<uint16_t>((std::signbit(value) ? 0x8000 : 0) | bits);
}

/// A matrix of random numbers, the bytes of a file's tensor that has them, and their values as f32.
struct Matrix {
  int64_t Rows, Columns;
  std::string Bytes;
  std::vector<float> Values;

  /// Draws numbers of very different magnitudes, with some rows or columns of zeros and of subnormal numbers. The same
  /// on every machine.
  Matrix(kiln_dtype_t source, int64_t rows, int64_t columns, uint32_t seed = 1) : Rows(rows), Columns(columns) {
    auto draw = [&seed] { return (seed = seed * 1664525u + 1013904223u) >> 8; };
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column) {
        const int kind = static_cast<int>((row % 11 == 3 || column % 13 == 5)   ? 0
                                          : (row % 11 == 7 || column % 13 == 9) ? 1 + draw() % 2
                                                                                : 3 + draw() % 5);
        const double fraction = static_cast<double>(draw()) / (1 << 23) - 1;
        const auto value =
            static_cast<float>(kind == 0 ? 0
                                         : std::ldexp(fraction, kind == 1   ? -141
                                                                : kind == 2 ? -25
                                                                            : static_cast<int>(draw() % 9) - 4));
        Values.push_back(value);
      }
    std::vector<uint16_t> halves;
    if (source != KILN_F32)
      for (float &value : Values) {
        halves.push_back(rounded(source, value));
        const auto size = static_cast<float>(magnitudeOf(source, halves.back() & 0x7FFF));
        value = halves.back() >> 15 ? -size : size;
      }
    Bytes = source == KILN_F32 ? bytesOf(Values) : bytesOf(halves);
  }
};

/// Returns the value of an f16.
inline double valueOfHalf(uint16_t half) {
  const double size = magnitudeOf(KILN_F16, half & 0x7FFF);
  return half >> 15 ? -size : size;
}

/// Returns the value of an e4m3 without its sign, whose codes below 0x7F are ordered like their values.
inline double valueOfF8(int code) {
  const int exponent = code >> 3, fraction = code & 7;
  return std::ldexp(exponent ? 8 + fraction : fraction, std::max(exponent, 1) - 10);
}

/// Returns the nearest e4m3 to a number, ties to even; 448 for larger ones.
inline uint8_t nearestF8(double value) {
  int code = 0;
  while (code < 0x7E && std::fabs(value) >= valueOfF8(code + 1))
    ++code;
  if (code < 0x7E) {
    const double below = std::fabs(value) - valueOfF8(code), above = valueOfF8(code + 1) - std::fabs(value);
    code += below > above || (below == above && code % 2 == 1);
  }
  return static_cast<uint8_t>((std::signbit(value) ? 0x80 : 0) | code);
}

/// The values of e2m1 without their signs.
inline constexpr double F4Values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

/// Returns the nearest e2m1 to a number, ties to even codes; 6 for larger ones.
inline uint32_t nearestF4(double value) {
  uint32_t code = 0;
  for (uint32_t other = 1; other < 8; ++other) {
    const double now = std::fabs(std::fabs(value) - F4Values[code]),
                 then = std::fabs(std::fabs(value) - F4Values[other]);
    if (then < now || (then == now && other % 2 == 0))
      code = other;
  }
  return (std::signbit(value) ? 8 : 0) | code;
}

/// The replica and stage of a model, the stages' roles, and the size of the packed weights for each role.
struct Member {
  uint32_t Replica = 0, Replicas = 0, Stage = 0, Stages = 0;
  std::vector<uint32_t> Roles = {};
  std::vector<uint64_t> RoleBytes = {};
};

/// A model of these weights and states, possibly for several ranks, with the sections of each tensor. Its allocator
/// counts, and does not return zeroed memory.
class BoundModel {
public:
  BoundModel(std::vector<kiln_weight_t> weights, std::vector<kiln_placement_t> placements, uint64_t packedBytes,
             uint32_t rank = 0, uint32_t ranks = 0, std::vector<Sections> sections = {},
             std::vector<kiln_state_t> states = {}, const Member &member = {})
      : Parts(std::move(sections)), States(std::move(states)), Weights(std::move(weights)),
        Placements(std::move(placements)), Roles(member.Roles), RoleBytes(member.RoleBytes),
        Variant(hostVariant("x86-64-v2", HostFeatures, Placements.data(), packedBytes, nullptr)),
        Descriptor{KILN_ABI_VERSION,
                   static_cast<uint32_t>(Weights.size()),
                   0,
                   1,
                   "stored",
                   Weights.data(),
                   nullptr,
                   &Variant,
                   nullptr,
                   0} {
    const kiln_cpu_t cpu = kiln_cpu_detect();
    const kiln_options_t options = {.allocator = &Functions,
                                    .rank = rank,
                                    .ranks = ranks,
                                    .replica = member.Replica,
                                    .replicas = member.Replicas,
                                    .stage = member.Stage,
                                    .stages = member.Stages};
    Variant.stage_role_bytes = RoleBytes.data();
    Descriptor.roles = Roles.data();
    for (const Sections &each : Parts)
      Shards.push_back(each.described());
    Shards.resize(Weights.size() + States.size()); // the others are whole
    Descriptor.states = States.data();
    Descriptor.state_count = States.size();
    Descriptor.ranks = ranks;
    Descriptor.shards = Shards.data();
    Descriptor.replicas = member.Replicas;
    Descriptor.stages = member.Stages;
    Descriptor.sharding = ranks > 1 || member.Replicas > 1 || member.Stages > 1 ? sharding() : nullptr;
    EXPECT_EQ(kiln_model_create(&Descriptor, &cpu, &options, &Model, &Error), KILN_OK) << Error.message;
  }
  BoundModel(const BoundModel &) = delete;
  BoundModel &operator=(const BoundModel &) = delete;
  ~BoundModel() {
    kiln_destroy(Model);
    EXPECT_EQ(Counter.Alive, Kept) << "something was not released";
  }
  kiln_status_t bind(const std::vector<Tensor> &tensors) {
    GuardedMemory image(makeImage(tensors));
    return kiln_bind_weights_from_memory(Model, image.data(), image.size(), &Error);
  }
  std::string packed() const { return std::string(Model->packed, Model->role.packed_bytes); }
  std::vector<float> read(const char *weight, uint64_t row, uint64_t rows, uint64_t columns) {
    GuardedMemory values(rows * columns * sizeof(float));
    EXPECT_EQ(kiln_read_weight(Model, weight, row, rows, values.data(), &Error), KILN_OK) << Error.message;
    EXPECT_TRUE(values.isFrontIntact());
    std::vector<float> result(rows * columns);
    std::memcpy(result.data(), values.data(), values.size());
    return result;
  }

  CountingAllocator Counter;
  int Kept = 0; // allocations that are not released
  kiln_model_t *Model = nullptr;
  kiln_error_t Error = {};

private:
  kiln_allocator_t Functions = Counter.get();
  std::vector<Sections> Parts;
  std::vector<kiln_state_t> States;
  std::vector<kiln_weight_t> Weights;
  std::vector<kiln_placement_t> Placements;
  std::vector<uint32_t> Roles;
  std::vector<uint64_t> RoleBytes;
  std::vector<kiln_shard_t> Shards;
  kiln_variant_t Variant;
  kiln_descriptor_t Descriptor;
};

template <typename T> void put(std::string &bytes, size_t at, const std::vector<T> &values) {
  bytes.replace(at, values.size() * sizeof(T), bytesOf(values));
}

} // namespace kiln_test
