// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s
// RUN: kiln-opt %s -split-input-file -verify-diagnostics -canonicalize | FileCheck %s --check-prefix=FOLD

module attributes {kiln.symbols = [#kiln.symbol<"tokens", 1, 64>, #kiln.symbol<"context", 1, 64, least = "tokens">]} {
  // CHECK-LABEL: @round_trip
  func.func @round_trip(%x: tensor<?x9xf32, affine_map<()[s0, s1] -> (s0, 9)>>, %h: tensor<4x9xf32>)
      -> (tensor<?x9xf32, affine_map<()[s0, s1] -> (s1, 9)>>, tensor<4x9xf32>) {
    // CHECK: kiln.append %{{.*}} to "keys" rows = 64 : tensor<?x9xf32, {{.*}}> -> tensor<?x9xf32, {{.*}}>
    %0 = kiln.append %x to "keys" rows = 64
      : tensor<?x9xf32, affine_map<()[s0, s1] -> (s0, 9)>> -> tensor<?x9xf32, affine_map<()[s0, s1] -> (s1, 9)>>
    // CHECK: kiln.state "h.{}.hidden" copies = 3 rows = 4 : tensor<4x9xf32>
    %1 = kiln.state "h.{}.hidden" copies = 3 rows = 4 : tensor<4x9xf32>
    // CHECK: kiln.store %{{.*}} to "h.{}.hidden" copies = 3 rows = 4 : tensor<4x9xf32>
    kiln.store %h to "h.{}.hidden" copies = 3 rows = 4 : tensor<4x9xf32>
    return %0, %1 : tensor<?x9xf32, affine_map<()[s0, s1] -> (s1, 9)>>, tensor<4x9xf32>
  }

  // Writes to states are not erased, and fold slices of columns of their operand.
  // FOLD-LABEL: @columns
  func.func @columns(%x: tensor<5x12xf32>) {
    // FOLD: kiln.append %arg0 column = 7 to "keys" rows = 64 : tensor<5x12xf32> -> tensor<5x4xf32>
    // FOLD: kiln.append %arg0 to "values" rows = 64 : tensor<5x12xf32> -> tensor<8x3xf32>
    %0 = kiln.slice %x axis = 1 start = 5 : tensor<5x12xf32> -> tensor<5x6xf32>
    %1 = kiln.slice %0 axis = 1 start = 2 : tensor<5x6xf32> -> tensor<5x4xf32>
    %2 = kiln.append %1 to "keys" rows = 64 : tensor<5x4xf32> -> tensor<5x4xf32>
    %3 = kiln.slice %x axis = 1 start = 0 : tensor<5x12xf32> -> tensor<5x3xf32>
    %4 = kiln.append %3 to "values" rows = 64 : tensor<5x3xf32> -> tensor<8x3xf32>
    return
  }
}

// -----
func.func @append_c1(%x: tensor<5x12xf32>) {
  // expected-error@+1 {{append: wrong element type or shape of the rows; got f32[5, 12], f32[5, 9] [append_c1]}}
  %0 = kiln.append %x column = 4 to "keys" rows = 64 : tensor<5x12xf32> -> tensor<5x9xf32>
  return
}

// -----
func.func @append_c1_beyond(%x: tensor<5x12xf32>) {
  // expected-error@+1 {{append: wrong element type or shape of the rows; got f32[5, 12], f32[5, 9] [append_c1]}}
  %0 = kiln.append %x column = 9223372036854775807 to "keys" rows = 64 : tensor<5x12xf32> -> tensor<5x9xf32>
  return
}

// -----
module attributes {kiln.symbols = [#kiln.symbol<"tokens", 1, 64>, #kiln.symbol<"context", 1, 64>]} {
  func.func @append_c2(%x: tensor<?x9xf32, affine_map<()[s0, s1] -> (s0, 9)>>) {
    // expected-error@+1 {{append: result has fewer rows than are appended; expected tokens 1..64, got context 1..64 [append_c2]}}
    %0 = kiln.append %x to "keys" rows = 64
      : tensor<?x9xf32, affine_map<()[s0, s1] -> (s0, 9)>> -> tensor<?x9xf32, affine_map<()[s0, s1] -> (s1, 9)>>
    return
  }
}

// -----
func.func @append_c3() {
  // expected-error@+1 {{state: rows of its value do not fit; expected 64, got 65 [append_c3]}}
  %0 = kiln.state "keys" rows = 64 : tensor<65x9xf32>
  return
}

// -----
func.func @store_c1(%x: tensor<3x9xf32>) {
  // expected-error@+1 {{store: wrong element type or shape; expected 4 rows, got f32[3, 9] [store_c1]}}
  kiln.store %x to "hidden" rows = 4 : tensor<3x9xf32>
  return
}
