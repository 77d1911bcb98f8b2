// RUN: kiln-opt %s | kiln-opt | FileCheck %s
// RUN: kiln-opt %s -canonicalize | FileCheck %s --check-prefix=FOLD

// CHECK-LABEL: @round_trip
func.func @round_trip() -> (tensor<f32>, tensor<2x2xi32>, tensor<2xi1>) {
  // CHECK: kiln.constant dense<5.000000e-01> : tensor<f32>
  %0 = kiln.constant dense<0.5> : tensor<f32>
  // CHECK: kiln.constant dense<{{\[\[}}1, 2], [3, 4]]> : tensor<2x2xi32>
  %1 = kiln.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>
  // CHECK: kiln.constant dense<[true, false]> : tensor<2xi1>
  %2 = kiln.constant dense<[true, false]> : tensor<2xi1>
  return %0, %1, %2 : tensor<f32>, tensor<2x2xi32>, tensor<2xi1>
}

// CSE merges equal constants.
// FOLD-LABEL: @twice
func.func @twice() -> (tensor<f32>, tensor<f32>) {
  // FOLD: %[[C:.*]] = kiln.constant
  // FOLD-NOT: kiln.constant
  // FOLD: return %[[C]], %[[C]]
  %0 = kiln.constant dense<0.5> : tensor<f32>
  %1 = kiln.constant dense<0.5> : tensor<f32>
  return %0, %1 : tensor<f32>, tensor<f32>
}
