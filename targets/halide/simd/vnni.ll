; SPDX-License-Identifier: Apache-2.0
;
; The function of sse41.ll with the instruction of AVX512-VNNI. Halide 14 uses that instruction only for CPUs with many
; more features, so this module has the instruction sets of x86-64-v4 as Halide states them, and VNNI. (The 4 in the
; module flag means: override.)

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define weak_odr <16 x i32> @kiln_simd_bytesx16(<16 x i32> %sum, <16 x i32> %a, <16 x i32> %b) alwaysinline nounwind readnone {
  %result = call <16 x i32> @llvm.x86.avx512.vpdpbusd.512(<16 x i32> %sum, <16 x i32> %a, <16 x i32> %b)
  ret <16 x i32> %result
}

declare <16 x i32> @llvm.x86.avx512.vpdpbusd.512(<16 x i32>, <16 x i32>, <16 x i32>)

!llvm.module.flags = !{!0}
!0 = !{i32 4, !"halide_mattrs", !"+fma,+f16c,+avx512f,+avx512cd,+avx512vl,+avx512bw,+avx512dq,+avx512vnni"}
