// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s -split-input-file -verify-diagnostics | kiln-opt -split-input-file | FileCheck %s

// CHECK-DAG: #[[TWO:.*]] = affine_map<() -> (2)>
// CHECK-DAG: #[[LOOPS:.*]] = affine_map<() -> (4, 7, 9, 64, 32)>
// CHECK-DAG: #[[Q:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d1, d0, d3)>
// CHECK-DAG: #[[K:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d2, d0 floordiv 2, d3)>
// CHECK-DAG: #[[V:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d2, d0 floordiv 2, d4)>
// CHECK-DAG: #[[MASKED:.*]] = affine_map<()[s0] -> (2, 1, s0, s0, 64, 64)>
// CHECK-DAG: #[[HEAD:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d1)>
// CHECK-DAG: #[[BATCH:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0)>

// Two query heads share a head of keys and values; the last query attends to the last key.
// CHECK-LABEL: @round_trip
func.func @round_trip(%q: tensor<7x4x64xf32>, %k: tensor<9x2x64xf32>, %v: tensor<9x2x32xf32>) -> tensor<7x4x32xf32> {
  // CHECK: kiln.kernel_attention scale = 1.250000e-01 causal #[[TWO]] over #[[LOOPS]]
  // CHECK-SAME: query(%{{.*}} : tensor<7x4x64xf32>) [#[[Q]]] {
  // CHECK-NEXT: ^bb0(%[[X:.*]]: f32):
  // CHECK-NEXT: kiln.kernel_yield %[[X]] : f32
  // CHECK: } key(%{{.*}} : tensor<9x2x64xf32>) [#[[K]]] {
  // CHECK: } value(%{{.*}} : tensor<9x2x32xf32>) [#[[V]]] {
  // CHECK: } score [] {
  // CHECK: } weight {
  // CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: f32):
  // CHECK: } -> tensor<7x4x32xf32>
  %0 = kiln.kernel_attention scale = 1.25e-1 causal affine_map<() -> (2)> over affine_map<() -> (4, 7, 9, 64, 32)>
    query(%q : tensor<7x4x64xf32>) [affine_map<(h, q, k, d, e) -> (q, h, d)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } key(%k : tensor<9x2x64xf32>) [affine_map<(h, q, k, d, e) -> (k, h floordiv 2, d)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } value(%v : tensor<9x2x32xf32>) [affine_map<(h, q, k, d, e) -> (k, h floordiv 2, e)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } score [] {
    ^bb0(%s: f32):
      kiln.kernel_yield %s : f32
    } weight {
    ^bb0(%s: f32, %m: f32):
      %t = arith.subf %s, %m : f32
      %w = math.exp2 %t : f32
      kiln.kernel_yield %w : f32
    } -> tensor<7x4x32xf32>
  return %0 : tensor<7x4x32xf32>
}

// CHECK-LABEL: @window_and_sink
func.func @window_and_sink(%q: tensor<7x4x64xf32>, %k: tensor<9x2x64xf32>, %v: tensor<9x2x32xf32>, %z: tensor<4xf32>) -> tensor<7x4x32xf32> {
  // CHECK: kiln.kernel_attention scale = 1.250000e-01 causal #[[TWO]] window = 4 over #[[LOOPS]] query
  // CHECK: } sink(%{{.*}} : tensor<4xf32>) [#[[SINK:.*]]] {
  // CHECK: } -> tensor<7x4x32xf32>
  %0 = kiln.kernel_attention scale = 1.25e-1 causal affine_map<() -> (2)> window = 4 over affine_map<() -> (4, 7, 9, 64, 32)>
    query(%q : tensor<7x4x64xf32>) [affine_map<(h, q, k, d, e) -> (q, h, d)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } key(%k : tensor<9x2x64xf32>) [affine_map<(h, q, k, d, e) -> (k, h floordiv 2, d)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } value(%v : tensor<9x2x32xf32>) [affine_map<(h, q, k, d, e) -> (k, h floordiv 2, e)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } score [] {
    ^bb0(%s: f32):
      kiln.kernel_yield %s : f32
    } weight {
    ^bb0(%s: f32, %m: f32):
      %t = arith.subf %s, %m : f32
      %w = math.exp2 %t : f32
      kiln.kernel_yield %w : f32
    } sink(%z : tensor<4xf32>) [affine_map<(h, q, k, d, e) -> (h)>] {
    ^bb0(%score: f32, %m: f32):
      %t = arith.subf %score, %m : f32
      %w = math.exp2 %t : f32
      kiln.kernel_yield %w : f32
    } -> tensor<7x4x32xf32>
  return %0 : tensor<7x4x32xf32>
}

// Queries and keys with a batch axis, lengths, and a mask that depends on the distance of a key.
#x = affine_map<()[s0] -> (2, s0, 64)>
#y = affine_map<()[s0] -> (2, s0, 1, 64)>
// CHECK-LABEL: @mask_and_lengths
func.func @mask_and_lengths(%s0: index, %x: tensor<2x?x64xf16, #x>, %slope: tensor<1xf32>, %n: tensor<2xi32>) -> tensor<2x?x1x64xf16, #y> {
  // CHECK: kiln.kernel_attention scale = 1.250000e-01 may_be_empty over #[[MASKED]] query
  // CHECK: score(%{{.*}}, %{{.*}} : tensor<1xf32>, tensor<2xi32>) [#[[HEAD]], #[[BATCH]]] {
  // CHECK: kiln.kernel_index 3
  // CHECK: kiln.kernel_yield %{{.*}}, %{{.*}} : f32, i32
  %0 = kiln.kernel_attention scale = 1.25e-1 may_be_empty over affine_map<()[s0] -> (2, 1, s0, s0, 64, 64)>
    query(%x : tensor<2x?x64xf16, #x>) [affine_map<(b, h, q, k, d, e) -> (b, q, d)>] {
    ^bb0(%e: f16):
      %w = arith.extf %e : f16 to f32
      kiln.kernel_yield %w : f32
    } key(%x : tensor<2x?x64xf16, #x>) [affine_map<(b, h, q, k, d, e) -> (b, k, d)>] {
    ^bb0(%e: f16):
      %w = arith.extf %e : f16 to f32
      kiln.kernel_yield %w : f32
    } value(%x : tensor<2x?x64xf16, #x>) [affine_map<(b, h, q, k, d, e) -> (b, k, e)>] {
    ^bb0(%e: f16):
      %w = arith.extf %e : f16 to f32
      kiln.kernel_yield %w : f32
    } score(%slope, %n : tensor<1xf32>, tensor<2xi32>) [affine_map<(b, h, q, k, d, e) -> (h)>, affine_map<(b, h, q, k, d, e) -> (b)>] {
    ^bb0(%m: f32, %length: i32, %s: f32):
      %key = kiln.kernel_index 3
      %i = arith.index_cast %key : index to i32
      %f = arith.sitofp %i : i32 to f32
      %p = arith.mulf %m, %f : f32
      %t = arith.addf %s, %p : f32
      kiln.kernel_yield %t, %length : f32, i32
    } weight {
    ^bb0(%s: f32, %m: f32):
      %t = arith.subf %s, %m : f32
      %w = math.exp2 %t : f32
      kiln.kernel_yield %w : f32
    } -> tensor<2x?x1x64xf16, #y>
  return %0 : tensor<2x?x1x64xf16, #y>
}

// -----
func.func @loops(%q: tensor<7x4x64xf32>, %k: tensor<9x2x64xf32>, %v: tensor<9x2x32xf32>) {
  // expected-error@+1 {{wrong loops; expected extents of heads, queries, keys and both channels}}
  %0 = kiln.kernel_attention scale = 1.25e-1 over affine_map<() -> (4, 7, 9, 64)>
    query(%q : tensor<7x4x64xf32>) [affine_map<(h, q, k, d, e) -> (q, h, d)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } key(%k : tensor<9x2x64xf32>) [affine_map<(h, q, k, d, e) -> (k, h floordiv 2, d)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } value(%v : tensor<9x2x32xf32>) [affine_map<(h, q, k, d, e) -> (k, h floordiv 2, e)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } score [] {
    ^bb0(%s: f32):
      kiln.kernel_yield %s : f32
    } weight {
    ^bb0(%s: f32, %m: f32):
      %t = arith.subf %s, %m : f32
      %w = math.exp2 %t : f32
      kiln.kernel_yield %w : f32
    } -> tensor<7x4x32xf32>
  return
}

// -----
func.func @causal(%q: tensor<7x4x64xf32>, %k: tensor<9x2x64xf32>, %v: tensor<9x2x32xf32>) {
  // expected-error@+1 {{wrong causal offset; expected a number over the symbols}}
  %0 = kiln.kernel_attention scale = 1.25e-1 causal affine_map<() -> (2, 3)> over affine_map<() -> (4, 7, 9, 64, 32)>
    query(%q : tensor<7x4x64xf32>) [affine_map<(h, q, k, d, e) -> (q, h, d)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } key(%k : tensor<9x2x64xf32>) [affine_map<(h, q, k, d, e) -> (k, h floordiv 2, d)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } value(%v : tensor<9x2x32xf32>) [affine_map<(h, q, k, d, e) -> (k, h floordiv 2, e)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } score [] {
    ^bb0(%s: f32):
      kiln.kernel_yield %s : f32
    } weight {
    ^bb0(%s: f32, %m: f32):
      %t = arith.subf %s, %m : f32
      %w = math.exp2 %t : f32
      kiln.kernel_yield %w : f32
    } -> tensor<7x4x32xf32>
  return
}

// -----
func.func @map(%q: tensor<7x4x64xf32>, %k: tensor<9x2x64xf32>, %v: tensor<9x2x32xf32>) {
  // expected-error@+1 {{key: wrong map; expected the indices of an operand over its loops}}
  %0 = kiln.kernel_attention scale = 1.25e-1 over affine_map<() -> (4, 7, 9, 64, 32)>
    query(%q : tensor<7x4x64xf32>) [affine_map<(h, q, k, d, e) -> (q, h, d)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } key(%k : tensor<9x2x64xf32>) [affine_map<(h, q, k, d, e) -> (q, h floordiv 2, d)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } value(%v : tensor<9x2x32xf32>) [affine_map<(h, q, k, d, e) -> (k, h floordiv 2, e)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } score [] {
    ^bb0(%s: f32):
      kiln.kernel_yield %s : f32
    } weight {
    ^bb0(%s: f32, %m: f32):
      %t = arith.subf %s, %m : f32
      %w = math.exp2 %t : f32
      kiln.kernel_yield %w : f32
    } -> tensor<7x4x32xf32>
  return
}

// -----
func.func @maps(%q: tensor<7x4x64xf32>, %k: tensor<9x2x64xf32>, %v: tensor<9x2x32xf32>) {
  // expected-error@+1 {{query: wrong number of maps; expected one for each operand, got 0 for 1}}
  %0 = kiln.kernel_attention scale = 1.25e-1 over affine_map<() -> (4, 7, 9, 64, 32)>
    query(%q : tensor<7x4x64xf32>) [] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } key(%k : tensor<9x2x64xf32>) [affine_map<(h, q, k, d, e) -> (k, h floordiv 2, d)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } value(%v : tensor<9x2x32xf32>) [affine_map<(h, q, k, d, e) -> (k, h floordiv 2, e)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } score [] {
    ^bb0(%s: f32):
      kiln.kernel_yield %s : f32
    } weight {
    ^bb0(%s: f32, %m: f32):
      %t = arith.subf %s, %m : f32
      %w = math.exp2 %t : f32
      kiln.kernel_yield %w : f32
    } -> tensor<7x4x32xf32>
  return
}

// -----
func.func @arguments(%q: tensor<7x4x64xf32>, %k: tensor<9x2x64xf32>, %v: tensor<9x2x32xf32>) {
  // expected-error@+1 {{score: wrong arguments of the region}}
  %0 = kiln.kernel_attention scale = 1.25e-1 over affine_map<() -> (4, 7, 9, 64, 32)>
    query(%q : tensor<7x4x64xf32>) [affine_map<(h, q, k, d, e) -> (q, h, d)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } key(%k : tensor<9x2x64xf32>) [affine_map<(h, q, k, d, e) -> (k, h floordiv 2, d)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } value(%v : tensor<9x2x32xf32>) [affine_map<(h, q, k, d, e) -> (k, h floordiv 2, e)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } score [] {
    ^bb0(%s: f16):
      %t = arith.extf %s : f16 to f32
      kiln.kernel_yield %t : f32
    } weight {
    ^bb0(%s: f32, %m: f32):
      %t = arith.subf %s, %m : f32
      %w = math.exp2 %t : f32
      kiln.kernel_yield %w : f32
    } -> tensor<7x4x32xf32>
  return
}

// -----
func.func @element(%q: tensor<7x4x64xf32>, %k: tensor<9x2x64xf32>, %v: tensor<9x2x32xf32>) {
  // expected-error@+1 {{weight: wrong element of the region; expected f32}}
  %0 = kiln.kernel_attention scale = 1.25e-1 over affine_map<() -> (4, 7, 9, 64, 32)>
    query(%q : tensor<7x4x64xf32>) [affine_map<(h, q, k, d, e) -> (q, h, d)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } key(%k : tensor<9x2x64xf32>) [affine_map<(h, q, k, d, e) -> (k, h floordiv 2, d)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } value(%v : tensor<9x2x32xf32>) [affine_map<(h, q, k, d, e) -> (k, h floordiv 2, e)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } score [] {
    ^bb0(%s: f32):
      kiln.kernel_yield %s : f32
    } weight {
    ^bb0(%s: f32, %m: f32):
      %t = arith.truncf %s : f32 to f16
      kiln.kernel_yield %t : f16
    } -> tensor<7x4x32xf32>
  return
}

// -----
func.func @length(%q: tensor<7x4x64xf32>, %k: tensor<9x2x64xf32>, %v: tensor<9x2x32xf32>) {
  // expected-error@+1 {{value: wrong element of the region; expected f32}}
  %0 = kiln.kernel_attention scale = 1.25e-1 over affine_map<() -> (4, 7, 9, 64, 32)>
    query(%q : tensor<7x4x64xf32>) [affine_map<(h, q, k, d, e) -> (q, h, d)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } key(%k : tensor<9x2x64xf32>) [affine_map<(h, q, k, d, e) -> (k, h floordiv 2, d)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } value(%v : tensor<9x2x32xf32>) [affine_map<(h, q, k, d, e) -> (k, h floordiv 2, e)>] {
    ^bb0(%x: f32):
      %n = arith.fptosi %x : f32 to i32
      kiln.kernel_yield %x, %n : f32, i32
    } score [] {
    ^bb0(%s: f32):
      kiln.kernel_yield %s : f32
    } weight {
    ^bb0(%s: f32, %m: f32):
      %t = arith.subf %s, %m : f32
      %w = math.exp2 %t : f32
      kiln.kernel_yield %w : f32
    } -> tensor<7x4x32xf32>
  return
}

// -----
func.func @result(%q: tensor<7x4x64xf32>, %k: tensor<9x2x64xf32>, %v: tensor<9x2x32xf32>) {
  // expected-error@+1 {{kernel_attention: wrong shape of the result; expected [7, 4, 32], got f32[4, 7, 32]}}
  %0 = kiln.kernel_attention scale = 1.25e-1 over affine_map<() -> (4, 7, 9, 64, 32)>
    query(%q : tensor<7x4x64xf32>) [affine_map<(h, q, k, d, e) -> (q, h, d)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } key(%k : tensor<9x2x64xf32>) [affine_map<(h, q, k, d, e) -> (k, h floordiv 2, d)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } value(%v : tensor<9x2x32xf32>) [affine_map<(h, q, k, d, e) -> (k, h floordiv 2, e)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } score [] {
    ^bb0(%s: f32):
      kiln.kernel_yield %s : f32
    } weight {
    ^bb0(%s: f32, %m: f32):
      %t = arith.subf %s, %m : f32
      %w = math.exp2 %t : f32
      kiln.kernel_yield %w : f32
    } -> tensor<4x7x32xf32>
  return
}

// -----
func.func @empty_window(%q: tensor<7x4x64xf32>) {
  // expected-error@+1 {{wrong window; expected at least one key, of causal attention, got 0}}
  %0 = kiln.kernel_attention scale = 1.25e-1 causal affine_map<() -> (0)> window = 0 over affine_map<() -> (4, 7, 7, 64, 64)>
    query(%q : tensor<7x4x64xf32>) [affine_map<(h, q, k, d, e) -> (q, h, d)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } key(%q : tensor<7x4x64xf32>) [affine_map<(h, q, k, d, e) -> (k, h, d)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } value(%q : tensor<7x4x64xf32>) [affine_map<(h, q, k, d, e) -> (k, h, e)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } score [] {
    ^bb0(%s: f32):
      kiln.kernel_yield %s : f32
    } weight {
    ^bb0(%s: f32, %m: f32):
      kiln.kernel_yield %s : f32
    } -> tensor<7x4x64xf32>
  return
}

// -----
func.func @sink(%q: tensor<7x4x64xf32>, %z: tensor<4xf32>) {
  // expected-error@+1 {{sink: wrong map; expected the indices of an operand over its loops}}
  %0 = kiln.kernel_attention scale = 1.25e-1 causal affine_map<() -> (0)> over affine_map<() -> (4, 7, 7, 64, 64)>
    query(%q : tensor<7x4x64xf32>) [affine_map<(h, q, k, d, e) -> (q, h, d)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } key(%q : tensor<7x4x64xf32>) [affine_map<(h, q, k, d, e) -> (k, h, d)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } value(%q : tensor<7x4x64xf32>) [affine_map<(h, q, k, d, e) -> (k, h, e)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } score [] {
    ^bb0(%s: f32):
      kiln.kernel_yield %s : f32
    } weight {
    ^bb0(%s: f32, %m: f32):
      kiln.kernel_yield %s : f32
    } sink(%z : tensor<4xf32>) [affine_map<(h, q, k, d, e) -> (k)>] {
    ^bb0(%score: f32, %m: f32):
      kiln.kernel_yield %score : f32
    } -> tensor<7x4x64xf32>
  return
}
