// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @round_trip
func.func @round_trip(%p: tensor<7xi32>, %q: tensor<2x3x7xf32>) -> tensor<7x6xf32> {
  // CHECK: kiln.sinusoidal %{{.*}} : (tensor<7xi32>) -> tensor<7x6xf32>
  %0 = kiln.sinusoidal %p : (tensor<7xi32>) -> tensor<7x6xf32>
  // CHECK: kiln.sinusoidal %{{.*}} base = 5.000000e+05 : (tensor<7xi32>) -> tensor<7x6xf32>
  %1 = kiln.sinusoidal %p base = 500000.0 : (tensor<7xi32>) -> tensor<7x6xf32>
  // CHECK: kiln.sinusoidal %{{.*}} frequencies = [1.000000e+00, 2.500000e-01] axes = [0, 1] : (tensor<2x3x7xf32>) -> tensor<3x7x4xf32>
  %2 = kiln.sinusoidal %q frequencies = [1.0, 0.25] axes = [0, 1] : (tensor<2x3x7xf32>) -> tensor<3x7x4xf32>
  return %0 : tensor<7x6xf32>
}

// -----

func.func @sinusoidal_c1(%p: tensor<i32>) {
  // expected-error@+1 {{sinusoidal: wrong type or rank of the positions; expected i32 or f32 of rank 1 or more, and of 2 or more if pairs have axes, got i32[] [sinusoidal_c1]}}
  %0 = kiln.sinusoidal %p : (tensor<i32>) -> tensor<6xf32>
  return
}

// -----

func.func @sinusoidal_c1_axes(%p: tensor<7xi32>) {
  // expected-error@+1 {{sinusoidal: wrong type or rank of the positions; expected i32 or f32 of rank 1 or more, and of 2 or more if pairs have axes, got i32[7] [sinusoidal_c1]}}
  %0 = kiln.sinusoidal %p axes = [0, 1, 0] : (tensor<7xi32>) -> tensor<6xf32>
  return
}

// -----

func.func @sinusoidal_c4(%p: tensor<7xi32>) {
  // expected-error@+1 {{sinusoidal: wrong frequency of a pair; expected one from 0 to 65536, got -1.000000 [sinusoidal_c4]}}
  %0 = kiln.sinusoidal %p frequencies = [1.0, -1.0] : (tensor<7xi32>) -> tensor<7x4xf32>
  return
}

// -----

func.func @sinusoidal_c4_number(%p: tensor<7xi32>) {
  // expected-error@+1 {{sinusoidal: wrong number of frequencies; expected one for each pair of columns}}
  %0 = kiln.sinusoidal %p frequencies = [1.0, 0.5, 0.25] : (tensor<7xi32>) -> tensor<7x4xf32>
  return
}

// -----

func.func @sinusoidal_c6(%p: tensor<2x7xi32>) {
  // expected-error@+1 {{sinusoidal: wrong axis of a pair; expected one of those that the positions have, got 2 [sinusoidal_c6]}}
  %0 = kiln.sinusoidal %p axes = [0, 2] : (tensor<2x7xi32>) -> tensor<7x4xf32>
  return
}

// -----

func.func @sinusoidal_axes_number(%p: tensor<2x7xi32>) {
  // expected-error@+1 {{sinusoidal: wrong number of axes; expected one for each pair of columns}}
  %0 = kiln.sinusoidal %p axes = [0] : (tensor<2x7xi32>) -> tensor<7x4xf32>
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
