// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @round_trip
func.func @round_trip(%x: tensor<7x5xf32>, %w: tensor<5xf32>) -> tensor<7x5xf32> {
  // CHECK: kiln.rms_norm %{{.*}}, %{{.*}} epsilon = {{.*}} : (tensor<7x5xf32>, tensor<5xf32>) -> tensor<7x5xf32>
  %0 = kiln.rms_norm %x, %w epsilon = 1.0e-6 : (tensor<7x5xf32>, tensor<5xf32>) -> tensor<7x5xf32>
  return %0 : tensor<7x5xf32>
}

// -----
func.func @rms_norm_c1(%x: tensor<f32>, %w: tensor<1xf32>) {
  // expected-error@+1 {{rms_norm: wrong input width; got f32[], f32[1] [rms_norm_c1]}}
  %0 = kiln.rms_norm %x, %w epsilon = 1.0e-6 : (tensor<f32>, tensor<1xf32>) -> tensor<f32>
  return
}

// -----
func.func @rms_norm_c2(%x: tensor<7x5xf32>, %w: tensor<5xf32>) {
  // expected-error@+1 {{rms_norm: epsilon is not positive; expected one above 0, got -1.000000 [rms_norm_c2]}}
  %0 = kiln.rms_norm %x, %w epsilon = -1.0 : (tensor<7x5xf32>, tensor<5xf32>) -> tensor<7x5xf32>
  return
}

// -----
func.func @rms_norm_c3(%x: tensor<7x5xf32>, %w: tensor<5xbf16>) {
  // expected-error@+1 {{rms_norm: wrong element types; expected one floating-point type, got f32[7, 5], bf16[5] [rms_norm_c3]}}
  %0 = kiln.rms_norm %x, %w epsilon = 1.0e-6 : (tensor<7x5xf32>, tensor<5xbf16>) -> tensor<7x5xf32>
  return
}
