// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s

// Symbols of a kernel differ from the module's: s0 of the kernel is the product of two symbols of the module.
module attributes {kiln.symbols = [#kiln.symbol<"batch", 1, 8>, #kiln.symbol<"tokens", 1, 64>]} {
  func.func private @kernel(index, tensor<?x4xf32, affine_map<()[s0] -> (s0, 4)>>) -> tensor<?x4xf32, affine_map<()[s0] -> (s0, 4)>>
    attributes {kiln.kernel, kiln.bounds = array<i64: 1, 512>}
  // CHECK-LABEL: @round_trip
  func.func @round_trip(%n: index, %x: tensor<?x4xf32, affine_map<()[s0, s1] -> (s0 * s1, 4)>>) {
    // CHECK: kiln.call @kernel[%{{.*}}](%{{.*}}) : (tensor<?x4xf32, #{{.*}}>) -> tensor<?x4xf32, #{{.*}}>
    %0 = kiln.call @kernel[%n](%x) : (tensor<?x4xf32, affine_map<()[s0, s1] -> (s0 * s1, 4)>>) -> tensor<?x4xf32, affine_map<()[s0, s1] -> (s0 * s1, 4)>>
    return
  }
}

// -----
func.func private @function(tensor<4xf32>) -> tensor<4xf32>
func.func @callee(%x: tensor<4xf32>) {
  // expected-error@+1 {{'kiln.call' op callee is no kernel; expected a kernel function, got @function}}
  %0 = kiln.call @function(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----
func.func private @kernel(index, tensor<4xf32>) -> tensor<4xf32> attributes {kiln.kernel}
func.func @extents(%x: tensor<4xf32>) {
  // expected-error@+1 {{'kiln.call' op wrong number of extents; expected 1, got 0}}
  %0 = kiln.call @kernel(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----
func.func private @kernel(tensor<4xf32>) -> tensor<4xf32> attributes {kiln.kernel}
func.func @arguments(%x: tensor<4xf32>) {
  // expected-error@+1 {{'kiln.call' op wrong number of tensors or results; expected 1 and 1, got 2 and 1}}
  %0 = kiln.call @kernel(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----
func.func private @kernel(tensor<4xf32>) -> tensor<4xf32> attributes {kiln.kernel}
func.func @argument_type(%x: tensor<5xf32>) {
  // expected-error@+1 {{'kiln.call' op wrong type of an argument; expected 'tensor<4xf32>', got 'tensor<5xf32>'}}
  %0 = kiln.call @kernel(%x) : (tensor<5xf32>) -> tensor<4xf32>
  return
}

// -----
func.func private @kernel(tensor<4xf32>) -> tensor<4xf32> attributes {kiln.kernel}
func.func @result_type(%x: tensor<4xf32>) {
  // expected-error@+1 {{'kiln.call' op wrong type of a result; expected 'tensor<4xf32>', got 'tensor<4xi32>'}}
  %0 = kiln.call @kernel(%x) : (tensor<4xf32>) -> tensor<4xi32>
  return
}

// -----
func.func private @kernel(tensor<8x4xf32, #kiln.tiled<0, 4>>) -> tensor<4xf32> attributes {kiln.kernel}
func.func @layout(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{'kiln.call' op wrong type of an argument; expected 'tensor<8x4xf32, #kiln.tiled<0, 4>>', got 'tensor<8x4xf32>'}}
  %0 = kiln.call @kernel(%x) : (tensor<8x4xf32>) -> tensor<4xf32>
  return
}

// Each group has a part of the weight and some of the rows.
// -----
#rows = affine_map<()[s0] -> (s0, 3)>
func.func private @kernel(index, tensor<?x3xf32, #rows>, tensor<5x3xf32>) -> tensor<?x5xf32, affine_map<()[s0] -> (s0, 5)>>
  attributes {kiln.kernel, kiln.bounds = array<i64: 1, 7>}
// CHECK-LABEL: @groups
func.func @groups(%n: index, %x: tensor<7x3xf32>, %w: tensor<10x3xf32>, %ends: tensor<2xi32>) {
  // CHECK: kiln.call @kernel[%{{.*}}](%{{.*}}, %{{.*}}) ends %{{.*}} : tensor<2xi32> {per_group = array<i64: 1>} : (tensor<7x3xf32>, tensor<10x3xf32>) -> tensor<7x5xf32>
  %0 = kiln.call @kernel[%n](%x, %w) ends %ends : tensor<2xi32> {per_group = array<i64: 1>} : (tensor<7x3xf32>, tensor<10x3xf32>) -> tensor<7x5xf32>
  return
}

// -----
#rows = affine_map<()[s0] -> (s0, 3)>
func.func private @kernel(index, tensor<?x3xf32, #rows>, tensor<5x3xf32>) -> tensor<?x5xf32, affine_map<()[s0] -> (s0, 5)>>
  attributes {kiln.kernel, kiln.bounds = array<i64: 1, 7>}
func.func @groups_of_other_weights(%n: index, %x: tensor<7x3xf32>, %w: tensor<5x3xf32>, %ends: tensor<2xi32>) {
  // expected-error@+1 {{'kiln.call' op wrong type of an argument of groups; expected rows or parts of 'tensor<5x3xf32>', got 'tensor<5x3xf32>'}}
  %0 = kiln.call @kernel[%n](%x, %w) ends %ends : tensor<2xi32> {per_group = array<i64: 1>} : (tensor<7x3xf32>, tensor<5x3xf32>) -> tensor<7x5xf32>
  return
}

// -----
#rows = affine_map<()[s0] -> (s0, 3)>
func.func private @kernel(index, tensor<?x3xf32, #rows>) -> tensor<?x5xf32, affine_map<()[s0] -> (s0, 5)>>
  attributes {kiln.kernel, kiln.bounds = array<i64: 1, 7>}
func.func @groups_of_other_results(%n: index, %x: tensor<7x3xf32>, %ends: tensor<2xi32>) {
  // expected-error@+1 {{'kiln.call' op wrong type of a result of groups; expected rows of 'tensor<?x5xf32, affine_map<()[s0] -> (s0, 5)>>', got 'tensor<7x6xf32>'}}
  %0 = kiln.call @kernel[%n](%x) ends %ends : tensor<2xi32> : (tensor<7x3xf32>) -> tensor<7x6xf32>
  return
}

// -----
func.func private @kernel(tensor<4xf32>) -> tensor<4xf32> attributes {kiln.kernel}
func.func @groups_without_rows(%x: tensor<4xf32>, %ends: tensor<2xi32>) {
  // expected-error@+1 {{'kiln.call' op wrong groups; expected ends of rank 1 and a kernel of rows, got 'tensor<2xi32>' and 0 extents}}
  %0 = kiln.call @kernel(%x) ends %ends : tensor<2xi32> : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----
func.func private @kernel(tensor<4xf32>) -> tensor<4xf32> attributes {kiln.kernel}
func.func @parts_without_groups(%x: tensor<4xf32>) {
  // expected-error@+1 {{'kiln.call' op tensors of groups without groups; expected their ends}}
  %0 = kiln.call @kernel(%x) {per_group = array<i64: 0>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----
func.func @sinusoid_table(%p: tensor<7xi32>, %t: tensor<2x6xi32>) {
  // expected-error@+1 {{sinusoid: wrong shape of the table; expected [3, width], or [4, width] with axes, got i32[2, 6]}}
  %0 = kiln.sinusoid %p, %t : (tensor<7xi32>, tensor<2x6xi32>) -> tensor<7x6xf32>
  return
}

// -----
func.func @sinusoid_result(%p: tensor<7xi32>, %t: tensor<3x6xi32>) {
  // expected-error@+1 {{sinusoid: wrong shape of the result; expected [7, 6], got f32[7, 5]}}
  %0 = kiln.sinusoid %p, %t : (tensor<7xi32>, tensor<3x6xi32>) -> tensor<7x5xf32>
  return
}
