// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s

// less and where broadcast as NumPy does.

// CHECK-LABEL: @round_trip
func.func @round_trip(%t: tensor<7x1xi32>, %n: tensor<4xi32>, %x: tensor<5x7x4xf32>, %y: tensor<f32>) -> tensor<5x7x4xf32> {
  // CHECK: kiln.less %{{.*}}, %{{.*}} : (tensor<7x1xi32>, tensor<4xi32>) -> tensor<7x4xi1>
  %0 = kiln.less %t, %n : (tensor<7x1xi32>, tensor<4xi32>) -> tensor<7x4xi1>
  // CHECK: kiln.where %{{.*}}, %{{.*}}, %{{.*}} : (tensor<7x4xi1>, tensor<5x7x4xf32>, tensor<f32>) -> tensor<5x7x4xf32>
  %1 = kiln.where %0, %x, %y : (tensor<7x4xi1>, tensor<5x7x4xf32>, tensor<f32>) -> tensor<5x7x4xf32>
  return %1 : tensor<5x7x4xf32>
}

// -----
func.func @less_extents(%x: tensor<3xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{elementwise operation: shapes do not broadcast; expected dimensions that are equal or 1, got [3] and [4] [broadcast_c1]}}
  %0 = kiln.less %x, %y : (tensor<3xf32>, tensor<4xf32>) -> tensor<4xi1>
  return
}

// -----
func.func @less_elements(%x: tensor<4xi32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{elementwise operation: different element types; expected one, got i32[4], f32[4] [broadcast_c2]}}
  %0 = kiln.less %x, %y : (tensor<4xi32>, tensor<4xf32>) -> tensor<4xi1>
  return
}

// -----
func.func @less_result(%x: tensor<4xf32>) {
  // expected-error@+1 {{must be ranked tensor of 1-bit signless integer values}}
  %0 = kiln.less %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----
func.func @where_condition(%c: tensor<3xi1>, %x: tensor<4xf32>) {
  // expected-error@+1 {{elementwise operation: shapes do not broadcast; expected dimensions that are equal or 1, got [3] and [4] [broadcast_c1]}}
  %0 = kiln.where %c, %x, %x : (tensor<3xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----
func.func @where_elements(%c: tensor<4xi1>, %x: tensor<4xf32>, %y: tensor<4xi32>) {
  // expected-error@+1 {{elementwise operation: different element types; expected one, got f32[4], i32[4] [broadcast_c2]}}
  %0 = kiln.where %c, %x, %y : (tensor<4xi1>, tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
  return
}
