; SPDX-License-Identifier: Apache-2.0
;
; The function of portable.ll, which has the remaining ones, with WebAssembly's instruction that adds two 16-bit
; products.

target datalayout = "e-m:e-p:32:32-p10:8:8-p20:8:8-i64:64-n32:64-S128-ni:1:10:20"

define weak_odr <4 x i32> @kiln_simd_pairsx4(<4 x i32> %sum, <4 x i32> %a, <4 x i16> %b) alwaysinline nounwind readnone {
  %x = bitcast <4 x i32> %a to <8 x i16>
  %bs = bitcast <4 x i16> %b to <8 x i8>
  %y = sext <8 x i8> %bs to <8 x i16>
  %both = call <4 x i32> @llvm.wasm.dot(<8 x i16> %x, <8 x i16> %y)
  %result = add <4 x i32> %sum, %both
  ret <4 x i32> %result
}

declare <4 x i32> @llvm.wasm.dot(<8 x i16>, <8 x i16>)
