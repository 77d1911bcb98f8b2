// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s

// less, less_equal, equal on numbers and logical operations on their results broadcast as NumPy does.

// CHECK-LABEL: @round_trip
func.func @round_trip(%x: tensor<7x1xf32>, %y: tensor<3xf32>, %i: tensor<7x3xi32>) -> tensor<7x3xi1> {
  // CHECK: kiln.less %{{.*}}, %{{.*}} : (tensor<7x1xf32>, tensor<3xf32>) -> tensor<7x3xi1>
  %0 = kiln.less %x, %y : (tensor<7x1xf32>, tensor<3xf32>) -> tensor<7x3xi1>
  // CHECK: kiln.less_equal
  %1 = kiln.less_equal %x, %y : (tensor<7x1xf32>, tensor<3xf32>) -> tensor<7x3xi1>
  // CHECK: kiln.equal
  %2 = kiln.equal %i, %i : (tensor<7x3xi32>, tensor<7x3xi32>) -> tensor<7x3xi1>
  // CHECK: kiln.logical_and
  %3 = kiln.logical_and %0, %1 : (tensor<7x3xi1>, tensor<7x3xi1>) -> tensor<7x3xi1>
  // CHECK: kiln.logical_or
  %4 = kiln.logical_or %3, %2 : (tensor<7x3xi1>, tensor<7x3xi1>) -> tensor<7x3xi1>
  // CHECK: kiln.logical_xor
  %5 = kiln.logical_xor %4, %1 : (tensor<7x3xi1>, tensor<7x3xi1>) -> tensor<7x3xi1>
  return %5 : tensor<7x3xi1>
}

// -----
func.func @broadcast_c1(%x: tensor<7x2xf32>, %y: tensor<3xf32>) {
  // expected-error@+1 {{elementwise operation: shapes do not broadcast; expected dimensions that are equal or 1, got [7, 2] and [3] [broadcast_c1]}}
  %0 = kiln.equal %x, %y : (tensor<7x2xf32>, tensor<3xf32>) -> tensor<7x2xi1>
  return
}

// -----
func.func @broadcast_c2(%x: tensor<7xf32>, %y: tensor<7xi32>) {
  // expected-error@+1 {{elementwise operation: different element types; expected one, got f32[7], i32[7] [broadcast_c2]}}
  %0 = kiln.less_equal %x, %y : (tensor<7xf32>, tensor<7xi32>) -> tensor<7xi1>
  return
}

// -----
func.func @broadcast_c3(%x: tensor<7xi1>) {
  // expected-error@+1 {{'kiln.less' op operand #0 must be ranked tensor of}}
  %0 = kiln.less %x, %x : (tensor<7xi1>, tensor<7xi1>) -> tensor<7xi1>
  return
}

// -----
func.func @logic_c1(%x: tensor<7xf32>) {
  // expected-error@+1 {{'kiln.logical_and' op operand #0 must be ranked tensor of 1-bit signless integer values, but got 'tensor<7xf32>'}}
  %0 = kiln.logical_and %x, %x : (tensor<7xf32>, tensor<7xf32>) -> tensor<7xi1>
  return
}

// -----
func.func @result(%x: tensor<7xf32>) {
  // expected-error@+1 {{less: result does not follow from the operands; expected boolean[7], got boolean[8]}}
  %0 = kiln.less %x, %x : (tensor<7xf32>, tensor<7xf32>) -> tensor<8xi1>
  return
}
