// SPDX-License-Identifier: Apache-2.0
// Pins the layout of every struct that compiler/emit builds in LLVM IR, or that a header of a model states, on 64-bit
// systems.
#include "support.h"

#include <cstddef>
#include <gtest/gtest.h>

#define EXPECT_FIELD(type, field, offset, size)                                                                        \
  EXPECT_EQ(offsetof(type, field), offset##u) << #type "." #field;                                                     \
  EXPECT_EQ(sizeof(type::field), size##u) << #type "." #field

namespace {

TEST(ModelLayout, Extent) {
  EXPECT_EQ(sizeof(kiln_extent_t), 24u);
  EXPECT_FIELD(kiln_extent_t, offset, 0, 8);
  EXPECT_FIELD(kiln_extent_t, factor, 8, 8);
  EXPECT_FIELD(kiln_extent_t, symbol, 16, 8);
}

TEST(ModelLayout, Symbol) {
  EXPECT_EQ(sizeof(kiln_symbol_t), 32u);
  EXPECT_FIELD(kiln_symbol_t, name, 0, 8);
  EXPECT_FIELD(kiln_symbol_t, min, 8, 8);
  EXPECT_FIELD(kiln_symbol_t, max, 16, 8);
  EXPECT_FIELD(kiln_symbol_t, least, 24, 4);
}

TEST(ModelLayout, Argument) {
  EXPECT_EQ(KILN_MAX_RANK, 6);
  EXPECT_EQ(sizeof(kiln_argument_t), 200u);
  EXPECT_FIELD(kiln_argument_t, name, 0, 8);
  EXPECT_FIELD(kiln_argument_t, dtype, 8, 4);
  EXPECT_FIELD(kiln_argument_t, rank, 12, 4);
  EXPECT_FIELD(kiln_argument_t, extents, 16, 144);
  EXPECT_FIELD(kiln_argument_t, is_output, 160, 4);
  EXPECT_FIELD(kiln_argument_t, is_checked, 164, 4);
  EXPECT_FIELD(kiln_argument_t, minimum, 168, 8);
  EXPECT_FIELD(kiln_argument_t, limit, 176, 24);
}

TEST(ModelLayout, Weight) {
  EXPECT_EQ(sizeof(kiln_weight_t), 72u);
  EXPECT_FIELD(kiln_weight_t, name, 0, 8);
  EXPECT_FIELD(kiln_weight_t, dtype, 8, 4);
  EXPECT_FIELD(kiln_weight_t, rank, 12, 4);
  EXPECT_FIELD(kiln_weight_t, shape, 16, 48);
  EXPECT_FIELD(kiln_weight_t, copies, 64, 4);
  EXPECT_FIELD(kiln_weight_t, reserved, 68, 4);
}

TEST(ModelLayout, Placement) {
  EXPECT_EQ(sizeof(kiln_placement_t), 32u);
  EXPECT_FIELD(kiln_placement_t, offset, 0, 8);
  EXPECT_FIELD(kiln_placement_t, stride, 8, 8);
  EXPECT_FIELD(kiln_placement_t, tile, 16, 4);
  EXPECT_FIELD(kiln_placement_t, dim, 20, 4);
  EXPECT_FIELD(kiln_placement_t, shift, 24, 8);
}

TEST(ModelLayout, Worker) {
  EXPECT_EQ(sizeof(kiln_worker_t), 64u);
  EXPECT_FIELD(kiln_worker_t, executor, 0, 8);
  EXPECT_FIELD(kiln_worker_t, workers, 8, 8);
  EXPECT_FIELD(kiln_worker_t, top, 16, 8);
  EXPECT_FIELD(kiln_worker_t, end, 24, 8);
  EXPECT_FIELD(kiln_worker_t, last, 32, 8);
  EXPECT_FIELD(kiln_worker_t, is_backward, 40, 8);
}

TEST(ModelLayout, Frame) {
  EXPECT_EQ(sizeof(kiln_frame_t), 40u);
  EXPECT_FIELD(kiln_frame_t, worker, 0, 8);
  EXPECT_FIELD(kiln_frame_t, weights, 8, 8);
  EXPECT_FIELD(kiln_frame_t, arena, 16, 8);
  EXPECT_FIELD(kiln_frame_t, extents, 24, 8);
  EXPECT_FIELD(kiln_frame_t, arguments, 32, 8);
}

TEST(ModelLayout, Entry) {
  EXPECT_EQ(sizeof(kiln_entry_t), 32u);
  EXPECT_FIELD(kiln_entry_t, name, 0, 8);
  EXPECT_FIELD(kiln_entry_t, symbols, 8, 8);
  EXPECT_FIELD(kiln_entry_t, arguments, 16, 8);
  EXPECT_FIELD(kiln_entry_t, symbol_count, 24, 4);
  EXPECT_FIELD(kiln_entry_t, argument_count, 28, 4);
}

TEST(ModelLayout, Body) {
  EXPECT_EQ(sizeof(kiln_body_t), 24u);
  EXPECT_FIELD(kiln_body_t, run, 0, 8);
  EXPECT_FIELD(kiln_body_t, plan_bytes, 8, 8);
  EXPECT_FIELD(kiln_body_t, scratch_bytes, 16, 8);
}

TEST(ModelLayout, Variant) {
  EXPECT_EQ(sizeof(kiln_variant_t), 32u);
  EXPECT_FIELD(kiln_variant_t, isa, 0, 4);
  EXPECT_FIELD(kiln_variant_t, reserved, 4, 4);
  EXPECT_FIELD(kiln_variant_t, placements, 8, 8);
  EXPECT_FIELD(kiln_variant_t, packed_bytes, 16, 8);
  EXPECT_FIELD(kiln_variant_t, bodies, 24, 8);
}

TEST(ModelLayout, Descriptor) {
  EXPECT_EQ(sizeof(kiln_descriptor_t), 48u);
  EXPECT_FIELD(kiln_descriptor_t, abi_version, 0, 4);
  EXPECT_FIELD(kiln_descriptor_t, weight_count, 4, 4);
  EXPECT_FIELD(kiln_descriptor_t, entry_count, 8, 4);
  EXPECT_FIELD(kiln_descriptor_t, variant_count, 12, 4);
  EXPECT_FIELD(kiln_descriptor_t, name, 16, 8);
  EXPECT_FIELD(kiln_descriptor_t, weights, 24, 8);
  EXPECT_FIELD(kiln_descriptor_t, entries, 32, 8);
  EXPECT_FIELD(kiln_descriptor_t, variants, 40, 8);
}

TEST(ModelLayout, PublicStructs) {
  EXPECT_EQ(sizeof(kiln_error_t), 256u);
  EXPECT_FIELD(kiln_error_t, message, 4, 252);
  EXPECT_EQ(sizeof(kiln_executor_t), 24u);
  EXPECT_FIELD(kiln_executor_t, workers, 8, 4);
  EXPECT_FIELD(kiln_executor_t, parallel_for, 16, 8);
  EXPECT_EQ(sizeof(kiln_allocator_t), 24u);
  EXPECT_EQ(sizeof(kiln_call_t), 32u);
  EXPECT_FIELD(kiln_call_t, arena, 0, 8);
  EXPECT_FIELD(kiln_call_t, arena_bytes, 8, 8);
  EXPECT_FIELD(kiln_call_t, executor, 16, 8);
  EXPECT_FIELD(kiln_call_t, error, 24, 8);
}

TEST(ModelLayout, DtypeNumbers) {
  EXPECT_EQ(KILN_F32, 0);
  EXPECT_EQ(KILN_F16, 1);
  EXPECT_EQ(KILN_BF16, 2);
  EXPECT_EQ(KILN_I32, 3);
  EXPECT_EQ(KILN_I8, 4);
  EXPECT_EQ(KILN_BOOL, 5);
}

// The formula that headers print: NAME_<ENTRY>_ARENA_BYTES(workers).
TEST(ModelLayout, ArenaFormula) {
  EXPECT_EQ(kiln_arena_fixed_bytes(0), 0u);
  EXPECT_EQ(kiln_arena_fixed_bytes(1), 64u);
  EXPECT_EQ(kiln_arena_fixed_bytes(64), 64u);
  EXPECT_EQ(kiln_arena_worker_bytes(0), 64u);
  EXPECT_EQ(kiln_arena_worker_bytes(65), 192u);
  EXPECT_EQ(KILN_SCRATCH_BLOCK_BYTES(0), 64u);
  EXPECT_EQ(KILN_SCRATCH_BLOCK_BYTES(64), 128u);
  EXPECT_EQ(KILN_SCRATCH_BLOCK_BYTES(65), 192u);
}

} // namespace
