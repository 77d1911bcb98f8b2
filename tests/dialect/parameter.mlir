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
  // What layouts have room for is printed only when set.
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
  // expected-error@+1 {{parameter requires fixed extents: got run-time extents}}
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
  // expected-error@+1 {{parameter requires a source: got none}}
  %0 = kiln.parameter {sources = []} : tensor<4xf32>
  return
}

// -----
func.func @no_name() {
  // expected-error@+1 {{parameter requires sources with names: got an empty one}}
  %0 = kiln.parameter {sources = [""]} : tensor<4xf32>
  return
}

// -----
func.func @copies_outside() {
  // expected-error@+1 {{parameter requires a copy for each layer around it: got 3, expected 1}}
  %0 = kiln.parameter {sources = ["w"], copies = 3} : tensor<4xf32>
  return
}

// -----
func.func @braces_outside() {
  // expected-error@+1 {{parameter requires a {} in its name for each loop over layers around it: got h.{}.w, expected 0 times {}}}
  %0 = kiln.parameter {sources = ["h.{}.w"]} : tensor<4xf32>
  return
}

// -----
func.func @copies_nested(%x: tensor<4xf32>) {
  %0 = kiln.repeat 2 (%a = %x : tensor<4xf32>) {
    %1 = kiln.repeat 3 (%b = %a : tensor<4xf32>) {
      // expected-error@+1 {{parameter requires a copy for each layer around it: got 3, expected 6}}
      %w = kiln.parameter {sources = ["h.{}.g.{}.w"], copies = 3} : tensor<4xf32>
      kiln.yield %w : tensor<4xf32>
    }
    kiln.yield %1 : tensor<4xf32>
  }
  return
}

// -----
func.func @join_dim() {
  // expected-error@+1 {{parameter requires a join dimension within the rank: got 2 of f32[4, 4]}}
  %0 = kiln.parameter {sources = ["w"], join_dim = 2} : tensor<4x4xf32>
  return
}

// -----
func.func @several_without_extents() {
  // expected-error@+1 {{parameter requires the extents of several sources: got none}}
  %0 = kiln.parameter {sources = ["a", "b"]} : tensor<4xf32>
  return
}

// -----
func.func @too_few_extents() {
  // expected-error@+1 {{parameter requires an extent for each source: got 1, expected 2}}
  %0 = kiln.parameter {sources = ["a", "b"], source_extents = array<i64: 4>} : tensor<4xf32>
  return
}

// -----
func.func @sum_too_large() {
  // expected-error@+1 {{parameter requires source extents whose sum is the joined extent: got f32[4]}}
  %0 = kiln.parameter {sources = ["a", "b"], source_extents = array<i64: 3, 2>} : tensor<4xf32>
  return
}

// -----
func.func @sum_too_small() {
  // expected-error@+1 {{parameter requires source extents whose sum is the joined extent: got 3, expected 4}}
  %0 = kiln.parameter {sources = ["a", "b"], source_extents = array<i64: 1, 2>} : tensor<4xf32>
  return
}

// -----
func.func @stored_integers() {
  // expected-error@+1 {{parameter requires f32 without a layout for a storage: got i32[4, 8]}}
  %0 = kiln.parameter {sources = ["w"], storage = #kiln.storage<i8>} : tensor<4x8xi32>
  return
}

// -----
func.func @scales_elsewhere() {
  // expected-error@+1 {{parameter requires scales along one of its dimensions: got 2 of f32[4, 8]}}
  %0 = kiln.parameter {sources = ["w"], storage = #kiln.storage<i8, dim = 2>} : tensor<4x8xf32>
  return
}
