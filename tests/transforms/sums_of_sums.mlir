// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --split-input-file --pass-pipeline='builtin.module(kiln-form-kernels{joins-sums=true},kiln-verify-kernels)' | FileCheck %s

// A small sum that only another sum reads is fused into it.
// CHECK-LABEL: module
// CHECK: func.func private @mean_mean_add_0
// CHECK: kiln.sub
// CHECK-NEXT: kiln.mul
// CHECK-NEXT: kiln.mean
// CHECK-NEXT: kiln.mean
// CHECK-NEXT: kiln.add
// CHECK-NEXT: return
// CHECK-NOT: func.func private
func.func @small(%x: tensor<32x4x8xf32>, %m: tensor<1x4x1xf32>, %b: tensor<4xf32>) -> tensor<4xf32> attributes {kiln.entry} {
  %off = kiln.sub %m, %x : (tensor<1x4x1xf32>, tensor<32x4x8xf32>) -> tensor<32x4x8xf32>
  %square = kiln.mul %off, %off : (tensor<32x4x8xf32>, tensor<32x4x8xf32>) -> tensor<32x4x8xf32>
  %columns = kiln.mean %square axis = 0 : (tensor<32x4x8xf32>) -> tensor<4x8xf32>
  %groups = kiln.mean %columns axis = 1 : (tensor<4x8xf32>) -> tensor<4xf32>
  %y = kiln.add %groups, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// So is one whose results are reshaped; the operation that repeats the results is fused, too.
// CHECK-LABEL: module
// CHECK: func.func private @mean_mean_sqrt_0
// CHECK-NEXT: %[[COLUMNS:.*]] = kiln.mean %{{.*}} axis = 0
// CHECK-NEXT: %[[GROUPS:.*]] = kiln.reshape %[[COLUMNS]] : tensor<32xf32> -> tensor<8x4xf32>
// CHECK-NEXT: kiln.mean %[[GROUPS]] axis = 1
// CHECK-NEXT: kiln.sqrt
// CHECK-NEXT: kiln.reshape
// CHECK-NEXT: %[[REPEATED:.*]] = kiln.expand %{{.*}} : tensor<8x1xf32> -> tensor<8x4xf32>
// CHECK-NEXT: return %[[REPEATED]]
// CHECK-NOT: func.func private
// CHECK-LABEL: func.func @groups(
// CHECK-NEXT: %[[CALLED:.*]] = kiln.call @mean_mean_sqrt_0
// CHECK-NEXT: kiln.reshape %[[CALLED]] : tensor<8x4xf32> -> tensor<32xf32>
// CHECK-NEXT: return
func.func @groups(%x: tensor<9000x32xf32>) -> tensor<32xf32> attributes {kiln.entry} {
  %columns = kiln.mean %x axis = 0 : (tensor<9000x32xf32>) -> tensor<32xf32>
  %split = kiln.reshape %columns : tensor<32xf32> -> tensor<8x4xf32>
  %groups = kiln.mean %split axis = 1 : (tensor<8x4xf32>) -> tensor<8xf32>
  %root = kiln.sqrt %groups : tensor<8xf32>
  %column = kiln.reshape %root : tensor<8xf32> -> tensor<8x1xf32>
  %repeated = kiln.expand %column : tensor<8x1xf32> -> tensor<8x4xf32>
  %y = kiln.reshape %repeated : tensor<8x4xf32> -> tensor<32xf32>
  return %y : tensor<32xf32>
}

// -----

// A sum that others also read, or with many elements and many results, is a separate kernel.
// CHECK-LABEL: module
// CHECK: func.func private @sum_0
// CHECK: func.func private @sum_1
// CHECK: func.func private @sum_2
// CHECK: func.func private @sum_3
func.func @apart(%x: tensor<32x8xf32>, %large: tensor<16x4097xf32>) -> (tensor<8xf32>, tensor<f32>, tensor<f32>) attributes {kiln.entry} {
  %columns = kiln.sum %x axis = 0 : (tensor<32x8xf32>) -> tensor<8xf32>
  %all = kiln.sum %columns axis = 0 : (tensor<8xf32>) -> tensor<f32>
  %long = kiln.sum %large axis = 0 : (tensor<16x4097xf32>) -> tensor<4097xf32>
  %total = kiln.sum %long axis = 0 : (tensor<4097xf32>) -> tensor<f32>
  return %columns, %all, %total : tensor<8xf32>, tensor<f32>, tensor<f32>
}
