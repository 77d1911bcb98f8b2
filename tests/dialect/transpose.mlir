// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s
// RUN: kiln-opt %s -split-input-file -verify-diagnostics -canonicalize | FileCheck %s --check-prefix=FOLD

// CHECK-LABEL: @round_trip
func.func @round_trip(%x: tensor<7x?x4xf32, affine_map<()[s0] -> (7, s0, 4)>>) -> tensor<4x7x?xf32, affine_map<()[s0] -> (4, 7, s0)>> {
  // CHECK: kiln.transpose %{{.*}} permutation = [2, 0, 1] : (
  %0 = kiln.transpose %x permutation = [2, 0, 1] : (tensor<7x?x4xf32, affine_map<()[s0] -> (7, s0, 4)>>) -> tensor<4x7x?xf32, affine_map<()[s0] -> (4, 7, s0)>>
  return %0 : tensor<4x7x?xf32, affine_map<()[s0] -> (4, 7, s0)>>
}

// FOLD-LABEL: @folds
func.func @folds(%x: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<4x3x2xf32>, tensor<2x3x4xf32>) {
  // FOLD: %[[T:.*]] = kiln.transpose %arg0 permutation = [2, 1, 0]
  // FOLD: return %arg0, %[[T]], %arg0
  %0 = kiln.transpose %x permutation = [0, 1, 2] : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %1 = kiln.transpose %x permutation = [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %2 = kiln.transpose %1 permutation = [0, 2, 1] : (tensor<4x2x3xf32>) -> tensor<4x3x2xf32>
  %3 = kiln.transpose %1 permutation = [1, 2, 0] : (tensor<4x2x3xf32>) -> tensor<2x3x4xf32>
  return %0, %2, %3 : tensor<2x3x4xf32>, tensor<4x3x2xf32>, tensor<2x3x4xf32>
}

// FOLD-LABEL: @constants
func.func @constants() -> (tensor<3x2xi32>, tensor<3x200000xf32>) {
  // FOLD-DAG: %[[A:.*]] = kiln.constant dense<{{\[\[}}1, 4], [2, 5], [3, 6]]> : tensor<3x2xi32>
  // FOLD-DAG: %[[B:.*]] = kiln.constant dense<1.000000e+00> : tensor<3x200000xf32>
  // FOLD: return %[[A]], %[[B]]
  %a = kiln.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
  %0 = kiln.transpose %a permutation = [1, 0] : (tensor<2x3xi32>) -> tensor<3x2xi32>
  %b = kiln.constant dense<1.0> : tensor<200000x3xf32>
  %1 = kiln.transpose %b permutation = [1, 0] : (tensor<200000x3xf32>) -> tensor<3x200000xf32>
  return %0, %1 : tensor<3x2xi32>, tensor<3x200000xf32>
}

// A transpose that moves only axes of size 1 is a reshape.
// FOLD-LABEL: @unit_axes
func.func @unit_axes(%x: tensor<1x3x1x4xf32>) -> tensor<3x4x1x1xf32> {
  // FOLD: kiln.reshape %arg0 : tensor<1x3x1x4xf32> -> tensor<3x4x1x1xf32>
  %0 = kiln.transpose %x permutation = [1, 3, 0, 2] : (tensor<1x3x1x4xf32>) -> tensor<3x4x1x1xf32>
  return %0 : tensor<3x4x1x1xf32>
}

// -----
func.func @transpose_c1_twice(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{transpose: axes are no permutation; expected each axis once, got f32[2, 3] by <0, 0> [transpose_c1]}}
  %0 = kiln.transpose %x permutation = [0, 0] : (tensor<2x3xf32>) -> tensor<2x2xf32>
  return
}

// -----
func.func @transpose_c1_short(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{transpose: axes are no permutation; expected each axis once, got f32[2, 3] by <0> [transpose_c1]}}
  %0 = kiln.transpose %x permutation = [0] : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}
