// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s
// RUN: kiln-opt %s -split-input-file -verify-diagnostics -canonicalize | FileCheck %s --check-prefix=FOLD

// CHECK-LABEL: @round_trip
func.func @round_trip(%x: tensor<?x?x6xf32, affine_map<()[s0, s1] -> (s0, s1, 6)>>) -> tensor<?x2x3xf32, affine_map<()[s0, s1] -> (s1 * s0, 2, 3)>> {
  // CHECK: kiln.reshape %{{.*}} : tensor<?x?x6xf32, {{.*}}> -> tensor<?x2x3xf32, {{.*}}>
  %0 = kiln.reshape %x : tensor<?x?x6xf32, affine_map<()[s0, s1] -> (s0, s1, 6)>> -> tensor<?x2x3xf32, affine_map<()[s0, s1] -> (s1 * s0, 2, 3)>>
  return %0 : tensor<?x2x3xf32, affine_map<()[s0, s1] -> (s1 * s0, 2, 3)>>
}

// FOLD-LABEL: @folds
func.func @folds(%x: tensor<6xf32>) -> (tensor<6xf32>, tensor<3x2xf32>, tensor<3x2xf32>) {
  // FOLD-DAG: %[[C:.*]] = kiln.constant dense<{{\[\[}}1.000000e+00, 2.000000e+00], [3.000000e+00, 4.000000e+00], [5.000000e+00, 6.000000e+00]]>
  // FOLD-DAG: %[[R:.*]] = kiln.reshape %arg0 : tensor<6xf32> -> tensor<3x2xf32>
  // FOLD: return %arg0, %[[R]], %[[C]]
  %c = kiln.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]> : tensor<6xf32>
  %0 = kiln.reshape %x : tensor<6xf32> -> tensor<2x3xf32>
  %1 = kiln.reshape %0 : tensor<2x3xf32> -> tensor<6xf32>
  %2 = kiln.reshape %0 : tensor<2x3xf32> -> tensor<3x2xf32>
  %3 = kiln.reshape %c : tensor<6xf32> -> tensor<3x2xf32>
  return %1, %2, %3 : tensor<6xf32>, tensor<3x2xf32>, tensor<3x2xf32>
}

// -----
func.func @reshape_c1(%x: tensor<6xf32>) {
  // expected-error@+1 {{reshape: another number of elements; expected [2, 4], got [6] [reshape_c1]}}
  %0 = kiln.reshape %x : tensor<6xf32> -> tensor<2x4xf32>
  return
}

// -----
module attributes {kiln.symbols = [#kiln.symbol<"batch", 1, 8>, #kiln.symbol<"tokens", 1, 64>]} {
  func.func @reshape_c1_symbols(%x: tensor<?x6xf32, affine_map<()[s0, s1] -> (s0, 6)>>) {
    // expected-error@+1 {{reshape: another number of elements; expected [6, tokens 1..64], got [batch 1..8, 6] [reshape_c1]}}
    %0 = kiln.reshape %x : tensor<?x6xf32, affine_map<()[s0, s1] -> (s0, 6)>> -> tensor<6x?xf32, affine_map<()[s0, s1] -> (6, s1)>>
    return
  }
}

// -----
func.func @element(%x: tensor<6xf32>) {
  // expected-error@+1 {{reshape: element types differ; expected the operand's, got f32[6], i32[6]}}
  %0 = kiln.reshape %x : tensor<6xf32> -> tensor<6xi32>
  return
}
