// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @round_trip
func.func @round_trip(%x: tensor<7x5xf32>) -> tensor<7x5xf32> {
  // CHECK: kiln.softmax %{{.*}} axis = 0 : tensor<7x5xf32>
  %0 = kiln.softmax %x axis = 0 : tensor<7x5xf32>
  // CHECK: kiln.log_softmax %{{.*}} axis = 1 : tensor<7x5xf32>
  %1 = kiln.log_softmax %0 axis = 1 : tensor<7x5xf32>
  return %1 : tensor<7x5xf32>
}

// -----
func.func @softmax_c1(%x: tensor<7x5xf32>) {
  // expected-error@+1 {{softmax: axis out of range; expected one within the rank, got axis 2 of f32[7, 5] [softmax_c1]}}
  %0 = kiln.softmax %x axis = 2 : tensor<7x5xf32>
  return
}

// -----
func.func @log_softmax_c1(%x: tensor<f32>) {
  // expected-error@+1 {{softmax: axis out of range; expected one within the rank, got axis 0 of f32[] [softmax_c1]}}
  %0 = kiln.log_softmax %x axis = 0 : tensor<f32>
  return
}

// -----
func.func @softmax_c2(%x: tensor<7xi32>) {
  // expected-error@+1 {{'kiln.softmax' op operand #0 must be ranked tensor of floating-point values}}
  %0 = "kiln.softmax"(%x) <{axis = 0 : i64}> : (tensor<7xi32>) -> tensor<7xi32>
  return
}
