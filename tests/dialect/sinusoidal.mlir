// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @round_trip
func.func @round_trip(%p: tensor<7xi32>) -> tensor<7x6xf32> {
  // CHECK: kiln.sinusoidal %{{.*}} : (tensor<7xi32>) -> tensor<7x6xf32>
  %0 = kiln.sinusoidal %p : (tensor<7xi32>) -> tensor<7x6xf32>
  // CHECK: kiln.sinusoidal %{{.*}} base = 5.000000e+05 : (tensor<7xi32>) -> tensor<7x6xf32>
  %1 = kiln.sinusoidal %p base = 500000.0 : (tensor<7xi32>) -> tensor<7x6xf32>
  return %0 : tensor<7x6xf32>
}

// -----
func.func @sinusoidal_c1(%p: tensor<2x7xi32>) {
  // expected-error@+1 {{sinusoidal: wrong type or rank of the positions; expected i32 of rank 1, got i32[2, 7] [sinusoidal_c1]}}
  %0 = kiln.sinusoidal %p : (tensor<2x7xi32>) -> tensor<2x7x6xf32>
  return
}

// -----
func.func @sinusoidal_c2(%p: tensor<7xi32>) {
  // expected-error@+1 {{sinusoidal: odd width; expected an even one, got 5 [sinusoidal_c2]}}
  %0 = kiln.sinusoidal %p : (tensor<7xi32>) -> tensor<7x5xf32>
  return
}

// -----
func.func @result(%p: tensor<7xi32>) {
  // expected-error@+1 {{sinusoidal: wrong shape of the result; expected [positions, width], got i32[7], f32[8, 6]}}
  %0 = kiln.sinusoidal %p : (tensor<7xi32>) -> tensor<8x6xf32>
  return
}

// -----
func.func @sinusoidal_c3(%p: tensor<7xi32>) {
  // expected-error@+1 {{sinusoidal: base too small; expected one above 1, got 1.000000 [sinusoidal_c3]}}
  %0 = kiln.sinusoidal %p base = 1.0 : (tensor<7xi32>) -> tensor<7x6xf32>
  return
}
