// SPDX-License-Identifier: Apache-2.0
//
// The PTX of the tests' kernels.
#pragma once

namespace kiln::fake {

/// saxpy(x, y, a, n): y += a x. store(p, value). twice(p): p = 2 p, so that the order of operations is visible.
/// reverse(p): reverses the block's numbers through dynamic shared memory. spin(): never ends. wild(p): writes past the
/// end of two numbers. two: 64 bytes of static shared memory and at most 64 threads.
inline constexpr char simpleKernels[] = R"(
.version 7.0
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 tile[];
.visible .entry saxpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n) {
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .f32 %f<5>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  ld.param.f32 %f1, [a];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra END;
  mul.wide.u32 %rd3, %r5, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.f32 %f2, [%rd4];
  ld.global.f32 %f3, [%rd5];
  fma.rn.f32 %f4, %f1, %f2, %f3;
  st.global.f32 [%rd5], %f4;
END:
  ret;
}
.visible .entry store(.param .u64 p, .param .u32 value) {
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [value];
  st.global.u32 [%rd1], %r1;
  ret;
}
.visible .entry twice(.param .u64 p) {
  .reg .b32 %r<3>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [p];
  ld.global.u32 %r1, [%rd1];
  shl.b32 %r2, %r1, 1;
  st.global.u32 [%rd1], %r2;
  ret;
}
.visible .entry reverse(.param .u64 p) {
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ntid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r3, [%rd3];
  mov.u64 %rd4, tile;
  add.s64 %rd5, %rd4, %rd2;
  st.shared.u32 [%rd5], %r3;
  bar.sync 0;
  sub.u32 %r4, %r2, %r1;
  sub.u32 %r4, %r4, 1;
  mul.wide.u32 %rd6, %r4, 4;
  add.s64 %rd7, %rd4, %rd6;
  ld.shared.u32 %r5, [%rd7];
  st.global.u32 [%rd3], %r5;
  ret;
}
.visible .entry spin() {
LOOP:
  bra LOOP;
}
.visible .entry wild(.param .u64 p) {
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [p];
  st.global.u32 [%rd1+8], 1;
  ret;
}
.visible .entry broken() {
  trap;
  ret;
}
)";

/// bounded: at most 64 threads, 64 bytes of static shared memory.
inline constexpr char boundedKernel[] = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry bounded() .maxntid 64, 1, 1 {
  .shared .align 4 .b8 room[64];
  ret;
}
)";

/// ranks(p): writes the rank of a block in its cluster to p[block].
inline constexpr char clusterKernel[] = R"(
.version 8.0
.target sm_90a
.address_size 64
.visible .entry ranks(.param .u64 p) {
  .reg .b32 %r<3>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %cluster_ctarank;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r2;
  ret;
}
)";

/// copy(map, p): copies a box of 4 x 8 numbers at (0, 2) of the tensor to p.
inline constexpr char tensorKernel[] = R"(
.version 8.0
.target sm_90a
.address_size 64
.visible .entry copy(.param .align 64 .b8 map[128], .param .u64 p) {
  .reg .pred %p<3>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<8>;
  .shared .align 128 .b8 box[128];
  .shared .align 8 .b8 barrier[8];
  mov.b64 %rd1, map;
  cvta.param.u64 %rd1, %rd1;
  ld.param.u64 %rd2, [p];
  mov.u32 %r0, %tid.x;
  setp.ne.u32 %p1, %r0, 0;
  mov.u32 %r1, 1;
  @!%p1 mbarrier.init.shared.b64 [barrier], %r1;
  fence.mbarrier_init.release.cluster;
  bar.sync 0;
  @!%p1 mbarrier.arrive.expect_tx.shared.b64 %rd3, [barrier], 128;
  @!%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
    [box], [%rd1, {0, 2}], [barrier];
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p2, [barrier], 0, 10000000;
  @!%p2 bra WAIT;
  mul.wide.u32 %rd4, %r0, 4;
  mov.b64 %rd5, box;
  add.s64 %rd6, %rd5, %rd4;
  ld.shared.u32 %r2, [%rd6];
  add.s64 %rd7, %rd2, %rd4;
  st.global.u32 [%rd7], %r2;
  ret;
}
)";

} // namespace kiln::fake
