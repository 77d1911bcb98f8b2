// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @round_trip
func.func @round_trip(%x: tensor<11x5xf32>, %i: tensor<?xi32, affine_map<()[s0] -> (s0)>>, %rows: tensor<?x5xf32, affine_map<()[s0] -> (s0, 5)>>)
    -> tensor<11x5xf32> {
  // CHECK: kiln.index_add %{{.*}}, %{{.*}}, %{{.*}} : (tensor<11x5xf32>, tensor<?xi32, {{.*}}>, tensor<?x5xf32, {{.*}}>) -> tensor<11x5xf32>
  %0 = kiln.index_add %x, %i, %rows : (tensor<11x5xf32>, tensor<?xi32, affine_map<()[s0] -> (s0)>>, tensor<?x5xf32, affine_map<()[s0] -> (s0, 5)>>) -> tensor<11x5xf32>
  return %0 : tensor<11x5xf32>
}

// -----
func.func @indices_of_two_axes(%x: tensor<11x5xf32>, %i: tensor<3x1xi32>, %rows: tensor<3x5xf32>) {
  // expected-error@+1 {{index_add: wrong type or rank of the indices; expected i32 of rank 1, got i32[3, 1] [index_add_c1]}}
  %0 = kiln.index_add %x, %i, %rows : (tensor<11x5xf32>, tensor<3x1xi32>, tensor<3x5xf32>) -> tensor<11x5xf32>
  return
}

// -----
func.func @another_number_of_rows(%x: tensor<11x5xf32>, %i: tensor<3xi32>, %rows: tensor<4x5xf32>) {
  // expected-error@+1 {{index_add: shapes do not match; expected rows of the first operand, one for each index, got f32[11, 5], i32[3], f32[4, 5] [index_add_c3]}}
  %0 = kiln.index_add %x, %i, %rows : (tensor<11x5xf32>, tensor<3xi32>, tensor<4x5xf32>) -> tensor<11x5xf32>
  return
}

// -----
func.func @another_width(%x: tensor<11x6xf32>, %i: tensor<3xi32>, %rows: tensor<3x5xf32>) {
  // expected-error@+1 {{index_add: shapes do not match; expected rows of the first operand, one for each index, got f32[11, 6], i32[3], f32[3, 5] [index_add_c3]}}
  %0 = kiln.index_add %x, %i, %rows : (tensor<11x6xf32>, tensor<3xi32>, tensor<3x5xf32>) -> tensor<11x6xf32>
  return
}

// -----
func.func @another_type(%x: tensor<11x5xf32>, %i: tensor<3xi32>, %rows: tensor<3x5xi32>) {
  // expected-error@+1 {{index_add: wrong element types; expected one type of numbers, got f32[11, 5], i32[3, 5] [index_add_c4]}}
  %0 = kiln.index_add %x, %i, %rows : (tensor<11x5xf32>, tensor<3xi32>, tensor<3x5xi32>) -> tensor<11x5xf32>
  return
}
