// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --pass-pipeline='builtin.module(func.func(kiln-keep-order))' | FileCheck %s

#row = affine_map<(m, k) -> (m, k)>

// CHECK: func.func private @sum({{.*}}) -> tensor<4x16xf32> attributes {kiln.batch_invariant, kiln.kernel}
func.func private @sum(%x: tensor<4x16xf32>, %y: tensor<4x16xf32>) -> tensor<4x16xf32> attributes {kiln.kernel} {
  %empty = tensor.empty() : tensor<4x16xf32>
  %z = linalg.generic {indexing_maps = [#row, #row, #row], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : tensor<4x16xf32>, tensor<4x16xf32>) outs(%empty : tensor<4x16xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<4x16xf32>
  return %z : tensor<4x16xf32>
}

// Operations that only move data or add integers are order-independent and unchanged.
// CHECK: func.func private @copy({{.*}}) -> tensor<4x16xf32> attributes {kiln.kernel} {
func.func private @copy(%x: tensor<4x16xf32>) -> tensor<4x16xf32> attributes {kiln.kernel} {
  %empty = tensor.empty() : tensor<4x16xf32>
  %z = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x16xf32>) outs(%empty : tensor<4x16xf32>) {
  ^bb0(%a: f32, %s: f32):
    linalg.yield %a : f32
  } -> tensor<4x16xf32>
  return %z : tensor<4x16xf32>
}

// CHECK: func.func private @count({{.*}}) -> tensor<4x16xi32> attributes {kiln.kernel} {
func.func private @count(%x: tensor<4x16xi32>, %y: tensor<4x16xi32>) -> tensor<4x16xi32> attributes {kiln.kernel} {
  %empty = tensor.empty() : tensor<4x16xi32>
  %z = linalg.generic {indexing_maps = [#row, #row, #row], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : tensor<4x16xi32>, tensor<4x16xi32>) outs(%empty : tensor<4x16xi32>) {
  ^bb0(%a: i32, %b: i32, %s: i32):
    %t = arith.addi %a, %b : i32
    linalg.yield %t : i32
  } -> tensor<4x16xi32>
  return %z : tensor<4x16xi32>
}
