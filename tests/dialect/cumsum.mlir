// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @round_trip
func.func @round_trip(%x: tensor<7x5xf32>, %n: tensor<7xi32>) -> (tensor<7x5xf32>, tensor<7xi32>) {
  // CHECK: kiln.cumsum %{{.*}} axis = 0 : tensor<7x5xf32>
  %0 = kiln.cumsum %x axis = 0 : tensor<7x5xf32>
  // CHECK: kiln.cumsum %{{.*}} axis = 1 reverse : tensor<7x5xf32>
  %1 = kiln.cumsum %0 axis = 1 reverse : tensor<7x5xf32>
  // CHECK: kiln.cumsum %{{.*}} axis = 0 : tensor<7xi32>
  %2 = kiln.cumsum %n axis = 0 : tensor<7xi32>
  return %1, %2 : tensor<7x5xf32>, tensor<7xi32>
}

// -----
func.func @axis(%x: tensor<7x5xf32>) {
  // expected-error@+1 {{reduction: axis out of range; expected one within the rank, got axis 2 of f32[7, 5] [reduction_c1]}}
  %0 = kiln.cumsum %x axis = 2 : tensor<7x5xf32>
  return
}

// -----
func.func @of_booleans(%x: tensor<7xi1>) {
  // expected-error@+1 {{'kiln.cumsum' op operand #0 must be}}
  %0 = "kiln.cumsum"(%x) <{axis = 0 : i64}> : (tensor<7xi1>) -> tensor<7xi1>
  return
}
