; SPDX-License-Identifier: Apache-2.0
;
; Converts the i4 or u4 in the lowest four bits of each lane to f32, whatever the other bits are, with a table of sixteen
; floats in a register; and converts a whole vector of f32 to f16 (f16c.ll).

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define weak_odr float @kiln_simd_i4(i32 %bits) alwaysinline nounwind readnone {
  %up = shl i32 %bits, 28
  %down = ashr i32 %up, 28
  %float = sitofp i32 %down to float
  ret float %float
}

define weak_odr <16 x float> @kiln_simd_i4x16(<16 x i32> %bits) alwaysinline nounwind readnone {
  %float = call <16 x float> @llvm.x86.avx512.permvar.sf.512(<16 x float> <float 0.0, float 1.0, float 2.0, float 3.0, float 4.0, float 5.0, float 6.0, float 7.0, float -8.0, float -7.0, float -6.0, float -5.0, float -4.0, float -3.0, float -2.0, float -1.0>, <16 x i32> %bits)
  ret <16 x float> %float
}

define weak_odr float @kiln_simd_u4(i32 %bits) alwaysinline nounwind readnone {
  %low = and i32 %bits, 15
  %float = uitofp i32 %low to float
  ret float %float
}

define weak_odr <16 x float> @kiln_simd_u4x16(<16 x i32> %bits) alwaysinline nounwind readnone {
  %float = call <16 x float> @llvm.x86.avx512.permvar.sf.512(<16 x float> <float 0.0, float 1.0, float 2.0, float 3.0, float 4.0, float 5.0, float 6.0, float 7.0, float 8.0, float 9.0, float 10.0, float 11.0, float 12.0, float 13.0, float 14.0, float 15.0>, <16 x i32> %bits)
  ret <16 x float> %float
}

declare <16 x float> @llvm.x86.avx512.permvar.sf.512(<16 x float>, <16 x i32>)

define weak_odr <16 x i16> @kiln_simd_to_f16x16(<16 x float> %number) alwaysinline nounwind readnone {
  %bits = call <16 x i16> @llvm.x86.avx512.mask.vcvtps2ph.512(<16 x float> %number, i32 0, <16 x i16> zeroinitializer, i16 -1)
  ret <16 x i16> %bits
}

declare <16 x i16> @llvm.x86.avx512.mask.vcvtps2ph.512(<16 x float>, i32, <16 x i16>, i16)

; The functions of sse41.ll with AVX-512.
define weak_odr <16 x i32> @kiln_simd_pairsx16(<16 x i32> %sum, <16 x i32> %a, <16 x i16> %b) alwaysinline nounwind readnone {
  %x = bitcast <16 x i32> %a to <32 x i16>
  %bs = bitcast <16 x i16> %b to <32 x i8>
  %y = sext <32 x i8> %bs to <32 x i16>
  %both = call <16 x i32> @llvm.x86.avx512.pmaddw.d.512(<32 x i16> %x, <32 x i16> %y)
  %result = add <16 x i32> %sum, %both
  ret <16 x i32> %result
}

declare <16 x i32> @llvm.x86.avx512.pmaddw.d.512(<32 x i16>, <32 x i16>)

define weak_odr <16 x i32> @kiln_simd_nibblesx16(<16 x i32> %sum, <16 x i32> %low, <16 x i32> %high, <16 x i32> %a, <16 x i32> %b) alwaysinline nounwind readnone {
  %ls = bitcast <16 x i32> %low to <64 x i8>
  %hs = bitcast <16 x i32> %high to <64 x i8>
  %as = bitcast <16 x i32> %a to <64 x i8>
  %bs = bitcast <16 x i32> %b to <64 x i8>
  %x = call <32 x i16> @llvm.x86.avx512.pmaddubs.w.512(<64 x i8> %as, <64 x i8> %ls)
  %y = call <32 x i16> @llvm.x86.avx512.pmaddubs.w.512(<64 x i8> %bs, <64 x i8> %hs)
  %both = add <32 x i16> %x, %y
  %ones = insertelement <32 x i16> poison, i16 1, i32 0
  %one = shufflevector <32 x i16> %ones, <32 x i16> poison, <32 x i32> zeroinitializer
  %all = call <16 x i32> @llvm.x86.avx512.pmaddw.d.512(<32 x i16> %both, <32 x i16> %one)
  %result = add <16 x i32> %sum, %all
  ret <16 x i32> %result
}

declare <32 x i16> @llvm.x86.avx512.pmaddubs.w.512(<64 x i8>, <64 x i8>)
