// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --split-input-file --pass-pipeline='builtin.module(kiln-merge-projections,canonicalize)' | FileCheck %s

// Query, key and value projections of one tensor become one linear, whose weights are concatenated in that order.
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

// Cross attention: only key and value read the memory. Weights stored [in, out] are concatenated along dimension 1.
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

// A weight with another user cannot be merged, nor can a linear with a bias and one without.
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

// Projections whose rows a state stores are merged like those of an attention, with or without one in the entry, and so
// are those that scores read as well: each entry of a model packs the same weight.
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

// A weight that another entry uses separately is packed separately, so nothing is merged.
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

// Keys that are also the values have one projection.
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

// -----

// Queries and keys are recognised after rotary positions, in each entry alike. The merged result is split into heads,
// both are rotated at once, and their readers read a part of that. Queries come last.
#rows = affine_map<()[s0] -> (s0, 8)>
module attributes {kiln.symbols = [#kiln.symbol<"tokens", 1, 5>]} {
// CHECK-LABEL: @rotary
// CHECK: %[[W:.*]] = kiln.parameter {source_extents = array<i64: 4, 4, 8>, sources = ["v", "k", "q"]} : tensor<16x8xf32>
// CHECK: %[[VKQ:.*]] = kiln.linear %{{.*}}, %[[W]] weight_order
// CHECK-NOT: kiln.linear
// CHECK: %[[HEADS:.*]] = kiln.reshape %[[VKQ]] : tensor<5x16xf32> -> tensor<5x4x2x2xf32>
// CHECK: %[[KQ:.*]] = kiln.slice %[[HEADS]] axis = 1 start = 1 : tensor<5x4x2x2xf32> -> tensor<5x3x2x2xf32>
// CHECK: kiln.slice %[[KQ]] axis = 2 start = 0
// CHECK: kiln.slice %[[KQ]] axis = 2 start = 1
// CHECK-COUNT-1: kiln.concat
// CHECK-NOT: kiln.concat
// CHECK: %[[TURNED:.*]] = kiln.reshape %{{.*}} : tensor<5x3x2x2xf32> -> tensor<5x12xf32>
// CHECK: %[[Q:.*]] = kiln.slice %[[TURNED]] axis = 1 start = 4
// CHECK: %[[KEYS:.*]] = kiln.append %[[TURNED]] to "a.keys"
// CHECK: %[[VALUES:.*]] = kiln.append %[[VKQ]] to "a.values"
// CHECK: kiln.attention %[[Q]], %[[KEYS]], %[[VALUES]]
func.func @rotary(%s0: index {kiln.symbol = "tokens"}, %x: tensor<5x8xf32>, %sin: tensor<5x1x1x2xf32>,
                  %cos: tensor<5x1x1x2xf32>) -> tensor<5x8xf32> attributes {kiln.entry} {
  %wq = kiln.parameter {sources = ["q"]} : tensor<8x8xf32>
  %q = kiln.linear %x, %wq weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xf32>
  %qh = kiln.reshape %q : tensor<5x8xf32> -> tensor<5x2x2x2xf32>
  %qa = kiln.slice %qh axis = 2 start = 0 : tensor<5x2x2x2xf32> -> tensor<5x2x1x2xf32>
  %qb = kiln.slice %qh axis = 2 start = 1 : tensor<5x2x2x2xf32> -> tensor<5x2x1x2xf32>
  %q0 = kiln.mul %qa, %cos : (tensor<5x2x1x2xf32>, tensor<5x1x1x2xf32>) -> tensor<5x2x1x2xf32>
  %q1 = kiln.mul %qb, %sin : (tensor<5x2x1x2xf32>, tensor<5x1x1x2xf32>) -> tensor<5x2x1x2xf32>
  %q2 = kiln.sub %q0, %q1 : (tensor<5x2x1x2xf32>, tensor<5x2x1x2xf32>) -> tensor<5x2x1x2xf32>
  %qt = kiln.concat %q2, %qb axis = 2 : (tensor<5x2x1x2xf32>, tensor<5x2x1x2xf32>) -> tensor<5x2x2x2xf32>
  %qr = kiln.reshape %qt : tensor<5x2x2x2xf32> -> tensor<5x8xf32>
  %wk = kiln.parameter {sources = ["k"]} : tensor<4x8xf32>
  %k = kiln.linear %x, %wk weight_order = out_in : (tensor<5x8xf32>, tensor<4x8xf32>) -> tensor<5x4xf32>
  %kh = kiln.reshape %k : tensor<5x4xf32> -> tensor<5x1x2x2xf32>
  %ka = kiln.slice %kh axis = 2 start = 0 : tensor<5x1x2x2xf32> -> tensor<5x1x1x2xf32>
  %kb = kiln.slice %kh axis = 2 start = 1 : tensor<5x1x2x2xf32> -> tensor<5x1x1x2xf32>
  %k0 = kiln.mul %ka, %cos : (tensor<5x1x1x2xf32>, tensor<5x1x1x2xf32>) -> tensor<5x1x1x2xf32>
  %k1 = kiln.mul %kb, %sin : (tensor<5x1x1x2xf32>, tensor<5x1x1x2xf32>) -> tensor<5x1x1x2xf32>
  %k2 = kiln.sub %k0, %k1 : (tensor<5x1x1x2xf32>, tensor<5x1x1x2xf32>) -> tensor<5x1x1x2xf32>
  %kt = kiln.concat %k2, %kb axis = 2 : (tensor<5x1x1x2xf32>, tensor<5x1x1x2xf32>) -> tensor<5x1x2x2xf32>
  %kr = kiln.reshape %kt : tensor<5x1x2x2xf32> -> tensor<5x4xf32>
  %keys = kiln.append %kr to "a.keys" rows = 64 : tensor<5x4xf32> -> tensor<9x4xf32>
  %wv = kiln.parameter {sources = ["v"]} : tensor<4x8xf32>
  %v = kiln.linear %x, %wv weight_order = out_in : (tensor<5x8xf32>, tensor<4x8xf32>) -> tensor<5x4xf32>
  %values = kiln.append %v to "a.values" rows = 64 : tensor<5x4xf32> -> tensor<9x4xf32>
  %y = kiln.attention %qr, %keys, %values heads = 2 key_value_heads = 1 scale = 5.0e-1 causal : (tensor<5x8xf32>, tensor<9x4xf32>, tensor<9x4xf32>) -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}
// An entry with a dynamic number of rows packs the same weight.
// CHECK-LABEL: @rotary_too
// CHECK: kiln.parameter {source_extents = array<i64: 4, 4, 8>, sources = ["v", "k", "q"]}
// CHECK-COUNT-1: kiln.linear
// CHECK-NOT: kiln.linear
// CHECK: kiln.reshape %{{.*}} -> tensor<?x8x2xf32
func.func @rotary_too(%s0: index {kiln.symbol = "tokens"}, %x: tensor<?x8xf32, #rows>) -> tensor<?x8xf32, #rows>
    attributes {kiln.entry} {
  %wq = kiln.parameter {sources = ["q"]} : tensor<8x8xf32>
  %q = kiln.linear %x, %wq weight_order = out_in : (tensor<?x8xf32, #rows>, tensor<8x8xf32>) -> tensor<?x8xf32, #rows>
  %qh = kiln.reshape %q : tensor<?x8xf32, #rows> -> tensor<?x4x2xf32, affine_map<()[s0] -> (s0, 4, 2)>>
  %qt = kiln.relu %qh : tensor<?x4x2xf32, affine_map<()[s0] -> (s0, 4, 2)>>
  %qr = kiln.reshape %qt : tensor<?x4x2xf32, affine_map<()[s0] -> (s0, 4, 2)>> -> tensor<?x8xf32, #rows>
  %wk = kiln.parameter {sources = ["k"]} : tensor<4x8xf32>
  %k = kiln.linear %x, %wk weight_order = out_in : (tensor<?x8xf32, #rows>, tensor<4x8xf32>) -> tensor<?x4xf32, affine_map<()[s0] -> (s0, 4)>>
  %wv = kiln.parameter {sources = ["v"]} : tensor<4x8xf32>
  %v = kiln.linear %x, %wv weight_order = out_in : (tensor<?x8xf32, #rows>, tensor<4x8xf32>) -> tensor<?x4xf32, affine_map<()[s0] -> (s0, 4)>>
  %y = kiln.attention %qr, %k, %v heads = 2 key_value_heads = 1 scale = 5.0e-1 : (tensor<?x8xf32, #rows>, tensor<?x4xf32, affine_map<()[s0] -> (s0, 4)>>, tensor<?x4xf32, affine_map<()[s0] -> (s0, 4)>>) -> tensor<?x8xf32, #rows>
  return %y : tensor<?x8xf32, #rows>
}
}

// -----

// Norms of heads have different weights: each reads its own heads of the merged result.
// CHECK-LABEL: @normed
// CHECK: sources = ["k", "q"]
// CHECK-COUNT-1: kiln.linear
// CHECK-NOT: kiln.linear
// CHECK: %[[HEADS:.*]] = kiln.reshape %{{.*}} : tensor<5x12xf32> -> tensor<5x3x4xf32>
// CHECK-DAG: %[[K:.*]] = kiln.slice %[[HEADS]] axis = 1 start = 0 : tensor<5x3x4xf32> -> tensor<5x1x4xf32>
// CHECK-DAG: %[[Q:.*]] = kiln.slice %[[HEADS]] axis = 1 start = 1 : tensor<5x3x4xf32> -> tensor<5x2x4xf32>
// CHECK-DAG: kiln.rms_norm %[[K]], %arg2
// CHECK-DAG: kiln.rms_norm %[[Q]], %arg1
func.func @normed(%x: tensor<5x8xf32>, %g: tensor<4xf32>, %h: tensor<4xf32>) -> tensor<5x8xf32> {
  %wq = kiln.parameter {sources = ["q"]} : tensor<8x8xf32>
  %wk = kiln.parameter {sources = ["k"]} : tensor<4x8xf32>
  %q = kiln.linear %x, %wq weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xf32>
  %k = kiln.linear %x, %wk weight_order = out_in : (tensor<5x8xf32>, tensor<4x8xf32>) -> tensor<5x4xf32>
  %qh = kiln.reshape %q : tensor<5x8xf32> -> tensor<5x2x4xf32>
  %qn = kiln.rms_norm %qh, %g epsilon = 1.0e-5 : (tensor<5x2x4xf32>, tensor<4xf32>) -> tensor<5x2x4xf32>
  %qr = kiln.reshape %qn : tensor<5x2x4xf32> -> tensor<5x8xf32>
  %kh = kiln.reshape %k : tensor<5x4xf32> -> tensor<5x1x4xf32>
  %kn = kiln.rms_norm %kh, %h epsilon = 1.0e-5 : (tensor<5x1x4xf32>, tensor<4xf32>) -> tensor<5x1x4xf32>
  %kr = kiln.reshape %kn : tensor<5x1x4xf32> -> tensor<5x4xf32>
  %y = kiln.attention %qr, %kr, %kr heads = 2 key_value_heads = 1 scale = 5.0e-1 : (tensor<5x8xf32>, tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// Heads that are rotated by different angles are rotated separately; both read the merged result. If the operations
// on both are only partly equal, none is merged.
// CHECK-LABEL: @other_angles
// CHECK: kiln.linear
// CHECK-NOT: kiln.linear
// CHECK: kiln.mul %{{.*}}, %arg1
// CHECK: kiln.relu {{.*}} : tensor<5x2x4xf32>
// CHECK: kiln.mul %{{.*}}, %arg2
// CHECK: kiln.relu {{.*}} : tensor<5x1x4xf32>
func.func @other_angles(%x: tensor<5x8xf32>, %a: tensor<5x1x4xf32>, %b: tensor<5x1x4xf32>) -> tensor<5x8xf32> {
  %wq = kiln.parameter {sources = ["q"]} : tensor<8x8xf32>
  %wk = kiln.parameter {sources = ["k"]} : tensor<4x8xf32>
  %q = kiln.linear %x, %wq weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xf32>
  %k = kiln.linear %x, %wk weight_order = out_in : (tensor<5x8xf32>, tensor<4x8xf32>) -> tensor<5x4xf32>
  %qh = kiln.reshape %q : tensor<5x8xf32> -> tensor<5x2x4xf32>
  %qm = kiln.mul %qh, %a : (tensor<5x2x4xf32>, tensor<5x1x4xf32>) -> tensor<5x2x4xf32>
  %qn = kiln.relu %qm : tensor<5x2x4xf32>
  %qr = kiln.reshape %qn : tensor<5x2x4xf32> -> tensor<5x8xf32>
  %kh = kiln.reshape %k : tensor<5x4xf32> -> tensor<5x1x4xf32>
  %km = kiln.mul %kh, %b : (tensor<5x1x4xf32>, tensor<5x1x4xf32>) -> tensor<5x1x4xf32>
  %kn = kiln.relu %km : tensor<5x1x4xf32>
  %kr = kiln.reshape %kn : tensor<5x1x4xf32> -> tensor<5x4xf32>
  %y = kiln.attention %qr, %kr, %kr heads = 2 key_value_heads = 1 scale = 5.0e-1 : (tensor<5x8xf32>, tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// Arithmetic on a result is fused with its linear, but would be a separate kernel after a merged linear. Heads of 8
// do not begin at a multiple of 8 after 4 other columns.
// CHECK-LABEL: @own_epilogue
// CHECK-COUNT-2: kiln.linear
func.func @own_epilogue(%x: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %wq = kiln.parameter {sources = ["q"]} : tensor<8x8xf32>
  %wk = kiln.parameter {sources = ["k"]} : tensor<8x8xf32>
  %q = kiln.linear %x, %wq weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xf32>
  %k = kiln.linear %x, %wk weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xf32>
  %r = kiln.relu %q : tensor<5x8xf32>
  %y = kiln.attention %r, %k, %k heads = 2 scale = 5.0e-1 : (tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}
// CHECK-LABEL: @uneven_heads
// CHECK-COUNT-2: kiln.linear
func.func @uneven_heads(%x: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %wq = kiln.parameter {sources = ["q2"]} : tensor<16x8xf32>
  %wv = kiln.parameter {sources = ["v2"]} : tensor<4x8xf32>
  %q = kiln.linear %x, %wq weight_order = out_in : (tensor<5x8xf32>, tensor<16x8xf32>) -> tensor<5x16xf32>
  %v = kiln.linear %x, %wv weight_order = out_in : (tensor<5x8xf32>, tensor<4x8xf32>) -> tensor<5x4xf32>
  %qh = kiln.reshape %q : tensor<5x16xf32> -> tensor<5x2x8xf32>
  %r = kiln.relu %qh : tensor<5x2x8xf32>
  %qr = kiln.reshape %r : tensor<5x2x8xf32> -> tensor<5x16xf32>
  %y = kiln.attention %qr, %x, %v heads = 2 key_value_heads = 1 scale = 5.0e-1 : (tensor<5x16xf32>, tensor<5x8xf32>, tensor<5x4xf32>) -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// Keys and values that are cached as integers with a scale for each head are read from the merged result, too.
// CHECK-LABEL: @kept_in_int8
// CHECK: sources = ["v", "k"]
// CHECK-COUNT-1: kiln.linear
// CHECK-NOT: kiln.linear
func.func @kept_in_int8(%memory: tensor<7x8xf32>, %scale: tensor<f32>) {
  %wk = kiln.parameter {sources = ["k"]} : tensor<8x8xf32>
  %wv = kiln.parameter {sources = ["v"]} : tensor<8x8xf32>
  %k = kiln.linear %memory, %wk weight_order = out_in : (tensor<7x8xf32>, tensor<8x8xf32>) -> tensor<7x8xf32>
  %v = kiln.linear %memory, %wv weight_order = out_in : (tensor<7x8xf32>, tensor<8x8xf32>) -> tensor<7x8xf32>
  %kh = kiln.reshape %k : tensor<7x8xf32> -> tensor<7x2x4xf32>
  %ks = kiln.max %kh axis = 2 : (tensor<7x2x4xf32>) -> tensor<7x2xf32>
  %kn = kiln.cast %kh : tensor<7x2x4xf32> -> tensor<7x2x4xi8>
  %0 = kiln.append %kn to "attn.keys" rows = 64 : tensor<7x2x4xi8> -> tensor<7x2x4xi8>
  %1 = kiln.append %ks to "attn.key_scales" rows = 64 : tensor<7x2xf32> -> tensor<7x2xf32>
  %vh = kiln.reshape %v : tensor<7x8xf32> -> tensor<7x2x4xf32>
  %vs = kiln.max %vh axis = 2 : (tensor<7x2x4xf32>) -> tensor<7x2xf32>
  %vn = kiln.cast %vh : tensor<7x2x4xf32> -> tensor<7x2x4xi8>
  %2 = kiln.append %vn to "attn.values" rows = 64 : tensor<7x2x4xi8> -> tensor<7x2x4xi8>
  %3 = kiln.append %vs to "attn.value_scales" rows = 64 : tensor<7x2xf32> -> tensor<7x2xf32>
  return
}
