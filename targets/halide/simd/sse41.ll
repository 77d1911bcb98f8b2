; SPDX-License-Identifier: Apache-2.0
;
; A sum plus the products of small integers in one word. `pairs`: two signed 16-bit numbers and two signed bytes.
; `bytes`: four unsigned bytes and four signed bytes. `nibbles`: eight unsigned numbers of at most 15 and eight signed
; bytes, so that the sum of four products fits in 16 bits.

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define weak_odr i32 @kiln_simd_pairs(i32 %sum, i32 %a, i16 %b) alwaysinline nounwind readnone {
  %as = bitcast i32 %a to <2 x i16>
  %bs = bitcast i16 %b to <2 x i8>
  %x = sext <2 x i16> %as to <2 x i32>
  %y = sext <2 x i8> %bs to <2 x i32>
  %products = mul <2 x i32> %x, %y
  %p0 = extractelement <2 x i32> %products, i32 0
  %p1 = extractelement <2 x i32> %products, i32 1
  %both = add i32 %p0, %p1
  %result = add i32 %sum, %both
  ret i32 %result
}

define weak_odr <4 x i32> @kiln_simd_pairsx4(<4 x i32> %sum, <4 x i32> %a, <4 x i16> %b) alwaysinline nounwind readnone {
  %x = bitcast <4 x i32> %a to <8 x i16>
  %bs = bitcast <4 x i16> %b to <8 x i8>
  %y = sext <8 x i8> %bs to <8 x i16>
  %both = call <4 x i32> @llvm.x86.sse2.pmadd.wd(<8 x i16> %x, <8 x i16> %y)
  %result = add <4 x i32> %sum, %both
  ret <4 x i32> %result
}

declare <4 x i32> @llvm.x86.sse2.pmadd.wd(<8 x i16>, <8 x i16>)

define weak_odr i32 @kiln_simd_bytes(i32 %sum, i32 %a, i32 %b) alwaysinline nounwind readnone {
  %as = bitcast i32 %a to <4 x i8>
  %bs = bitcast i32 %b to <4 x i8>
  %x = zext <4 x i8> %as to <4 x i32>
  %y = sext <4 x i8> %bs to <4 x i32>
  %products = mul <4 x i32> %x, %y
  %all = call i32 @llvm.vector.reduce.add.v4i32(<4 x i32> %products)
  %result = add i32 %sum, %all
  ret i32 %result
}

declare i32 @llvm.vector.reduce.add.v4i32(<4 x i32>)

define weak_odr i32 @kiln_simd_nibbles(i32 %sum, i32 %low, i32 %high, i32 %a, i32 %b) alwaysinline nounwind readnone {
  %first = call i32 @kiln_simd_bytes(i32 %sum, i32 %a, i32 %low)
  %result = call i32 @kiln_simd_bytes(i32 %first, i32 %b, i32 %high)
  ret i32 %result
}

define weak_odr <4 x i32> @kiln_simd_nibblesx4(<4 x i32> %sum, <4 x i32> %low, <4 x i32> %high, <4 x i32> %a, <4 x i32> %b) alwaysinline nounwind readnone {
  %ls = bitcast <4 x i32> %low to <16 x i8>
  %hs = bitcast <4 x i32> %high to <16 x i8>
  %as = bitcast <4 x i32> %a to <16 x i8>
  %bs = bitcast <4 x i32> %b to <16 x i8>
  %x = call <8 x i16> @llvm.x86.ssse3.pmadd.ub.sw.128(<16 x i8> %as, <16 x i8> %ls)
  %y = call <8 x i16> @llvm.x86.ssse3.pmadd.ub.sw.128(<16 x i8> %bs, <16 x i8> %hs)
  %both = add <8 x i16> %x, %y
  %all = call <4 x i32> @llvm.x86.sse2.pmadd.wd(<8 x i16> %both, <8 x i16> <i16 1, i16 1, i16 1, i16 1, i16 1, i16 1, i16 1, i16 1>)
  %result = add <4 x i32> %sum, %all
  ret <4 x i32> %result
}

declare <8 x i16> @llvm.x86.ssse3.pmadd.ub.sw.128(<16 x i8>, <16 x i8>)
