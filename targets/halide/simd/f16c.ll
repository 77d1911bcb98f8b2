; SPDX-License-Identifier: Apache-2.0
;
; Converts the bits of an f16 to f32, and f32 to the bits of the nearest f16, ties to even, with the instructions of
; F16C. The second conversion calls the intrinsic: LLVM would merge its own conversion with the operations before it
; into arithmetic in f16.

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define weak_odr float @kiln_simd_f16(i16 %bits) alwaysinline nounwind readnone {
  %half = bitcast i16 %bits to half
  %float = fpext half %half to float
  ret float %float
}

define weak_odr <4 x float> @kiln_simd_f16x4(<4 x i16> %bits) alwaysinline nounwind readnone {
  %half = bitcast <4 x i16> %bits to <4 x half>
  %float = fpext <4 x half> %half to <4 x float>
  ret <4 x float> %float
}

define weak_odr <8 x float> @kiln_simd_f16x8(<8 x i16> %bits) alwaysinline nounwind readnone {
  %half = bitcast <8 x i16> %bits to <8 x half>
  %float = fpext <8 x half> %half to <8 x float>
  ret <8 x float> %float
}

define weak_odr <16 x float> @kiln_simd_f16x16(<16 x i16> %bits) alwaysinline nounwind readnone {
  %half = bitcast <16 x i16> %bits to <16 x half>
  %float = fpext <16 x half> %half to <16 x float>
  ret <16 x float> %float
}

define weak_odr i16 @kiln_simd_to_f16(float %number) alwaysinline nounwind readnone {
  %vector = insertelement <4 x float> zeroinitializer, float %number, i32 0
  %all = call <8 x i16> @llvm.x86.vcvtps2ph.128(<4 x float> %vector, i32 0)
  %bits = extractelement <8 x i16> %all, i32 0
  ret i16 %bits
}

define weak_odr <4 x i16> @kiln_simd_to_f16x4(<4 x float> %number) alwaysinline nounwind readnone {
  %all = call <8 x i16> @llvm.x86.vcvtps2ph.128(<4 x float> %number, i32 0)
  %bits = shufflevector <8 x i16> %all, <8 x i16> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  ret <4 x i16> %bits
}

define weak_odr <8 x i16> @kiln_simd_to_f16x8(<8 x float> %number) alwaysinline nounwind readnone {
  %bits = call <8 x i16> @llvm.x86.vcvtps2ph.256(<8 x float> %number, i32 0)
  ret <8 x i16> %bits
}

declare <8 x i16> @llvm.x86.vcvtps2ph.128(<4 x float>, i32)
declare <8 x i16> @llvm.x86.vcvtps2ph.256(<8 x float>, i32)
