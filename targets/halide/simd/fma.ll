; SPDX-License-Identifier: Apache-2.0
;
; Computes a * b + c, rounded once, on CPUs that have an instruction for it.

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
