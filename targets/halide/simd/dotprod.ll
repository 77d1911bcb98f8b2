; SPDX-License-Identifier: Apache-2.0
;
; The function of portable.ll with the optional dot product instruction of Armv8.2.

target datalayout = "e-m:e-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128"

define weak_odr <4 x i32> @kiln_simd_bytesx4(<4 x i32> %sum, <4 x i32> %a, <4 x i32> %b) alwaysinline nounwind readnone {
  %as = bitcast <4 x i32> %a to <16 x i8>
  %bs = bitcast <4 x i32> %b to <16 x i8>
  %result = call <4 x i32> @llvm.aarch64.neon.sdot.v4i32.v16i8(<4 x i32> %sum, <16 x i8> %bs, <16 x i8> %as)
  ret <4 x i32> %result
}

declare <4 x i32> @llvm.aarch64.neon.sdot.v4i32.v16i8(<4 x i32>, <16 x i8>, <16 x i8>)
