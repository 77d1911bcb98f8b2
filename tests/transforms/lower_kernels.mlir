// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(kiln-lower-kernels,cse),kiln-verify-kernels{lowered=true})' | FileCheck %s

#x = affine_map<()[s0] -> (s0, 8)>
#y = affine_map<()[s0] -> (s0, 12)>

// One reduction, then one region for bias, activation and residual. Only the residual is read just where the result is written.
// CHECK-LABEL: @contraction
// CHECK-SAME: kiln.inplace = array<i64: 3>
// CHECK: %[[Z:.*]] = linalg.fill
// CHECK: %[[P:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg1, %arg2 {{.*}} outs(%[[Z]]
// CHECK: arith.mulf
// CHECK-NEXT: arith.addf
// CHECK: %[[R:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]}
// CHECK: arith.addf
// CHECK-NEXT: arith.maximumf
// CHECK-NEXT: arith.addf
// CHECK: return %[[R]]
func.func private @contraction(%s0: index, %x: tensor<?x8xf32, #x>, %w: tensor<12x8xf32, #kiln.tiled<0, 4>>, %b: tensor<12xf32>,
    %r: tensor<?x12xf32, #y>) -> tensor<?x12xf32, #y> attributes {kiln.kernel, kiln.bounds = array<i64: 1, 9>} {
  %0 = kiln.linear %x, %w, %b weight_order = out_in : (tensor<?x8xf32, #x>, tensor<12x8xf32, #kiln.tiled<0, 4>>, tensor<12xf32>) -> tensor<?x12xf32, #y>
  %1 = kiln.relu %0 : tensor<?x12xf32, #y>
  %2 = kiln.add %1, %r : (tensor<?x12xf32, #y>, tensor<?x12xf32, #y>) -> tensor<?x12xf32, #y>
  return %2 : tensor<?x12xf32, #y>
}

// -----

// A GEMM of 16-bit floats accumulates in f32, and its epilogue stays in f32 until the store.
// CHECK-LABEL: @halves
// CHECK: %[[P:.*]] = linalg.generic {{.*}}"reduction"]} ins(%arg1, %arg2 : tensor<?x8xf16{{.*}} outs({{.*}}xf32
// CHECK-NEXT: (%[[A:.*]]: f16, %[[B:.*]]: f16, %[[S:.*]]: f32)
// CHECK-NEXT: %[[X:.*]] = arith.extf %[[A]]
// CHECK-NEXT: %[[Y:.*]] = arith.extf %[[B]]
// CHECK-NEXT: %[[M:.*]] = arith.mulf %[[X]], %[[Y]] : f32
// CHECK-NEXT: arith.addf %[[S]], %[[M]] : f32
// CHECK: linalg.generic {{.*}} ins(%[[P]]
// CHECK-NEXT: (%[[SUM:.*]]: f32, %{{.*}}: f16)
// CHECK-NEXT: %[[R:.*]] = arith.maximumf %[[SUM]]
// CHECK-NEXT: %[[H:.*]] = arith.mulf %[[R]], %{{.*}} : f32
// CHECK-NEXT: %[[T:.*]] = arith.truncf %[[H]] : f32 to f16
// CHECK-NEXT: linalg.yield %[[T]]
#x = affine_map<()[s0] -> (s0, 8)>
#y = affine_map<()[s0] -> (s0, 12)>
func.func private @halves(%s0: index, %x: tensor<?x8xf16, #x>, %w: tensor<12x8xf16>) -> tensor<?x12xf16, #y>
    attributes {kiln.kernel, kiln.bounds = array<i64: 1, 9>} {
  %half = kiln.constant dense<0.5> : tensor<f16>
  %0 = kiln.linear %x, %w weight_order = out_in : (tensor<?x8xf16, #x>, tensor<12x8xf16>) -> tensor<?x12xf16, #y>
  %1 = kiln.relu %0 : tensor<?x12xf16, #y>
  %2 = kiln.mul %1, %half : (tensor<?x12xf16, #y>, tensor<f16>) -> tensor<?x12xf16, #y>
  return %2 : tensor<?x12xf16, #y>
}

// -----

// A cast rounds, also within an epilogue that computes in f32.
// CHECK-LABEL: @cast
// CHECK: %[[T:.*]] = arith.truncf %{{.*}} : f32 to bf16
// CHECK-NEXT: %[[E:.*]] = arith.extf %[[T]]
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[E]], %[[E]] : f32
// CHECK-NEXT: linalg.yield %[[S]] : f32
func.func private @cast(%x: tensor<8xf32>) -> tensor<8xf32> attributes {kiln.kernel, kiln.bounds = array<i64>} {
  %0 = kiln.cast %x : tensor<8xf32> -> tensor<8xbf16>
  %1 = kiln.cast %0 : tensor<8xbf16> -> tensor<8xf32>
  %2 = kiln.add %1, %1 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

// Attention stays an op, whose regions read elements. The heads are an axis of the maps: with a view as argument the
// slice and the split cost nothing.
// CHECK-DAG: #[[OFFSET:.*]] = affine_map<()[s0] -> (0)>
// CHECK-DAG: #[[LOOPS:.*]] = affine_map<()[s0] -> (2, s0, s0, 4, 4)>
// CHECK-DAG: #[[Q:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d1, 0, d0, d3)>
// CHECK-DAG: #[[K:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d2, 1, d0, d3)>
// CHECK-DAG: #[[V:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d2, 2, d0, d4)>
// CHECK-LABEL: @attention
// CHECK: %[[R:.*]] = kiln.kernel_attention scale = 5.000000e-01 causal #[[OFFSET]] over #[[LOOPS]]
// CHECK-SAME: query(%arg1 : {{.*}}) [#[[Q]]] {
// CHECK-NEXT: ^bb0(%[[X:.*]]: f32):
// CHECK-NEXT: kiln.kernel_yield %[[X]] : f32
// CHECK-NEXT: } key(%arg1 : {{.*}}) [#[[K]]] {
// CHECK: } value(%arg1 : {{.*}}) [#[[V]]] {
// CHECK: } score [] {
// CHECK-NEXT: ^bb0(%[[S:.*]]: f32):
// CHECK-NEXT: kiln.kernel_yield %[[S]] : f32
// CHECK-NEXT: } weight {
// CHECK: math.exp2 {{.*}} {kiln.nonpositive}
// CHECK: return %[[R]]
#q = affine_map<()[s0] -> (s0, 3, 2, 4)>
#w = affine_map<()[s0] -> (s0, 24)>
#t = affine_map<()[s0] -> (s0, 8)>
#o = affine_map<()[s0] -> (s0, 2, 4)>
func.func private @attention(%s0: index, %qkv: tensor<?x3x2x4xf32, #q>) -> tensor<?x2x4xf32, #o>
    attributes {kiln.kernel, kiln.bounds = array<i64: 1, 9>} {
  %0 = kiln.reshape %qkv : tensor<?x3x2x4xf32, #q> -> tensor<?x24xf32, #w>
  %1 = kiln.slice %0 axis = 1 start = 0 : tensor<?x24xf32, #w> -> tensor<?x8xf32, #t>
  %2 = kiln.slice %0 axis = 1 start = 8 : tensor<?x24xf32, #w> -> tensor<?x8xf32, #t>
  %3 = kiln.slice %0 axis = 1 start = 16 : tensor<?x24xf32, #w> -> tensor<?x8xf32, #t>
  %4 = kiln.attention %1, %2, %3 heads = 2 scale = 5.0e-1 causal : (tensor<?x8xf32, #t>, tensor<?x8xf32, #t>, tensor<?x8xf32, #t>) -> tensor<?x8xf32, #t>
  %5 = kiln.reshape %4 : tensor<?x8xf32, #t> -> tensor<?x2x4xf32, #o>
  return %5 : tensor<?x2x4xf32, #o>
}

// -----

// A map that is only a loop dimension implies an operand of that size. The first half of a tensor is larger, so the
// index is a remainder without effect; the index of the second half has an offset.
// CHECK: #[[FIRST:.*]] = affine_map<(d0) -> (d0 mod 2147483647)>
// CHECK: #[[SECOND:.*]] = affine_map<(d0) -> (d0 + 3)>
// CHECK-LABEL: @halves
// CHECK-SAME: kiln.inplace = array<i64>
// CHECK: linalg.generic {indexing_maps = [#[[FIRST]], #[[SECOND]],
// CHECK-SAME: ins(%arg0, %arg0 : tensor<6xf32>, tensor<6xf32>)
// CHECK-NOT: tensor.extract
func.func private @halves(%x: tensor<6xf32>) -> tensor<3xf32> attributes {kiln.kernel, kiln.bounds = array<i64>} {
  %0 = kiln.slice %x axis = 0 start = 0 : tensor<6xf32> -> tensor<3xf32>
  %1 = kiln.slice %x axis = 0 start = 3 : tensor<6xf32> -> tensor<3xf32>
  %2 = kiln.mul %0, %1 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %2 : tensor<3xf32>
}

// -----

// A reduction over a part of an operand: another operand, which is used only for its shape, defines the extent.
// CHECK-LABEL: @shape_operand
// CHECK: %[[S:.*]] = tensor.empty() : tensor<3xf32>
// CHECK: linalg.generic {{.*}}iterator_types = ["reduction"]} ins(%arg0, %[[S]]
func.func private @shape_operand(%x: tensor<6xf32>) -> tensor<f32> attributes {kiln.kernel, kiln.bounds = array<i64>} {
  %0 = kiln.slice %x axis = 0 start = 3 : tensor<6xf32> -> tensor<3xf32>
  %1 = kiln.sum %0 axis = 0 : (tensor<3xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

// A value that a norm reads in three passes is stored, unless it is a load; the sum is also a result, both in place.
// CHECK-LABEL: @residual_norm
// CHECK-SAME: kiln.inplace = array<i64: 0, 1>
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%arg0, %arg1
// CHECK: arith.addf
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]} ins(%[[S]]
// CHECK: math.sqrt
// CHECK: return %[[S]], %{{.*}}
func.func private @residual_norm(%x: tensor<5x8xf32>, %y: tensor<5x8xf32>, %w: tensor<8xf32>) -> (tensor<5x8xf32>, tensor<5x8xf32>)
    attributes {kiln.kernel, kiln.bounds = array<i64>} {
  %0 = kiln.add %x, %y : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %1 = kiln.rms_norm %0, %w epsilon = 1.0e-5 : (tensor<5x8xf32>, tensor<8xf32>) -> tensor<5x8xf32>
  return %0, %1 : tensor<5x8xf32>, tensor<5x8xf32>
}

// -----

// The second result is computed from %g when the first one may have been stored over it; it reads %x and %y only through the sum.
// CHECK-LABEL: @gated_norm
// CHECK-SAME: kiln.inplace = array<i64: 0, 1>
func.func private @gated_norm(%x: tensor<5x8xf32>, %y: tensor<5x8xf32>, %g: tensor<5x8xf32>, %w: tensor<8xf32>)
    -> (tensor<5x8xf32>, tensor<5x8xf32>) attributes {kiln.kernel, kiln.bounds = array<i64>} {
  %0 = kiln.add %x, %y : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %1 = kiln.rms_norm %0, %w epsilon = 1.0e-5 : (tensor<5x8xf32>, tensor<8xf32>) -> tensor<5x8xf32>
  %2 = kiln.mul %1, %g : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %0, %2 : tensor<5x8xf32>, tensor<5x8xf32>
}

// -----

// A softmax along an axis other than the last one cannot overwrite its row.
// CHECK-LABEL: @columns
// CHECK-SAME: kiln.inplace = array<i64>
func.func private @columns(%x: tensor<5x8xf32>) -> tensor<5x8xf32> attributes {kiln.kernel, kiln.bounds = array<i64>} {
  %0 = kiln.softmax %x axis = 0 : tensor<5x8xf32>
  return %0 : tensor<5x8xf32>
}

// -----

// Indices that the model computes are clamped; positions are loop indices.
// CHECK-LABEL: @lookups
// CHECK: arith.minsi
// CHECK: arith.maxsi
// CHECK: tensor.extract %arg1
// CHECK: %[[T:.*]] = linalg.index 0
// CHECK: tensor.extract %arg2[%[[T]],
func.func private @lookups(%i: tensor<5xi32>, %a: tensor<9x8xf32>, %b: tensor<7x8xf32>) -> tensor<5x8xf32>
    attributes {kiln.kernel, kiln.bounds = array<i64>} {
  %0 = kiln.embedding %i, %a : (tensor<5xi32>, tensor<9x8xf32>) -> tensor<5x8xf32>
  %1 = kiln.positions %i axis = 0 : (tensor<5xi32>) -> tensor<5xi32>
  %2 = kiln.embedding %1, %b : (tensor<5xi32>, tensor<7x8xf32>) -> tensor<5x8xf32>
  %3 = kiln.add %0, %2 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %3 : tensor<5x8xf32>
}

// -----

// A concatenation along a dynamic dimension reads at clamped indices, then selects.
// CHECK-LABEL: @concat
// CHECK: %[[E:.*]] = arith.addi %arg0, %arg1
// CHECK: tensor.empty(%[[E]])
// CHECK: tensor.extract %arg2
// CHECK: tensor.extract %arg3
// CHECK: arith.cmpi slt
// CHECK: arith.select
#a = affine_map<()[s0, s1] -> (s0)>
#b = affine_map<()[s0, s1] -> (s1)>
#ab = affine_map<()[s0, s1] -> (s0 + s1)>
func.func private @concat(%s0: index, %s1: index, %a: tensor<?xf32, #a>, %b: tensor<?xf32, #b>) -> tensor<?xf32, #ab>
    attributes {kiln.kernel, kiln.bounds = array<i64: 1, 4, 1, 4>} {
  %0 = kiln.concat %a, %b axis = 0 : (tensor<?xf32, #a>, tensor<?xf32, #b>) -> tensor<?xf32, #ab>
  return %0 : tensor<?xf32, #ab>
}

// -----

// A convolution becomes a padded image and a contraction with affine maps, whose reduction has channels first.
// CHECK-DAG: #[[IMAGE:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0 * 2 + d4, d1 * 2 + d5 * 3, d3)>
// CHECK-DAG: #[[WEIGHT:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d2, d3, d4, d5)>
// CHECK-LABEL: @conv2d
// CHECK: %[[P:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "parallel"]} outs(%{{.*}} : tensor<9x11x5xf32>)
// CHECK: tensor.extract
// CHECK: arith.select
// CHECK: linalg.generic {indexing_maps = [#[[WEIGHT]], #[[IMAGE]], {{.*}}iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
// CHECK-SAME: ins(%arg1, %[[P]]
// CHECK: arith.mulf
// CHECK-NEXT: arith.addf
func.func private @conv2d(%x: tensor<7x9x5xf32>, %w: tensor<8x5x3x3xf32, #kiln.tiled<0, 4>>) -> tensor<4x3x8xf32>
    attributes {kiln.kernel, kiln.bounds = array<i64>} {
  %0 = kiln.conv2d %x, %w stride = [2, 2] padding = [1, 1] dilation = [1, 3] groups = 1
      : (tensor<7x9x5xf32>, tensor<8x5x3x3xf32, #kiln.tiled<0, 4>>) -> tensor<4x3x8xf32>
  return %0 : tensor<4x3x8xf32>
}

// -----

// A convolution with one result row is a matrix-vector product over channels and window, in the weight's order; one with
// several rows at 16 at most has a loop over them. Batch-invariant kernels keep the order of the general form.
// CHECK-DAG: #[[PLACE:.*]] = affine_map<(d0, d1) -> (0, d1 mod 3, d1 floordiv 3)>
// CHECK-DAG: #[[WEIGHT:.*]] = affine_map<(d0, d1) -> (d0, d1 floordiv 3, 0, d1 mod 3)>
// CHECK-LABEL: @conv_of_one_row
// CHECK: linalg.generic {indexing_maps = [#[[PLACE]], #[[WEIGHT]], {{.*}}iterator_types = ["parallel", "reduction"]}
// CHECK-LABEL: @conv_of_five_rows
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "reduction"]}
func.func private @conv_of_one_row(%x: tensor<1x3x8xf32>, %w: tensor<4x8x1x3xf32>) -> tensor<1x1x4xf32>
    attributes {kiln.kernel, kiln.bounds = array<i64>} {
  %0 = kiln.conv2d %x, %w stride = [1, 1] padding = [0, 0] dilation = [1, 1] groups = 1
      : (tensor<1x3x8xf32>, tensor<4x8x1x3xf32>) -> tensor<1x1x4xf32>
  return %0 : tensor<1x1x4xf32>
}
func.func private @conv_of_five_rows(%x: tensor<1x7x8xf32>, %w: tensor<4x8x1x3xf32>) -> tensor<1x5x4xf32>
    attributes {kiln.kernel, kiln.bounds = array<i64>} {
  %0 = kiln.conv2d %x, %w stride = [1, 1] padding = [0, 0] dilation = [1, 1] groups = 1
      : (tensor<1x7x8xf32>, tensor<4x8x1x3xf32>) -> tensor<1x5x4xf32>
  return %0 : tensor<1x5x4xf32>
}

// -----

// A pool becomes one reduction over the window, without a padded copy, on integers in the order of floats and NaN.
// CHECK: #[[WINDOW:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0 * 2 + d3, d1 * 2 + d4, d2)>
// CHECK-LABEL: @max_pool2d
// CHECK: linalg.generic {indexing_maps = [#[[WINDOW]], {{.*}}iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%arg0
// CHECK: arith.maxsi
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "parallel"]}
// CHECK: arith.bitcast
func.func private @max_pool2d(%x: tensor<7x9x5xf32>) -> tensor<3x4x5xf32> attributes {kiln.kernel, kiln.bounds = array<i64>} {
  %0 = kiln.max_pool2d %x kernel = [2, 2] stride = [2, 2] padding = [0, 0] : (tensor<7x9x5xf32>) -> tensor<3x4x5xf32>
  return %0 : tensor<3x4x5xf32>
}

// -----

// Sums use the accumulator type of the operation, i32 for integers, to which elements are widened.
// CHECK-LABEL: @sum_of_bytes
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<4x9xi8>) outs(%{{.*}} : tensor<4xi32>)
// CHECK: arith.extsi %{{.*}} : i8 to i32
// CHECK-NEXT: arith.addi %{{.*}}, %{{.*}} : i32
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel"]} ins(%{{.*}} : tensor<4xi32>) outs(%{{.*}} : tensor<4xi8>)
// CHECK: arith.trunci %{{.*}} : i32 to i8
func.func private @sum_of_bytes(%x: tensor<4x9xi8>) -> tensor<4xi8> attributes {kiln.kernel, kiln.bounds = array<i64>} {
  %0 = kiln.sum %x axis = 1 : (tensor<4x9xi8>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}
