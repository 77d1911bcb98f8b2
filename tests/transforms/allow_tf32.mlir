// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --pass-pipeline='builtin.module(func.func(kiln-allow-tf32))' | FileCheck %s

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#sum = affine_map<(m, n, k) -> (m, n)>

// CHECK: func.func private @product({{.*}}) -> tensor<4x8xf32> attributes {kiln.kernel, kiln.tf32}
func.func private @product(%x: tensor<4x16xf32>, %w: tensor<8x16xf32>) -> tensor<4x8xf32> attributes {kiln.kernel} {
  %empty = tensor.empty() : tensor<4x8xf32>
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = linalg.generic {indexing_maps = [#lhs, #rhs, #sum], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4x16xf32>, tensor<8x16xf32>) outs(%start : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// Strict contractions and sums of squares are unchanged.
// CHECK: func.func private @strict({{.*}}) -> tensor<4x8xf32> attributes {kiln.kernel} {
func.func private @strict(%x: tensor<4x16xf32>, %w: tensor<8x16xf32>) -> tensor<4x8xf32> attributes {kiln.kernel} {
  %empty = tensor.empty() : tensor<4x8xf32>
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = linalg.generic {indexing_maps = [#lhs, #rhs, #sum], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4x16xf32>, tensor<8x16xf32>) outs(%start : tensor<4x8xf32>) attrs = {kiln.strict} {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// CHECK: func.func private @squares({{.*}}) -> tensor<4xf32> attributes {kiln.kernel} {
func.func private @squares(%x: tensor<4x16xf32>) -> tensor<4xf32> attributes {kiln.kernel} {
  %empty = tensor.empty() : tensor<4xf32>
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m)>],
                       iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x16xf32>) outs(%start : tensor<4xf32>) {
  ^bb0(%a: f32, %s: f32):
    %p = arith.mulf %a, %a : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// The two products of attention are one op.
// CHECK: func.func private @attention({{.*}}) -> tensor<7x4x64xf32> attributes {kiln.kernel, kiln.tf32}
func.func private @attention(%q: tensor<7x4x64xf32>, %k: tensor<9x4x64xf32>) -> tensor<7x4x64xf32> attributes {kiln.kernel} {
  %y = kiln.kernel_attention scale = 1.25e-1 over affine_map<() -> (4, 7, 9, 64, 64)>
    query(%q : tensor<7x4x64xf32>) [affine_map<(h, q, k, d, e) -> (q, h, d)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } key(%k : tensor<9x4x64xf32>) [affine_map<(h, q, k, d, e) -> (k, h, d)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } value(%k : tensor<9x4x64xf32>) [affine_map<(h, q, k, d, e) -> (k, h, e)>] {
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
    } -> tensor<7x4x64xf32>
  return %y : tensor<7x4x64xf32>
}

// CHECK: func.func private @strict_attention({{.*}}) -> tensor<7x4x64xf32> attributes {kiln.kernel} {
func.func private @strict_attention(%q: tensor<7x4x64xf32>, %k: tensor<9x4x64xf32>) -> tensor<7x4x64xf32> attributes {kiln.kernel} {
  %y = kiln.kernel_attention scale = 1.25e-1 over affine_map<() -> (4, 7, 9, 64, 64)>
    query(%q : tensor<7x4x64xf32>) [affine_map<(h, q, k, d, e) -> (q, h, d)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } key(%k : tensor<9x4x64xf32>) [affine_map<(h, q, k, d, e) -> (k, h, d)>] {
    ^bb0(%x: f32):
      kiln.kernel_yield %x : f32
    } value(%k : tensor<9x4x64xf32>) [affine_map<(h, q, k, d, e) -> (k, h, e)>] {
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
    } {kiln.strict} -> tensor<7x4x64xf32>
  return %y : tensor<7x4x64xf32>
}

// Sums of integers are unchanged.
// CHECK: func.func private @integers({{.*}}) -> tensor<4xi32> attributes {kiln.kernel} {
func.func private @integers(%x: tensor<4x16xi32>, %w: tensor<16xi32>) -> tensor<4xi32> attributes {kiln.kernel} {
  %empty = tensor.empty() : tensor<4xi32>
  %zero = arith.constant 0 : i32
  %start = linalg.fill ins(%zero : i32) outs(%empty : tensor<4xi32>) -> tensor<4xi32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (k)>, affine_map<(m, k) -> (m)>],
                       iterator_types = ["parallel", "reduction"]}
      ins(%x, %w : tensor<4x16xi32>, tensor<16xi32>) outs(%start : tensor<4xi32>) {
  ^bb0(%a: i32, %b: i32, %s: i32):
    %p = arith.muli %a, %b : i32
    %t = arith.addi %s, %p : i32
    linalg.yield %t : i32
  } -> tensor<4xi32>
  return %y : tensor<4xi32>
}
