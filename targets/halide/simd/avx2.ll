; SPDX-License-Identifier: Apache-2.0
;
; As in sse41.ll.

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
