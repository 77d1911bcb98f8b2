// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @round_trip
func.func @round_trip(%x: tensor<7x5xf32>, %w: tensor<5xf32>) -> tensor<7x5xf32> {
  // CHECK: kiln.layer_norm %{{.*}}, %{{.*}}, %{{.*}} epsilon = 1.000000e-05 : (tensor<7x5xf32>, tensor<5xf32>, tensor<5xf32>) -> tensor<7x5xf32>
  %0 = kiln.layer_norm %x, %w, %w epsilon = 1.0e-5 : (tensor<7x5xf32>, tensor<5xf32>, tensor<5xf32>) -> tensor<7x5xf32>
  return %0 : tensor<7x5xf32>
}

// -----
func.func @layer_norm_c1(%x: tensor<7x5xf32>, %w: tensor<7xf32>) {
  // expected-error@+1 {{layer_norm: wrong input width; got f32[7, 5], f32[7] [layer_norm_c1]}}
  %0 = kiln.layer_norm %x, %w, %w epsilon = 1.0e-5 : (tensor<7x5xf32>, tensor<7xf32>, tensor<7xf32>) -> tensor<7x5xf32>
  return
}

// -----
func.func @layer_norm_c2(%x: tensor<7x5xf32>, %w: tensor<5xf32>, %b: tensor<1xf32>) {
  // expected-error@+1 {{layer_norm: wrong bias shape; got f32[5], f32[1] [layer_norm_c2]}}
  %0 = kiln.layer_norm %x, %w, %b epsilon = 1.0e-5 : (tensor<7x5xf32>, tensor<5xf32>, tensor<1xf32>) -> tensor<7x5xf32>
  return
}

// -----
func.func @layer_norm_c3(%x: tensor<7x5xf32>, %w: tensor<5xf32>) {
  // expected-error@+1 {{layer_norm: epsilon is not positive; expected one above 0, got 0.000000 [layer_norm_c3]}}
  %0 = kiln.layer_norm %x, %w, %w epsilon = 0.0 : (tensor<7x5xf32>, tensor<5xf32>, tensor<5xf32>) -> tensor<7x5xf32>
  return
}

// -----
func.func @layer_norm_c4(%x: tensor<7x5xf32>, %w: tensor<5xf32>, %b: tensor<5xf16>) {
  // expected-error@+1 {{layer_norm: wrong element types; expected one floating-point type, got f32[7, 5], f32[5], f16[5] [layer_norm_c4]}}
  %0 = kiln.layer_norm %x, %w, %b epsilon = 1.0e-5 : (tensor<7x5xf32>, tensor<5xf32>, tensor<5xf16>) -> tensor<7x5xf32>
  return
}
