// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s
// RUN: kiln-opt %s -split-input-file -verify-diagnostics -canonicalize | FileCheck %s --check-prefix=FOLD

// CHECK-LABEL: @round_trip
func.func @round_trip(%x: tensor<?x9xf32, affine_map<()[s0] -> (s0, 9)>>) -> tensor<?x3xf32, affine_map<()[s0] -> (s0, 3)>> {
  // CHECK: kiln.slice %{{.*}} axis = 1 start = 6 : tensor<?x9xf32, {{.*}}> -> tensor<?x3xf32, {{.*}}>
  %0 = kiln.slice %x axis = 1 start = 6 : tensor<?x9xf32, affine_map<()[s0] -> (s0, 9)>> -> tensor<?x3xf32, affine_map<()[s0] -> (s0, 3)>>
  return %0 : tensor<?x3xf32, affine_map<()[s0] -> (s0, 3)>>
}

// CHECK-LABEL: @at_end
func.func @at_end(%x: tensor<?x9xf32, affine_map<()[s0] -> (s0, 9)>>) -> tensor<1x4xf32> {
  // CHECK: kiln.slice %{{.*}} axis = 0 start = 0 at_end : tensor<?x9xf32, {{.*}}> -> tensor<1x9xf32>
  %0 = kiln.slice %x axis = 0 start = 0 at_end : tensor<?x9xf32, affine_map<()[s0] -> (s0, 9)>> -> tensor<1x9xf32>
  // CHECK: kiln.slice %{{.*}} axis = 1 start = 0 at_end : tensor<1x9xf32> -> tensor<1x4xf32>
  %1 = kiln.slice %0 axis = 1 start = 0 at_end : tensor<1x9xf32> -> tensor<1x4xf32>
  return %1 : tensor<1x4xf32>
}

// FOLD-LABEL: @folds
func.func @folds(%x: tensor<9x4xf32>) -> (tensor<9x4xf32>, tensor<2x4xf32>, tensor<5x2xf32>, tensor<2xf32>) {
  // FOLD-DAG: %[[C:.*]] = kiln.constant dense<1.000000e+00> : tensor<2xf32>
  // FOLD-DAG: %[[A:.*]] = kiln.slice %arg0 axis = 0 start = 4 : tensor<9x4xf32> -> tensor<2x4xf32>
  // FOLD-DAG: %[[B:.*]] = kiln.slice %arg0 axis = 0 start = 3 : tensor<9x4xf32> -> tensor<5x4xf32>
  // FOLD-DAG: %[[D:.*]] = kiln.slice %[[B]] axis = 1 start = 1 : tensor<5x4xf32> -> tensor<5x2xf32>
  // FOLD: return %arg0, %[[A]], %[[D]], %[[C]]
  %0 = kiln.slice %x axis = 0 start = 0 : tensor<9x4xf32> -> tensor<9x4xf32>
  %1 = kiln.slice %x axis = 0 start = 3 : tensor<9x4xf32> -> tensor<5x4xf32>
  %2 = kiln.slice %1 axis = 0 start = 1 : tensor<5x4xf32> -> tensor<2x4xf32>
  %3 = kiln.slice %1 axis = 1 start = 1 : tensor<5x4xf32> -> tensor<5x2xf32>
  %c = kiln.constant dense<1.0> : tensor<5xf32>
  %4 = kiln.slice %c axis = 0 start = 1 : tensor<5xf32> -> tensor<2xf32>
  return %0, %2, %3, %4 : tensor<9x4xf32>, tensor<2x4xf32>, tensor<5x2xf32>, tensor<2xf32>
}

// -----
func.func @last_c2(%x: tensor<3xf32>) {
  // expected-error@+1 {{last: more elements than the operand has; expected 3, got 4 [last_c2]}}
  %0 = kiln.slice %x axis = 0 start = 0 at_end : tensor<3xf32> -> tensor<4xf32>
  return
}

// -----
func.func @start_at_end(%x: tensor<3xf32>) {
  // expected-error@+1 {{slice: start given for a slice at the end; expected 0, got 1}}
  %0 = kiln.slice %x axis = 0 start = 1 at_end : tensor<3xf32> -> tensor<2xf32>
  return
}

// -----
func.func @slice_c1(%x: tensor<9xf32>) {
  // expected-error@+1 {{slice: axis out of range; expected one within the rank, got axis 1 of f32[9] [slice_c1]}}
  %0 = kiln.slice %x axis = 1 start = 0 : tensor<9xf32> -> tensor<3xf32>
  return
}

// -----
func.func @slice_c2(%x: tensor<9xf32>) {
  // expected-error@+1 {{slice: range outside the operand's dimension; expected 9, got 7 + 3 [slice_c2]}}
  %0 = kiln.slice %x axis = 0 start = 7 : tensor<9xf32> -> tensor<3xf32>
  return
}

// -----
func.func @slice_c2_negative(%x: tensor<9xf32>) {
  // expected-error@+1 {{slice: range outside the operand's dimension; expected 9, got -1 + 3 [slice_c2]}}
  %0 = kiln.slice %x axis = 0 start = -1 : tensor<9xf32> -> tensor<3xf32>
  return
}

// The lower bound of a dynamic dimension is used.
// -----
module attributes {kiln.symbols = [#kiln.symbol<"tokens", 3, 64>]} {
  func.func @slice_c2_symbol(%x: tensor<?xf32, affine_map<()[s0] -> (s0)>>) {
    %0 = kiln.slice %x axis = 0 start = 1 : tensor<?xf32, affine_map<()[s0] -> (s0)>> -> tensor<2xf32>
    // expected-error@+1 {{slice: range outside the operand's dimension; expected tokens 3..64, got 2 + 2 [slice_c2]}}
    %1 = kiln.slice %x axis = 0 start = 2 : tensor<?xf32, affine_map<()[s0] -> (s0)>> -> tensor<2xf32>
    return
  }
}

// -----
func.func @next_to(%x: tensor<9x4xf32>) {
  // expected-error@+1 {{slice: shapes differ; expected the operand's dimensions except along its axis, got f32[9, 4], f32[9, 3]}}
  %0 = kiln.slice %x axis = 0 start = 0 : tensor<9x4xf32> -> tensor<9x3xf32>
  return
}

// -----
func.func @element(%x: tensor<9xf32>) {
  // expected-error@+1 {{slice: element types differ; expected the operand's, got f32[9], i32[3]}}
  %0 = kiln.slice %x axis = 0 start = 0 : tensor<9xf32> -> tensor<3xi32>
  return
}
