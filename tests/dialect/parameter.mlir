// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @round_trip
func.func @round_trip() -> (tensor<4x8xf32>, tensor<6x8xf32, #kiln.tiled<0, 4>>) {
  // CHECK: kiln.parameter {sources = ["w"]} : tensor<4x8xf32>
  %0 = kiln.parameter {sources = ["w"]} : tensor<4x8xf32>
  // CHECK: kiln.parameter {source_extents = array<i64: 4, 2>, sources = ["a", "b"]} : tensor<6x8xf32, #kiln.tiled<0, 4>>
  %1 = kiln.parameter {sources = ["a", "b"], source_extents = array<i64: 4, 2>} : tensor<6x8xf32, #kiln.tiled<0, 4>>
  // CHECK: kiln.parameter {join_dim = 1 : i64, source_extents = array<i64: 4, 4>, sources = ["a", "b"]} : tensor<6x8xf32>
  %2 = kiln.parameter {sources = ["a", "b"], source_extents = array<i64: 4, 4>, join_dim = 1} : tensor<6x8xf32>
  // CHECK: kiln.parameter {sources = ["w"], variable} : tensor<4xf32>
  %6 = kiln.parameter {sources = ["w"], variable} : tensor<4xf32>
  // Optional parameters of layouts are printed only if they differ from the default.
  // CHECK: kiln.parameter {sources = ["w"]} : tensor<4x8xi8, #kiln.tiled<0, 4, interleave = 4>>
  %3 = kiln.parameter {sources = ["w"]} : tensor<4x8xi8, #kiln.tiled<0, 4, interleave = 4>>
  // CHECK: kiln.parameter {sources = ["w"]} : tensor<4x8xf32, #kiln.tiled<1, 4, storage = <i8, dim = 1>>>
  %4 = kiln.parameter {sources = ["w"]} : tensor<4x8xf32, #kiln.tiled<1, 4, interleave = 1, storage = <i8, dim = 1>>>
  // CHECK: kiln.parameter {sources = ["w"]} : tensor<4x8xi8, #kiln.tiled<0, 4>>
  %5 = kiln.parameter {sources = ["w"]} : tensor<4x8xi8, #kiln.tiled<0, 4, interleave = 1>>
  // CHECK: kiln.parameter {sources = ["w"], storage = #kiln.storage<bf16>} : tensor<4x8xf32>
  %7 = kiln.parameter {sources = ["w"], storage = #kiln.storage<bf16>} : tensor<4x8xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<6x8xf32, #kiln.tiled<0, 4>>
}

// -----
func.func @run_time_extent() {
  // expected-error@+1 {{parameter: shape is not static; expected fixed dimensions, got dynamic ones}}
  %0 = kiln.parameter {sources = ["w"]} : tensor<?xf32>
  return
}

// -----
func.func @empty_extent() {
  // expected-error@+1 {{tensor: empty dimension; expected at least 1, got f32[0] [tensor_c1]}}
  %0 = kiln.parameter {sources = ["w"]} : tensor<0xf32>
  return
}

// -----
func.func @no_source() {
  // expected-error@+1 {{parameter: no source; expected at least one, got none}}
  %0 = kiln.parameter {sources = []} : tensor<4xf32>
  return
}

// -----
func.func @no_name() {
  // expected-error@+1 {{parameter: unnamed source; expected a name, got an empty one}}
  %0 = kiln.parameter {sources = [""]} : tensor<4xf32>
  return
}

// -----
func.func @copies_outside() {
  // expected-error@+1 {{parameter: copies differ from the enclosing layers; expected 1, got 3}}
  %0 = kiln.parameter {sources = ["w"], copies = 3} : tensor<4xf32>
  return
}

// -----
func.func @braces_outside() {
  // expected-error@+1 {{parameter: {} in its name differ from the enclosing loops over layers; expected 0 times {}, got h.{}.w}}
  %0 = kiln.parameter {sources = ["h.{}.w"]} : tensor<4xf32>
  return
}

// -----
func.func @copies_nested(%x: tensor<4xf32>) {
  %0 = kiln.repeat 2 (%a = %x : tensor<4xf32>) {
    %1 = kiln.repeat 3 (%b = %a : tensor<4xf32>) {
      // expected-error@+1 {{parameter: copies differ from the enclosing layers; expected 6, got 3}}
      %w = kiln.parameter {sources = ["h.{}.g.{}.w"], copies = 3} : tensor<4xf32>
      kiln.yield %w : tensor<4xf32>
    }
    kiln.yield %1 : tensor<4xf32>
  }
  return
}

// -----
func.func @join_dim() {
  // expected-error@+1 {{parameter: join dimension out of range; expected one within the rank, got 2 of f32[4, 4]}}
  %0 = kiln.parameter {sources = ["w"], join_dim = 2} : tensor<4x4xf32>
  return
}

// -----
func.func @several_without_extents() {
  // expected-error@+1 {{parameter: sizes of the sources are missing; expected one for each, got none}}
  %0 = kiln.parameter {sources = ["a", "b"]} : tensor<4xf32>
  return
}

// -----
func.func @too_few_extents() {
  // expected-error@+1 {{parameter: number of sizes differs from the sources; expected 2, got 1}}
  %0 = kiln.parameter {sources = ["a", "b"], source_extents = array<i64: 4>} : tensor<4xf32>
  return
}

// -----
func.func @sum_too_large() {
  // expected-error@+1 {{parameter: sizes of the sources do not add up; expected the joined dimension, got f32[4]}}
  %0 = kiln.parameter {sources = ["a", "b"], source_extents = array<i64: 3, 2>} : tensor<4xf32>
  return
}

// -----
func.func @sum_too_small() {
  // expected-error@+1 {{parameter: sizes of the sources do not add up; expected 4, got 3}}
  %0 = kiln.parameter {sources = ["a", "b"], source_extents = array<i64: 1, 2>} : tensor<4xf32>
  return
}

// -----
func.func @stored_integers() {
  // expected-error@+1 {{parameter: wrong type for a storage; expected f32 without a layout, got i32[4, 8]}}
  %0 = kiln.parameter {sources = ["w"], storage = #kiln.storage<i8>} : tensor<4x8xi32>
  return
}

// -----
func.func @scales_elsewhere() {
  // expected-error@+1 {{parameter: dimension of the scales out of range; expected one of its dimensions, got 2 of f32[4, 8]}}
  %0 = kiln.parameter {sources = ["w"], storage = #kiln.storage<i8, dim = 2>} : tensor<4x8xf32>
  return
}
