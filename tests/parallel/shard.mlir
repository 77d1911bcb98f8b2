// SPDX-License-Identifier: Apache-2.0
// RUN: kiln-opt %s --split-input-file --pass-pipeline='builtin.module(kiln-shard{ranks=2})' | FileCheck %s
// RUN: kiln-opt %s --split-input-file --pass-pipeline='builtin.module(kiln-shard{ranks=2 parts=4},kiln-reduction-parts)' | FileCheck %s --check-prefix=PARTS
// RUN: kiln-opt %s --split-input-file --pass-pipeline='builtin.module(kiln-shard{ranks=2 sums-half})' | FileCheck %s --check-prefix=SHORT

// A perceptron: the first layer is split by outputs, with its bias; the second by inputs, and its bias is added once.
// CHECK: module attributes {kiln.ranks = 2 : i64, kiln.shards = {fc1.bias = #kiln.shard<0, [32]>, fc1.weight = #kiln.shard<0, [32]>, fc2.weight = #kiln.shard<1, [32]>}}
// CHECK-LABEL: @perceptron
// CHECK: %[[X:.*]] = kiln.to_ranks %arg0
// CHECK: %[[W1:.*]] = kiln.parameter {sources = ["fc1.weight"]} : tensor<16x8xf32>
// CHECK: %[[B1:.*]] = kiln.parameter {sources = ["fc1.bias"]} : tensor<16xf32>
// CHECK: %[[H:.*]] = kiln.linear %[[X]], %[[W1]], %[[B1]]
// CHECK: %[[A:.*]] = kiln.gelu %[[H]] : tensor<5x16xf32>
// CHECK: %[[W2:.*]] = kiln.parameter {sources = ["fc2.weight"]} : tensor<8x16xf32>
// CHECK: %[[B2:.*]] = kiln.parameter {sources = ["fc2.bias"]} : tensor<8xf32>
// CHECK: %[[P:.*]] = kiln.linear %[[A]], %[[W2]] weight_order
// CHECK: %[[S:.*]] = kiln.all_reduce %[[P]] : tensor<5x8xf32>
// CHECK: %[[Y:.*]] = kiln.add %[[S]], %[[B2]]
// CHECK: return %[[Y]]
// With four sum parts each rank adds its two, gathers the sums of both ranks, and adds them.
// PARTS: kiln.reduction_parts = 4 : i64, kiln.shards = {fc1.bias = {{.*}}}}
// PARTS-LABEL: @perceptron
// PARTS: %[[XS:.*]] = kiln.transpose {{.*}} : (tensor<5x2x8xf32>) -> tensor<2x5x8xf32>
// PARTS: %[[WS:.*]] = kiln.transpose {{.*}} : (tensor<8x2x8xf32>) -> tensor<2x8x8xf32>
// PARTS: kiln.matmul %[[XS]], %[[WS]] transpose_b
// PARTS: %[[OWN:.*]] = kiln.add
// PARTS-NOT: kiln.add
// PARTS: kiln.all_gather %[[OWN]] : tensor<5x8xf32> -> tensor<2x5x8xf32>
// PARTS: %[[ALL:.*]] = kiln.add
// PARTS: kiln.add %[[ALL]], %{{.*}} : (tensor<5x8xf32>, tensor<8xf32>)
// PARTS-LABEL: @attention
// PARTS: kiln.matmul {{.*}} : (tensor<2x5x2xf32>, tensor<2x2x8xf32>)
// PARTS-LABEL: @look
// PARTS: kiln.all_gather
func.func @perceptron(%x: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %w1 = kiln.parameter {sources = ["fc1.weight"]} : tensor<32x8xf32>
  %b1 = kiln.parameter {sources = ["fc1.bias"]} : tensor<32xf32>
  %h = kiln.linear %x, %w1, %b1 weight_order = out_in : (tensor<5x8xf32>, tensor<32x8xf32>, tensor<32xf32>) -> tensor<5x32xf32>
  %a = kiln.gelu %h : tensor<5x32xf32>
  %w2 = kiln.parameter {sources = ["fc2.weight"]} : tensor<8x32xf32>
  %b2 = kiln.parameter {sources = ["fc2.bias"]} : tensor<8xf32>
  %y = kiln.linear %a, %w2, %b2 weight_order = out_in : (tensor<5x32xf32>, tensor<8x32xf32>, tensor<8xf32>) -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// Attention of one layer, whose weight is stored [in, out] and has sections for queries, keys and values. Rotary
// positions are applied to each head, and stay in place.
// CHECK: kiln.shards = {c_attn.weight = #kiln.shard<1, [8, 8, 8]>, c_proj.weight = #kiln.shard<0, [8]>}
// CHECK-LABEL: @attention
// CHECK: %[[QKV:.*]] = kiln.linear {{.*}} -> tensor<5x12xf32>
// CHECK: kiln.slice %[[QKV]] axis = 1 start = 0 : tensor<5x12xf32> -> tensor<5x4xf32>
// CHECK: kiln.slice %[[QKV]] axis = 1 start = 4 : tensor<5x12xf32> -> tensor<5x4xf32>
// CHECK: kiln.slice %[[QKV]] axis = 1 start = 8 : tensor<5x12xf32> -> tensor<5x4xf32>
// CHECK: kiln.reshape {{.*}} : tensor<5x4xf32> -> tensor<5x2x1x2xf32>
// CHECK: kiln.constant dense<2.000000e+00> : tensor<2x1x2xf32>
// CHECK: kiln.mul {{.*}} -> tensor<5x2x1x2xf32>
// CHECK: kiln.attention {{.*}} heads = 2
// CHECK: kiln.linear {{.*}} (tensor<5x4xf32>, tensor<4x8xf32>) -> tensor<5x8xf32>
// CHECK: kiln.all_reduce
func.func @attention(%x: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %w = kiln.parameter {sources = ["c_attn.weight"]} : tensor<8x24xf32>
  %qkv = kiln.linear %x, %w weight_order = in_out : (tensor<5x8xf32>, tensor<8x24xf32>) -> tensor<5x24xf32>
  %q = kiln.slice %qkv axis = 1 start = 0 : tensor<5x24xf32> -> tensor<5x8xf32>
  %k = kiln.slice %qkv axis = 1 start = 8 : tensor<5x24xf32> -> tensor<5x8xf32>
  %v = kiln.slice %qkv axis = 1 start = 16 : tensor<5x24xf32> -> tensor<5x8xf32>
  %heads = kiln.reshape %q : tensor<5x8xf32> -> tensor<5x4x1x2xf32>
  %two = kiln.constant dense<2.0> : tensor<4x1x2xf32>
  %turned = kiln.mul %heads, %two : (tensor<5x4x1x2xf32>, tensor<4x1x2xf32>) -> tensor<5x4x1x2xf32>
  %rows = kiln.reshape %turned : tensor<5x4x1x2xf32> -> tensor<5x8xf32>
  %y = kiln.attention %rows, %k, %v heads = 4 scale = 5.0e-1 : (tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %o = kiln.parameter {sources = ["c_proj.weight"]} : tensor<8x8xf32>
  %z = kiln.linear %y, %o weight_order = in_out : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xf32>
  return %z : tensor<5x8xf32>
}

// -----

// Grouped-query attention in one weight: the sections have different widths.
// CHECK: kiln.shards = {output.weight = #kiln.shard<1, [16]>, qkv.weight = #kiln.shard<0, [16, 8, 8]>}
// CHECK-LABEL: @fewer_keys
// CHECK: %[[QKV:.*]] = kiln.linear {{.*}} -> tensor<5x16xf32>
// CHECK: kiln.slice %[[QKV]] axis = 1 start = 0 : tensor<5x16xf32> -> tensor<5x8xf32>
// CHECK: kiln.slice %[[QKV]] axis = 1 start = 8 : tensor<5x16xf32> -> tensor<5x4xf32>
// CHECK: kiln.slice %[[QKV]] axis = 1 start = 12 : tensor<5x16xf32> -> tensor<5x4xf32>
// CHECK: kiln.attention {{.*}} heads = 4 key_value_heads = 2
// CHECK: kiln.all_reduce
func.func @fewer_keys(%x: tensor<5x16xf32>) -> tensor<5x16xf32> {
  %w = kiln.parameter {sources = ["qkv.weight"]} : tensor<32x16xf32>
  %qkv = kiln.linear %x, %w weight_order = out_in : (tensor<5x16xf32>, tensor<32x16xf32>) -> tensor<5x32xf32>
  %q = kiln.slice %qkv axis = 1 start = 0 : tensor<5x32xf32> -> tensor<5x16xf32>
  %k = kiln.slice %qkv axis = 1 start = 16 : tensor<5x32xf32> -> tensor<5x8xf32>
  %v = kiln.slice %qkv axis = 1 start = 24 : tensor<5x32xf32> -> tensor<5x8xf32>
  %y = kiln.attention %q, %k, %v heads = 8 key_value_heads = 4 scale = 5.0e-1 : (tensor<5x16xf32>, tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x16xf32>
  %o = kiln.parameter {sources = ["output.weight"]} : tensor<16x16xf32>
  %z = kiln.linear %y, %o weight_order = out_in : (tensor<5x16xf32>, tensor<16x16xf32>) -> tensor<5x16xf32>
  return %z : tensor<5x16xf32>
}

// -----

// A cache has a rank's heads, also in the entry that only fills it. Values that are normalised over all features, and
// results of an entry, are not split.
// CHECK-LABEL: @remember
// CHECK: kiln.append {{.*}} : tensor<2x4xf32> -> tensor<2x4xf32>
// CHECK-LABEL: @look
// CHECK: kiln.state "keys" rows = 2 : tensor<2x4xf32>
// CHECK: kiln.all_reduce
// CHECK-LABEL: @normalised
// CHECK-NOT: kiln.all_reduce
// CHECK-LABEL: @given
// CHECK-NOT: kiln.all_reduce
module {
  func.func @remember(%x: tensor<2x8xf32>) {
    %w = kiln.parameter {sources = ["k.weight"]} : tensor<8x8xf32>
    %k = kiln.linear %x, %w weight_order = out_in : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
    %all = kiln.append %k to "keys" rows = 2 : tensor<2x8xf32> -> tensor<2x8xf32>
    return
  }
  func.func @look(%x: tensor<5x8xf32>) -> tensor<5x8xf32> {
    %w = kiln.parameter {sources = ["q.weight"]} : tensor<8x8xf32>
    %q = kiln.linear %x, %w weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xf32>
    %k = kiln.state "keys" rows = 2 : tensor<2x8xf32>
    %y = kiln.attention %q, %k, %k heads = 4 scale = 5.0e-1 : (tensor<5x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<5x8xf32>
    %o = kiln.parameter {sources = ["o.weight"]} : tensor<8x8xf32>
    %z = kiln.linear %y, %o weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xf32>
    return %z : tensor<5x8xf32>
  }
  func.func @normalised(%x: tensor<5x8xf32>) -> tensor<5x8xf32> {
    %w1 = kiln.parameter {sources = ["n1.weight"]} : tensor<8x8xf32>
    %h = kiln.linear %x, %w1 weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xf32>
    %n = kiln.parameter {sources = ["norm.weight"]} : tensor<8xf32>
    %a = kiln.rms_norm %h, %n epsilon = 1.0e-6 : (tensor<5x8xf32>, tensor<8xf32>) -> tensor<5x8xf32>
    %w2 = kiln.parameter {sources = ["n2.weight"]} : tensor<8x8xf32>
    %y = kiln.linear %a, %w2 weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xf32>
    return %y : tensor<5x8xf32>
  }
  func.func @given(%x: tensor<5x8xf32>) -> (tensor<5x8xf32>, tensor<5x8xf32>) {
    %w1 = kiln.parameter {sources = ["g1.weight"]} : tensor<8x8xf32>
    %h = kiln.linear %x, %w1 weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xf32>
    %w2 = kiln.parameter {sources = ["g2.weight"]} : tensor<8x8xf32>
    %y = kiln.linear %h, %w2 weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xf32>
    return %h, %y : tensor<5x8xf32>, tensor<5x8xf32>
  }
}

// -----

// Each rank has one of two key heads for two of four query heads; seven features cannot be split.
// CHECK: kiln.shards = {k.weight = #kiln.shard<0, [4]>, o.weight = #kiln.shard<1, [8]>, q.weight = #kiln.shard<0, [8]>}
// CHECK: kiln.attention {{.*}} heads = 2 key_value_heads = 1
func.func @grouped(%x: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %wq = kiln.parameter {sources = ["q.weight"]} : tensor<8x8xf32>
  %q = kiln.linear %x, %wq weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xf32>
  %wk = kiln.parameter {sources = ["k.weight"]} : tensor<4x8xf32>
  %k = kiln.linear %x, %wk weight_order = out_in : (tensor<5x8xf32>, tensor<4x8xf32>) -> tensor<5x4xf32>
  %y = kiln.attention %q, %k, %k heads = 4 key_value_heads = 2 scale = 5.0e-1 : (tensor<5x8xf32>, tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x8xf32>
  %o = kiln.parameter {sources = ["o.weight"]} : tensor<8x8xf32>
  %z = kiln.linear %y, %o weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xf32>
  %w1 = kiln.parameter {sources = ["fc1.weight"]} : tensor<7x8xf32>
  %h = kiln.linear %z, %w1 weight_order = out_in : (tensor<5x8xf32>, tensor<7x8xf32>) -> tensor<5x7xf32>
  %w2 = kiln.parameter {sources = ["fc2.weight"]} : tensor<8x7xf32>
  %u = kiln.linear %h, %w2 weight_order = out_in : (tensor<5x7xf32>, tensor<8x7xf32>) -> tensor<5x8xf32>
  return %u : tensor<5x8xf32>
}

// -----

// The loss of logits with a split table: for each row the ranks gather the maxima, and add up the sums of e^x and the
// target's logit. No tensor with all columns remains.
// CHECK: kiln.shards = {{.*}}table = #kiln.shard<0, [64]>
// CHECK-LABEL: @loss
// CHECK-NOT: 5x64x
// CHECK: %[[SMALL:.*]] = kiln.tanh {{.*}} : tensor<5x32xf32>
// CHECK: kiln.rank
// CHECK: %[[OWN:.*]] = kiln.max %[[SMALL]] axis = 1
// CHECK: %[[STOP:.*]] = kiln.stop_gradient %[[OWN]]
// CHECK: kiln.all_gather %[[STOP]] : tensor<5xf32> -> tensor<2x5xf32>
// CHECK: %[[CENTRED:.*]] = kiln.sub %[[SMALL]]
// CHECK: %[[EXP:.*]] = kiln.exp %[[CENTRED]]
// CHECK: %[[SUM:.*]] = kiln.sum %[[EXP]] axis = 1
// CHECK: %[[ALL:.*]] = kiln.all_reduce %[[SUM]] : tensor<5xf32>
// CHECK: %[[LOG:.*]] = kiln.log %[[ALL]]
// CHECK: %[[IS:.*]] = kiln.equal
// CHECK: %[[AT:.*]] = kiln.where %[[IS]], %[[CENTRED]]
// CHECK: %[[PICKED:.*]] = kiln.sum %[[AT]] axis = 1
// CHECK: %[[TARGET:.*]] = kiln.all_reduce %[[PICKED]] : tensor<5xf32>
// CHECK: kiln.sub %[[TARGET]], %[[LOG]]
// CHECK-NOT: 5x64x
// Logits that another operation reads are gathered, here for the mean of given likelihoods.
// CHECK-LABEL: @given_loss
// CHECK: kiln.all_gather {{.*}} -> tensor<2x5x32xf32>
// CHECK: kiln.log_softmax {{.*}} tensor<5x64xf32>
func.func @loss(%x: tensor<5x8xf32>, %targets: tensor<5x1xi32>) -> (tensor<5xf32>, tensor<i32>) {
  %w1 = kiln.parameter {sources = ["fc1.weight"]} : tensor<32x8xf32>
  %h = kiln.linear %x, %w1 weight_order = out_in : (tensor<5x8xf32>, tensor<32x8xf32>) -> tensor<5x32xf32>
  %w2 = kiln.parameter {sources = ["fc2.weight"]} : tensor<8x32xf32>
  %y = kiln.linear %h, %w2 weight_order = out_in : (tensor<5x32xf32>, tensor<8x32xf32>) -> tensor<5x8xf32>
  %table = kiln.parameter {sources = ["table"]} : tensor<64x8xf32>
  %logits = kiln.linear %y, %table weight_order = out_in : (tensor<5x8xf32>, tensor<64x8xf32>) -> tensor<5x64xf32>
  %small = kiln.tanh %logits : tensor<5x64xf32>
  %classes = kiln.positions %logits axis = 1 : (tensor<5x64xf32>) -> tensor<64xi32>
  %last = kiln.max %classes axis = 0 : (tensor<64xi32>) -> tensor<i32>
  %is = kiln.equal %targets, %classes : (tensor<5x1xi32>, tensor<64xi32>) -> tensor<5x64xi1>
  %likely = kiln.log_softmax %small axis = 1 : tensor<5x64xf32>
  %zero = kiln.constant dense<0.0> : tensor<f32>
  %at = kiln.where %is, %likely, %zero : (tensor<5x64xi1>, tensor<5x64xf32>, tensor<f32>) -> tensor<5x64xf32>
  %picked = kiln.sum %at axis = 1 : (tensor<5x64xf32>) -> tensor<5xf32>
  return %picked, %last : tensor<5xf32>, tensor<i32>
}
func.func @given_loss(%x: tensor<5x8xf32>) -> (tensor<5xf32>, tensor<5x64xf32>) {
  %table = kiln.parameter {sources = ["table"]} : tensor<64x8xf32>
  %logits = kiln.linear %x, %table weight_order = out_in : (tensor<5x8xf32>, tensor<64x8xf32>) -> tensor<5x64xf32>
  %likely = kiln.log_softmax %logits axis = 1 : tensor<5x64xf32>
  %mean = kiln.mean %likely axis = 1 : (tensor<5x64xf32>) -> tensor<5xf32>
  return %mean, %likely : tensor<5xf32>, tensor<5x64xf32>
}

// -----

// The ranks do not divide the vocabulary: both have 33 rows, and row 32 is the first rank's. The second rank never
// looks it up, and omits its logits from the gathered ones and from the loss.
// CHECK: kiln.shards = {{.*}}table = #kiln.shard<0, [65]>
// CHECK-LABEL: @uneven
// CHECK: %[[RANK:.*]] = kiln.rank : tensor<i32>
// CHECK: %[[LAST:.*]] = kiln.equal %[[RANK]]
// CHECK: %[[SKIPPED:.*]] = kiln.where %[[LAST]]
// CHECK: %[[OWN:.*]] = kiln.sub %arg0
// CHECK: kiln.less_equal %[[SKIPPED]], %[[OWN]]
// CHECK: kiln.all_gather {{.*}} -> tensor<2x5x33xf32>
// CHECK: %[[ALL:.*]] = kiln.reshape {{.*}} -> tensor<5x66xf32>
// CHECK: %[[BEFORE:.*]] = kiln.slice %[[ALL]] axis = 1 start = 0 : tensor<5x66xf32> -> tensor<5x33xf32>
// CHECK: %[[AFTER:.*]] = kiln.slice %[[ALL]] axis = 1 start = 34 : tensor<5x66xf32> -> tensor<5x32xf32>
// CHECK: kiln.concat %[[BEFORE]], %[[AFTER]] axis = 1
// CHECK-LABEL: @uneven_loss
// CHECK: %[[OWN:.*]] = kiln.less_equal
// CHECK: %[[LOGITS:.*]] = kiln.where %[[OWN]], {{.*}} -> tensor<5x33xf32>
// CHECK: kiln.max %[[LOGITS]] axis = 1
func.func @uneven(%words: tensor<5xi32>) -> tensor<5x65xf32> {
  %table = kiln.parameter {sources = ["table"]} : tensor<65x8xf32>
  %x = kiln.embedding %words, %table : (tensor<5xi32>, tensor<65x8xf32>) -> tensor<5x8xf32>
  %logits = kiln.linear %x, %table weight_order = out_in : (tensor<5x8xf32>, tensor<65x8xf32>) -> tensor<5x65xf32>
  return %logits : tensor<5x65xf32>
}
func.func @uneven_loss(%x: tensor<5x8xf32>, %targets: tensor<5x1xi32>) -> tensor<5xf32> {
  %w1 = kiln.parameter {sources = ["fc1.weight"]} : tensor<32x8xf32>
  %h = kiln.linear %x, %w1 weight_order = out_in : (tensor<5x8xf32>, tensor<32x8xf32>) -> tensor<5x32xf32>
  %w2 = kiln.parameter {sources = ["fc2.weight"]} : tensor<8x32xf32>
  %y = kiln.linear %h, %w2 weight_order = out_in : (tensor<5x32xf32>, tensor<8x32xf32>) -> tensor<5x8xf32>
  %table = kiln.parameter {sources = ["table"]} : tensor<65x8xf32>
  %logits = kiln.linear %y, %table weight_order = out_in : (tensor<5x8xf32>, tensor<65x8xf32>) -> tensor<5x65xf32>
  %classes = kiln.positions %logits axis = 1 : (tensor<5x65xf32>) -> tensor<65xi32>
  %is = kiln.equal %targets, %classes : (tensor<5x1xi32>, tensor<65xi32>) -> tensor<5x65xi1>
  %likely = kiln.log_softmax %logits axis = 1 : tensor<5x65xf32>
  %zero = kiln.constant dense<0.0> : tensor<f32>
  %at = kiln.where %is, %likely, %zero : (tensor<5x65xi1>, tensor<5x65xf32>, tensor<f32>) -> tensor<5x65xf32>
  %picked = kiln.sum %at axis = 1 : (tensor<5x65xf32>) -> tensor<5xf32>
  return %picked : tensor<5xf32>
}

// -----

// One key head for two ranks: both have a copy, also of the cache. Where it is trained, each rank computes all heads,
// gets the gradient of all, and selects its own.
// CHECK: kiln.shards = {k.weight = #kiln.shard<0, [2], group = 2>, o.weight
// CHECK-LABEL: @shared
// CHECK: %[[KEYS:.*]] = kiln.append {{.*}} : tensor<5x2xf32> -> tensor<5x2xf32>
// CHECK: kiln.attention %{{.*}}, %[[KEYS]], %[[KEYS]] heads = 2 key_value_heads = 1
func.func @shared(%x: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %wq = kiln.parameter {sources = ["q.weight"]} : tensor<8x8xf32>
  %q = kiln.linear %x, %wq weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xf32>
  %wk = kiln.parameter {sources = ["k.weight"]} : tensor<2x8xf32>
  %k = kiln.linear %x, %wk weight_order = out_in : (tensor<5x8xf32>, tensor<2x8xf32>) -> tensor<5x2xf32>
  %all = kiln.append %k to "keys" rows = 5 : tensor<5x2xf32> -> tensor<5x2xf32>
  %y = kiln.attention %q, %all, %all heads = 4 key_value_heads = 1 scale = 5.0e-1 : (tensor<5x8xf32>, tensor<5x2xf32>, tensor<5x2xf32>) -> tensor<5x8xf32>
  %o = kiln.parameter {sources = ["o.weight"]} : tensor<8x8xf32>
  %z = kiln.linear %y, %o weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xf32>
  return %z : tensor<5x8xf32>
}

// -----

// CHECK: kiln.shards = {o.weight = #kiln.shard<1, [8]>, q.weight = #kiln.shard<0, [8]>}
// CHECK-LABEL: @shared_in_training
// CHECK: %[[K:.*]] = kiln.linear %arg0, {{.*}} -> tensor<5x2xf32>
// CHECK: %[[TO:.*]] = kiln.to_ranks %[[K]]
// CHECK: %[[HEADS:.*]] = kiln.reshape %[[TO]] : tensor<5x2xf32> -> tensor<5x1x2xf32>
// CHECK: kiln.gather %[[HEADS]], %{{.*}} axis = 1 : (tensor<5x1x2xf32>, tensor<i32>) -> tensor<5x2xf32>
// CHECK: kiln.attention {{.*}} heads = 2 key_value_heads = 1
// With four parts each part has the key head, and a rank reads two.
// PARTS-LABEL: @shared_in_training
// PARTS: %[[K:.*]] = kiln.linear {{.*}} -> tensor<5x2xf32>
// PARTS-NOT: kiln.to_ranks %[[K]]
// PARTS: kiln.expand {{.*}} -> tensor<5x1x4x2xf32>
// PARTS: kiln.gather {{.*}} axis = 1 : (tensor<5x2x2x2xf32>, tensor<i32>) -> tensor<5x2x2xf32>
// PARTS: kiln.attention {{.*}} heads = 2 key_value_heads = 2
func.func @shared_in_training(%x: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %wq = kiln.parameter {sources = ["q.weight"], variable} : tensor<8x8xf32>
  %q = kiln.linear %x, %wq weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xf32>
  %wk = kiln.parameter {sources = ["k.weight"], variable} : tensor<2x8xf32>
  %k = kiln.linear %x, %wk weight_order = out_in : (tensor<5x8xf32>, tensor<2x8xf32>) -> tensor<5x2xf32>
  %y = kiln.attention %q, %k, %k heads = 4 key_value_heads = 1 scale = 5.0e-1 : (tensor<5x8xf32>, tensor<5x2xf32>, tensor<5x2xf32>) -> tensor<5x8xf32>
  %o = kiln.parameter {sources = ["o.weight"], variable} : tensor<8x8xf32>
  %z = kiln.linear %y, %o weight_order = out_in : (tensor<5x8xf32>, tensor<8x8xf32>) -> tensor<5x8xf32>
  return %z : tensor<5x8xf32>
}

// -----

// A rank reads the weights of two of the four parts of a norm of heads. Columns with one for each part stay unsplit.
// PARTS-LABEL: @norm_in_training
// PARTS: %[[ROWS:.*]] = kiln.rms_norm {{.*}} : (tensor<5x4x2xf32>, tensor<2xf32>)
// PARTS: %[[BY:.*]] = kiln.reshape %[[ROWS]] : tensor<5x4x2xf32> -> tensor<5x2x2x2xf32>
// PARTS: %[[FIRST:.*]] = kiln.transpose %[[BY]] permutation = [1, 0, 2, 3]
// PARTS: %[[PARTS:.*]] = kiln.reshape %[[FIRST]] : {{.*}} -> tensor<2x10x2xf32>
// PARTS: kiln.expand {{.*}} : tensor<2xf32> -> tensor<4x2xf32>
// PARTS: %[[OWN:.*]] = kiln.gather {{.*}} axis = 0 : (tensor<2x2x2xf32>, tensor<i32>) -> tensor<2x2xf32>
// PARTS: %[[W:.*]] = kiln.reshape %[[OWN]] : tensor<2x2xf32> -> tensor<2x1x2xf32>
// PARTS: kiln.mul %[[PARTS]], %[[W]]
// PARTS: %[[C1:.*]] = kiln.parameter {sources = ["c1.weight"], variable} : tensor<4x8xf32>
func.func @norm_in_training(%x: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %w1 = kiln.parameter {sources = ["n1.weight"], variable} : tensor<16x8xf32>
  %h = kiln.linear %x, %w1 weight_order = out_in : (tensor<5x8xf32>, tensor<16x8xf32>) -> tensor<5x16xf32>
  %heads = kiln.reshape %h : tensor<5x16xf32> -> tensor<5x8x2xf32>
  %n = kiln.parameter {sources = ["norm.weight"], variable} : tensor<2xf32>
  %rows = kiln.rms_norm %heads, %n epsilon = 1.0e-6 : (tensor<5x8x2xf32>, tensor<2xf32>) -> tensor<5x8x2xf32>
  %joined = kiln.reshape %rows : tensor<5x8x2xf32> -> tensor<5x16xf32>
  %w2 = kiln.parameter {sources = ["n2.weight"], variable} : tensor<8x16xf32>
  %y = kiln.linear %joined, %w2 weight_order = out_in : (tensor<5x16xf32>, tensor<8x16xf32>) -> tensor<5x8xf32>
  %c1 = kiln.parameter {sources = ["c1.weight"], variable} : tensor<4x8xf32>
  %c = kiln.linear %y, %c1 weight_order = out_in : (tensor<5x8xf32>, tensor<4x8xf32>) -> tensor<5x4xf32>
  %c2 = kiln.parameter {sources = ["c2.weight"], variable} : tensor<8x4xf32>
  %z = kiln.linear %c, %c2 weight_order = out_in : (tensor<5x4xf32>, tensor<8x4xf32>) -> tensor<5x8xf32>
  return %z : tensor<5x8xf32>
}

// -----

// Sums of bf16 are computed in f32, unless the communicators support others.
// CHECK-LABEL: @short
// CHECK: %[[P:.*]] = kiln.linear {{.*}} -> tensor<5x8xbf16>
// CHECK: %[[W:.*]] = kiln.cast %[[P]] : tensor<5x8xbf16> -> tensor<5x8xf32>
// CHECK: %[[S:.*]] = kiln.all_reduce %[[W]] : tensor<5x8xf32>
// CHECK: %[[R:.*]] = kiln.cast %[[S]] : tensor<5x8xf32> -> tensor<5x8xbf16>
// CHECK: return %[[R]]
// SHORT-LABEL: @short
// SHORT: %[[P:.*]] = kiln.linear {{.*}} -> tensor<5x8xbf16>
// SHORT: %[[S:.*]] = kiln.all_reduce %[[P]] : tensor<5x8xbf16>
// SHORT: return %[[S]]
// PARTS-LABEL: @short
// PARTS: kiln.cast %{{.*}} : tensor<2x5x8xbf16> -> tensor<2x5x8xf32>
// PARTS: kiln.all_gather %{{.*}} : tensor<5x8xf32> -> tensor<2x5x8xf32>
// PARTS: kiln.cast %{{.*}} : tensor<5x8xf32> -> tensor<5x8xbf16>
func.func @short(%x: tensor<5x8xbf16>) -> tensor<5x8xbf16> {
  %w1 = kiln.parameter {sources = ["up"]} : tensor<32x8xbf16>
  %h = kiln.linear %x, %w1 weight_order = out_in : (tensor<5x8xbf16>, tensor<32x8xbf16>) -> tensor<5x32xbf16>
  %a = kiln.gelu %h : tensor<5x32xbf16>
  %w2 = kiln.parameter {sources = ["down"]} : tensor<8x32xbf16>
  %y = kiln.linear %a, %w2 weight_order = out_in : (tensor<5x32xbf16>, tensor<8x32xbf16>) -> tensor<5x8xbf16>
  return %y : tensor<5x8xbf16>
}
