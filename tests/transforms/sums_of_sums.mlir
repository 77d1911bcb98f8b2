// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --split-input-file --pass-pipeline='builtin.module(kiln-form-kernels{joins-sums=true},kiln-verify-kernels)' | FileCheck %s

// A small sum that only another sum reads is computed by that one.
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

// One that is read by others, too, or of many elements, is a kernel of its own.
// CHECK: func.func private @sum_0
// CHECK: func.func private @sum_1
// CHECK: func.func private @sum_2
// CHECK: func.func private @sum_3
func.func @apart(%x: tensor<32x8xf32>, %large: tensor<8193x8xf32>) -> (tensor<8xf32>, tensor<f32>, tensor<f32>) attributes {kiln.entry} {
  %columns = kiln.sum %x axis = 0 : (tensor<32x8xf32>) -> tensor<8xf32>
  %all = kiln.sum %columns axis = 0 : (tensor<8xf32>) -> tensor<f32>
  %long = kiln.sum %large axis = 0 : (tensor<8193x8xf32>) -> tensor<8xf32>
  %total = kiln.sum %long axis = 0 : (tensor<8xf32>) -> tensor<f32>
  return %columns, %all, %total : tensor<8xf32>, tensor<f32>, tensor<f32>
}
