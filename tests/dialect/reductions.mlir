// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s

// mean, max, sum and argmax drop the reduced axis.

// CHECK-LABEL: @round_trip
func.func @round_trip(%x: tensor<7x5xf32>, %i: tensor<7x5xi32>) -> (tensor<7xf32>, tensor<5xi32>, tensor<7xf32>, tensor<5xi32>) {
  // CHECK: kiln.mean %{{.*}} axis = 1 : (tensor<7x5xf32>) -> tensor<7xf32>
  %0 = kiln.mean %x axis = 1 : (tensor<7x5xf32>) -> tensor<7xf32>
  // CHECK: kiln.mean %{{.*}} axis = 1 shifted : (tensor<7x5xf32>) -> tensor<7xf32>
  %shifted = kiln.mean %x axis = 1 shifted : (tensor<7x5xf32>) -> tensor<7xf32>
  // CHECK: kiln.max %{{.*}} axis = 0 : (tensor<7x5xi32>) -> tensor<5xi32>
  %1 = kiln.max %i axis = 0 : (tensor<7x5xi32>) -> tensor<5xi32>
  // CHECK: kiln.sum
  %2 = kiln.sum %x axis = 1 : (tensor<7x5xf32>) -> tensor<7xf32>
  // CHECK: kiln.argmax %{{.*}} axis = 0 : (tensor<7x5xf32>) -> tensor<5xi32>
  %3 = kiln.argmax %x axis = 0 : (tensor<7x5xf32>) -> tensor<5xi32>
  return %0, %1, %2, %3 : tensor<7xf32>, tensor<5xi32>, tensor<7xf32>, tensor<5xi32>
}

// -----
func.func @mean_axis(%x: tensor<7x5xf32>) {
  // expected-error@+1 {{reduction: axis out of range; expected one within the rank, got axis 2 of f32[7, 5] [reduction_c1]}}
  %0 = kiln.mean %x axis = 2 : (tensor<7x5xf32>) -> tensor<7xf32>
  return
}

// -----
func.func @max_axis(%x: tensor<7x5xf32>) {
  // expected-error@+1 {{reduction: axis out of range; expected one within the rank, got axis -1 of f32[7, 5] [reduction_c1]}}
  %0 = kiln.max %x axis = -1 : (tensor<7x5xf32>) -> tensor<7xf32>
  return
}

// -----
func.func @sum_axis(%x: tensor<f32>) {
  // expected-error@+1 {{reduction: axis out of range; expected one within the rank, got axis 0 of f32[] [reduction_c1]}}
  %0 = kiln.sum %x axis = 0 : (tensor<f32>) -> tensor<f32>
  return
}

// -----
func.func @argmax_axis(%x: tensor<7xf32>) {
  // expected-error@+1 {{reduction: axis out of range; expected one within the rank, got axis 7 of f32[7] [reduction_c1]}}
  %0 = kiln.argmax %x axis = 7 : (tensor<7xf32>) -> tensor<i32>
  return
}

// -----
func.func @argmax_result(%x: tensor<7xf32>) {
  // expected-error@+1 {{argmax: result does not follow from the operands; expected i32[], got i32[1]}}
  %0 = kiln.argmax %x axis = 0 : (tensor<7xf32>) -> tensor<1xi32>
  return
}

// -----
func.func @reduction_c2(%x: tensor<7xi32>) {
  // expected-error@+1 {{'kiln.mean' op operand #0 must be ranked tensor of floating-point values}}
  %0 = "kiln.mean"(%x) <{axis = 0 : i64}> : (tensor<7xi32>) -> tensor<i32>
  return
}
