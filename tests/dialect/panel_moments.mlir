// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @round_trip
func.func @round_trip(%x: tensor<7x12xf32>, %w: tensor<12xf32>) -> (tensor<7x12xf32>, tensor<7x12xf32>) {
  // CHECK: %[[M:.*]], %[[S:.*]] = kiln.panel_moments %{{.*}} width = 4 : (tensor<7x12xf32>) -> (tensor<7x3xf32>, tensor<7x3xf32>)
  // CHECK: kiln.layer_norm %{{.*}}, %{{.*}}, %{{.*}} moments %[[M]], %[[S]] epsilon =
  // CHECK: kiln.rms_norm %{{.*}}, %{{.*}} moments %[[M]], %[[S]] epsilon =
  %m, %s = kiln.panel_moments %x width = 4 : (tensor<7x12xf32>) -> (tensor<7x3xf32>, tensor<7x3xf32>)
  %0 = kiln.layer_norm %x, %w, %w moments %m, %s epsilon = 1.0e-5 : (tensor<7x12xf32>, tensor<12xf32>, tensor<12xf32>, tensor<7x3xf32>, tensor<7x3xf32>) -> tensor<7x12xf32>
  %1 = kiln.rms_norm %x, %w moments %m, %s epsilon = 1.0e-5 : (tensor<7x12xf32>, tensor<12xf32>, tensor<7x3xf32>, tensor<7x3xf32>) -> tensor<7x12xf32>
  return %0, %1 : tensor<7x12xf32>, tensor<7x12xf32>
}

// -----
func.func @width(%x: tensor<7x12xf32>) {
  // expected-error@+1 {{panel_moments: columns are not divisible into panels; expected a multiple of the width, got f32[7, 12], width 5}}
  %m, %s = kiln.panel_moments %x width = 5 : (tensor<7x12xf32>) -> (tensor<7x3xf32>, tensor<7x3xf32>)
  return
}

// -----
func.func @result(%x: tensor<7x12xf32>) {
  // expected-error@+1 {{panel_moments: result does not follow from the operands; expected f32[7, 3], got f32[7, 2]}}
  %m, %s = kiln.panel_moments %x width = 4 : (tensor<7x12xf32>) -> (tensor<7x3xf32>, tensor<7x2xf32>)
  return
}

// -----
func.func @one_moment(%x: tensor<7x12xf32>, %w: tensor<12xf32>, %m: tensor<7x3xf32>) {
  // expected-error@+1 {{norm: wrong moments; expected two, each [rows of x, panels of its columns], got f32[7, 12], f32[7, 3]}}
  %0 = kiln.layer_norm %x, %w, %w moments %m epsilon = 1.0e-5 : (tensor<7x12xf32>, tensor<12xf32>, tensor<12xf32>, tensor<7x3xf32>) -> tensor<7x12xf32>
  return
}

// -----
func.func @other_rows(%x: tensor<7x12xf32>, %w: tensor<12xf32>, %m: tensor<6x3xf32>) {
  // expected-error@+1 {{norm: wrong moments; expected two, each [rows of x, panels of its columns], got f32[7, 12], f32[6, 3], f32[6, 3]}}
  %0 = kiln.rms_norm %x, %w moments %m, %m epsilon = 1.0e-5 : (tensor<7x12xf32>, tensor<12xf32>, tensor<6x3xf32>, tensor<6x3xf32>) -> tensor<7x12xf32>
  return
}
