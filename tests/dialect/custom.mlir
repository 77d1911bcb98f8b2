// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s

#rows = affine_map<()[s0] -> (s0, 5)>
#bytes = affine_map<()[s0] -> (s0 * 4 + 8)>

// CHECK-LABEL: @round_trip
func.func @round_trip(%x: tensor<?x5xf32, #rows>, %i: tensor<3xi32>) -> (tensor<?x5xf32, #rows>, tensor<i1>) {
  // CHECK: kiln.custom "plain"(%{{.*}}, %{{.*}}) : (tensor<?x5xf32, {{.*}}>, tensor<3xi32>) -> (tensor<?x5xf32, {{.*}}>, tensor<i1>)
  %0:2 = kiln.custom "plain"(%x, %i) : (tensor<?x5xf32, #rows>, tensor<3xi32>) -> (tensor<?x5xf32, #rows>, tensor<i1>)
  // CHECK: kiln.custom "full"(%{{.*}}) derivative = "gradient" workspace : (tensor<?x5xf32, {{.*}}>) -> (tensor<4xbf16>, tensor<?xi8, {{.*}}>)
  %1:2 = kiln.custom "full"(%x) derivative = "gradient" workspace
    : (tensor<?x5xf32, #rows>) -> (tensor<4xbf16>, tensor<?xi8, #bytes>)
  return %0#0, %0#1 : tensor<?x5xf32, #rows>, tensor<i1>
}

// -----
func.func @no_operand() {
  // expected-error@+1 {{custom: too few tensors; expected an operand and a result, got 0 operands and 1 results}}
  %0 = kiln.custom "source"() : () -> tensor<3xf32>
  return
}

// -----
func.func @no_result(%x: tensor<3xf32>) {
  // expected-error@+1 {{custom: too few tensors; expected an operand and a result, got 1 operands and 0 results}}
  %0 = kiln.custom "sink"(%x) workspace : (tensor<3xf32>) -> tensor<16xi8>
  return
}

// -----
func.func @workspace_of_floats(%x: tensor<3xf32>) {
  // expected-error@+1 {{custom: wrong workspace; expected unused bytes, i8 of rank 1, got f32[16]}}
  %0:2 = kiln.custom "half"(%x) workspace : (tensor<3xf32>) -> (tensor<3xf32>, tensor<16xf32>)
  return
}

// -----
func.func @workspace_that_is_read(%x: tensor<3xf32>) -> tensor<16xi8> {
  // expected-error@+1 {{custom: wrong workspace; expected unused bytes, i8 of rank 1, got i8[16]}}
  %0:2 = kiln.custom "half"(%x) workspace : (tensor<3xf32>) -> (tensor<3xf32>, tensor<16xi8>)
  return %0#1 : tensor<16xi8>
}

// -----
func.func @unknown_extent(%x: tensor<3xf32>) {
  // expected-error@+1 {{dynamic dimension}}
  %0 = kiln.custom "half"(%x) : (tensor<3xf32>) -> tensor<?xf32>
  return
}
