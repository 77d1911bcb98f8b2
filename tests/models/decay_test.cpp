// SPDX-License-Identifier: Apache-2.0
// Computed values that decay in a state become 0 below 2^-100 and are never subnormal; values that are only copied are
// unchanged, and so is NaN.
#include "decay_v2.h"
#include "decay_v3.h"

#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

namespace kiln::testing {
namespace {

constexpr size_t elements = 15;
using Tensor = std::array<float, elements>;

using Call = kiln_status_t(const float *x, float *next, float *before, void *arena, size_t bytes, kiln_error_t *);

#define DECAY_CALL(name, ARENA_BYTES)                                                                                  \
  static_assert(ARENA_BYTES <= 4096);                                                                                  \
  kiln_status_t call_##name(const float *x, float *next, float *before, void *arena, size_t bytes,                     \
                            kiln_error_t *error) {                                                                     \
    name##_t *model = nullptr;                                                                                         \
    kiln_call_t call{};                                                                                                \
    call.arena = arena;                                                                                                \
    call.arena_bytes = bytes;                                                                                          \
    call.error = error;                                                                                                \
    kiln_status_t status = name##_create(nullptr, &model, error);                                                      \
    status = status ? status : name##_forward(model, &call, x, next, before);                                          \
    name##_destroy(model);                                                                                             \
    return status;                                                                                                     \
  }
DECAY_CALL(decay_v2, DECAY_V2_FORWARD_ARENA_BYTES(1))
DECAY_CALL(decay_v3, DECAY_V3_FORWARD_ARENA_BYTES(1))

/// A session that begins with zeros.
class Session {
public:
  explicit Session(Call *function) : function(function) {}

  /// Returns the computed state before it is stored; `before` gets the previous value of the copied state.
  Tensor call(float first, Tensor *before = nullptr) {
    Tensor x{}, next{}, moved{};
    next.fill(std::numeric_limits<float>::quiet_NaN());
    x[0] = first;
    x[elements - 1] = -first;
    EXPECT_EQ(function(x.data(), next.data(), moved.data(), arena, sizeof arena, &error), KILN_OK) << error.message;
    if (before)
      *before = moved;
    return next;
  }

private:
  Call *function;
  alignas(KILN_ARENA_ALIGNMENT) char arena[4096]{};
  kiln_error_t error{};
};

/// Returns the instruction set levels that this CPU supports.
std::vector<Call *> levels() {
  kiln_error_t error;
  decay_v3_t *model = nullptr;
  const bool hasV3 = decay_v3_create(nullptr, &model, &error) == KILN_OK;
  decay_v3_destroy(model);
  return hasV3 ? std::vector<Call *>{call_decay_v2, call_decay_v3} : std::vector<Call *>{call_decay_v2};
}

TEST(Decay, EndsInZeroAtTheStatedMagnitude) {
  for (Call *level : levels()) {
    Session session(level);
    EXPECT_EQ(session.call(1)[0], 1);
    for (int k = 1; k <= 100; ++k) {
      const Tensor now = session.call(0);
      EXPECT_EQ(now[0], std::ldexp(1.0f, -k)) << k;
      EXPECT_EQ(now[elements - 1], -std::ldexp(1.0f, -k)) << k;
    }
    EXPECT_EQ(session.call(0)[0], std::ldexp(1.0f, -101)); // computed from 2^-100, the smallest stored magnitude
    const Tensor end = session.call(0);
    EXPECT_EQ(end[0], 0);
    EXPECT_EQ(end[elements - 1], 0);
  }
}

TEST(Decay, KeepsWhatIsMoved) {
  for (Call *level : levels()) {
    Session session(level);
    Tensor before;
    session.call(std::numeric_limits<float>::denorm_min());
    session.call(0x1p-110f, &before);
    EXPECT_EQ(before[0], std::numeric_limits<float>::denorm_min());
    session.call(0, &before);
    EXPECT_EQ(before[0], 0x1p-110f);
  }
}

TEST(Decay, KeepsNaN) {
  for (Call *level : levels()) {
    Session session(level);
    session.call(std::numeric_limits<float>::quiet_NaN());
    EXPECT_TRUE(std::isnan(session.call(0)[0]));
    EXPECT_EQ(session.call(0)[1], 0);
  }
}

} // namespace
} // namespace kiln::testing
