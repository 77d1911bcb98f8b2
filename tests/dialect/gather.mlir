// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @round_trip
func.func @round_trip(%t: tensor<4x9x5xf32>, %i: tensor<2x3xi32>) -> tensor<4x2x3x5xf32> {
  // CHECK: kiln.gather %{{.*}}, %{{.*}} axis = 1 : (tensor<4x9x5xf32>, tensor<2x3xi32>) -> tensor<4x2x3x5xf32>
  %0 = kiln.gather %t, %i axis = 1 : (tensor<4x9x5xf32>, tensor<2x3xi32>) -> tensor<4x2x3x5xf32>
  return %0 : tensor<4x2x3x5xf32>
}

// A single index drops the axis.
// CHECK-LABEL: @scalar
func.func @scalar(%t: tensor<4x9xf32>, %i: tensor<i32>) -> tensor<9xf32> {
  // CHECK: kiln.gather
  %0 = kiln.gather %t, %i axis = 0 : (tensor<4x9xf32>, tensor<i32>) -> tensor<9xf32>
  return %0 : tensor<9xf32>
}

// -----
func.func @gather_c1(%t: tensor<4xf32>, %i: tensor<2xf32>) {
  // expected-error@+1 {{'kiln.gather' op operand #1 must be ranked tensor of 32-bit signless integer values, but got 'tensor<2xf32>'}}
  %0 = "kiln.gather"(%t, %i) <{axis = 0 : i64}> : (tensor<4xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----
func.func @gather_c2(%t: tensor<4xf32>, %i: tensor<2xi32>) {
  // expected-error@+1 {{gather: axis out of range; expected one within the rank, got axis -1 of f32[4] [gather_c2]}}
  %0 = kiln.gather %t, %i axis = -1 : (tensor<4xf32>, tensor<2xi32>) -> tensor<2xf32>
  return
}
