; SPDX-License-Identifier: Apache-2.0
;
; What every Armv8-A has: the conversions of f16c.ll, and the products of portable.ll, which has the remaining
; functions.

target datalayout = "e-m:e-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128"

define weak_odr float @kiln_simd_f16(i16 %bits) alwaysinline nounwind readnone {
  %half = bitcast i16 %bits to half
  %float = fpext half %half to float
  ret float %float
}

define weak_odr <4 x float> @kiln_simd_f16x4(<4 x i16> %bits) alwaysinline nounwind readnone {
  %float = call <4 x float> @llvm.aarch64.neon.vcvthf2fp(<4 x i16> %bits)
  ret <4 x float> %float
}

define weak_odr i16 @kiln_simd_to_f16(float %number) alwaysinline nounwind readnone {
  %vector = insertelement <4 x float> zeroinitializer, float %number, i32 0
  %all = call <4 x i16> @llvm.aarch64.neon.vcvtfp2hf(<4 x float> %vector)
  %bits = extractelement <4 x i16> %all, i32 0
  ret i16 %bits
}

define weak_odr <4 x i16> @kiln_simd_to_f16x4(<4 x float> %number) alwaysinline nounwind readnone {
  %bits = call <4 x i16> @llvm.aarch64.neon.vcvtfp2hf(<4 x float> %number)
  ret <4 x i16> %bits
}

declare <4 x float> @llvm.aarch64.neon.vcvthf2fp(<4 x i16>)
declare <4 x i16> @llvm.aarch64.neon.vcvtfp2hf(<4 x float>)

; A word of a row is the same in all lanes.
define weak_odr <4 x i32> @kiln_simd_pairsx4(<4 x i32> %sum, <4 x i32> %a, <4 x i16> %b) alwaysinline nounwind readnone {
  %as = bitcast <4 x i32> %a to <8 x i16>
  %a.low = shufflevector <8 x i16> %as, <8 x i16> poison, <4 x i32> zeroinitializer
  %a.high = shufflevector <8 x i16> %as, <8 x i16> poison, <4 x i32> <i32 1, i32 1, i32 1, i32 1>
  %b.up = shl <4 x i16> %b, <i16 8, i16 8, i16 8, i16 8>
  %b.low = ashr <4 x i16> %b.up, <i16 8, i16 8, i16 8, i16 8>
  %b.high = ashr <4 x i16> %b, <i16 8, i16 8, i16 8, i16 8>
  %p0 = call <4 x i32> @llvm.aarch64.neon.smull.v4i32(<4 x i16> %b.low, <4 x i16> %a.low)
  %p1 = call <4 x i32> @llvm.aarch64.neon.smull.v4i32(<4 x i16> %b.high, <4 x i16> %a.high)
  %first = add <4 x i32> %sum, %p0
  %result = add <4 x i32> %first, %p1
  ret <4 x i32> %result
}

declare <4 x i32> @llvm.aarch64.neon.smull.v4i32(<4 x i16>, <4 x i16>)

define weak_odr <4 x i32> @kiln_simd_nibblesx4(<4 x i32> %sum, <4 x i32> %low, <4 x i32> %high, <4 x i32> %a, <4 x i32> %b) alwaysinline nounwind readnone {
  %ls = bitcast <4 x i32> %low to <16 x i8>
  %hs = bitcast <4 x i32> %high to <16 x i8>
  %as = bitcast <4 x i32> %a to <16 x i8>
  %bs = bitcast <4 x i32> %b to <16 x i8>
  %l0 = shufflevector <16 x i8> %ls, <16 x i8> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %l1 = shufflevector <16 x i8> %ls, <16 x i8> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %h0 = shufflevector <16 x i8> %hs, <16 x i8> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %h1 = shufflevector <16 x i8> %hs, <16 x i8> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %a0 = shufflevector <16 x i8> %as, <16 x i8> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %a1 = shufflevector <16 x i8> %as, <16 x i8> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %b0 = shufflevector <16 x i8> %bs, <16 x i8> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %b1 = shufflevector <16 x i8> %bs, <16 x i8> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %x0 = call <8 x i16> @llvm.aarch64.neon.smull.v8i16(<8 x i8> %a0, <8 x i8> %l0)
  %x1 = call <8 x i16> @llvm.aarch64.neon.smull.v8i16(<8 x i8> %a1, <8 x i8> %l1)
  %y0 = call <8 x i16> @llvm.aarch64.neon.smull.v8i16(<8 x i8> %b0, <8 x i8> %h0)
  %y1 = call <8 x i16> @llvm.aarch64.neon.smull.v8i16(<8 x i8> %b1, <8 x i8> %h1)
  %both0 = add <8 x i16> %x0, %y0
  %both1 = add <8 x i16> %x1, %y1
  %fours = call <8 x i16> @llvm.aarch64.neon.addp.v8i16(<8 x i16> %both0, <8 x i16> %both1)
  %all = call <4 x i32> @llvm.aarch64.neon.saddlp.v4i32.v8i16(<8 x i16> %fours)
  %result = add <4 x i32> %sum, %all
  ret <4 x i32> %result
}

declare <8 x i16> @llvm.aarch64.neon.smull.v8i16(<8 x i8>, <8 x i8>)
declare <8 x i16> @llvm.aarch64.neon.addp.v8i16(<8 x i16>, <8 x i16>)
declare <4 x i32> @llvm.aarch64.neon.saddlp.v4i32.v8i16(<8 x i16>)
