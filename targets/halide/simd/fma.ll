; SPDX-License-Identifier: Apache-2.0
;
; a * b + c, rounded once, by the instruction that FMA has for it.

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define weak_odr float @kiln_simd_fma(float %a, float %b, float %c) alwaysinline nounwind readnone {
  %sum = call float @llvm.fma.f32(float %a, float %b, float %c)
  ret float %sum
}

define weak_odr <4 x float> @kiln_simd_fmax4(<4 x float> %a, <4 x float> %b, <4 x float> %c) alwaysinline nounwind readnone {
  %sum = call <4 x float> @llvm.fma.v4f32(<4 x float> %a, <4 x float> %b, <4 x float> %c)
  ret <4 x float> %sum
}

define weak_odr <8 x float> @kiln_simd_fmax8(<8 x float> %a, <8 x float> %b, <8 x float> %c) alwaysinline nounwind readnone {
  %sum = call <8 x float> @llvm.fma.v8f32(<8 x float> %a, <8 x float> %b, <8 x float> %c)
  ret <8 x float> %sum
}

define weak_odr <16 x float> @kiln_simd_fmax16(<16 x float> %a, <16 x float> %b, <16 x float> %c) alwaysinline nounwind readnone {
  %sum = call <16 x float> @llvm.fma.v16f32(<16 x float> %a, <16 x float> %b, <16 x float> %c)
  ret <16 x float> %sum
}

declare float @llvm.fma.f32(float, float, float)
declare <4 x float> @llvm.fma.v4f32(<4 x float>, <4 x float>, <4 x float>)
declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>)
declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)
