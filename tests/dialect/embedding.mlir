// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @round_trip
func.func @round_trip(%i: tensor<?x3xi32, affine_map<()[s0] -> (s0, 3)>>, %table: tensor<11x5xf32>)
    -> tensor<?x3x5xf32, affine_map<()[s0] -> (s0, 3, 5)>> {
  // CHECK: kiln.embedding %{{.*}}, %{{.*}} : (tensor<?x3xi32, {{.*}}>, tensor<11x5xf32>) -> tensor<?x3x5xf32,
  %0 = kiln.embedding %i, %table : (tensor<?x3xi32, affine_map<()[s0] -> (s0, 3)>>, tensor<11x5xf32>)
    -> tensor<?x3x5xf32, affine_map<()[s0] -> (s0, 3, 5)>>
  return %0 : tensor<?x3x5xf32, affine_map<()[s0] -> (s0, 3, 5)>>
}

// -----
func.func @embedding_c1(%i: tensor<3xf32>, %table: tensor<11x5xf32>) {
  // expected-error@+1 {{'kiln.embedding' op operand #0 must be ranked tensor of 32-bit signless integer values, but got 'tensor<3xf32>'}}
  %0 = "kiln.embedding"(%i, %table) : (tensor<3xf32>, tensor<11x5xf32>) -> tensor<3x5xf32>
  return
}

// -----
func.func @embedding_c2(%i: tensor<3xi32>, %table: tensor<11xf32>) {
  // expected-error@+1 {{embedding: wrong rank of the table; expected 2, got f32[11] [embedding_c2]}}
  %0 = kiln.embedding %i, %table : (tensor<3xi32>, tensor<11xf32>) -> tensor<3x5xf32>
  return
}

// The table has a row for each position, up to the bound of the dynamic dimension.
// -----
module attributes {kiln.symbols = [#kiln.symbol<"tokens", 1, 64>]} {
  func.func @embedding_c3(%x: tensor<?xi32, affine_map<()[s0] -> (s0)>>, %enough: tensor<64x5xf32>, %table: tensor<63x5xf32>) {
    %p = kiln.positions %x axis = 0 : (tensor<?xi32, affine_map<()[s0] -> (s0)>>) -> tensor<?xi32, affine_map<()[s0] -> (s0)>>
    %0 = kiln.embedding %p, %enough : (tensor<?xi32, affine_map<()[s0] -> (s0)>>, tensor<64x5xf32>) -> tensor<?x5xf32, affine_map<()[s0] -> (s0, 5)>>
    // expected-error@+1 {{embedding: too few rows for the positions; expected tokens 1..64, got 63 [embedding_c3]}}
    %1 = kiln.embedding %p, %table : (tensor<?xi32, affine_map<()[s0] -> (s0)>>, tensor<63x5xf32>) -> tensor<?x5xf32, affine_map<()[s0] -> (s0, 5)>>
    return
  }
}
