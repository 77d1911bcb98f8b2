// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --split-input-file --pass-pipeline='builtin.module(kiln-form-kernels,canonicalize,cse,kiln-verify-kernels)' | FileCheck %s

#x = affine_map<()[s0, s1] -> (s0, s1, 8)>
#h = affine_map<()[s0, s1] -> (s0, s1, 12)>
module attributes {kiln.symbols = [#kiln.symbol<"batch", 1, 4>, #kiln.symbol<"tokens", 1, 16>]} {

// Bias, activation and residual are fused with the contraction; batch and tokens become one symbol, with bounds.
// CHECK-DAG: #[[ROWS:.*]] = affine_map<()[s0] -> (s0, 8)>
// CHECK: func.func private @linear_relu_0(%{{.*}}: index, %{{.*}}: tensor<?x8xf32, #[[ROWS]]>, %{{.*}}: tensor<12x8xf32>, %{{.*}}: tensor<12xf32>)
// CHECK-SAME: kiln.bounds = array<i64: 1, 64>
// CHECK: kiln.linear
// CHECK-NEXT: kiln.relu
// CHECK-NEXT: return
// CHECK: func.func private @linear_add_1
// CHECK: kiln.linear
// CHECK-NEXT: kiln.add
// CHECK-NEXT: return
// CHECK: func.func @epilogue
// CHECK: %[[R:.*]] = arith.muli %arg0, %arg1
// CHECK: kiln.reshape %arg2
// CHECK: kiln.call @linear_relu_0[%[[R]]]
// CHECK: kiln.call @linear_add_1[%[[R]]]
func.func @epilogue(%s0: index {kiln.symbol = "batch"}, %s1: index {kiln.symbol = "tokens"}, %x: tensor<?x?x8xf32, #x>)
    -> tensor<?x?x8xf32, #x> attributes {kiln.entry} {
  %w = kiln.parameter {sources = ["w"]} : tensor<12x8xf32>
  %b = kiln.parameter {sources = ["b"]} : tensor<12xf32>
  %v = kiln.parameter {sources = ["v"]} : tensor<8x12xf32>
  %y = kiln.linear %x, %w, %b weight_order = out_in : (tensor<?x?x8xf32, #x>, tensor<12x8xf32>, tensor<12xf32>) -> tensor<?x?x12xf32, #h>
  %a = kiln.relu %y : tensor<?x?x12xf32, #h>
  %z = kiln.linear %a, %v weight_order = out_in : (tensor<?x?x12xf32, #h>, tensor<8x12xf32>) -> tensor<?x?x8xf32, #x>
  %r = kiln.add %x, %z : (tensor<?x?x8xf32, #x>, tensor<?x?x8xf32, #x>) -> tensor<?x?x8xf32, #x>
  return %r : tensor<?x?x8xf32, #x>
}
}

// -----

// An epilogue may fork if its branches join again, as in silu as a product with a sigmoid.
// CHECK: func.func private @linear_sigmoid_mul_0
// CHECK: kiln.linear
// CHECK-NEXT: kiln.sigmoid
// CHECK-NEXT: kiln.mul
// CHECK-NEXT: return
// CHECK-NOT: @{{[a-z_0-9]+_}}1
func.func @fork(%x: tensor<5x8xf32>) -> tensor<5x8xf32> attributes {kiln.entry} {
  %w = kiln.parameter {sources = ["w"]} : tensor<8x8xf32>
  %y = kiln.linear %x, %w weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xf32>
  %s = kiln.sigmoid %y : tensor<5x8xf32>
  %z = kiln.mul %y, %s : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %z : tensor<5x8xf32>
}

// -----

// The matrix product is returned, so its activation is a separate kernel.
// CHECK: func.func private @linear_0
// CHECK: kiln.linear
// CHECK-NEXT: return
// CHECK: func.func private @relu_1
// CHECK: kiln.relu
func.func @no_fork(%x: tensor<5x8xf32>) -> (tensor<5x8xf32>, tensor<5x8xf32>) attributes {kiln.entry} {
  %w = kiln.parameter {sources = ["w"]} : tensor<8x8xf32>
  %y = kiln.linear %x, %w weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xf32>
  %z = kiln.relu %y : tensor<5x8xf32>
  return %y, %z : tensor<5x8xf32>, tensor<5x8xf32>
}

// -----

// Each kernel that reads a widening cast computes it: the operand has fewer bytes.
// CHECK: func.func private @cast_mean_0(%{{.*}}: tensor<5x8xf16>) -> tensor<5xf32>
// CHECK-NEXT: kiln.cast
// CHECK-NEXT: kiln.mean
// CHECK: func.func private @cast_exp_1(%{{.*}}: tensor<5x8xf16>) -> tensor<5x8xf32>
// CHECK-NEXT: kiln.cast
// CHECK-NEXT: kiln.exp
// CHECK-NOT: @{{[a-z_0-9]+_}}2
func.func @widened(%x: tensor<5x8xf16>) -> (tensor<5xf32>, tensor<5x8xf32>) attributes {kiln.entry} {
  %wide = kiln.cast %x : tensor<5x8xf16> -> tensor<5x8xf32>
  %m = kiln.mean %wide axis = 1 : (tensor<5x8xf32>) -> tensor<5xf32>
  %e = kiln.exp %wide : tensor<5x8xf32>
  return %m, %e : tensor<5xf32>, tensor<5x8xf32>
}

// -----

// A sum that a norm and other operations read is a second result of the norm's kernel.
// CHECK: func.func private @add_layer_norm_0({{.*}}) -> (tensor<5x8xf32>, tensor<5x8xf32>)
// CHECK: %[[S:.*]] = kiln.add
// CHECK: %[[N:.*]] = kiln.layer_norm %[[S]]
// CHECK: return %[[S]], %[[N]]
// CHECK: %[[R:.*]]:2 = kiln.call @add_layer_norm_0
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @residual_norm(%x: tensor<5x8xf32>, %y: tensor<5x8xf32>) -> (tensor<5x8xf32>, tensor<5x8xf32>) attributes {kiln.entry} {
  %s = kiln.add %x, %y : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %w = kiln.parameter {sources = ["w"]} : tensor<8xf32>
  %n = kiln.layer_norm %s, %w, %w epsilon = 1.0e-5 : (tensor<5x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<5x8xf32>
  return %s, %n : tensor<5x8xf32>, tensor<5x8xf32>
}

// -----

// Both embeddings and the norm form one kernel, which computes the positions.
// CHECK: func.func private @embedding_add_layer_norm_0
// CHECK-DAG: kiln.embedding
// CHECK-DAG: kiln.positions
// CHECK: kiln.add
// CHECK-NEXT: kiln.layer_norm
// CHECK-NEXT: return
// CHECK-NOT: @{{[a-z_0-9]+_}}1
func.func @embeddings(%tokens: tensor<5xi32>) -> tensor<5x8xf32> attributes {kiln.entry} {
  %wte = kiln.parameter {sources = ["wte"]} : tensor<50x8xf32>
  %wpe = kiln.parameter {sources = ["wpe"]} : tensor<9x8xf32>
  %w = kiln.parameter {sources = ["w"]} : tensor<8xf32>
  %e = kiln.embedding %tokens, %wte : (tensor<5xi32>, tensor<50x8xf32>) -> tensor<5x8xf32>
  %p = kiln.positions %tokens axis = 0 : (tensor<5xi32>) -> tensor<5xi32>
  %f = kiln.embedding %p, %wpe : (tensor<5xi32>, tensor<9x8xf32>) -> tensor<5x8xf32>
  %x = kiln.add %e, %f : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %n = kiln.layer_norm %x, %w, %w epsilon = 1.0e-5 : (tensor<5x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<5x8xf32>
  return %n : tensor<5x8xf32>
}

// -----

// Attention reads its slices of a merged projection in place, through a view with the heads as an axis.
// CHECK: func.func private @attention_0(%{{.*}}: tensor<5x3x2x4xf32>) -> tensor<5x2x4xf32>
// CHECK-COUNT-3: kiln.slice
// CHECK: kiln.attention
// CHECK: func.func @attention
// CHECK: kiln.reshape %arg0 : tensor<5x24xf32> -> tensor<5x3x2x4xf32>
func.func @attention(%qkv: tensor<5x24xf32>) -> tensor<5x8xf32> attributes {kiln.entry} {
  %q = kiln.slice %qkv axis = 1 start = 0 : tensor<5x24xf32> -> tensor<5x8xf32>
  %k = kiln.slice %qkv axis = 1 start = 8 : tensor<5x24xf32> -> tensor<5x8xf32>
  %v = kiln.slice %qkv axis = 1 start = 16 : tensor<5x24xf32> -> tensor<5x8xf32>
  %y = kiln.attention %q, %k, %v heads = 2 scale = 5.0e-1 causal : (tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// Grouped-query attention: queries, keys and values are views of the heads of the merged projection.
// CHECK: func.func private @attention_0(%{{.*}}: tensor<5x6x4xf32>) -> tensor<5x4x4xf32>
// CHECK-COUNT-3: kiln.slice
// CHECK: kiln.attention
// CHECK: func.func @grouped
// CHECK: kiln.reshape %arg0 : tensor<5x24xf32> -> tensor<5x6x4xf32>
func.func @grouped(%vkq: tensor<5x24xf32>) -> tensor<5x16xf32> attributes {kiln.entry} {
  %v = kiln.slice %vkq axis = 1 start = 0 : tensor<5x24xf32> -> tensor<5x4xf32>
  %k = kiln.slice %vkq axis = 1 start = 4 : tensor<5x24xf32> -> tensor<5x4xf32>
  %q = kiln.slice %vkq axis = 1 start = 8 : tensor<5x24xf32> -> tensor<5x16xf32>
  %y = kiln.attention %q, %k, %v heads = 4 key_value_heads = 1 scale = 5.0e-1 causal : (tensor<5x16xf32>, tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x16xf32>
  return %y : tensor<5x16xf32>
}

// -----

// The attention computes a cheap mask for each score, so the mask is not stored.
// CHECK: func.func private @mul_attention_0(
// CHECK: kiln.mul
// CHECK: kiln.attention
// CHECK: func.func @mask
// CHECK-NOT: kiln.mul
func.func @mask(%x: tensor<5x8xf32>, %distance: tensor<5x5xf32>, %slope: tensor<2x1x1xf32>) -> tensor<5x8xf32> attributes {kiln.entry} {
  %m = kiln.mul %distance, %slope : (tensor<5x5xf32>, tensor<2x1x1xf32>) -> tensor<2x5x5xf32>
  %y = kiln.attention %x, %x, %x mask %m heads = 2 scale = 5.0e-1 : (tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<2x5x5xf32>) -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// A costly mask is computed once.
// CHECK-DAG: func.func private @exp_{{[0-9]}}
// CHECK-DAG: func.func private @attention_{{[0-9]}}
// CHECK: func.func @stored_mask
func.func @stored_mask(%x: tensor<5x8xf32>, %distance: tensor<5x5xf32>) -> tensor<5x8xf32> attributes {kiln.entry} {
  %m = kiln.exp %distance : tensor<5x5xf32>
  %y = kiln.attention %x, %x, %x mask %m heads = 2 scale = 5.0e-1 : (tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x5xf32>) -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// Values that a broadcast would recompute for each row are computed once, in a separate kernel.
// CHECK: func.func private @exp_0
// CHECK: kiln.exp
// CHECK-NEXT: return
// CHECK: func.func private @mul_1
// CHECK: kiln.mul
func.func @no_repeated_work(%x: tensor<5x8xf32>, %s: tensor<8xf32>) -> tensor<5x8xf32> attributes {kiln.entry} {
  %e = kiln.exp %s : tensor<8xf32>
  %y = kiln.mul %x, %e : (tensor<5x8xf32>, tensor<8xf32>) -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// The frequencies of the sinusoidal encoding are a table: units of 2^-32 turns, what is left of one, phase.
// CHECK: kiln.sinusoid
// CHECK: func.func @sinusoidal
// CHECK: kiln.constant dense<{{.*}}> : tensor<3x4xi32>
func.func @sinusoidal(%tokens: tensor<5xi32>) -> tensor<5x4xf32> attributes {kiln.entry} {
  %p = kiln.positions %tokens axis = 0 : (tensor<5xi32>) -> tensor<5xi32>
  %e = kiln.sinusoidal %p : (tensor<5xi32>) -> tensor<5x4xf32>
  return %e : tensor<5x4xf32>
}

// -----

// Frequencies of 2 pi and pi / 2 make one turn, which is 0 units, and a quarter. f32 positions need the turns as floats
// (0x3F800000, 0x3E800000), and the last row has the axes of the pairs.
// CHECK: func.func @pairs
// CHECK: kiln.constant dense<{{\[\[}}0, 0, 1073741824, 1073741824], [{{.*}}], [0, 1073741824, 0, 1073741824], [1065353216, 1065353216, 1048576000, 1048576000], [1, 1, 0, 0]]> : tensor<5x4xi32>
func.func @pairs(%p: tensor<2x5xf32>) -> tensor<5x4xf32> attributes {kiln.entry} {
  %e = kiln.sinusoidal %p frequencies = [6.283185307179586, 1.5707963267948966] axes = [1, 0] : (tensor<2x5xf32>) -> tensor<5x4xf32>
  return %e : tensor<5x4xf32>
}

// -----

// Each activation, a scale and a residual are fused into the contraction's kernel as its epilogue.
// CHECK: func.func private @linear_gelu_0
// CHECK: kiln.linear
// CHECK-NEXT: kiln.gelu
// CHECK-NEXT: return
// CHECK: func.func private @linear_silu_mul_1
// CHECK: kiln.linear
// CHECK-NEXT: kiln.silu
// CHECK-NEXT: kiln.mul
// CHECK-NEXT: return
// CHECK: func.func private @linear_tanh_add_2
// CHECK: kiln.linear
// CHECK-NEXT: kiln.tanh
// CHECK-NEXT: kiln.add
// CHECK-NEXT: return
// CHECK-NOT: @{{[a-z_0-9]+_}}3
func.func @epilogues(%x: tensor<5x8xf32>) -> (tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>) attributes {kiln.entry} {
  %u = kiln.parameter {sources = ["u"]} : tensor<8x8xf32>
  %v = kiln.parameter {sources = ["v"]} : tensor<8x8xf32>
  %w = kiln.parameter {sources = ["w"]} : tensor<8x8xf32>
  %half = kiln.constant dense<0.5> : tensor<f32>
  %a = kiln.linear %x, %u weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xf32>
  %gelu = kiln.gelu %a : tensor<5x8xf32>
  %b = kiln.linear %x, %v weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xf32>
  %silu = kiln.silu %b : tensor<5x8xf32>
  %scaled = kiln.mul %silu, %half : (tensor<5x8xf32>, tensor<f32>) -> tensor<5x8xf32>
  %c = kiln.linear %x, %w weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xf32>
  %tanh = kiln.tanh %c : tensor<5x8xf32>
  %sum = kiln.add %x, %tanh : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %gelu, %scaled, %sum : tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>
}

// -----

// A batch norm after a convolution is its epilogue; root and quotient of the channels are computed once, separately.
// CHECK: func.func private @sqrt_div_0
// CHECK: kiln.sqrt
// CHECK-NEXT: kiln.div
// CHECK-NEXT: return
// CHECK: func.func private @conv2d_sub_mul_1
// CHECK: kiln.conv2d
// CHECK-NEXT: kiln.sub
// CHECK-NEXT: kiln.mul
// CHECK-NEXT: kiln.relu
// CHECK-NEXT: return
// CHECK-NOT: @{{[a-z_0-9]+_}}2
func.func @batch_norm(%x: tensor<7x9x5xf32>) -> tensor<7x9x8xf32> attributes {kiln.entry} {
  %w = kiln.parameter {sources = ["conv.weight"]} : tensor<8x5x3x3xf32>
  %mean = kiln.parameter {sources = ["norm.running_mean"]} : tensor<8xf32>
  %variance = kiln.parameter {sources = ["norm.running_var"]} : tensor<8xf32>
  %scale = kiln.parameter {sources = ["norm.weight"]} : tensor<8xf32>
  %y = kiln.conv2d %x, %w stride = [1, 1] padding = [1, 1] dilation = [1, 1] groups = 1 : (tensor<7x9x5xf32>, tensor<8x5x3x3xf32>) -> tensor<7x9x8xf32>
  %root = kiln.sqrt %variance : tensor<8xf32>
  %factor = kiln.div %scale, %root : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %0 = kiln.sub %y, %mean : (tensor<7x9x8xf32>, tensor<8xf32>) -> tensor<7x9x8xf32>
  %1 = kiln.mul %0, %factor : (tensor<7x9x8xf32>, tensor<8xf32>) -> tensor<7x9x8xf32>
  %2 = kiln.relu %1 : tensor<7x9x8xf32>
  return %2 : tensor<7x9x8xf32>
}
