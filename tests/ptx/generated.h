// SPDX-License-Identifier: Apache-2.0
//
// PTX that LLVM 22's llc generates from small functions: typical compiler output, instead of hand-written text.
#pragma once

namespace kiln::ptx::generated {

/// A called function with a switch, a table of constants, an array of eight in local memory.
inline constexpr char calls[] = R"(
.version 7.0
.target sm_80
.address_size 64
.const .align 4 .b8 table[20] = {3, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 5};
.func (.param .b32 func_retval0) pick(
.param .b32 pick_param_0,
.param .b32 pick_param_1
)
{
.reg .pred %p<2>;
.reg .b32 %r<8>;
ld.param.b32 %r2, [pick_param_0];
setp.gt.u32 %p1, %r2, 3;
@%p1 bra $L__BB0_6;
ld.param.b32 %r1, [pick_param_1];
$L_brx_0: .branchtargets
$L__BB0_2,
$L__BB0_3,
$L__BB0_4,
$L__BB0_5;
brx.idx %r2, $L_brx_0;
$L__BB0_2:
add.s32 %r7, %r1, 10;
st.param.b32 [func_retval0], %r7;
ret;
$L__BB0_4:
xor.b32 %r5, %r1, 255;
st.param.b32 [func_retval0], %r5;
ret;
$L__BB0_5:
mul.hi.u32 %r3, %r1, -1431655765;
shr.u32 %r4, %r3, 1;
st.param.b32 [func_retval0], %r4;
ret;
$L__BB0_3:
mul.lo.s32 %r6, %r1, %r1;
st.param.b32 [func_retval0], %r6;
ret;
$L__BB0_6:
st.param.b32 [func_retval0], 7;
ret;
}
.visible .entry k(
.param .u64 .ptr .global .align 1 k_param_0,
.param .u32 k_param_1
)
{
.local .align 4 .b8 __local_depot1[32];
.reg .b64 %SP;
.reg .b64 %SPL;
.reg .pred %p<3>;
.reg .b32 %r<19>;
.reg .b64 %rd<11>;
mov.b64 %SPL, __local_depot1;
ld.param.b32 %r2, [k_param_1];
mov.u32 %r3, %tid.x;
mov.u32 %r4, %ctaid.x;
mov.u32 %r5, %ntid.x;
mad.lo.s32 %r1, %r4, %r5, %r3;
setp.ge.s32 %p1, %r1, %r2;
@%p1 bra $L__BB1_4;
ld.param.b64 %rd2, [k_param_0];
add.u64 %rd1, %SPL, 0;
mov.b32 %r18, 0;
mov.b64 %rd4, table;
mov.b64 %rd10, %rd1;
$L__BB1_2:
mul.hi.u32 %r6, %r18, -858993459;
shr.u32 %r7, %r6, 2;
mad.lo.s32 %r8, %r7, -5, %r18;
mul.wide.s32 %rd3, %r8, 4;
add.s64 %rd5, %rd4, %rd3;
ld.const.b32 %r9, [%rd5];
mul.lo.s32 %r10, %r9, %r1;
st.local.b32 [%rd10], %r10;
add.s32 %r18, %r18, 1;
add.s64 %rd10, %rd10, 4;
setp.lt.s32 %p2, %r18, 8;
@%p2 bra $L__BB1_2;
mul.hi.u32 %r11, %r1, -858993459;
shr.u32 %r12, %r11, 2;
mul.lo.s32 %r13, %r12, 5;
sub.s32 %r14, %r1, %r13;
and.b32 %r15, %r1, 7;
mul.wide.u32 %rd6, %r15, 4;
add.s64 %rd7, %rd1, %rd6;
ld.local.b32 %r16, [%rd7];
{
.param .b32 param0;
.param .b32 param1;
.param .b32 retval0;
st.param.b32 [param1], %r16;
st.param.b32 [param0], %r14;
call.uni (retval0), pick, (param0, param1);
ld.param.b32 %r17, [retval0];
}
mul.wide.s32 %rd8, %r1, 4;
add.s64 %rd9, %rd2, %rd8;
st.global.b32 [%rd9], %r17;
$L__BB1_4:
ret;
}
)";

/// A sum of n numbers by 256 threads: shared memory and barriers in a loop.
inline constexpr char sum[] = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry k(
.param .u64 .ptr .global .align 1 k_param_0,
.param .u64 .ptr .global .align 1 k_param_1,
.param .u32 k_param_2
)
{
.reg .pred %p<5>;
.reg .b32 %r<11>;
.reg .b64 %rd<10>;
.shared .align 16 .b8 tile[1024];
ld.param.b32 %r2, [k_param_2];
ld.param.b64 %rd4, [k_param_1];
ld.param.b64 %rd3, [k_param_0];
mov.b32 %r9, 0f00000000;
mov.u32 %r1, %tid.x;
mov.b32 %r8, %r1;
$L__BB0_1:
setp.ge.s32 %p1, %r8, %r2;
@%p1 bra $L__BB0_3;
mul.wide.s32 %rd8, %r8, 4;
add.s64 %rd9, %rd3, %rd8;
ld.global.b32 %r7, [%rd9];
add.rn.f32 %r9, %r9, %r7;
add.s32 %r8, %r8, 256;
bra.uni $L__BB0_1;
$L__BB0_3:
mul.wide.u32 %rd5, %r1, 4;
mov.b64 %rd6, tile;
add.s64 %rd1, %rd6, %rd5;
st.shared.b32 [%rd1], %r9;
mov.b32 %r10, 128;
bra.uni $L__BB0_4;
$L__BB0_6:
shr.u32 %r10, %r10, 1;
setp.ne.b32 %p3, %r10, 0;
@%p3 bra $L__BB0_4;
bra.uni $L__BB0_7;
$L__BB0_4:
bar.sync 0;
setp.ge.s32 %p2, %r1, %r10;
@%p2 bra $L__BB0_6;
mul.wide.s32 %rd7, %r10, 4;
add.s64 %rd2, %rd1, %rd7;
ld.shared.b32 %r3, [%rd2];
ld.shared.b32 %r4, [%rd1];
add.rn.f32 %r5, %r3, %r4;
st.shared.b32 [%rd1], %r5;
bra.uni $L__BB0_6;
$L__BB0_7:
setp.ne.b32 %p4, %r1, 0;
@%p4 bra $L__BB0_9;
ld.shared.b32 %r6, [tile];
st.global.b32 [%rd4], %r6;
$L__BB0_9:
ret;
}
)";

/// Arithmetic on pairs of f16, with results in bf16.
inline constexpr char halves[] = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry k(
.param .u64 .ptr .global .align 1 k_param_0,
.param .u64 .ptr .global .align 1 k_param_1,
.param .u32 k_param_2
)
{
.reg .pred %p<2>;
.reg .b16 %rs<3>;
.reg .b32 %r<16>;
.reg .b64 %rd<6>;
mov.u32 %r1, %tid.x;
ld.param.b32 %r2, [k_param_2];
setp.ge.s32 %p1, %r1, %r2;
@%p1 bra $L__BB0_2;
ld.param.b64 %rd2, [k_param_1];
ld.param.b64 %rd1, [k_param_0];
mul.wide.u32 %rd3, %r1, 4;
add.s64 %rd4, %rd1, %rd3;
ld.global.b32 %r3, [%rd4];
mov.b32 %r4, 872431104;
mul.rn.f16x2 %r5, %r3, %r4;
add.rn.f16x2 %r6, %r5, %r3;
mov.b32 %r7, 0;
max.f16x2 %r8, %r6, %r7;
mov.b32 {%rs1, %rs2}, %r8;
cvt.f32.f16 %r9, %rs1;
cvt.f32.f16 %r10, %rs2;
div.rn.f32 %r11, %r10, 0f40E00000;
div.rn.f32 %r12, %r9, 0f40400000;
sqrt.rn.f32 %r13, %r12;
sqrt.rn.f32 %r14, %r11;
cvt.rn.bf16x2.f32 %r15, %r14, %r13;
add.s64 %rd5, %rd2, %rd3;
st.global.b32 [%rd5], %r15;
$L__BB0_2:
ret;
}
)";

} // namespace kiln::ptx::generated
