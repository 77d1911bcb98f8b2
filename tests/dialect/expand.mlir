// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s
// RUN: kiln-opt %s -split-input-file -verify-diagnostics -canonicalize | FileCheck %s --check-prefix=FOLD

// CHECK-LABEL: @round_trip
func.func @round_trip(%x: tensor<1x9xf32>) -> tensor<?x4x9xf32, affine_map<()[s0] -> (s0, 4, 9)>> {
  // CHECK: kiln.expand %{{.*}} : tensor<1x9xf32> -> tensor<?x4x9xf32, {{.*}}>
  %0 = kiln.expand %x : tensor<1x9xf32> -> tensor<?x4x9xf32, affine_map<()[s0] -> (s0, 4, 9)>>
  return %0 : tensor<?x4x9xf32, affine_map<()[s0] -> (s0, 4, 9)>>
}

// FOLD-LABEL: @folds
func.func @folds(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<3x4xf32>) {
  // FOLD: %[[C:.*]] = kiln.constant dense<0.000000e+00> : tensor<3x4xf32>
  // FOLD: return %arg0, %[[C]]
  %0 = kiln.expand %x : tensor<4xf32> -> tensor<4xf32>
  %zero = kiln.constant dense<0.0> : tensor<f32>
  %1 = kiln.expand %zero : tensor<f32> -> tensor<3x4xf32>
  return %0, %1 : tensor<4xf32>, tensor<3x4xf32>
}

// -----
func.func @expand_c1(%x: tensor<3xf32>) {
  // expected-error@+1 {{expand: shape does not broadcast to the result's; got [3] and [4] [expand_c1]}}
  %0 = kiln.expand %x : tensor<3xf32> -> tensor<4xf32>
  return
}

// -----
func.func @narrower(%x: tensor<3xf32>) {
  // expected-error@+1 {{expand: shape does not broadcast to the result's; expected [1], got [3] [expand_c1]}}
  %0 = kiln.expand %x : tensor<3xf32> -> tensor<1xf32>
  return
}

// -----
func.func @element(%x: tensor<4xf32>) {
  // expected-error@+1 {{expand: element types differ; expected the operand's, got f32[4], i32[4]}}
  %0 = kiln.expand %x : tensor<4xf32> -> tensor<4xi32>
  return
}
