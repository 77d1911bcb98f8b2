// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --split-input-file --pass-pipeline='builtin.module(canonicalize,func.func(kiln-recognize-attention),canonicalize)' | FileCheck %s

// Heads split by reshapes, a scale as a division, a mask with an axis for the heads.
// CHECK-LABEL: @heads
// CHECK: %[[M:.*]] = kiln.reshape %arg3 : tensor<1x5x7xf32> -> tensor<5x7xf32>
// CHECK: %[[Y:.*]] = kiln.attention %arg0, %arg1, %arg2 mask %[[M]] heads = 2 scale = 5.000000e-01
// CHECK-NEXT: return %[[Y]]
func.func @heads(%q: tensor<5x8xf32>, %k: tensor<7x8xf32>, %v: tensor<7x6xf32>, %mask: tensor<1x5x7xf32>) -> tensor<5x6xf32> {
  %two = kiln.constant dense<2.0> : tensor<f32>
  %q0 = kiln.reshape %q : tensor<5x8xf32> -> tensor<5x2x4xf32>
  %k0 = kiln.reshape %k : tensor<7x8xf32> -> tensor<7x2x4xf32>
  %v0 = kiln.reshape %v : tensor<7x6xf32> -> tensor<7x2x3xf32>
  %q1 = kiln.transpose %q0 permutation = [1, 0, 2] : (tensor<5x2x4xf32>) -> tensor<2x5x4xf32>
  %k1 = kiln.transpose %k0 permutation = [1, 2, 0] : (tensor<7x2x4xf32>) -> tensor<2x4x7xf32>
  %v1 = kiln.transpose %v0 permutation = [1, 0, 2] : (tensor<7x2x3xf32>) -> tensor<2x7x3xf32>
  %s = kiln.matmul %q1, %k1 : (tensor<2x5x4xf32>, tensor<2x4x7xf32>) -> tensor<2x5x7xf32>
  %s1 = kiln.div %s, %two : (tensor<2x5x7xf32>, tensor<f32>) -> tensor<2x5x7xf32>
  %s2 = kiln.add %s1, %mask : (tensor<2x5x7xf32>, tensor<1x5x7xf32>) -> tensor<2x5x7xf32>
  %p = kiln.softmax %s2 axis = 2 : tensor<2x5x7xf32>
  %o = kiln.matmul %p, %v1 : (tensor<2x5x7xf32>, tensor<2x7x3xf32>) -> tensor<2x5x3xf32>
  %o1 = kiln.transpose %o permutation = [1, 0, 2] : (tensor<2x5x3xf32>) -> tensor<5x2x3xf32>
  %y = kiln.reshape %o1 : tensor<5x2x3xf32> -> tensor<5x6xf32>
  return %y : tensor<5x6xf32>
}

// -----

// One head, batched, the scale on the query; the transposed key is canonical as transpose_b.
// CHECK-LABEL: @batched
// CHECK: kiln.attention %arg0, %arg1, %arg2 heads = 1 scale = 2.500000e-01
// CHECK-NOT: kiln.matmul
func.func @batched(%q: tensor<3x5x4xf32>, %k: tensor<3x7x4xf32>, %v: tensor<3x7x4xf32>) -> tensor<3x5x4xf32> {
  %c = kiln.constant dense<0.25> : tensor<f32>
  %q0 = kiln.mul %c, %q : (tensor<f32>, tensor<3x5x4xf32>) -> tensor<3x5x4xf32>
  %k0 = kiln.transpose %k permutation = [0, 2, 1] : (tensor<3x7x4xf32>) -> tensor<3x4x7xf32>
  %s = kiln.matmul %q0, %k0 : (tensor<3x5x4xf32>, tensor<3x4x7xf32>) -> tensor<3x5x7xf32>
  %p = kiln.softmax %s axis = 2 : tensor<3x5x7xf32>
  %o = kiln.matmul %p, %v : (tensor<3x5x7xf32>, tensor<3x7x4xf32>) -> tensor<3x5x4xf32>
  return %o : tensor<3x5x4xf32>
}

// -----

// A constant mask that excludes later keys becomes `causal`.
// CHECK-LABEL: @causal
// CHECK: kiln.attention %arg0, %arg0, %arg0 heads = 1 scale = 1.000000e+00 causal
func.func @causal(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %mask = kiln.constant dense<[[0.0, -1.0e9, -1.0e9], [0.0, 0.0, -1.0e9], [0.0, 0.0, 0.0]]> : tensor<3x3xf32>
  %s = kiln.matmul %x, %x transpose_b : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x3xf32>
  %m = kiln.add %s, %mask : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %p = kiln.softmax %m axis = 1 : tensor<3x3xf32>
  %o = kiln.matmul %p, %x : (tensor<3x3xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  return %o : tensor<3x4xf32>
}

// -----

// The mask differs by one element from a causal one: it stays a mask.
// CHECK-LABEL: @almost_causal
// CHECK: kiln.attention {{.*}} mask
// CHECK-NOT: causal
func.func @almost_causal(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %mask = kiln.constant dense<[[0.0, -1.0e9], [1.0, 0.0]]> : tensor<2x2xf32>
  %s = kiln.matmul %x, %x transpose_b : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x2xf32>
  %m = kiln.add %s, %mask : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %p = kiln.softmax %m axis = 1 : tensor<2x2xf32>
  %o = kiln.matmul %p, %x : (tensor<2x2xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %o : tensor<2x4xf32>
}

// -----

// The softmax is over the queries, and in the second one the probabilities are returned as well: neither is attention.
// CHECK-LABEL: @not_attention
// CHECK-NOT: kiln.attention
func.func @not_attention(%x: tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x3xf32>) {
  %s = kiln.matmul %x, %x transpose_b : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %p = kiln.softmax %s axis = 0 : tensor<3x3xf32>
  %o = kiln.matmul %p, %x : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %s2 = kiln.matmul %o, %o transpose_b : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %p2 = kiln.softmax %s2 axis = 1 : tensor<3x3xf32>
  %o2 = kiln.matmul %p2, %x : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  return %o, %o2, %p2 : tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x3xf32>
}
