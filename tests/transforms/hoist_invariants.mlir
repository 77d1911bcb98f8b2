// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --pass-pipeline='builtin.module(kiln-form-kernels,func.func(kiln-hoist-invariants))' | FileCheck %s

#a = affine_map<()[s0] -> (s0, 8)>
module attributes {kiln.symbols = [#kiln.symbol<"a", 2, 4>]} {

// Values of the input only are computed before both loops, values of the outer loop's state before the inner loop.
// Values that depend on a layer's weights are not moved, and neither are yielded values.
// CHECK-LABEL: func.func @forward
// CHECK-NEXT: %[[OF_INPUT:.*]] = kiln.call @matmul{{[_0-9]*}}(%arg1)
// CHECK-NEXT: kiln.repeat 3 (%[[X:.*]] = %arg1
// CHECK-NEXT: kiln.parameter
// CHECK-NEXT: kiln.call @add
// CHECK-NEXT: %[[OF_LAYER:.*]] = kiln.call @matmul{{[_0-9]*}}(%[[X]])
// CHECK-NEXT: kiln.repeat 2 (%[[Y:.*]] =
// CHECK-NEXT: %[[Z:.*]] = kiln.call @matmul{{[_0-9]*}}(%[[Y]], %[[OF_INPUT]])
// CHECK-NEXT: kiln.call @matmul{{[_0-9]*}}(%[[Z]], %[[OF_LAYER]])
// CHECK: %[[YIELDED:.*]] = kiln.call @relu{{.*}}(%arg1)
// CHECK-NEXT: kiln.yield %{{.*}}, %[[YIELDED]]
func.func @forward(%s0: index {kiln.symbol = "a"}, %a: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<3x8x8xf32>)
    attributes {kiln.entry} {
  %0, %all = kiln.repeat 3 (%x = %a : tensor<8x8xf32>) -> (tensor<3x8x8xf32>) {
    %w = kiln.parameter {sources = ["h.{}.w"], copies = 3} : tensor<8x8xf32>
    %1 = kiln.add %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %2 = kiln.repeat 2 (%y = %1 : tensor<8x8xf32>) {
      %of_input = kiln.matmul %a, %a : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
      %of_layer = kiln.matmul %x, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
      %3 = kiln.matmul %y, %of_input : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
      %4 = kiln.matmul %3, %of_layer : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
      kiln.yield %4 : tensor<8x8xf32>
    }
    %5 = kiln.relu %a : tensor<8x8xf32>
    kiln.yield %2, %5 : tensor<8x8xf32>, tensor<8x8xf32>
  }
  return %0, %all : tensor<8x8xf32>, tensor<3x8x8xf32>
}

// Rotary positions read slices of a table of angles in each layer; the slices are the same in all layers.
// CHECK-LABEL: func.func @turned
// CHECK: kiln.call @slice
// CHECK: kiln.repeat 3 (%[[X:.*]] = %arg2
// CHECK-NEXT: kiln.call @mul{{[_0-9]*}}(%[[X]],
// CHECK-NEXT: kiln.yield
func.func @turned(%s0: index {kiln.symbol = "a"}, %angles: tensor<8x8xf32>, %a: tensor<8x4xf32>) -> tensor<8x4xf32>
    attributes {kiln.entry} {
  %0 = kiln.repeat 3 (%x = %a : tensor<8x4xf32>) {
    %pairs = kiln.reshape %angles : tensor<8x8xf32> -> tensor<8x4x2xf32>
    %1 = kiln.slice %pairs axis = 2 start = 0 : tensor<8x4x2xf32> -> tensor<8x4x1xf32>
    %sin = kiln.reshape %1 : tensor<8x4x1xf32> -> tensor<8x4xf32>
    %2 = kiln.mul %x, %sin : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    kiln.yield %2 : tensor<8x4xf32>
  }
  return %0 : tensor<8x4xf32>
}

}
