// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s
// RUN: kiln-opt %s -split-input-file -verify-diagnostics -canonicalize | FileCheck %s --check-prefix=FOLD

// add, sub, mul, div, maximum, minimum: their shapes broadcast as NumPy's do.

// CHECK-LABEL: @round_trip
func.func @round_trip(%x: tensor<7x1x3xf32>, %y: tensor<5x1xf32>) -> tensor<7x5x3xf32> {
  // CHECK: kiln.add %{{.*}}, %{{.*}} : (tensor<7x1x3xf32>, tensor<5x1xf32>) -> tensor<7x5x3xf32>
  %0 = kiln.add %x, %y : (tensor<7x1x3xf32>, tensor<5x1xf32>) -> tensor<7x5x3xf32>
  // CHECK: kiln.sub
  %1 = kiln.sub %0, %y : (tensor<7x5x3xf32>, tensor<5x1xf32>) -> tensor<7x5x3xf32>
  // CHECK: kiln.mul
  %2 = kiln.mul %1, %y : (tensor<7x5x3xf32>, tensor<5x1xf32>) -> tensor<7x5x3xf32>
  // CHECK: kiln.div
  %3 = kiln.div %2, %y : (tensor<7x5x3xf32>, tensor<5x1xf32>) -> tensor<7x5x3xf32>
  // CHECK: kiln.maximum
  %4 = kiln.maximum %3, %y : (tensor<7x5x3xf32>, tensor<5x1xf32>) -> tensor<7x5x3xf32>
  // CHECK: kiln.minimum
  %5 = kiln.minimum %4, %y : (tensor<7x5x3xf32>, tensor<5x1xf32>) -> tensor<7x5x3xf32>
  return %5 : tensor<7x5x3xf32>
}

// Dynamic dimensions broadcast with 1 and with themselves; the order of factors of an extent does not matter.
// CHECK-LABEL: @symbols
func.func @symbols(%x: tensor<?x4xf32, affine_map<()[s0, s1] -> (s1 * s0, 4)>>,
                   %y: tensor<?x1xf32, affine_map<()[s0, s1] -> (s0 * s1, 1)>>)
    -> tensor<?x4xf32, affine_map<()[s0, s1] -> (s0 * s1, 4)>> {
  // CHECK: kiln.add
  %0 = kiln.add %x, %y : (tensor<?x4xf32, affine_map<()[s0, s1] -> (s1 * s0, 4)>>,
                          tensor<?x1xf32, affine_map<()[s0, s1] -> (s0 * s1, 1)>>)
    -> tensor<?x4xf32, affine_map<()[s0, s1] -> (s0 * s1, 4)>>
  return %0 : tensor<?x4xf32, affine_map<()[s0, s1] -> (s0 * s1, 4)>>
}

// FOLD-LABEL: @identities
func.func @identities(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // FOLD-NEXT: return %arg0, %arg0, %arg0, %arg0, %arg0
  %zero = kiln.constant dense<0.0> : tensor<f32>
  %one = kiln.constant dense<1.0> : tensor<4xf32>
  %0 = kiln.add %zero, %x : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = kiln.sub %x, %zero : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = kiln.mul %x, %one : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = kiln.div %x, %one : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = kiln.maximum %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %2, %3, %4 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// Adding a zero tensor of a larger shape broadcasts, so it is no identity.
// FOLD-LABEL: @growing
func.func @growing(%x: tensor<1xf32>) -> tensor<4xf32> {
  // FOLD: kiln.add
  %zero = kiln.constant dense<0.0> : tensor<4xf32>
  %0 = kiln.add %x, %zero : (tensor<1xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// Constants are moved to the right operand of commutative operations only.
// FOLD-LABEL: @constant_right
func.func @constant_right(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // FOLD: %[[C:.*]] = kiln.constant
  // FOLD: kiln.mul %arg0, %[[C]]
  // FOLD: kiln.sub %[[C]], %arg0
  %two = kiln.constant dense<2.0> : tensor<f32>
  %0 = kiln.mul %two, %x : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = kiln.sub %two, %x : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// FOLD-LABEL: @constants
func.func @constants() -> (tensor<2x2xf32>, tensor<2xi32>, tensor<100000xf32>, tensor<2xf32>) {
  // FOLD-DAG: %[[A:.*]] = kiln.constant dense<{{\[\[}}1.100000e+01, 1.200000e+01], [2.100000e+01, 2.200000e+01]]> : tensor<2x2xf32>
  // FOLD-DAG: %[[B:.*]] = kiln.constant dense<[-2, 2]> : tensor<2xi32>
  // FOLD-DAG: %[[C:.*]] = kiln.constant dense<7.500000e-01> : tensor<100000xf32>
  // FOLD-DAG: %[[D:.*]] = kiln.constant dense<[3.000000e+00, 0x7FC00000]> : tensor<2xf32>
  // FOLD: return %[[A]], %[[B]], %[[C]], %[[D]]
  %row = kiln.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %column = kiln.constant dense<[[10.0], [20.0]]> : tensor<2x1xf32>
  %0 = kiln.add %row, %column : (tensor<2xf32>, tensor<2x1xf32>) -> tensor<2x2xf32>
  %i = kiln.constant dense<[-7, 7]> : tensor<2xi32>
  %j = kiln.constant dense<3> : tensor<i32>
  %1 = kiln.div %i, %j : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
  %big = kiln.constant dense<1.5> : tensor<100000xf32>
  %half = kiln.constant dense<0.5> : tensor<f32>
  %2 = kiln.mul %big, %half : (tensor<100000xf32>, tensor<f32>) -> tensor<100000xf32>
  %nan = kiln.constant dense<[2.0, 0x7FC00000]> : tensor<2xf32>
  %three = kiln.constant dense<3.0> : tensor<f32>
  %3 = kiln.maximum %nan, %three : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  return %0, %1, %2, %3 : tensor<2x2xf32>, tensor<2xi32>, tensor<100000xf32>, tensor<2xf32>
}

// FOLD-LABEL: @smaller
func.func @smaller(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  // FOLD: %[[C:.*]] = kiln.constant dense<[2.000000e+00, 0x7FC00000]> : tensor<2xf32>
  // FOLD: return %[[C]], %arg0
  %nan = kiln.constant dense<[2.0, 0x7FC00000]> : tensor<2xf32>
  %three = kiln.constant dense<3.0> : tensor<f32>
  %0 = kiln.minimum %nan, %three : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = kiln.minimum %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}

// FOLD-LABEL: @division_by_zero
func.func @division_by_zero() -> tensor<i32> {
  // FOLD: kiln.constant dense<0>
  %i = kiln.constant dense<7> : tensor<i32>
  %zero = kiln.constant dense<0> : tensor<i32>
  %0 = kiln.div %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i32>
  return %0 : tensor<i32>
}

// -----
func.func @broadcast_c1(%x: tensor<7x2xf32>, %y: tensor<3xf32>) {
  // expected-error@+1 {{elementwise operation: shapes do not broadcast; expected dimensions that are equal or 1, got [7, 2] and [3] [broadcast_c1]}}
  %0 = kiln.add %x, %y : (tensor<7x2xf32>, tensor<3xf32>) -> tensor<7x2xf32>
  return
}

// -----
module attributes {kiln.symbols = [#kiln.symbol<"batch", 1, 8>, #kiln.symbol<"tokens", 2, 64>]} {
  func.func @broadcast_c1_symbols(%x: tensor<?xf32, affine_map<()[s0, s1] -> (s0 * s1)>>, %y: tensor<?xf32, affine_map<()[s0, s1] -> (s1 + 1)>>) {
    // expected-error@+1 {{elementwise operation: shapes do not broadcast; expected dimensions that are equal or 1, got [batch*tokens 2..512] and [tokens+1 3..65] [broadcast_c1]}}
    %0 = kiln.maximum %x, %y : (tensor<?xf32, affine_map<()[s0, s1] -> (s0 * s1)>>, tensor<?xf32, affine_map<()[s0, s1] -> (s1 + 1)>>) -> tensor<?xf32, affine_map<()[s0, s1] -> (s1)>>
    return
  }
}

// -----
func.func @broadcast_c2(%x: tensor<7xf32>, %y: tensor<7xi32>) {
  // expected-error@+1 {{elementwise operation: different element types; expected one, got f32[7], i32[7] [broadcast_c2]}}
  %0 = kiln.mul %x, %y : (tensor<7xf32>, tensor<7xi32>) -> tensor<7xf32>
  return
}

// -----
func.func @tensor_c1(%x: tensor<0xf32>) {
  // expected-error@+1 {{tensor: empty dimension; expected at least 1, got f32[0] [tensor_c1]}}
  %0 = kiln.div %x, %x : (tensor<0xf32>, tensor<0xf32>) -> tensor<0xf32>
  return
}

// -----
func.func @no_extents_map(%x: tensor<?xf32>) {
  // expected-error@+1 {{tensor: dynamic dimension without its extent; expected an extents map of its rank, got tensor<?xf32>}}
  %0 = kiln.sub %x, %x : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----
func.func @result(%x: tensor<7xf32>) {
  // expected-error@+1 {{add: result does not follow from the operands; expected f32[7], got f32[8]}}
  %0 = kiln.add %x, %x : (tensor<7xf32>, tensor<7xf32>) -> tensor<8xf32>
  return
}
