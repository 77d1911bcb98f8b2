// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s
// RUN: kiln-opt %s -split-input-file -verify-diagnostics -canonicalize | FileCheck %s --check-prefix=FOLD

// CHECK-LABEL: @round_trip
func.func @round_trip(%x: tensor<?x4xf32, affine_map<()[s0] -> (s0, 4)>>, %y: tensor<2x4xf32>) -> tensor<?x4xf32, affine_map<()[s0] -> (s0 * 2 + 2, 4)>> {
  // CHECK: kiln.concat %{{.*}}, %{{.*}}, %{{.*}} axis = 0 : (
  %0 = kiln.concat %x, %y, %x axis = 0 : (tensor<?x4xf32, affine_map<()[s0] -> (s0, 4)>>, tensor<2x4xf32>, tensor<?x4xf32, affine_map<()[s0] -> (s0, 4)>>) -> tensor<?x4xf32, affine_map<()[s0] -> (s0 * 2 + 2, 4)>>
  return %0 : tensor<?x4xf32, affine_map<()[s0] -> (s0 * 2 + 2, 4)>>
}

// CHECK-LABEL: @two_symbols
func.func @two_symbols(%x: tensor<?x4xf32, affine_map<()[s0, s1] -> (s0, 4)>>, %y: tensor<?x4xf32, affine_map<()[s0, s1] -> (s1 * 2, 4)>>) -> tensor<?x4xf32, affine_map<()[s0, s1] -> (s0 + s1 * 2, 4)>> {
  // CHECK: kiln.concat %{{.*}}, %{{.*}} axis = 0 : (
  %0 = kiln.concat %x, %y axis = 0 : (tensor<?x4xf32, affine_map<()[s0, s1] -> (s0, 4)>>, tensor<?x4xf32, affine_map<()[s0, s1] -> (s1 * 2, 4)>>) -> tensor<?x4xf32, affine_map<()[s0, s1] -> (s0 + s1 * 2, 4)>>
  return %0 : tensor<?x4xf32, affine_map<()[s0, s1] -> (s0 + s1 * 2, 4)>>
}

// FOLD-LABEL: @single
func.func @single(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // FOLD-NEXT: return %arg0
  %0 = kiln.concat %x axis = 1 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----
func.func @none() {
  // expected-error@+1 {{concat: no operand; expected at least one, got none}}
  %0 = "kiln.concat"() <{axis = 0 : i64}> : () -> tensor<2xf32>
  return
}

// -----
func.func @concat_c1_rank(%x: tensor<2x3xf32>, %y: tensor<3xf32>) {
  // expected-error@+1 {{concat: different element types or ranks; expected one of each, got f32[2, 3], f32[3] [concat_c1]}}
  %0 = kiln.concat %x, %y axis = 0 : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<3x3xf32>
  return
}

// -----
func.func @concat_c1_element(%x: tensor<3xf32>, %y: tensor<3xi32>) {
  // expected-error@+1 {{concat: different element types or ranks; expected one of each, got f32[3], i32[3] [concat_c1]}}
  %0 = kiln.concat %x, %y axis = 0 : (tensor<3xf32>, tensor<3xi32>) -> tensor<6xf32>
  return
}

// -----
func.func @concat_c2(%x: tensor<2x3xf32>, %y: tensor<2x4xf32>) {
  // expected-error@+1 {{concat: different dimensions on other axes; expected equal ones, got f32[2, 3], f32[2, 4] [concat_c2]}}
  %0 = kiln.concat %x, %y axis = 0 : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<4x3xf32>
  return
}

// -----
func.func @concat_c3(%x: tensor<3xf32>) {
  // expected-error@+1 {{concat: axis out of range; expected one within the rank, got axis 1 of f32[3] [concat_c3]}}
  %0 = kiln.concat %x, %x axis = 1 : (tensor<3xf32>, tensor<3xf32>) -> tensor<6xf32>
  return
}
