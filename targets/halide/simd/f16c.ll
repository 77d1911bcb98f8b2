; SPDX-License-Identifier: Apache-2.0
;
; The bits of a 16-bit float as a float, by the instruction that F16C has for it.

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
