// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @round_trip
func.func @round_trip(%i: tensor<?xi32, affine_map<()[s0] -> (s0)>>, %rows: tensor<?x5xf32, affine_map<()[s0] -> (s0, 5)>>)
    -> tensor<11x5xf32> {
  // CHECK: kiln.scatter_add %{{.*}}, %{{.*}} : (tensor<?xi32, {{.*}}>, tensor<?x5xf32, {{.*}}>) -> tensor<11x5xf32>
  %0 = kiln.scatter_add %i, %rows : (tensor<?xi32, affine_map<()[s0] -> (s0)>>, tensor<?x5xf32, affine_map<()[s0] -> (s0, 5)>>)
    -> tensor<11x5xf32>
  return %0 : tensor<11x5xf32>
}

// -----
func.func @another_number_of_rows(%i: tensor<3xi32>, %rows: tensor<4x5xf32>) {
  // expected-error@+1 {{scatter_add: shapes do not match; expected indices [R], rows [R, D] and a result [V, D], got i32[3], f32[4, 5], f32[11, 5]}}
  %0 = kiln.scatter_add %i, %rows : (tensor<3xi32>, tensor<4x5xf32>) -> tensor<11x5xf32>
  return
}

// -----
func.func @another_width(%i: tensor<3xi32>, %rows: tensor<3x5xf32>) {
  // expected-error@+1 {{scatter_add: shapes do not match; expected indices [R], rows [R, D] and a result [V, D], got i32[3], f32[3, 5], f32[11, 6]}}
  %0 = kiln.scatter_add %i, %rows : (tensor<3xi32>, tensor<3x5xf32>) -> tensor<11x6xf32>
  return
}

// -----
func.func @indices_of_two_axes(%i: tensor<3x1xi32>, %rows: tensor<3x5xf32>) {
  // expected-error@+1 {{scatter_add: shapes do not match; expected indices [R], rows [R, D] and a result [V, D], got i32[3, 1], f32[3, 5], f32[11, 5]}}
  %0 = kiln.scatter_add %i, %rows : (tensor<3x1xi32>, tensor<3x5xf32>) -> tensor<11x5xf32>
  return
}
