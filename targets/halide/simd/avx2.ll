; SPDX-License-Identifier: Apache-2.0
;
; The functions of sse41.ll with AVX2.

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define weak_odr <8 x i32> @kiln_simd_pairsx8(<8 x i32> %sum, <8 x i32> %a, <8 x i16> %b) alwaysinline nounwind readnone {
  %x = bitcast <8 x i32> %a to <16 x i16>
  %bs = bitcast <8 x i16> %b to <16 x i8>
  %y = sext <16 x i8> %bs to <16 x i16>
  %both = call <8 x i32> @llvm.x86.avx2.pmadd.wd(<16 x i16> %x, <16 x i16> %y)
  %result = add <8 x i32> %sum, %both
  ret <8 x i32> %result
}

declare <8 x i32> @llvm.x86.avx2.pmadd.wd(<16 x i16>, <16 x i16>)

define weak_odr <8 x i32> @kiln_simd_nibblesx8(<8 x i32> %sum, <8 x i32> %low, <8 x i32> %high, <8 x i32> %a, <8 x i32> %b) alwaysinline nounwind readnone {
  %ls = bitcast <8 x i32> %low to <32 x i8>
  %hs = bitcast <8 x i32> %high to <32 x i8>
  %as = bitcast <8 x i32> %a to <32 x i8>
  %bs = bitcast <8 x i32> %b to <32 x i8>
  %x = call <16 x i16> @llvm.x86.avx2.pmadd.ub.sw(<32 x i8> %as, <32 x i8> %ls)
  %y = call <16 x i16> @llvm.x86.avx2.pmadd.ub.sw(<32 x i8> %bs, <32 x i8> %hs)
  %both = add <16 x i16> %x, %y
  %ones = insertelement <16 x i16> poison, i16 1, i32 0
  %one = shufflevector <16 x i16> %ones, <16 x i16> poison, <16 x i32> zeroinitializer
  %all = call <8 x i32> @llvm.x86.avx2.pmadd.wd(<16 x i16> %both, <16 x i16> %one)
  %result = add <8 x i32> %sum, %all
  ret <8 x i32> %result
}

declare <16 x i16> @llvm.x86.avx2.pmadd.ub.sw(<32 x i8>, <32 x i8>)
