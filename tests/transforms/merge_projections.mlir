// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --split-input-file --pass-pipeline='builtin.module(kiln-merge-projections,canonicalize)' | FileCheck %s

// Query, key and value of one tensor become one linear; the weights are joined in that order.
// CHECK-LABEL: @self
// CHECK-DAG: %[[W:.*]] = kiln.parameter {{{.*}}source_extents = array<i64: 8, 8, 8>, sources = ["q.weight", "k.weight", "v.weight"]} : tensor<24x8xf32>
// CHECK-DAG: %[[B:.*]] = kiln.parameter {{{.*}}sources = ["q.bias", "k.bias", "v.bias"]} : tensor<24xf32>
// CHECK: %[[QKV:.*]] = kiln.linear %{{.*}}, %[[W]], %[[B]] weight_order = out_in
// CHECK-NOT: kiln.linear
// CHECK-DAG: %[[Q:.*]] = kiln.slice %[[QKV]] axis = 1 start = 0
// CHECK-DAG: %[[K:.*]] = kiln.slice %[[QKV]] axis = 1 start = 8
// CHECK-DAG: %[[V:.*]] = kiln.slice %[[QKV]] axis = 1 start = 16
// CHECK: kiln.attention %[[Q]], %[[K]], %[[V]]
func.func @self(%x: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %wk = kiln.parameter {sources = ["k.weight"]} : tensor<8x8xf32>
  %bk = kiln.parameter {sources = ["k.bias"]} : tensor<8xf32>
  %k = kiln.linear %x, %wk, %bk weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<5x8xf32>
  %wq = kiln.parameter {sources = ["q.weight"]} : tensor<8x8xf32>
  %bq = kiln.parameter {sources = ["q.bias"]} : tensor<8xf32>
  %q = kiln.linear %x, %wq, %bq weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<5x8xf32>
  %wv = kiln.parameter {sources = ["v.weight"]} : tensor<8x8xf32>
  %bv = kiln.parameter {sources = ["v.bias"]} : tensor<8xf32>
  %v = kiln.linear %x, %wv, %bv weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<5x8xf32>
  %y = kiln.attention %q, %k, %v heads = 2 scale = 5.0e-1 : (tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// Cross attention: only key and value read the memory. Weights stored [in, out] join along dimension 1.
// CHECK-LABEL: @cross
// CHECK: kiln.linear %arg0
// CHECK: %[[W:.*]] = kiln.parameter {join_dim = 1 : i64, source_extents = array<i64: 8, 4>, sources = ["k", "v"]} : tensor<8x12xf32>
// CHECK: kiln.linear %arg1, %[[W]] weight_order = in_out
func.func @cross(%x: tensor<5x8xf32>, %memory: tensor<7x8xf32>) -> tensor<5x4xf32> {
  %wq = kiln.parameter {sources = ["q"]} : tensor<8x8xf32>
  %wk = kiln.parameter {sources = ["k"]} : tensor<8x8xf32>
  %wv = kiln.parameter {sources = ["v"]} : tensor<8x4xf32>
  %q = kiln.linear %x, %wq weight_order = in_out : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xf32>
  %k = kiln.linear %memory, %wk weight_order = in_out : (tensor<7x8xf32>, tensor<8x8xf32>) -> tensor<7x8xf32>
  %v = kiln.linear %memory, %wv weight_order = in_out : (tensor<7x8xf32>, tensor<8x4xf32>) -> tensor<7x4xf32>
  %y = kiln.attention %q, %k, %v heads = 2 scale = 5.0e-1 : (tensor<5x8xf32>, tensor<7x8xf32>, tensor<7x4xf32>) -> tensor<5x4xf32>
  return %y : tensor<5x4xf32>
}

// -----

// A weight with another user cannot be joined, nor can a linear with a bias and one without.
// CHECK-LABEL: @apart
// CHECK-COUNT-3: kiln.linear
func.func @apart(%x: tensor<5x8xf32>) -> (tensor<5x8xf32>, tensor<5x8xf32>) {
  %wq = kiln.parameter {sources = ["q"]} : tensor<8x8xf32>
  %wk = kiln.parameter {sources = ["k"]} : tensor<8x8xf32>
  %b = kiln.parameter {sources = ["b"]} : tensor<8xf32>
  %q = kiln.linear %x, %wq weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xf32>
  %k = kiln.linear %x, %wk, %b weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<5x8xf32>
  %v = kiln.linear %k, %wq weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xf32>
  %y = kiln.attention %q, %k, %v heads = 2 scale = 5.0e-1 : (tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %y, %v : tensor<5x8xf32>, tensor<5x8xf32>
}

// -----

// Projections whose rows a state takes are joined as those of an attention are, with or without one beside them, and
// so are those that scores read as well: each entry of a model packs the same weight.
// CHECK-LABEL: @kept
// CHECK: kiln.parameter {source_extents = array<i64: 8, 4>, sources = ["k", "v"]}
// CHECK: %[[KV:.*]] = kiln.linear
// CHECK-NOT: kiln.linear
// CHECK: kiln.append %[[KV]] to "attn.keys" rows = 64
// CHECK: kiln.append %[[KV]] column = 8 to "attn.values" rows = 64
func.func @kept(%memory: tensor<7x8xf32>) {
  %wk = kiln.parameter {sources = ["k"]} : tensor<8x8xf32>
  %wv = kiln.parameter {sources = ["v"]} : tensor<4x8xf32>
  %k = kiln.linear %memory, %wk weight_order = out_in : (tensor<7x8xf32>, tensor<8x8xf32>) -> tensor<7x8xf32>
  %v = kiln.linear %memory, %wv weight_order = out_in : (tensor<7x8xf32>, tensor<4x8xf32>) -> tensor<7x4xf32>
  %0 = kiln.append %k to "attn.keys" rows = 64 : tensor<7x8xf32> -> tensor<7x8xf32>
  %1 = kiln.append %v to "attn.values" rows = 64 : tensor<7x4xf32> -> tensor<7x4xf32>
  return
}
// -----

// CHECK-LABEL: @cached
// CHECK: sources = ["q", "k", "v"]
// CHECK-COUNT-1: kiln.linear
// CHECK-NOT: kiln.linear
func.func @cached(%x: tensor<5x8xf32>) -> (tensor<5x8xf32>, tensor<2x5x9xf32>) {
  %wq = kiln.parameter {sources = ["q"]} : tensor<8x8xf32>
  %wk = kiln.parameter {sources = ["k"]} : tensor<8x8xf32>
  %wv = kiln.parameter {sources = ["v"]} : tensor<8x8xf32>
  %q = kiln.linear %x, %wq weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xf32>
  %k = kiln.linear %x, %wk weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xf32>
  %v = kiln.linear %x, %wv weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xf32>
  %keys = kiln.append %k to "attn.keys" rows = 64 : tensor<5x8xf32> -> tensor<9x8xf32>
  %values = kiln.append %v to "attn.values" rows = 64 : tensor<5x8xf32> -> tensor<9x8xf32>
  %s = kiln.attention_scores %q, %keys heads = 2 scale = 5.0e-1 : (tensor<5x8xf32>, tensor<9x8xf32>) -> tensor<2x5x9xf32>
  %y = kiln.attention %q, %keys, %values heads = 2 scale = 5.0e-1 causal : (tensor<5x8xf32>, tensor<9x8xf32>, tensor<9x8xf32>) -> tensor<5x8xf32>
  return %y, %s : tensor<5x8xf32>, tensor<2x5x9xf32>
}

// -----

// A weight that another entry uses alone is stored alone; nothing is joined.
// CHECK-LABEL: @unlike
// CHECK-COUNT-2: kiln.linear
func.func @unlike(%x: tensor<7x8xf32>) -> tensor<7x8xf32> attributes {kiln.entry} {
  %w = kiln.parameter {sources = ["w"]} : tensor<8x8xf32>
  %v = kiln.parameter {sources = ["v"]} : tensor<8x8xf32>
  %0 = kiln.linear %x, %w weight_order = out_in : (tensor<7x8xf32>, tensor<8x8xf32>) -> tensor<7x8xf32>
  %1 = kiln.linear %x, %v weight_order = out_in : (tensor<7x8xf32>, tensor<8x8xf32>) -> tensor<7x8xf32>
  %2 = kiln.attention %0, %1, %x heads = 2 scale = 5.000000e-01 : (tensor<7x8xf32>, tensor<7x8xf32>, tensor<7x8xf32>) -> tensor<7x8xf32>
  return %2 : tensor<7x8xf32>
}
func.func @alone() -> tensor<8x8xf32> attributes {kiln.entry} {
  %w = kiln.parameter {sources = ["w"]} : tensor<8x8xf32>
  return %w : tensor<8x8xf32>
}

// -----

// Keys that are the values, too, are one linear.
// CHECK-LABEL: @keys_are_values
// CHECK: sources = ["w", "v"]
// CHECK-COUNT-1: kiln.linear
func.func @keys_are_values(%x: tensor<7x8xf32>) -> tensor<7x8xf32> attributes {kiln.entry} {
  %w = kiln.parameter {sources = ["w"]} : tensor<8x8xf32>
  %v = kiln.parameter {sources = ["v"]} : tensor<8x8xf32>
  %0 = kiln.linear %x, %w weight_order = out_in : (tensor<7x8xf32>, tensor<8x8xf32>) -> tensor<7x8xf32>
  %1 = kiln.linear %x, %v weight_order = out_in : (tensor<7x8xf32>, tensor<8x8xf32>) -> tensor<7x8xf32>
  %2 = kiln.attention %0, %1, %1 heads = 2 scale = 5.000000e-01 : (tensor<7x8xf32>, tensor<7x8xf32>, tensor<7x8xf32>) -> tensor<7x8xf32>
  return %2 : tensor<7x8xf32>
}
