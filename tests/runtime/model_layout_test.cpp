// SPDX-License-Identifier: Apache-2.0
// Pins the ABI that programs rely on: the structs and numbers that a model's header states, on 64-bit systems. Structs
// that generated code builds follow from runtime/src/core/model.def (tests/emit/binary_interface_test.cpp).
#include "support.h"

#include <cstddef>
#include <gtest/gtest.h>

#define EXPECT_FIELD(type, field, offset, size)                                                                        \
  EXPECT_EQ(offsetof(type, field), offset##u) << #type "." #field;                                                     \
  EXPECT_EQ(sizeof(type::field), size##u) << #type "." #field

namespace {

TEST(ModelLayout, PublicStructs) {
  EXPECT_EQ(KILN_ABI_VERSION, 13);
  EXPECT_EQ(sizeof(kiln_training_t), 8u);
  EXPECT_FIELD(kiln_training_t, step, 0, 4);
  EXPECT_FIELD(kiln_training_t, seed, 4, 4);
  EXPECT_EQ(sizeof(kiln_error_t), 256u);
  EXPECT_FIELD(kiln_error_t, message, 4, 252);
  EXPECT_EQ(sizeof(kiln_sequence_t), 16u);
  EXPECT_FIELD(kiln_sequence_t, states, 0, 8);
  EXPECT_FIELD(kiln_sequence_t, extents, 8, 8);
  EXPECT_EQ(sizeof(kiln_executor_t), 24u);
  EXPECT_FIELD(kiln_executor_t, workers, 8, 4);
  EXPECT_FIELD(kiln_executor_t, parallel_for, 16, 8);
  EXPECT_EQ(sizeof(kiln_allocator_t), 24u);
  EXPECT_EQ(sizeof(kiln_call_t), 88u);
  EXPECT_FIELD(kiln_call_t, arena, 0, 8);
  EXPECT_FIELD(kiln_call_t, arena_bytes, 8, 8);
  EXPECT_FIELD(kiln_call_t, executor, 16, 8);
  EXPECT_FIELD(kiln_call_t, error, 24, 8);
  EXPECT_FIELD(kiln_call_t, stream, 32, 8);
  EXPECT_FIELD(kiln_call_t, memory, 40, 8);
  EXPECT_FIELD(kiln_call_t, trace, 48, 8);
  EXPECT_FIELD(kiln_call_t, communicator, 56, 8);
  EXPECT_FIELD(kiln_call_t, replicas, 64, 8);
  EXPECT_FIELD(kiln_call_t, stages, 72, 8);
  EXPECT_FIELD(kiln_call_t, reserved, 80, 8);
  EXPECT_EQ(sizeof(kiln_options_t), 72u);
  EXPECT_FIELD(kiln_options_t, device, 8, 4);
  EXPECT_FIELD(kiln_options_t, ordinal, 12, 4);
  EXPECT_FIELD(kiln_options_t, context, 16, 8);
  EXPECT_FIELD(kiln_options_t, flags, 24, 8);
  EXPECT_FIELD(kiln_options_t, rank, 32, 4);
  EXPECT_FIELD(kiln_options_t, ranks, 36, 4);
  EXPECT_FIELD(kiln_options_t, replica, 40, 4);
  EXPECT_FIELD(kiln_options_t, replicas, 44, 4);
  EXPECT_FIELD(kiln_options_t, stage, 48, 4);
  EXPECT_FIELD(kiln_options_t, stages, 52, 4);
  EXPECT_FIELD(kiln_options_t, reserved, 56, 16);
  EXPECT_EQ(sizeof(kiln_communicator_t), 40u);
  EXPECT_FIELD(kiln_communicator_t, rank, 8, 4);
  EXPECT_FIELD(kiln_communicator_t, size, 12, 4);
  EXPECT_FIELD(kiln_communicator_t, begin, 16, 8);
  EXPECT_FIELD(kiln_communicator_t, finish, 24, 8);
  EXPECT_FIELD(kiln_communicator_t, poll, 32, 8);
  EXPECT_EQ(sizeof(kiln_collective_t), 48u);
  EXPECT_FIELD(kiln_collective_t, element, 4, 4);
  EXPECT_FIELD(kiln_collective_t, from, 8, 8);
  EXPECT_FIELD(kiln_collective_t, to, 16, 8);
  EXPECT_FIELD(kiln_collective_t, elements, 24, 8);
  EXPECT_FIELD(kiln_collective_t, peer, 32, 4);
  EXPECT_FIELD(kiln_collective_t, stream, 40, 8);
}

TEST(ModelLayout, AWorkerFillsACacheLine) { EXPECT_EQ(sizeof(kiln_worker_t), 64u); }

TEST(ModelLayout, DtypeNumbers) {
  EXPECT_EQ(KILN_F32, 0);
  EXPECT_EQ(KILN_F16, 1);
  EXPECT_EQ(KILN_BF16, 2);
  EXPECT_EQ(KILN_I32, 3);
  EXPECT_EQ(KILN_I8, 4);
  EXPECT_EQ(KILN_BOOL, 5);
}

// The formula of the macro NAME_<ENTRY>_ARENA_BYTES(workers) in headers.
TEST(ModelLayout, ArenaFormula) {
  EXPECT_EQ(kiln_arena_fixed_bytes(0, 0, 0), 0u);
  EXPECT_EQ(kiln_arena_fixed_bytes(1, 0, 0), 64u);
  EXPECT_EQ(kiln_arena_fixed_bytes(64, 65, 1), 128u);
  EXPECT_EQ(kiln_arena_worker_bytes(0), 64u);
  EXPECT_EQ(kiln_arena_worker_bytes(65), 192u);
  EXPECT_EQ(KILN_SCRATCH_BLOCK_BYTES(0), 64u);
  EXPECT_EQ(KILN_SCRATCH_BLOCK_BYTES(64), 128u);
  EXPECT_EQ(KILN_SCRATCH_BLOCK_BYTES(65), 192u);
}

} // namespace
