; SPDX-License-Identifier: Apache-2.0
;
; The functions of sse41.ll, except that all bytes are signed, for CPUs without dedicated instructions: code generators
; turn them into widening multiply-adds.

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

; A word of a row is the same in all lanes.
define weak_odr <4 x i32> @kiln_simd_pairsx4(<4 x i32> %sum, <4 x i32> %a, <4 x i16> %b) alwaysinline nounwind readnone {
  %word = extractelement <4 x i32> %a, i32 0
  %up = shl i32 %word, 16
  %low = ashr i32 %up, 16
  %high = ashr i32 %word, 16
  %lows = insertelement <4 x i32> poison, i32 %low, i32 0
  %highs = insertelement <4 x i32> poison, i32 %high, i32 0
  %x0 = shufflevector <4 x i32> %lows, <4 x i32> poison, <4 x i32> zeroinitializer
  %x1 = shufflevector <4 x i32> %highs, <4 x i32> poison, <4 x i32> zeroinitializer
  %b.up = shl <4 x i16> %b, <i16 8, i16 8, i16 8, i16 8>
  %b.low = ashr <4 x i16> %b.up, <i16 8, i16 8, i16 8, i16 8>
  %b.high = ashr <4 x i16> %b, <i16 8, i16 8, i16 8, i16 8>
  %y0 = sext <4 x i16> %b.low to <4 x i32>
  %y1 = sext <4 x i16> %b.high to <4 x i32>
  %p0 = mul <4 x i32> %x0, %y0
  %p1 = mul <4 x i32> %x1, %y1
  %first = add <4 x i32> %sum, %p0
  %result = add <4 x i32> %first, %p1
  ret <4 x i32> %result
}

define weak_odr i32 @kiln_simd_bytes(i32 %sum, i32 %a, i32 %b) alwaysinline nounwind readnone {
  %as = bitcast i32 %a to <4 x i8>
  %bs = bitcast i32 %b to <4 x i8>
  %x = sext <4 x i8> %as to <4 x i32>
  %y = sext <4 x i8> %bs to <4 x i32>
  %products = mul <4 x i32> %x, %y
  %all = call i32 @llvm.vector.reduce.add.v4i32(<4 x i32> %products)
  %result = add i32 %sum, %all
  ret i32 %result
}

declare i32 @llvm.vector.reduce.add.v4i32(<4 x i32>)

define weak_odr <4 x i32> @kiln_simd_bytesx4(<4 x i32> %sum, <4 x i32> %a, <4 x i32> %b) alwaysinline nounwind readnone {
  %as = bitcast <4 x i32> %a to <16 x i8>
  %bs = bitcast <4 x i32> %b to <16 x i8>
  %x = sext <16 x i8> %as to <16 x i32>
  %y = sext <16 x i8> %bs to <16 x i32>
  %products = mul <16 x i32> %x, %y
  %p0 = shufflevector <16 x i32> %products, <16 x i32> poison, <4 x i32> <i32 0, i32 4, i32 8, i32 12>
  %p1 = shufflevector <16 x i32> %products, <16 x i32> poison, <4 x i32> <i32 1, i32 5, i32 9, i32 13>
  %p2 = shufflevector <16 x i32> %products, <16 x i32> poison, <4 x i32> <i32 2, i32 6, i32 10, i32 14>
  %p3 = shufflevector <16 x i32> %products, <16 x i32> poison, <4 x i32> <i32 3, i32 7, i32 11, i32 15>
  %left = add <4 x i32> %p0, %p1
  %right = add <4 x i32> %p2, %p3
  %all = add <4 x i32> %left, %right
  %result = add <4 x i32> %sum, %all
  ret <4 x i32> %result
}

define weak_odr i32 @kiln_simd_nibbles(i32 %sum, i32 %low, i32 %high, i32 %a, i32 %b) alwaysinline nounwind readnone {
  %first = call i32 @kiln_simd_bytes(i32 %sum, i32 %a, i32 %low)
  %result = call i32 @kiln_simd_bytes(i32 %first, i32 %b, i32 %high)
  ret i32 %result
}

; A 16-bit number holds the sum of four products.
define weak_odr <4 x i32> @kiln_simd_nibblesx4(<4 x i32> %sum, <4 x i32> %low, <4 x i32> %high, <4 x i32> %a, <4 x i32> %b) alwaysinline nounwind readnone {
  %as = bitcast <4 x i32> %a to <8 x i16>
  %bs = bitcast <4 x i32> %b to <8 x i16>
  %ls = bitcast <4 x i32> %low to <8 x i16>
  %hs = bitcast <4 x i32> %high to <8 x i16>
  %a.even = and <8 x i16> %as, <i16 15, i16 15, i16 15, i16 15, i16 15, i16 15, i16 15, i16 15>
  %a.odd = lshr <8 x i16> %as, <i16 8, i16 8, i16 8, i16 8, i16 8, i16 8, i16 8, i16 8>
  %b.even = and <8 x i16> %bs, <i16 15, i16 15, i16 15, i16 15, i16 15, i16 15, i16 15, i16 15>
  %b.odd = lshr <8 x i16> %bs, <i16 8, i16 8, i16 8, i16 8, i16 8, i16 8, i16 8, i16 8>
  %l.up = shl <8 x i16> %ls, <i16 8, i16 8, i16 8, i16 8, i16 8, i16 8, i16 8, i16 8>
  %l.even = ashr <8 x i16> %l.up, <i16 8, i16 8, i16 8, i16 8, i16 8, i16 8, i16 8, i16 8>
  %l.odd = ashr <8 x i16> %ls, <i16 8, i16 8, i16 8, i16 8, i16 8, i16 8, i16 8, i16 8>
  %h.up = shl <8 x i16> %hs, <i16 8, i16 8, i16 8, i16 8, i16 8, i16 8, i16 8, i16 8>
  %h.even = ashr <8 x i16> %h.up, <i16 8, i16 8, i16 8, i16 8, i16 8, i16 8, i16 8, i16 8>
  %h.odd = ashr <8 x i16> %hs, <i16 8, i16 8, i16 8, i16 8, i16 8, i16 8, i16 8, i16 8>
  %p0 = mul <8 x i16> %a.even, %l.even
  %p1 = mul <8 x i16> %a.odd, %l.odd
  %p2 = mul <8 x i16> %b.even, %h.even
  %p3 = mul <8 x i16> %b.odd, %h.odd
  %s1 = add <8 x i16> %p0, %p1
  %s2 = add <8 x i16> %s1, %p2
  %s3 = add <8 x i16> %s2, %p3
  %words = bitcast <8 x i16> %s3 to <4 x i32>
  %words.up = shl <4 x i32> %words, <i32 16, i32 16, i32 16, i32 16>
  %words.low = ashr <4 x i32> %words.up, <i32 16, i32 16, i32 16, i32 16>
  %words.high = ashr <4 x i32> %words, <i32 16, i32 16, i32 16, i32 16>
  %first = add <4 x i32> %sum, %words.low
  %result = add <4 x i32> %first, %words.high
  ret <4 x i32> %result
}
